package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// LayerNorm shifts and scales the values along the last axis of every input (the units of a vector, the channels of a
// pixel, the values of a token) to a learned mean and deviation. Every input is normalised separately, both in training and
// at inference:
//
//	y = scale (x - mean) / sqrt(variance + epsilon) + shift
//
// with the biased variance. Parameters, of the length of the last axis: scale, initially 1, and shift, initially 0. Ba, Kiros
// and Hinton, Layer Normalization, 2016.
type LayerNorm struct {
	Epsilon float64 `toml:"epsilon" want:"> 0" doc:"added to the variance"`
}

func init() {
	Registry.Register("layer_norm", "normalises the last axis of every input separately", func() Layer {
		return &LayerNorm{Epsilon: 1e-5}
	})
}

func (*LayerNorm) OutputShape(in []int) ([]int, error) {
	if len(in) == 0 || in[len(in)-1] < 2 {
		return nil, fmt.Errorf("got an input of shape %v, want more than one value on its last axis", in)
	}
	return in, nil
}

func (*LayerNorm) Parameters(in []int) []Parameter { return scaleAndShift(in[len(in)-1]) }

func (l *LayerNorm) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if _, err := l.OutputShape(x.Shape()[1:]); err != nil {
		return nil, fmt.Errorf("layer_norm: %w", err)
	}
	y, err := ops.Standardise(x, x.Shape()[x.Dims()-1], 1, l.Epsilon)
	if err != nil {
		return nil, fmt.Errorf("layer_norm: %w", err)
	}
	return scaledAndShifted(s, y)
}
