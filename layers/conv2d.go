package layers

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Conv2D slides filters over images (height, width, channels); an image (height, width) has one channel. The output is
// (height', width', filters):
//
//	y(i,j,f) = activation( bias(f) + sum over u,v,c of x(i stride + u dilation - top, j stride + v dilation - left, c) weight(u,v,c,f) )
//
// with 0 <= u,v < kernel and zeros outside of the image. [Padding] says what top, left and the output's size are: without
// it, height' = floor((height - dilation (kernel-1) - 1) / stride) + 1. With groups > 1 channels and filters are cut into
// as many equal parts, and each filter sees the channels of its own part. Parameters: weight (kernel, kernel,
// channels/groups, filters) and bias (filters), which starts at 0.
type Conv2D struct {
	Filters    int            `toml:"filters" want:"> 0" doc:"channels of the output" required:"true"`
	Kernel     int            `toml:"kernel" want:"> 0" doc:"rows and columns of a filter"`
	Stride     int            `toml:"stride" want:"> 0" doc:"pixels from one place of a filter to the next"`
	Padding    Padding        `toml:"padding" doc:"\"same\", \"valid\" or a number of pixels on every side"`
	Dilation   int            `toml:"dilation" want:"> 0" doc:"pixels from one weight of a filter to the next"`
	Groups     int            `toml:"groups" want:"> 0" doc:"parts of the channels that do not see each other"`
	Activation ActivationName `toml:"activation" doc:"function of the outputs, with its default settings"`
	Bias       bool           `toml:"bias" doc:"learn an offset for every filter"`
	Init       Init           `toml:"init" doc:"first values of the weights"`
}

func init() {
	Registry.Register("conv2d", "filters that slide over an image", func() Layer {
		return &Conv2D{Kernel: 3, Stride: 1, Padding: Padding{Same: true}, Dilation: 1, Groups: 1, Activation: "linear", Bias: true,
			Init: &GlorotUniform{}}
	})
}

// geometry is the convolution of images of shape in.
func (l *Conv2D) geometry(in []int) (ops.Convolution, error) {
	g := ops.Convolution{Kernel: l.Kernel, Stride: l.Stride, Dilation: l.Dilation, Groups: l.Groups}
	image, err := imageOf(in)
	if err != nil {
		return g, err
	}
	if err := positive([]count{{"filters", l.Filters}, {"kernel", l.Kernel}, {"stride", l.Stride}, {"dilation", l.Dilation}, {"groups", l.Groups}}); err != nil {
		return g, err
	}
	g.In = image
	g.Out[2] = l.Filters
	if g.In[2]%g.Groups != 0 || l.Filters%g.Groups != 0 {
		return g, fmt.Errorf("groups: %d do not divide %d channels and %d filters", l.Groups, g.In[2], l.Filters)
	}
	if err := bounded(image, l.Kernel, []count{{"kernel", l.Kernel}, {"dilation", l.Dilation}, {"padding", l.Padding.Pixels}}); err != nil {
		return g, err
	}
	reach := (l.Kernel-1)*l.Dilation + 1
	g.Out[0], g.Top = l.Padding.along(in[0], reach, l.Stride)
	g.Out[1], g.Left = l.Padding.along(in[1], reach, l.Stride)
	if g.Out[0] < 1 || g.Out[1] < 1 {
		return g, fmt.Errorf("kernel: a filter that reaches over %d pixels does not fit into an image of %d x %d", reach, in[0], in[1])
	}
	return g, nil
}

// OutputShape implements [Layer].
func (l *Conv2D) OutputShape(in []int) ([]int, error) {
	g, err := l.geometry(in)
	if err != nil {
		return nil, err
	}
	if _, err := l.Activation.Activation(); err != nil {
		return nil, err
	}
	return g.Out[:], nil
}

// Parameters implements [Layer].
func (l *Conv2D) Parameters(in []int) []Parameter {
	g, err := l.geometry(in)
	if err != nil {
		return nil // OutputShape says what does not fit
	}
	window := l.Kernel * l.Kernel
	fanIn, fanOut := window*g.In[2]/l.Groups, window*l.Filters/l.Groups
	list := []Parameter{{Name: "weight", Shape: g.Filters(), Init: l.Init, FanIn: fanIn, FanOut: fanOut}}
	if l.Bias {
		list = append(list, Parameter{Name: "bias", Shape: []int{l.Filters}, Init: &Zeros{}, FanIn: fanIn, FanOut: fanOut})
	}
	return list
}

// Apply implements [Layer].
func (l *Conv2D) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if x.Dims() < 2 {
		return nil, errors.New("conv2d: want an input with a batch axis")
	}
	g, err := l.geometry(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("conv2d: %w", err)
	}
	activation, err := l.Activation.Activation()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	images := c.Reshape(x, append([]int{x.Shape()[0]}, g.In[:]...)...)
	y := c.Do("convolution", func() (*gorgonia.Node, error) { return g.Convolve(images, s.Parameter("weight")) })
	if l.Bias {
		y = addChannels(&c, y, s.Parameter("bias"))
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	return activation.Activate(y)
}

// OutputRange implements [Ranged]: the activation's, whatever the input.
func (l *Conv2D) OutputRange(Interval) Interval {
	activation, err := l.Activation.Activation()
	if err != nil {
		return Everything
	}
	return activation.OutputRange(Everything)
}
