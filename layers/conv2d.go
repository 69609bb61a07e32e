package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Conv2D convolves images (height, width, channels) with filters; an image (height, width) has one channel. The output is
// (height', width', filters):
//
//	y(i,j,f) = activation( bias(f) + sum over u,v,c of x(i stride + u dilation - top, j stride + v dilation - left, c) weight(u,v,c,f) )
//
// with 0 <= u,v < kernel and zeros outside of the image; kernel_width and stride_width replace kernel and stride along the
// width. [Padding] determines top, left and the output's size; without padding, height' = floor((height - dilation (kernel-1) -
// 1) / stride) + 1. With groups > 1 channels and filters are split into equal groups, and each filter reads the channels of its
// group. Parameters: weight (kernel, kernel_width, channels/groups, filters) and bias (filters), which starts at 0.
type Conv2D struct{ Filtering }

func init() {
	Registry.Register("conv2d", "2D convolution", func() Layer { return &Conv2D{usualFiltering()} })
}

// geometry returns the geometry of the convolution of images of shape in.
func (l *Conv2D) geometry(in []int) (ops.Convolution, error) {
	g, image, err := l.fitting(in)
	if err != nil {
		return g, err
	}
	high, wide := l.reach()
	g.In, g.Out[2] = image, l.Filters
	g.Out[0], g.Top = l.Padding.along(image[0], high, l.Stride)
	g.Out[1], g.Left = l.Padding.along(image[1], wide, l.strideWidth())
	if g.Out[0] < 1 || g.Out[1] < 1 {
		if high == wide {
			return g, part.KeyErrorf("kernel", "a filter that spans %d pixels does not fit into an image of %d x %d", high, image[0], image[1])
		}
		return g, part.KeyErrorf("kernel", "a filter that spans %d x %d pixels does not fit into an image of %d x %d", high, wide, image[0], image[1])
	}
	return g, boundedWindows(g)
}

func (l *Conv2D) OutputShape(in []int) ([]int, error) {
	g, err := l.geometry(in)
	if err != nil {
		return nil, err
	}
	return g.Out[:], nil
}

func (l *Conv2D) Parameters(in []int) []Parameter { return l.parameters(in, l.geometry) }

func (l *Conv2D) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return l.apply(s, x, l.geometry, func(g ops.Convolution) (*gorgonia.Node, error) {
		return onImages(x, g.In, g.Out[:], func(images *gorgonia.Node) (*gorgonia.Node, error) { return g.Convolve(images, s.Parameter("weight")) })
	})
}
