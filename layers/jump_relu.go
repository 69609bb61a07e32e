package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// JumpRelu sets values of the flattened input to 0 unless they exceed the learned threshold t_j of their unit: y = x if x >
// t_j and 0 otherwise. The layer publishes the value active: 1 for units above their threshold, 0 for others. The loss l0 is
// the mean number of active units. The derivative of y with respect to x is exact. The derivatives of y and active with
// respect to t are 0 almost everywhere and are replaced by estimates: -t/width and -1/width where |x - t| < width/2, and 0
// elsewhere. Parameter: threshold, of shape (units). Source: Rajamanoharan et al., Jumping ahead: improving reconstruction
// fidelity with JumpReLU sparse autoencoders, 2024.
type JumpRelu struct {
	Threshold float64 `toml:"threshold" want:">= 0" doc:"initial threshold of every unit"`
	Width     float64 `toml:"width" want:"> 0" doc:"width of the window around a threshold in which it has a gradient"`
}

func init() {
	Registry.Register("jump_relu", "keeps values above a learned threshold of each unit", func() Layer {
		return &JumpRelu{Threshold: 0.001, Width: 0.001}
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
	active := c.Do("step", func() (*gorgonia.Node, error) { return ops.Step(above, l.Width) })
	if err := c.Err(); err != nil {
		return nil, err
	}
	s.Publish("active", active)
	return ops.Gate(x, above, l.Width)
}

func (*JumpRelu) OutputRange(in Interval) Interval { return Interval{min(0, in.Low), max(0, in.High)} }
