package metrics

import (
	"context"
	"slices"
)

func init() {
	Registry.Register("accuracy", "fraction of images whose class has the largest logit", func() Metric { return accuracy{} })
}

// accuracy is the share of images of which the logit of their class is the largest of a head; of equally large ones the
// first counts. Images of an unknown class are left out.
type accuracy struct{}

// Describe implements [Metric].
func (accuracy) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "accuracy", Better: Higher,
			Doc: "fraction of the labelled images for which the largest logit of a head is that of their class. For heads that a loss compares with labels"}},
		Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true,
	}
}

// Start implements [Metric].
func (accuracy) Start(*Subject) (Meter, error) { return &accuracyMeter{}, nil }

type accuracyMeter struct{ right, n int }

// Add implements [Meter].
func (m *accuracyMeter) Add(b *Batch) error {
	return b.EachLabelled(func(logits []float32, label int) {
		m.n++
		if slices.Index(logits, slices.Max(logits)) == label {
			m.right++
		}
	})
}

// Values implements [Meter].
func (m *accuracyMeter) Values(context.Context) ([]Value, error) {
	if m.n == 0 {
		return []Value{NotApplicable(noLabels)}, nil
	}
	return []Value{Number(float64(m.right) / float64(m.n))}, nil
}
