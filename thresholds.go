package tessera

import (
	"context"
	"fmt"
	"slices"

	"tessera/data"
	"tessera/metrics"
	"tessera/posthoc"
	"tessera/train"
)

// ThresholdOptions are the options of [Run.FitThresholds].
type ThresholdOptions struct {
	Head      string // one of [Run.ClassHeads]; "" is the only one
	Criterion string // one of [posthoc.Criteria]; "" is the first
	Column    string // column of the groups; "": group
	Positive  int    // the positive class
	Seed      uint64 // seed of randomised decisions
}

// Decided is the result of [Run.FitThresholds].
type Decided struct {
	Head       string              `json:"head"`
	Thresholds *posthoc.Thresholds `json:"thresholds"`
	On         []DecidedOn         `json:"on"` // the validation samples, then the test samples if the data set has any
}

// DecidedOn compares the decisions with and without thresholds on one split, by the metric fairness.
type DecidedOn struct {
	Split  data.Split      `json:"split"`
	Fitted bool            `json:"fitted"` // the thresholds were fitted to these samples
	Before *metrics.Result `json:"before"`
	After  *metrics.Result `json:"after"`
}

// FitThresholds fits thresholds for each group to a head that predicts classes, on the validation samples, and saves them in
// the folder of the run. They replace earlier thresholds of the head. Afterwards [Run.Predict] and the metric fairness use
// them. The errors are the errors of [Run.Calibrate] and of [posthoc.Thresholds.Fit], and an error for samples without the
// column of the groups.
func (r *Run) FitThresholds(ctx context.Context, o ThresholdOptions) (*Decided, error) {
	head, err := r.classHead(o.Head)
	if err != nil {
		return nil, err
	}
	former := r.postHoc
	heads := without(former, head)
	heads[head] = posthoc.Head{Calibration: former[head].Calibration}
	r.fit(heads)
	o.Head = head
	done, err := r.fitThresholds(ctx, o, heads)
	if err != nil {
		r.fit(former)
		return nil, err
	}
	return done, nil
}

// fitThresholds fits thresholds to a head that has none.
func (r *Run) fitThresholds(ctx context.Context, o ThresholdOptions, heads map[string]posthoc.Head) (*Decided, error) {
	bad := func(err error) error { return &data.Error{Dataset: r.Model.Dataset.Name, Problem: err.Error()} }
	if c := heads[o.Head].Calibration; c != nil && c.Method == posthoc.Isotonic {
		return nil, bad(fmt.Errorf("the head %q has an isotonic calibration, which gives many samples the same probability: use another calibration, or none", o.Head))
	}
	t := &posthoc.Thresholds{Criterion: o.Criterion, Column: o.Column, Positive: o.Positive, Seed: o.Seed, Split: string(data.ValidationSplit)}
	if t.Criterion == "" {
		t.Criterion = posthoc.Criteria()[0]
	}
	if t.Column == "" {
		t.Column = "group"
	}
	chosen := metrics.Selection{{Metric: &metrics.Fairness{Group: t.Column, Positive: t.Positive, Resamples: 200, Seed: 1, Least: 30}}}
	done := &Decided{Head: o.Head, Thresholds: t, On: []DecidedOn{{Split: data.ValidationSplit, Fitted: true}}}
	if data.HasTest(r.Model.Dataset.Source) && r.Model.Dataset.Fit != "test" {
		done.On = append(done.On, DecidedOn{Split: data.TestSplit})
	}
	sample, err := r.Sample(ctx, data.ValidationSplit, t.Column)
	if err != nil {
		return nil, err
	}
	c, ok := sample.Images.Column(t.Column)
	if !ok || c.Type != data.Whole || c.Size() != 1 {
		return nil, bad(fmt.Errorf("the column %q is not one of groups: want one whole number or text for each sample", t.Column))
	}
	t.Names = c.Names
	collected, err := r.collect(ctx, sample, o.Head, t.Column)
	if err != nil {
		return nil, err
	}
	if err := t.Fit(posthoc.Grouped{Logits: collected.logits, Labels: collected.labels, Groups: collected.groups}); err != nil {
		return nil, bad(err)
	}
	for i := range done.On {
		if done.On[i].Before, err = r.EvaluateOn(ctx, done.On[i].Split, chosen); err != nil {
			return nil, err
		}
	}
	fitted := without(heads, o.Head)
	fitted[o.Head] = posthoc.Head{Calibration: heads[o.Head].Calibration, Thresholds: t}
	r.fit(fitted)
	for i := range done.On {
		if done.On[i].After, err = r.EvaluateOn(ctx, done.On[i].Split, chosen); err != nil {
			return nil, err
		}
	}
	return done, train.KeepPostHoc(r.Path, r.digest, fitted)
}

// RemoveThresholds removes the thresholds of all heads; calibrations remain.
func (r *Run) RemoveThresholds() error {
	if err := r.ready(); err != nil {
		return err
	}
	heads := map[string]posthoc.Head{}
	for name, h := range r.postHoc {
		if h.Calibration != nil {
			heads[name] = posthoc.Head{Calibration: h.Calibration}
		}
	}
	if err := train.KeepPostHoc(r.Path, r.digest, heads); err != nil {
		return err
	}
	r.fit(heads)
	return nil
}

// Thresholds returns the thresholds of a head, nil if it has none.
func (r *Run) Thresholds(head string) *posthoc.Thresholds {
	if r == nil {
		return nil
	}
	return r.postHoc[head].Thresholds
}

// DecisionColumns describes the columns on which the predicted classes of a head depend: the columns of [Run.Columns] and, if
// the head has thresholds, the groups.
func (r *Run) DecisionColumns(head string) []data.Column {
	columns := r.Columns(head)
	t := r.Thresholds(head)
	if t == nil || slices.ContainsFunc(columns, func(c data.Column) bool { return c.Name == t.Column }) {
		return columns
	}
	return append(columns, data.Column{Name: t.Column, Type: data.Whole, Names: t.Names})
}

// decide replaces the predicted classes by the decisions of the head's thresholds: the positive class, or the most probable
// other class.
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
			for k, z := range row {
				if k != t.Positive && z > row[p.Labels[i]] {
					p.Labels[i] = k
				}
			}
		}
	}
	return nil
}
