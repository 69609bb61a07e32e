package tessera

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tessera/attack"
	"tessera/data"
	"tessera/graph"
	"tessera/metrics"
	"tessera/posthoc"
)

// Calibrated is the result of [Run.Calibrate].
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
// is opened. An empty head selects the only head. The errors are the errors of [Run.EvaluateOn] for validation images, of
// [posthoc.Fit] and of [train.Trained.ChangePostHoc].
func (r *Run) Calibrate(ctx context.Context, head, method string) (*Calibrated, error) {
	head, err := r.classHead(head)
	if err != nil {
		return nil, err
	}
	raw := with(r.fitted(), head, posthoc.Head{})
	collected, err := r.collect(ctx, data.ValidationSplit, head, "", raw)
	if err != nil {
		return nil, err
	}
	c, err := posthoc.Fit(method, collected.logits, collected.labels)
	if err != nil {
		return nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: err.Error()}
	}
	c.Split = string(data.ValidationSplit)
	done := &Calibrated{Head: head, Calibration: c}
	splits, err := r.judgedOn(ctx, head)
	if err != nil {
		return nil, err
	}
	for _, split := range splits {
		if split != data.ValidationSplit {
			if collected, err = r.collect(ctx, split, head, "", raw); err != nil {
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
	return done, r.refit(r.options.Raw || r.Result != nil, func(heads map[string]posthoc.Head) { heads[head] = posthoc.Head{Calibration: c} })
}

// RemovePostHoc removes the calibrations and thresholds that were fitted to the heads of the run after its training.
func (r *Run) RemovePostHoc() error {
	return r.refit(true, func(heads map[string]posthoc.Head) { clear(heads) })
}

// PostHoc returns a description of the calibrations and thresholds of the heads, for example "class: temperature 1.83"; "" if
// there are none.
func (r *Run) PostHoc() string {
	if r == nil {
		return ""
	}
	return posthoc.Describe(r.fitted())
}

// Calibration returns the calibration of a head, nil if it has none.
func (r *Run) Calibration(head string) *posthoc.Calibration {
	if r == nil {
		return nil
	}
	return r.fitted()[head].Calibration
}

// fitted returns the calibrations and thresholds of the heads. The map does not change.
func (r *Run) fitted() map[string]posthoc.Head {
	if heads := r.heads.Load(); heads != nil {
		return *heads
	}
	return nil
}

// refit changes the calibrations and thresholds of the heads in the folder of the run and in the run. No other change of them is lost,
// and nobody sees the run between two states.
func (r *Run) refit(fresh bool, change func(heads map[string]posthoc.Head)) error {
	return r.computing(func(c metrics.Coder) error {
		if err := r.trained.ChangePostHoc(fresh, change); err != nil {
			return err
		}
		heads := r.trained.PostHoc
		r.coder = withPostHoc(c, heads)
		r.heads.Store(&heads)
		return nil
	})
}

// withPostHoc returns the coder with other calibrations and thresholds of its heads; a baseline has no heads.
func withPostHoc(c metrics.Coder, heads map[string]posthoc.Head) metrics.Coder {
	if of, ok := c.(*graph.Coder); ok {
		return of.WithPostHoc(heads)
	}
	return c
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
func (r *Run) judgedOn(ctx context.Context, head string) ([]data.Split, error) {
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
// unknown classes. An empty head selects the only head. The errors are the errors of [Run.EvaluateOn].
func (r *Run) Logits(ctx context.Context, split data.Split, head string) ([]float32, []int, error) {
	head, err := r.classHead(head)
	if err != nil {
		return nil, nil, err
	}
	c, err := r.collect(ctx, split, head, "", r.fitted())
	if err != nil {
		return nil, nil, err
	}
	return c.logits, c.labels, nil
}

// collect returns the logits of a head with the classes of the samples of a split and, unless column is "", the groups of that column. The
// heads have the given calibrations and thresholds, whatever those of the run are.
func (r *Run) collect(ctx context.Context, split data.Split, head, column string, heads map[string]posthoc.Head) (*collector, error) {
	sample, err := r.Sample(ctx, split, slices.DeleteFunc([]string{column}, func(name string) bool { return name == "" })...)
	if err != nil {
		return nil, err
	}
	if sample.Images.Classes(r.ClassColumn(head)) == nil {
		return nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: "its images have no labels"}
	}
	c := &collector{head: head, column: column}
	if column != "" {
		groups, ok := sample.Images.Column(column)
		if !ok || groups.Type != data.Whole || groups.Size() != 1 {
			return nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: fmt.Sprintf("the column %q is not one of groups: want one whole number or text for each sample", column)}
		}
		c.names = groups.Names
	}
	_, err = r.measured(ctx, sample, metrics.Selection{{Metric: c}}, heads)
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

// Describe implements [metrics.Metric].
func (*collector) Describe() metrics.Description {
	return metrics.Description{Measures: []metrics.Measure{{Name: "collected", Doc: "number of images"}}, Reads: metrics.ReadsLogits | metrics.ReadsLabels}
}

// Start implements [metrics.Metric].
func (c *collector) Start(s *metrics.Subject) (metrics.Meter, error) {
	if s.Head != c.head {
		return metrics.Fixed(metrics.Number(0)), nil
	}
	return c, nil
}

// Add implements [metrics.Meter].
func (c *collector) Add(b *metrics.Batch) error {
	c.logits, c.labels = append(c.logits, b.Logits...), append(c.labels, b.Labels...)
	for _, g := range b.Columns[c.column] {
		c.groups = append(c.groups, int(g))
	}
	return nil
}

// Values implements [metrics.Meter].
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

// ThresholdOptions are the options of [Run.FitThresholds].
type ThresholdOptions struct {
	Head      string // one of [Run.ClassHeads]; "" selects the only head
	Criterion string // one of [posthoc.Criteria]; "" selects the first
	Column    string // column of the groups; "" means group
	Positive  int    // the positive class
	Seed      uint64 // seed of randomised decisions
}

// Decided is the result of [Run.FitThresholds].
type Decided struct {
	Head       string              `json:"head"`
	Thresholds *posthoc.Thresholds `json:"thresholds"`
	On         []DecidedOn         `json:"on"` // the validation samples, then the test samples if the data set has any with labels
}

// DecidedOn compares the decisions with and without thresholds on one split, by the metric fairness.
type DecidedOn struct {
	Split  data.Split      `json:"split"`
	Fitted bool            `json:"fitted"` // the thresholds were fitted to the samples of this split
	Before *metrics.Result `json:"before"`
	After  *metrics.Result `json:"after"`
}

// FitThresholds fits thresholds for each group to a head that predicts classes, on the validation samples, and saves them in
// the folder of the run. They replace earlier thresholds of the head. Afterwards [Run.Predict] and the metric fairness use
// them. The errors are the errors of [Run.Calibrate] and of [posthoc.Thresholds.Fit], and an error if the samples lack the
// column of the groups.
func (r *Run) FitThresholds(ctx context.Context, o ThresholdOptions) (*Decided, error) {
	head, err := r.classHead(o.Head)
	if err != nil {
		return nil, err
	}
	former := r.fitted()
	raw := with(former, head, posthoc.Head{Calibration: former[head].Calibration})
	bad := func(err error) error { return &data.Error{Dataset: r.Model.Dataset.Name, Problem: err.Error()} }
	if c := raw[head].Calibration; c != nil && c.Method == posthoc.Isotonic {
		return nil, bad(fmt.Errorf("the head %q has an isotonic calibration, which gives many samples the same probability: use another calibration, or none", head))
	}
	t := &posthoc.Thresholds{Criterion: cmp.Or(o.Criterion, posthoc.Criteria()[0]), Column: cmp.Or(o.Column, "group"), Positive: o.Positive, Seed: o.Seed,
		Split: string(data.ValidationSplit)}
	splits, err := r.judgedOn(ctx, head)
	if err != nil {
		return nil, err
	}
	collected, err := r.collect(ctx, data.ValidationSplit, head, t.Column, raw)
	if err != nil {
		return nil, err
	}
	t.Names = collected.names
	if err := t.Fit(posthoc.Grouped{Logits: collected.logits, Labels: collected.labels, Groups: collected.groups}); err != nil {
		return nil, bad(err)
	}
	done := &Decided{Head: head, Thresholds: t}
	chosen := metrics.Selection{{Metric: &metrics.Fairness{Group: t.Column, Positive: t.Positive, Resamples: 200, Seed: 1, Least: 30}}}
	fitted := with(raw, head, posthoc.Head{Calibration: raw[head].Calibration, Thresholds: t})
	for _, split := range splits {
		sample, err := r.Sample(ctx, split, t.Column)
		if err != nil {
			return nil, err
		}
		on := DecidedOn{Split: split, Fitted: split == data.ValidationSplit}
		if on.Before, err = r.measured(ctx, sample, chosen, raw); err != nil {
			return nil, err
		}
		if on.After, err = r.measured(ctx, sample, chosen, fitted); err != nil {
			return nil, err
		}
		done.On = append(done.On, on)
	}
	return done, r.refit(r.options.Raw || r.Result != nil, func(heads map[string]posthoc.Head) { heads[head] = fitted[head] })
}

// RemoveThresholds removes the thresholds of all heads; calibrations remain.
func (r *Run) RemoveThresholds() error {
	return r.refit(r.Result != nil, func(heads map[string]posthoc.Head) {
		for name, h := range heads {
			if h.Thresholds = nil; h.Calibration == nil {
				delete(heads, name)
			} else {
				heads[name] = h
			}
		}
	})
}

// Thresholds returns the thresholds of a head, nil if it has none.
func (r *Run) Thresholds(head string) *posthoc.Thresholds {
	if r == nil {
		return nil
	}
	return r.fitted()[head].Thresholds
}

// DecisionColumns returns descriptions of the columns on which the predicted classes of a head depend: the columns of
// [Run.Columns] and, if the head has thresholds, the groups.
func (r *Run) DecisionColumns(head string) []data.Column {
	columns := r.Columns(head)
	t := r.Thresholds(head)
	if t == nil || slices.ContainsFunc(columns, func(c data.Column) bool { return c.Name == t.Column }) {
		return columns
	}
	return append(columns, data.Column{Name: t.Column, Type: data.Whole, Names: t.Names})
}

// decide replaces the predicted classes by the decisions of the head's thresholds. A decision is the positive class or the
// most probable other class.
func (r *Run) decide(p *Prediction, logits []float32, columns map[string][]float32) error {
	t := r.Thresholds(p.Head)
	if t == nil {
		return nil
	}
	groups, n, classes := columns[t.Column], len(p.Labels), len(p.Classes)
	if len(groups) != n {
		return fmt.Errorf("%s: the thresholds of the head %q decide by the column %q (got %d values of it, want %d)", r.Path, p.Head, t.Column, len(groups), n)
	}
	for i := range p.Labels {
		row := logits[i*classes : (i+1)*classes]
		decided, known := t.Decide(row, int(groups[i]))
		switch {
		case !known:
			return &data.Error{Problem: fmt.Sprintf("sample %d: the group %g of the column %q has no threshold: no sample of it was held out when the thresholds were fitted", i, groups[i], t.Column)}
		case decided:
			p.Labels[i] = t.Positive
		case p.Labels[i] == t.Positive:
			p.Labels[i] = (t.Positive + 1) % classes
			for k, z := range row { // all are finite
				if k != t.Positive && z > row[p.Labels[i]] {
					p.Labels[i] = k
				}
			}
		}
	}
	return nil
}

// HeadAttack describes attacks on a head of a run.
type HeadAttack struct {
	Head     string // one of [Run.ClassHeads]; "" selects the only head
	Trials   []attack.Trial
	Limit    int    // number of attacked images, from the first; 0 attacks all
	From     *Run   // run from which the examples are computed; nil for the attacked run
	FromHead string // head of From from which they are computed; "" for the head with the name of the attacked one, or else the only one
}

// source returns the head from which the examples are computed. head is the attacked one.
func (a HeadAttack) source(head string) (string, error) {
	if a.FromHead == "" && slices.Contains(a.From.ClassHeads(), head) {
		return head, nil
	}
	return a.From.classHead(a.FromHead)
}

// AttackHead measures the effect of attacks on a head that predicts classes. Adversarial examples are computed from the images
// on which the run is evaluated, before `scale` is applied, except images of unknown class. Perturbations and their norms
// refer to the values before scaling. Perturbed values stay within [0,1], or within the range of the fitted samples
// ([Run.Range]) if that is larger. Equal seeds give equal results. The error is [ErrNoClasses] for a model without such a
// head, and [ErrNoGradients] for a baseline.
func (r *Run) AttackHead(ctx context.Context, a HeadAttack) (j *attack.Judgement, err error) {
	if r != nil && r.network == nil && r.coder != nil {
		return nil, fmt.Errorf("%s: a model of kind %q: %w", r.Path, r.Model.Kind, ErrNoGradients)
	}
	head, err := r.classHead(a.Head)
	if err != nil {
		return nil, err
	}
	images, labels, err := r.labelled(ctx, head, a.Limit)
	if err != nil {
		return nil, err
	}
	trials := slices.Clone(a.Trials)
	for i := range trials {
		if low, high := r.Range(); low < 0 || high > 1 {
			trials[i].Range = [2]float32{low, high}
		}
	}
	err = r.withHead(head, func(model attack.WhiteBox) error {
		if a.From == nil || a.From == r {
			j, err = attack.Judge(ctx, model, nil, images, labels, trials)
			return err
		}
		other, err := a.source(head)
		if err != nil {
			return err
		}
		return a.From.withHead(other, func(source attack.WhiteBox) error {
			j, err = attack.Judge(ctx, model, source, images, labels, trials)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	j.Model, j.Dataset, j.Head = r.Model.Name, r.Model.Dataset.Name, head
	if a.From != nil && a.From != r {
		if j.From = a.From.Path; a.FromHead != "" {
			j.From += ", head " + a.FromHead
		}
	}
	return j, nil
}

// InputGradients returns the gradient of the cross entropy -log p_c of a head with respect to images, before `scale` is applied. labels
// are the classes c of the images; "" names the only head of [Run.ClassHeads]. The errors are those of [Run.AttackHead].
func (r *Run) InputGradients(head string, images []float32, labels []int) (gradient []float32, err error) {
	if r != nil && r.network == nil && r.coder != nil {
		return nil, fmt.Errorf("%s: a model of kind %q: %w", r.Path, r.Model.Kind, ErrNoGradients)
	}
	if head, err = r.classHead(head); err != nil {
		return nil, err
	}
	err = r.withHead(head, func(model attack.WhiteBox) error {
		gradient, err = attack.Gradients(model, images, labels)
		return err
	})
	return gradient, err
}

// labelled returns the images of known class, in the column that the head predicts, on which the run is evaluated, before scaling.
func (r *Run) labelled(ctx context.Context, head string, limit int) ([]float32, []int, error) {
	if limit < 0 {
		return nil, nil, fmt.Errorf("tessera: limit: got %d, want >= 0", limit)
	}
	column := r.ClassColumn(head)
	sample, err := r.Sample(ctx, data.TestSplit, slices.DeleteFunc([]string{column}, func(name string) bool { return name == data.LabelsColumn })...)
	if err != nil {
		return nil, nil, err
	}
	all := sample.Images.Classes(column)
	var known, labels []int
	for i, c := range all {
		if c >= 0 && (limit == 0 || len(known) < limit) {
			known, labels = append(known, i), append(labels, c)
		}
	}
	if len(known) == 0 {
		return nil, nil, &data.Error{Dataset: r.Model.Dataset.Name, Problem: "the class of no image is known: there is no prediction to attack"}
	}
	return sample.Images.Scaled(nil).Subset(known).Float32(), labels, nil
}

// withHead calls f with a classifier for a head of the run. Its inputs are images before scaling.
func (r *Run) withHead(head string, f func(attack.WhiteBox) error) error {
	return r.computing(func(c metrics.Coder) error {
		coder, ok := c.(metrics.HeadAttacker)
		if !ok {
			return errors.New("tessera: the run has no heads")
		}
		model, err := coder.Attacked(head, r.scaling)
		if err != nil {
			return err
		}
		return f(model)
	})
}
