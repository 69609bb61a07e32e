package refit

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"tessera"
	"tessera/data"
	"tessera/metrics"
	"tessera/posthoc"
)

// ThresholdOptions are the options of [Thresholds].
type ThresholdOptions struct {
	Head      string // one of ClassHeads; "" selects the only head
	Criterion string // one of [posthoc.Criteria]; "" selects the first
	Column    string // column of the groups; "" means group
	Positive  int    // the positive class
	Seed      uint64 // seed of randomised decisions
}

// Decided is the result of [Thresholds].
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

// Thresholds fits thresholds for each group to a head that predicts classes, on the validation samples, and saves them in
// the folder of the run. They replace earlier thresholds of the head. Afterwards Run.Predict and the metric fairness use
// them. The errors are the errors of [Calibrate] and of [posthoc.Thresholds.Fit], and an error if the samples lack the
// column of the groups.
func Thresholds(ctx context.Context, r *tessera.Run, o ThresholdOptions) (*Decided, error) {
	head, err := r.ClassHead(o.Head)
	if err != nil {
		return nil, err
	}
	former := r.Heads()
	raw := with(former, head, posthoc.Head{Calibration: former[head].Calibration})
	bad := func(err error) error { return &data.Error{Dataset: r.Model.Dataset.Name, Problem: err.Error()} }
	if c := raw[head].Calibration; c != nil && c.Method == posthoc.Isotonic {
		return nil, bad(fmt.Errorf("the head %q has an isotonic calibration, which gives many samples the same probability: use another calibration, or none", head))
	}
	t := &posthoc.Thresholds{Criterion: cmp.Or(o.Criterion, posthoc.Criteria()[0]), Column: cmp.Or(o.Column, "group"), Positive: o.Positive, Seed: o.Seed,
		Split: string(data.ValidationSplit)}
	splits, err := judgedOn(ctx, r, head)
	if err != nil {
		return nil, err
	}
	collected, err := collect(ctx, r, data.ValidationSplit, head, t.Column, raw)
	if err != nil {
		return nil, err
	}
	t.Names = collected.names
	if err := t.Fit(posthoc.Grouped{Logits: collected.logits, Labels: collected.labels, Groups: collected.groups}); err != nil {
		return nil, bad(err)
	}
	done := &Decided{Head: head, Thresholds: t}
	chosen := metrics.Selection{{Metric: &metrics.Fairness{Group: t.Column, Positive: metrics.ClassName(strconv.Itoa(t.Positive)), Resamples: 200, Seed: 1, Least: 30}}}
	fitted := with(raw, head, posthoc.Head{Calibration: raw[head].Calibration, Thresholds: t})
	for _, split := range splits {
		sample, err := r.Sample(ctx, split, t.Column)
		if err != nil {
			return nil, err
		}
		on := DecidedOn{Split: split, Fitted: split == data.ValidationSplit}
		if on.Before, err = r.EvaluateWith(ctx, sample, chosen, raw); err != nil {
			return nil, err
		}
		if on.After, err = r.EvaluateWith(ctx, sample, chosen, fitted); err != nil {
			return nil, err
		}
		done.On = append(done.On, on)
	}
	return done, r.Refit(false, func(heads map[string]posthoc.Head) { heads[head] = fitted[head] })
}
