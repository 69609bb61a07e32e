package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// UpsampleBilinear enlarges an image (height, width, channels) or (height, width) by linear interpolation between the centres
// of pixels along each axis. With the position s = (i + 1/2)/factor - 1/2 of pixel i, clipped to the image,
//
//	y(i) = (1 - t) x(floor(s)) + t x(floor(s) + 1),  t = s - floor(s)
//
// It is PyTorch's interpolate with mode = "bilinear" and align_corners = False.
type UpsampleBilinear struct {
	Factor int `toml:"factor" want:"> 0" doc:"scale factor of height and width"`
}

func init() {
	Registry.Register("upsample_bilinear", "enlarges an image by bilinear interpolation", func() Layer { return &UpsampleBilinear{Factor: 2} })
}

func (u *UpsampleBilinear) OutputShape(in []int) ([]int, error) {
	return (&Upsample{u.Factor}).OutputShape(in)
}

func (*UpsampleBilinear) Parameters([]int) []Parameter { return nil }

func (u *UpsampleBilinear) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	out, err := u.OutputShape(x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	image, err := imageOf(x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	filter := ops.Separable{In: image, Rows: between(image[0], u.Factor), Columns: between(image[1], u.Factor)}
	var c ops.Chain
	y := c.Do("upsample_bilinear", func() (*gorgonia.Node, error) { return filter.Apply(c.Flatten(x)) })
	return c.Reshape(y, append([]int{x.Shape()[0]}, out...)...), c.Err()
}

// between returns the filter that interpolates n pixels linearly at the centres of n*factor pixels.
func between(n, factor int) []ops.Tap {
	taps := make([]ops.Tap, n*factor)
	for i := range taps {
		s := min(max((float64(i)+0.5)/float64(factor)-0.5, 0), float64(n-1))
		from := int(s)
		if t := s - float64(from); t > 0 {
			taps[i] = ops.Tap{From: from, Weights: []float64{1 - t, t}}
		} else {
			taps[i] = ops.Tap{From: from, Weights: []float64{1}}
		}
	}
	return taps
}

// OutputRange implements [Ranged]. The weights of a pixel are non-negative and add up to 1 except for rounding.
func (*UpsampleBilinear) OutputRange(in Interval) Interval { return in }
