package layers

import (
	"gorgonia.org/gorgonia"

	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Gated decides by one function of the flattened input which units are active, and by another one how active they are, so that a
// penalty of the gates does not shrink the code:
//
//	gate = x + gate_bias,    y = max(0, exp(scale) x + bias) where gate > 0, else 0
//
// x should be linear: it follows a dense layer without bias. The layer publishes max(0, gate) under the name gate. No gradient of
// y reaches the gates: they are trained by penalties of the published value, such as l1 with on = "encoder.1.gate", and by the
// loss gated. Parameters: gate_bias, scale and bias, of shape (units), initially 0. Source: Rajamanoharan et al., Improving
// dictionary learning with gated sparse autoencoders, 2024.
type Gated struct{}

func init() {
	Registry.Register("gated", "activity of units by gates and their values apart", func() Layer { return &Gated{} })
}

func (*Gated) OutputShape(in []int) ([]int, error) { return []int{volume.Of(in)}, nil }

func (*Gated) Parameters(in []int) (list []Parameter) {
	n := volume.Of(in)
	for _, name := range []string{"gate_bias", "scale", "bias"} {
		list = append(list, Parameter{Name: name, Shape: []int{n}, Init: &Zeros{}, FanIn: n, FanOut: n})
	}
	return list
}

func (*Gated) Publishes(in []int) []Value {
	return []Value{{Name: "gate", Shape: []int{volume.Of(in)}}}
}

// Estimates implements [Estimated]: the values have no derivative with respect to the gates.
func (*Gated) Estimates() []string { return []string{"gate_bias"} }

func (*Gated) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	x = c.Flatten(x)
	gate := c.AddRow(x, s.Parameter("gate_bias"))
	value := c.Ramp(c.AddRow(c.MulRow(x, c.Exp(s.Parameter("scale"))), s.Parameter("bias")), 1, 0)
	y := c.Do("gate", func() (*gorgonia.Node, error) { return ops.Gate(value, gate, ops.Window{}) })
	published := c.Do("published", func() (*gorgonia.Node, error) { return ops.Gate(gate, gate, ops.Window{}) })
	if c.Err() == nil {
		s.Publish("gate", published)
	}
	return y, c.Err()
}

func (*Gated) OutputRange(Interval) Interval { return Interval{0, Everything.High} }
