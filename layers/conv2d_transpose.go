package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Conv2DTranspose enlarges images (height, width, channels). It is the transpose of a [Conv2D] that has the same settings and
// reads `filters` channels. An image (height, width) has one channel. The output is (height', width', filters):
//
//	y(r,s,f) = activation( bias(f) + sum over i,j,u,v,c of x(i,j,c) weight(u,v,f,c) )
//
// summed over all indices with r = i stride + u dilation - top and s = j stride + v dilation - left, 0 <= u,v < kernel;
// kernel_width and stride_width replace kernel and stride along the width. [Padding] crops the output: "same" gives height' =
// height stride and crops an odd pixel at the end; p pixels ("valid" is p = 0) give
//
//	height' = (height - 1) stride + dilation (kernel - 1) + 1 - 2 p
//
// With groups > 1 channels and filters are split into equal groups that are convolved separately. Parameters: weight (kernel,
// kernel_width, filters/groups, channels), and bias (filters), which starts at 0.
type Conv2DTranspose struct{ Filtering }

func init() {
	Registry.Register("conv2d_transpose", "transposed 2D convolution, which enlarges an image", func() Layer { return &Conv2DTranspose{usualFiltering()} })
}

// geometry returns the geometry of the convolution that this layer transposes. The images of that convolution are the outputs
// of the layer.
func (l *Conv2DTranspose) geometry(in []int) (ops.Convolution, error) {
	g, image, err := l.fitting(in, count{"stride", l.Stride}, count{"stride_width", l.strideWidth()})
	if err != nil {
		return g, err
	}
	high, wide := l.reach()
	g.Out, g.In[2] = image, l.Filters
	g.In[0], g.Top = l.Padding.back(image[0], high, l.Stride)
	g.In[1], g.Left = l.Padding.back(image[1], wide, l.strideWidth())
	if g.In[0] < 1 || g.In[1] < 1 {
		return g, part.KeyErrorf("padding", "cropping %[3]d pixels on every side leaves nothing of an image of %[1]d x %[2]d",
			g.In[0]+2*g.Top, g.In[1]+2*g.Left, l.Padding.Pixels)
	}
	return g, boundedWindows(g)
}

func (l *Conv2DTranspose) OutputShape(in []int) ([]int, error) {
	g, err := l.geometry(in)
	if err != nil {
		return nil, err
	}
	return g.In[:], nil
}

func (l *Conv2DTranspose) Parameters(in []int) []Parameter { return l.parameters(in, l.geometry) }

func (l *Conv2DTranspose) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return l.apply(s, x, l.geometry, func(g ops.Convolution) (*gorgonia.Node, error) {
		return onImages(x, g.Out, g.In[:], func(images *gorgonia.Node) (*gorgonia.Node, error) { return g.Images(images, s.Parameter("weight")) })
	})
}
