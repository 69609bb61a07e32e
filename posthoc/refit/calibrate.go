// Package refit fits calibrations and thresholds to the heads of trained runs, and keeps them in their folders.
package refit

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"tessera"
	"tessera/data"
	"tessera/metrics"
	"tessera/posthoc"
)

var _ metrics.Metric = (*collector)(nil)

// Calibrated is the result of [Calibrate].
type Calibrated struct {
	Head        string               `json:"head"`
	Calibration *posthoc.Calibration `json:"calibration"`
	On          []CalibratedOn       `json:"on"` // the validation images, then the test images if the data set has any with labels
}

// CalibratedOn compares the probabilities of a head before and after its calibration on one split: accuracy, nll, ece, brier.
type CalibratedOn struct {
	Split  data.Split     `json:"split"`
	Fitted bool           `json:"fitted"` // the calibration was fitted to the images of this split
	Before metrics.Values `json:"before"`
	After  metrics.Values `json:"after"`
}

// calibrationMetrics are the metrics that [CalibratedOn] compares.
var calibrationMetrics = []string{"accuracy", "nll", "ece", "brier"}

// Calibrate fits a calibration to a head that predicts classes, on the validation images, and saves it in the folder of the
// run. method is one of [posthoc.Methods]. It replaces an earlier calibration of the head and removes the head's thresholds,
// which were fitted to other probabilities. Afterwards every value of the head is calibrated, in this Run and wherever the run
// is opened. An empty head selects the only head. The errors are the errors of [tessera.Run.EvaluateOn] for validation images, of
// [posthoc.Fit] and of the folder of the run.
func Calibrate(ctx context.Context, r *tessera.Run, head, method string) (*Calibrated, error) {
	head, err := r.ClassHead(head)
	if err != nil {
		return nil, err
	}
	raw := with(r.Heads(), head, posthoc.Head{})
	collected, err := collect(ctx, r, data.ValidationSplit, head, "", raw)
	if err != nil {
		return nil, err
	}
	c, err := posthoc.Fit(method, collected.logits, collected.labels)
	if err != nil {
		return nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: err.Error()}
	}
	c.Split = string(data.ValidationSplit)
	done := &Calibrated{Head: head, Calibration: c}
	splits, err := judgedOn(ctx, r, head)
	if err != nil {
		return nil, err
	}
	for _, split := range splits {
		if split != data.ValidationSplit {
			if collected, err = collect(ctx, r, split, head, "", raw); err != nil {
				return nil, err
			}
		}
		logits, labels := collected.logits, collected.labels
		on := CalibratedOn{Split: split, Fitted: split == data.ValidationSplit}
		if on.Before, err = measuredLogits(ctx, logits, labels); err != nil {
			return nil, err
		}
		c.Apply(logits, len(logits)/len(labels))
		if on.After, err = measuredLogits(ctx, logits, labels); err != nil {
			return nil, err
		}
		done.On = append(done.On, on)
	}
	return done, r.Refit(false, func(heads map[string]posthoc.Head) { heads[head] = posthoc.Head{Calibration: c} })
}

// with returns a copy of heads with another calibration and other thresholds of the named head.
func with(heads map[string]posthoc.Head, name string, head posthoc.Head) map[string]posthoc.Head {
	others := map[string]posthoc.Head{}
	maps.Copy(others, heads)
	others[name] = head
	return others
}

// judgedOn returns the splits on which a change of a head is judged: the validation samples, and the test samples if there are any with
// classes for the head that the run was not fitted to.
func judgedOn(ctx context.Context, r *tessera.Run, head string) ([]data.Split, error) {
	splits := []data.Split{data.ValidationSplit}
	if !data.HasTest(r.Model.Dataset.Source) || r.Model.Dataset.Fit == "test" {
		return splits, nil
	}
	sample, err := r.Sample(ctx, data.TestSplit)
	if err == nil && sample.Images.Classes(r.ClassColumn(head)) != nil {
		splits = append(splits, data.TestSplit)
	}
	return splits, err
}

