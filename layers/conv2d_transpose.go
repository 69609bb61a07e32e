package layers

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Conv2DTranspose makes images (height, width, channels) larger: it is the transpose of a [Conv2D] of the same settings,
// with the filters as the channels that it reads, and puts a filter's weights, times the input, where that convolution
// would have seen them. An image (height, width) has one channel. The output is (height', width', filters):
//
//	y(r,s,f) = activation( bias(f) + sum over i,j,u,v,c of x(i,j,c) weight(u,v,f,c) )
//
// over those with r = i stride + u dilation - top and s = j stride + v dilation - left, 0 <= u,v < kernel. [Padding] is
// what of the output is cut off: "same" gives height' = height stride, any odd pixel cut at the end; "valid" and a number
// of pixels height' = (height - 1) stride + dilation (kernel-1) + 1 - 2 pixels. With groups > 1 channels and filters are cut
// into as many equal parts that do not see each other. Parameters: weight (kernel, kernel, filters/groups, channels), and
// bias (filters), which starts at 0.
type Conv2DTranspose struct {
	Filters    int            `toml:"filters" want:"> 0" doc:"channels of the output" required:"true"`
	Kernel     int            `toml:"kernel" want:"> 0" doc:"rows and columns of a filter"`
	Stride     int            `toml:"stride" want:"> 0" doc:"pixels of the output from one pixel of the input to the next"`
	Padding    Padding        `toml:"padding" doc:"\"same\", \"valid\" or a number of pixels cut off on every side"`
	Dilation   int            `toml:"dilation" want:"> 0" doc:"pixels from one weight of a filter to the next"`
	Groups     int            `toml:"groups" want:"> 0" doc:"parts of the channels that do not see each other"`
	Activation ActivationName `toml:"activation" doc:"function of the outputs, with its default settings"`
	Bias       bool           `toml:"bias" doc:"learn an offset for every filter"`
	Init       Init           `toml:"init" doc:"first values of the weights"`
}

func init() {
	Registry.Register("conv2d_transpose", "filters that draw a larger image", func() Layer {
		return &Conv2DTranspose{Kernel: 3, Stride: 1, Padding: Padding{Same: true}, Dilation: 1, Groups: 1, Activation: "linear", Bias: true,
			Init: &GlorotUniform{}}
	})
}

// geometry is the convolution whose transpose the layer is: its images are the layer's outputs.
func (l *Conv2DTranspose) geometry(in []int) (ops.Convolution, error) {
	g := ops.Convolution{Kernel: l.Kernel, Stride: l.Stride, Dilation: l.Dilation, Groups: l.Groups}
	image, err := imageOf(in)
	if err != nil {
		return g, err
	}
	if err := positive([]count{{"filters", l.Filters}, {"kernel", l.Kernel}, {"stride", l.Stride}, {"dilation", l.Dilation}, {"groups", l.Groups}}); err != nil {
		return g, err
	}
	g.Out = image
	g.In[2] = l.Filters
	if image[2]%g.Groups != 0 || l.Filters%g.Groups != 0 {
		return g, fmt.Errorf("groups: %d do not divide %d channels and %d filters", l.Groups, image[2], l.Filters)
	}
	if err := bounded(image, l.Kernel, []count{{"kernel", l.Kernel}, {"stride", l.Stride}, {"dilation", l.Dilation}, {"padding", l.Padding.Pixels}}); err != nil {
		return g, err
	}
	reach := (l.Kernel-1)*l.Dilation + 1
	g.In[0], g.Top = l.Padding.back(image[0], reach, l.Stride)
	g.In[1], g.Left = l.Padding.back(image[1], reach, l.Stride)
	if g.In[0] < 1 || g.In[1] < 1 {
		return g, fmt.Errorf("padding: nothing is left of an image of %d x %d when %d pixels are cut off on every side",
			g.In[0]+2*g.Top, g.In[1]+2*g.Left, l.Padding.Pixels)
	}
	return g, nil
}

// OutputShape implements [Layer].
func (l *Conv2DTranspose) OutputShape(in []int) ([]int, error) {
	g, err := l.geometry(in)
	if err != nil {
		return nil, err
	}
	if _, err := l.Activation.Activation(); err != nil {
		return nil, err
	}
	return g.In[:], nil
}

// Parameters implements [Layer].
func (l *Conv2DTranspose) Parameters(in []int) []Parameter {
	g, err := l.geometry(in)
	if err != nil {
		return nil // OutputShape says what does not fit
	}
	window := l.Kernel * l.Kernel
	fanIn, fanOut := window*g.Out[2]/l.Groups, window*l.Filters/l.Groups
	list := []Parameter{{Name: "weight", Shape: g.Filters(), Init: l.Init, FanIn: fanIn, FanOut: fanOut}}
	if l.Bias {
		list = append(list, Parameter{Name: "bias", Shape: []int{l.Filters}, Init: &Zeros{}, FanIn: fanIn, FanOut: fanOut})
	}
	return list
}

// Apply implements [Layer].
func (l *Conv2DTranspose) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if x.Dims() < 2 {
		return nil, errors.New("conv2d_transpose: want an input with a batch axis")
	}
	g, err := l.geometry(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("conv2d_transpose: %w", err)
	}
	activation, err := l.Activation.Activation()
	if err != nil {
		return nil, err
	}
	y, err := onImages(x, g.Out, g.In[:], func(images *gorgonia.Node) (*gorgonia.Node, error) {
		return g.Images(images, s.Parameter("weight"))
	})
	if err != nil {
		return nil, fmt.Errorf("conv2d_transpose: %w", err)
	}
	if l.Bias {
		var c ops.Chain
		if y = addChannels(&c, y, s.Parameter("bias")); c.Err() != nil {
			return nil, c.Err()
		}
	}
	return activation.Activate(y)
}

// OutputRange implements [Ranged]: the activation's, whatever the input.
func (l *Conv2DTranspose) OutputRange(Interval) Interval {
	activation, err := l.Activation.Activation()
	if err != nil {
		return Everything
	}
	return activation.OutputRange(Everything)
}
