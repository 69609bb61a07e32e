package parts

import (
	"math"
	"tessera/posthoc"
)

// Halved divides the logits by the power of 2 for which the mean squared error of the true class is least.
type Halved struct {
	Times int `json:"times"` // exponent of the power
}

func init() {
	posthoc.Registry.Register("halved", "logits are divided by a power of 2", func() posthoc.Method { return &Halved{} })
}

func (h *Halved) Fit(logits []float32, labels []int, classes int) error {
	least := math.Inf(1)
	for times := range 10 {
		sum := 0.0
		for i, label := range labels {
			total := 0.0
			for _, z := range logits[i*classes : (i+1)*classes] {
				total += math.Exp(float64(z-logits[i*classes+label]) / math.Exp2(float64(times)))
			}
			sum += (1 - 1/total) * (1 - 1/total)
		}
		if sum < least {
			least, h.Times = sum, times
		}
	}
	return nil
}

func (h *Halved) Apply(logits []float32, _ int) {
	for i := range logits {
		logits[i] /= float32(math.Exp2(float64(h.Times)))
	}
}
func (h *Halved) Check(int) error { return nil }
