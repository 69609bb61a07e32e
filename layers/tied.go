package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/internal/volume"
)

var _ Borrower = (*Tied)(nil)

// Tied multiplies the flattened input h by the transpose of a weight W (inputs, units) of the encoder, y = activation(h Wᵀ +
// b). The columns of W are the atoms. The only parameter is b of shape (inputs), which starts at 0. The layer's weight,
// "decoder.0.weight", is an alias of Wᵀ, with the atoms as rows. Losses and constraints may use either name; the gradients of
// both layers add up. A glob that matches both names selects W once, in the encoder's layout. With bias_of, b is also a parameter of
// the encoder, such as the visible bias of a layer rbm.
type Tied struct {
	Weight     string         `toml:"weight" doc:"path of the encoder's weight that is used transposed"`
	Activation ActivationName `toml:"activation" doc:"activation function, with its default settings"`
	Bias       bool           `toml:"bias" doc:"learn a bias for every output"`
	BiasOf     string         `toml:"bias_of" doc:"path of the encoder's parameter that is used as the bias; by default the layer has its own"`

	lent []int // shape of the encoder's weight
}

func init() {
	Registry.Register("tied", "transpose of an encoder's dense layer, y = activation(h Wᵀ + b)", func() Layer {
		return &Tied{Weight: "encoder.0.weight", Activation: "linear", Bias: true}
	})
}

func (t *Tied) Borrows() string  { return t.Weight }
func (t *Tied) Lend(shape []int) { t.lent = shape }

func (t *Tied) OutputShape(in []int) ([]int, error) {
	problem := ""
	switch {
	case t.lent == nil:
		problem = fmt.Sprintf("the encoder has no parameter %q", t.Weight)
	case len(t.lent) != 2:
		problem = fmt.Sprintf("%s has shape %v, want a matrix (inputs, units)", t.Weight, t.lent)
	case t.lent[1] != volume.Of(in):
		problem = fmt.Sprintf("%s has %d units, but %d values come in", t.Weight, t.lent[1], volume.Of(in))
	}
	if problem != "" {
		return nil, part.KeyError{Key: "weight", Problem: problem}
	}
	if t.BiasOf != "" && !t.Bias {
		return nil, part.KeyErrorf("bias_of", "got %q with bias = false, want one of the two keys", t.BiasOf)
	}
	if _, err := t.Activation.Activation(); err != nil {
		return nil, err
	}
	return []int{t.lent[0]}, nil
}

func (t *Tied) Parameters(in []int) []Parameter {
	if len(t.lent) != 2 {
		return nil // OutputShape returns the error
	}
	n, units := volume.Of(in), t.lent[0]
	list := []Parameter{{Name: "weight", Shape: []int{n, units}, Init: &GlorotUniform{}, FanIn: n, FanOut: units, Of: t.Weight, Transposed: true}}
	if t.Bias {
		list = append(list, Parameter{Name: "bias", Shape: []int{units}, Init: &Zeros{}, FanIn: n, FanOut: units, Of: t.BiasOf})
	}
	return list
}

func (t *Tied) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return applyDense(s, x, t.Activation, t.Bias)
}

func (t *Tied) OutputRange(Interval) Interval {
	return t.Activation.outputRange()
}
