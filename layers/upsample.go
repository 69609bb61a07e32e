package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Upsample repeats every pixel of an image (height, width, channels) or (height, width) as a block of factor x factor pixels:
//
//	y(i,j,c) = x(floor(i / factor), floor(j / factor), c)
//
// This is nearest-neighbour interpolation.
type Upsample struct {
	Factor int `toml:"factor" want:"> 0" doc:"scale factor of height and width"`
}

func init() {
	Registry.Register("upsample", "enlarges an image by repeating every pixel", func() Layer { return &Upsample{Factor: 2} })
}

// geometry returns the geometry of the pooling that this layer transposes: it sums blocks of factor x factor pixels.
func (u *Upsample) geometry(in []int) (ops.Pooling, error) {
	image, err := imageOf(in)
	if err != nil {
		return ops.Pooling{}, err
	}
	if err := positive([]count{{"factor", u.Factor}}); err != nil {
		return ops.Pooling{}, err
	}
	if err := bounded(image, 1, []count{{"factor", u.Factor}}); err != nil {
		return ops.Pooling{}, err
	}
	g := ops.Pooling{In: [3]int{image[0] * u.Factor, image[1] * u.Factor, image[2]}, Out: image, Kernel: u.Factor, Stride: u.Factor}
	if g.Check() != nil {
		return g, part.KeyErrorf("factor", "got %d, which makes an image of %d x %d: too large", u.Factor, g.In[0], g.In[1])
	}
	return g, nil
}

func (*Upsample) Rearranges() {}

func (u *Upsample) OutputShape(in []int) ([]int, error) {
	g, err := u.geometry(in)
	if err != nil {
		return nil, err
	}
	return resized(in, g.In), nil
}

func (*Upsample) Parameters([]int) []Parameter { return nil }

func (u *Upsample) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	g, err := u.geometry(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("upsample: %w", err)
	}
	return onImages(x, g.Out, resized(x.Shape()[1:], g.In), g.Spread)
}

func (*Upsample) OutputRange(in Interval) Interval { return in }
