package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// TokenDense applies the same dense layer to every token of an input, whereas [Dense] flattens the tokens into one vector.
//
//	y(t) = activation(x(t) W + b)
//
// A token x(t) lies along the input's last axis: a patch of [Patches], a row of an image (height, width) or the channels of a
// pixel. Parameters: weight W, of shape (features, units), and bias b, of shape (units), initially 0. The last axis of the
// output has length units.
type TokenDense struct {
	Units      int            `toml:"units" want:"> 0" doc:"number of outputs per token" required:"true"`
	Activation ActivationName `toml:"activation" doc:"activation function, with its default settings"`
	Bias       bool           `toml:"bias" doc:"learn a bias for every output"`
	Init       Init           `toml:"init" doc:"initial values of the weights"`
}

func init() {
	Registry.Register("token_dense", "one dense layer for every token, y = activation(x W + b)", func() Layer {
		return &TokenDense{Activation: "linear", Bias: true, Init: &GlorotUniform{}}
	})
}

func (d *TokenDense) OutputShape(in []int) ([]int, error) {
	if d.Units < 1 {
		return nil, part.KeyErrorf("units", "got %d, want > 0", d.Units)
	}
	if _, err := d.Activation.Activation(); err != nil {
		return nil, err
	}
	out := slices.Clone(in)
	out[len(out)-1] = d.Units
	return out, nil
}

func (d *TokenDense) Parameters(in []int) []Parameter {
	_, n := tokensOf(in)
	list := []Parameter{{Name: "weight", Shape: []int{n, d.Units}, Init: d.Init, FanIn: n, FanOut: d.Units}}
	if d.Bias {
		list = append(list, Parameter{Name: "bias", Shape: []int{d.Units}, Init: &Zeros{}, FanIn: n, FanOut: d.Units})
	}
	return list
}

func (d *TokenDense) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	activation, err := d.Activation.Activation()
	if err != nil {
		return nil, err
	}
	shape := slices.Clone(x.Shape())
	tokens, features := tokensOf(shape)
	var bias *gorgonia.Node
	if d.Bias {
		bias = s.Parameter("bias")
	}
	var c ops.Chain
	y := mapTokens(&c, c.Reshape(x, tokens, features), s.Parameter("weight"), bias)
	y = c.Do(string(d.Activation), func() (*gorgonia.Node, error) { return activation.Activate(y) })
	shape[len(shape)-1] = d.Units
	return c.Reshape(y, shape...), c.Err()
}

func (d *TokenDense) OutputRange(Interval) Interval {
	return d.Activation.outputRange()
}
