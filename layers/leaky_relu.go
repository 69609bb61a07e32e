package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// LeakyRelu is y = x for x > 0 and slope * x otherwise. Its derivative at 0 is slope. Maas, Hannun and Ng, Rectifier
// Nonlinearities Improve Neural Network Acoustic Models, 2013. The default slope of 0.1 is that of the decoder in the study.
type LeakyRelu struct {
	pointwise
	Slope float64 `toml:"slope" want:"in [0,1]" doc:"slope for negative values"`
}

func init() {
	Registry.Register("leaky_relu", "y = x for x > 0, slope * x elsewhere", func() Layer { return &LeakyRelu{Slope: 0.1} })
}

func (l *LeakyRelu) Activate(x *gorgonia.Node) (*gorgonia.Node, error) {
	return ops.Ramp(x, 1, l.Slope)
}

func (l *LeakyRelu) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) { return l.Activate(x) }

func (l *LeakyRelu) OutputRange(in Interval) Interval {
	f := func(x float64) float64 {
		if x > 0 || l.Slope == 0 {
			return max(x, 0)
		}
		return l.Slope * x
	}
	return Interval{f(in.Low), f(in.High)}
}
