package layers

import (
	"gorgonia.org/gorgonia"
)

// Dropout sets each value to 0 with probability rate in training and divides the others by 1 - rate: the expected output is
// the input. Srivastava et al., Dropout, JMLR 15 (2014), in its inverted form.
type Dropout struct {
	pointwise
	Rate float64 `toml:"rate" want:"in [0,1)" doc:"probability that a value is dropped"`
}

func init() {
	Registry.Register("dropout", "drops values at random in training, y = x m / (1-rate)", func() Layer {
		return &Dropout{Rate: 0.5}
	})
}

func (d *Dropout) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if !s.Training() || !d.Noisy() {
		return x, nil
	}
	mask := s.Noise(maskSampler{drop: d.Rate, keep: 1 / (1 - d.Rate)}, x.Shape()...)
	return gorgonia.HadamardProd(x, mask)
}

func (d *Dropout) Noisy() bool { return d.Rate != 0 }

// OutputRange implements [Ranged]: the remaining values are divided by 1 - rate.
func (d *Dropout) OutputRange(in Interval) Interval {
	if d.Rate == 0 {
		return in
	}
	return Interval{min(0, in.Low/(1-d.Rate)), max(0, in.High/(1-d.Rate))}
}