// Logits returns the logits of a head for the images of a split, row by row, and the classes of the images, negative for
// unknown classes. An empty head selects the only head. The errors are the errors of [tessera.Run.EvaluateOn].
func Logits(ctx context.Context, r *tessera.Run, split data.Split, head string) ([]float32, []int, error) {
	head, err := r.ClassHead(head)
	if err != nil {
		return nil, nil, err
	}
	c, err := collect(ctx, r, split, head, "", r.Heads())
	if err != nil {
		return nil, nil, err
	}
	return c.logits, c.labels, nil
}

// collect returns the logits of a head with the classes of the samples of a split and, unless column is "", the groups of that column. The
// heads have the given calibrations and thresholds, whatever those of the run are.
func collect(ctx context.Context, r *tessera.Run, split data.Split, head, column string, heads map[string]posthoc.Head) (*collector, error) {
	sample, err := r.Sample(ctx, split, slices.DeleteFunc([]string{column}, func(name string) bool { return name == "" })...)
	if err != nil {
		return nil, err
	}
	if sample.Images.Classes(r.ClassColumn(head)) == nil {
		return nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: "its samples have no labels"}
	}
	c := &collector{head: head, column: column}
	if column != "" {
		groups, ok := sample.Images.Column(column)
		if !ok || groups.Type != data.Whole || groups.Size() != 1 {
			return nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: fmt.Sprintf("the column %q is not one of groups: want one whole number or text for each sample", column)}
		}
		c.names = groups.Names
	}
	_, err = r.EvaluateWith(ctx, sample, metrics.Selection{{Metric: c}}, heads)
	return c, err
}

// collector is a metric that stores the logits of a head.
type collector struct {
	head, column string
	logits       []float32
	labels       []int
	groups       []int
	names        []string // names of the groups
}

func (*collector) Describe() metrics.Description {
	return metrics.Description{Measures: []metrics.Measure{{Name: "collected", Doc: "number of samples"}}, Reads: metrics.ReadsLogits | metrics.ReadsLabels}
}

func (c *collector) Start(s *metrics.Subject) (metrics.Meter, error) {
	if s.Head != c.head {
		return metrics.Fixed(metrics.Number(0)), nil
	}
	return c, nil
}

func (c *collector) Add(b *metrics.Batch) error {
	c.logits, c.labels = append(c.logits, b.Logits...), append(c.labels, b.Labels...)
	for _, g := range b.Columns[c.column] {
		c.groups = append(c.groups, int(g))
	}
	return nil
}

func (c *collector) Values(context.Context) ([]metrics.Value, error) {
	return []metrics.Value{metrics.Number(float64(len(c.labels)))}, nil
}

// measuredLogits computes [calibrationMetrics] from logits.
func measuredLogits(ctx context.Context, logits []float32, labels []int) (values metrics.Values, err error) {
	for _, name := range calibrationMetrics {
		e, ok := metrics.Registry.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("tessera: there is no metric %q", name)
		}
		m := e.New()
		meter, err := m.Start(&metrics.Subject{Images: len(labels)})
		if err != nil {
			return nil, err
		}
		if err := meter.Add(&metrics.Batch{Logits: logits, Labels: labels}); err != nil {
			return nil, err
		}
		got, err := meter.Values(ctx)
		if err != nil {
			return nil, err
		}
		got[0].Name = name
		values = append(values, got[0])
	}
	return values, nil
}

// Remove removes all calibrations and thresholds of a run, even if their file is damaged.
func Remove(r *tessera.Run) error {
	return r.Refit(true, func(heads map[string]posthoc.Head) { clear(heads) })
}

// RemoveThresholds removes the thresholds of all heads of a run; calibrations remain.
func RemoveThresholds(r *tessera.Run) error {
	return r.Refit(false, func(heads map[string]posthoc.Head) {
		for name, h := range heads {
			if h.Thresholds = nil; h.Calibration == nil {
				delete(heads, name)
			} else {
				heads[name] = h
			}
		}
	})
}
