package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// InstanceNorm shifts and scales every channel of an image (height, width, channels) or (height, width) to a learned mean
// and deviation over its pixels. Every image is normalised separately, both in training and at inference:
//
//	y = scale (x - mean) / sqrt(variance + epsilon) + shift
//
// with the biased variance. Parameters, of shape (channels): scale, initially 1, and shift, initially 0. Ulyanov, Vedaldi and
// Lempitsky, Instance Normalization, 2016.
type InstanceNorm struct {
	Epsilon float64 `toml:"epsilon" want:"> 0" doc:"added to the variance"`
}

func init() {
	Registry.Register("instance_norm", "normalises every channel of every image separately", func() Layer {
		return &InstanceNorm{Epsilon: 1e-5}
	})
}

func (*InstanceNorm) OutputShape(in []int) ([]int, error) {
	image, err := imageOf(in)
	if err != nil {
		return nil, err
	}
	if image[0]*image[1] < 2 {
		return nil, fmt.Errorf("got an input of shape %v, want an image of more than one pixel", in)
	}
	return in, nil
}

func (*InstanceNorm) Parameters(in []int) []Parameter { return scaleAndShift(channels(in)) }

func (i *InstanceNorm) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	image, err := imageOf(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("instance_norm: %w", err)
	}
	y, err := ops.Standardise(x, image[0]*image[1], image[2], i.Epsilon)
	if err != nil {
		return nil, fmt.Errorf("instance_norm: %w", err)
	}
	return scaledAndShifted(s, y)
}
