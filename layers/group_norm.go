package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// GroupNorm shifts and scales groups of channels of an image (height, width, channels) or (height, width) to a learned mean and
// deviation. The channels are split into equal groups; mean and variance are those of all pixels and channels of a group. Every
// image is normalised separately, both in training and at inference:
//
//	y = scale (x - mean) / sqrt(variance + epsilon) + shift
//
// with the biased variance. With as many groups as channels this is [InstanceNorm]. Parameters, of shape (channels): scale,
// initially 1, and shift, initially 0. Wu and He, Group Normalization, 2018.
type GroupNorm struct {
	Groups  int     `toml:"groups" want:"> 0" doc:"number of channel groups that are normalised separately"`
	Epsilon float64 `toml:"epsilon" want:"> 0" doc:"added to the variance"`
}

func init() {
	Registry.Register("group_norm", "normalises groups of channels of every image separately", func() Layer {
		return &GroupNorm{Groups: 1, Epsilon: 1e-5}
	})
}

func (g *GroupNorm) OutputShape(in []int) ([]int, error) {
	image, err := imageOf(in)
	if err != nil {
		return nil, err
	}
	if g.Groups < 1 || image[2]%g.Groups != 0 {
		return nil, part.KeyErrorf("groups", "%d do not divide %d channels", g.Groups, image[2])
	}
	if image[0]*image[1]*image[2]/g.Groups < 2 {
		return nil, fmt.Errorf("got an input of shape %v, want more than one value in a group", in)
	}
	return in, nil
}

func (*GroupNorm) Parameters(in []int) []Parameter { return scaleAndShift(channels(in)) }

func (g *GroupNorm) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if _, err := g.OutputShape(x.Shape()[1:]); err != nil {
		return nil, fmt.Errorf("group_norm: %w", err)
	}
	image, err := imageOf(x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	n, pixels, of := x.Shape()[0], image[0]*image[1], image[2]/g.Groups
	swapped := func(y *gorgonia.Node, first, second int) *gorgonia.Node { // the two axes between images and the channels of a group
		y = c.Reshape(y, n, first, second, of)
		return c.Do("transpose", func() (*gorgonia.Node, error) { return gorgonia.Transpose(y, 0, 2, 1, 3) })
	}
	groups := swapped(x, pixels, g.Groups)
	y := c.Do("standardise", func() (*gorgonia.Node, error) { return ops.Standardise(groups, pixels*of, 1, g.Epsilon) })
	y = c.Reshape(swapped(y, g.Groups, pixels), x.Shape()...)
	if c.Err() != nil {
		return nil, fmt.Errorf("group_norm: %w", c.Err())
	}
	return scaledAndShifted(s, y)
}
