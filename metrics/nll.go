package metrics

import "context"

func init() {
	Registry.Register("nll", "negative log-likelihood of the classes", func() Metric { return nll{} })
}

// nll is the mean over images of -ln p_c, where p = softmax(logits) of a head and c is the class of the image: cross entropy
// in nats. Images of an unknown class are left out.
type nll struct{}

// Describe implements [Metric].
func (nll) Describe() Description {
	return Description{
		Measures: []Measure{{Name: "nll", Unit: "nats", Better: Lower,
			Doc: "mean over the labelled images of -ln p_c, p the softmax of a head's logits, c the class of the image. For heads that a loss compares with labels"}},
		Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true,
	}
}

// Start implements [Metric].
func (nll) Start(*Subject) (Meter, error) { return &nllMeter{}, nil }

type nllMeter struct {
	sum float64
	n   int
}

// Add implements [Meter].
func (m *nllMeter) Add(b *Batch) error {
	return b.EachLabelled(func(logits []float32, class int) {
		m.n++
		m.sum -= logProbability(logits, class)
	})
}

// Values implements [Meter].
func (m *nllMeter) Values(context.Context) ([]Value, error) {
	if m.n == 0 {
		return []Value{NotApplicable(noLabels)}, nil
	}
	return []Value{Number(m.sum / float64(m.n))}, nil
}
