package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Sized = (*MaxPlus)(nil)

// MaxPlus maps the flattened input h of n values to `units` outputs in the max-plus algebra, y(i) = max over j of (h(j) +
// weight(j,i)), where weight has shape (n, units). In a decoder the rows of weight are the atoms. Flat dilations commute with
// maxima and with adding a constant. The dilated output therefore equals the output of the dilated atoms: the
// max-approximation is exact. The derivative is 1 for the first unit that attains the maximum and 0 for the others.
type MaxPlus struct {
	Units int  `toml:"units" want:"> 0" doc:"number of outputs; default in the last layer of a decoder: the size of the image"`
	Init  Init `toml:"init" doc:"initial values of the weights"`
}

func init() {
	Registry.Register("max_plus", "maximum of sums, y = max_j(h_j + w_j)", func() Layer {
		return &MaxPlus{Init: &GlorotUniform{}}
	})
}

func (m *MaxPlus) OutputUnits() int     { return m.Units }
func (m *MaxPlus) SetOutputUnits(n int) { m.Units = n }

func (m *MaxPlus) OutputShape([]int) ([]int, error) {
	if m.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", m.Units)
	}
	return []int{m.Units}, nil
}

func (m *MaxPlus) Parameters(in []int) []Parameter {
	n := volume.Of(in)
	return []Parameter{{Name: "weight", Shape: []int{n, m.Units}, Init: m.Init, FanIn: n, FanOut: m.Units}}
}

func (*MaxPlus) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	h := c.Flatten(x)
	return c.Do("max plus", func() (*gorgonia.Node, error) { return ops.MaxPlus(h, s.Parameter("weight")) }), c.Err()
}
