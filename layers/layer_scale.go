package layers

import (
	"errors"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// LayerScale multiplies the values along the last axis of its input (the units of a vector, the channels of a pixel, the values of
// a token) by learned factors, y = scale x. As the last layer of a residual branch, with small factors at the beginning, it
// lets a deep model start near the identity. Parameter: scale, of the length of the last axis. Touvron et al., Going deeper
// with image transformers, 2021.
type LayerScale struct {
	Scale float64 `toml:"scale" doc:"initial value of the factors"`
}

func init() {
	Registry.Register("layer_scale", "multiplies the last axis by learned factors, small at the beginning", func() Layer {
		return &LayerScale{Scale: 1e-4}
	})
}

func (*LayerScale) OutputShape(in []int) ([]int, error) {
	if len(in) == 0 {
		return nil, errors.New("got an input without axes")
	}
	return slices.Clone(in), nil
}

func (l *LayerScale) Parameters(in []int) []Parameter {
	n := in[len(in)-1]
	return []Parameter{{Name: "scale", Shape: []int{n}, Init: &Constant{Value: l.Scale}, FanIn: n, FanOut: n}}
}

func (*LayerScale) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return mulChannels(&c, x, s.Parameter("scale")), c.Err()
}
