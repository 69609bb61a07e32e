package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Sized = (*Dense)(nil)

// Dense maps the flattened input x of n values to `units` outputs: y = activation(x W + b). Parameters: weight W, of
// shape (n, units), and bias b, of shape (units), initially 0. In the last decoder layer, the rows of W are the atoms. The
// input may have any rank.
type Dense struct {
	Units      int            `toml:"units" want:"> 0" doc:"number of outputs; default in the last layer of a decoder: the size of the image"`
	Activation ActivationName `toml:"activation" doc:"activation function, with its default settings"`
	Bias       bool           `toml:"bias" doc:"learn a bias for every output"`
	Init       Init           `toml:"init" doc:"initial values of the weights"`
}

func init() {
	Registry.Register("dense", "fully connected, y = activation(x W + b)", func() Layer {
		return &Dense{Activation: "linear", Bias: true, Init: &GlorotUniform{}}
	})
}

func (d *Dense) OutputUnits() int     { return d.Units }
func (d *Dense) SetOutputUnits(n int) { d.Units = n }

func (d *Dense) OutputShape([]int) ([]int, error) {
	if d.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", d.Units)
	}
	if _, err := d.Activation.Activation(); err != nil {
		return nil, err
	}
	return []int{d.Units}, nil
}

func (d *Dense) Parameters(in []int) []Parameter {
	n := volume.Of(in)
	list := []Parameter{{Name: "weight", Shape: []int{n, d.Units}, Init: d.Init, FanIn: n, FanOut: d.Units}}
	if d.Bias {
		list = append(list, Parameter{Name: "bias", Shape: []int{d.Units}, Init: &Zeros{}, FanIn: n, FanOut: d.Units})
	}
	return list
}

func (d *Dense) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return applyDense(s, x, d.Activation, d.Bias)
}

func (d *Dense) AddsBias() bool { return d.Bias && d.Activation.isLinear() }

func (d *Dense) OutputRange(Interval) Interval {
	return d.Activation.outputRange()
}

// applyDense returns activation(x W + b) for x, the flattened images, without b if bias is false.
func applyDense(s Scope, x *gorgonia.Node, name ActivationName, bias bool) (*gorgonia.Node, error) {
	activation, err := name.Activation()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	y := c.MatMul(c.Flatten(x), s.Parameter("weight"))
	if bias {
		y = c.AddRow(y, s.Parameter("bias"))
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return activation.Activate(y)
}
