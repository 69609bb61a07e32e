package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// JumpRelu sets values of the flattened input to 0 unless they exceed the learned threshold t_j of their unit: y = x if x >
// t_j and 0 otherwise. The layer publishes the value active: 1 for units above their threshold, 0 for others. The loss l0 is
// the mean number of active units. The derivative of y with respect to x is exact. The derivatives of y and active with
// respect to t are 0 almost everywhere and are replaced by estimates: -t K(x - t) and -K(x - t), with a kernel K of area 1:
//
//	rectangle    K(z) = 1/width where |z| < width/2, and 0 elsewhere
//	tanh         K(z) = 1/(width cosh²(2 z/width)), the derivative of (1 + tanh(2 z/width))/2
//
// Parameter: threshold, of shape (units). Sources: Rajamanoharan et al., Jumping ahead: improving reconstruction fidelity with
// JumpReLU sparse autoencoders, 2024; for tanh, which has a gradient everywhere, Conerly et al., Dictionary learning optimization
// techniques, 2025.
type JumpRelu struct {
	Threshold float64 `toml:"threshold" want:">= 0" doc:"initial threshold of every unit"`
	Width     float64 `toml:"width" want:"> 0" doc:"width of the window around a threshold in which it has a gradient"`
	Kernel    string  `toml:"kernel" oneof:"rectangle tanh" doc:"shape of that window"`
}

func init() {
	Registry.Register("jump_relu", "keeps values above a learned threshold of each unit", func() Layer {
		return &JumpRelu{Threshold: 0.001, Width: 0.001, Kernel: "rectangle"}
	})
}

func (*JumpRelu) OutputShape(in []int) ([]int, error) { return []int{volume.Of(in)}, nil }

func (l *JumpRelu) Parameters(in []int) []Parameter {
	n := volume.Of(in)
	return []Parameter{{Name: "threshold", Shape: []int{n}, Init: &Constant{Value: l.Threshold}, FanIn: n, FanOut: n}}
}

func (*JumpRelu) Publishes(in []int) []Value {
	return []Value{{Name: "active", Shape: []int{volume.Of(in)}}}
}

func (*JumpRelu) Estimates() []string { return []string{"threshold"} }

func (l *JumpRelu) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	x = c.Flatten(x)
	above := c.SubRow(c.Stop(x), s.Parameter("threshold"))
	window := ops.Window{Width: l.Width, Smooth: l.Kernel == "tanh"}
	active := c.Do("step", func() (*gorgonia.Node, error) { return ops.Step(above, window) })
	if err := c.Err(); err != nil {
		return nil, err
	}
	s.Publish("active", active)
	return ops.Gate(x, above, window)
}

func (*JumpRelu) OutputRange(in Interval) Interval { return Interval{min(0, in.Low), max(0, in.High)} }
