package layers

import (
	"cmp"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Filtering is embedded by the convolution and the transposed convolution.
type Filtering struct {
	Filters     int            `toml:"filters" want:"> 0" doc:"channels of the output" required:"true"`
	Kernel      int            `toml:"kernel" want:"> 0" pair:"kernel_width" doc:"height and width of a filter"`
	KernelWidth int            `toml:"kernel_width" want:"> 0" doc:"width of a filter; its height, kernel, by default"`
	Stride      int            `toml:"stride" want:"> 0" pair:"stride_width" doc:"stride in pixels of the larger image"`
	StrideWidth int            `toml:"stride_width" want:"> 0" doc:"stride between columns; that between rows, stride, by default"`
	Padding     Padding        `toml:"padding" doc:"\"same\", \"valid\" or a number of pixels on every side; conv2d_transpose crops them"`
	Dilation    int            `toml:"dilation" want:"> 0" doc:"distance in pixels between neighbouring weights of a filter"`
	Groups      int            `toml:"groups" want:"> 0" doc:"number of channel groups that are convolved separately"`
	Activation  ActivationName `toml:"activation" doc:"activation function, with its default settings"`
	Bias        bool           `toml:"bias" doc:"learn a bias for every filter"`
	Init        Init           `toml:"init" doc:"initial values of the weights"`
}

func usualFiltering() Filtering {
	return Filtering{Kernel: 3, Stride: 1, Padding: Padding{Same: true}, Dilation: 1, Groups: 1, Activation: "linear", Bias: true,
		Init: &GlorotUniform{}}
}

// fitting checks the settings, and the additional counts more, for input images of shape in. It returns the shape of the image and the
// fields of the geometry that the convolution and its transpose have in common.
func (f *Filtering) fitting(in []int, more ...count) (g ops.Convolution, image [3]int, err error) {
	g = ops.Convolution{Kernel: f.Kernel, Stride: f.Stride, Dilation: f.Dilation, Groups: f.Groups}
	if image, err = imageOf(in); err != nil {
		return g, image, err
	}
	if f.kernelWidth() != f.Kernel {
		g.KernelWidth = f.KernelWidth
	}
	if f.strideWidth() != f.Stride {
		g.StrideWidth = f.StrideWidth
	}
	if err := positive([]count{{"filters", f.Filters}, {"kernel", f.Kernel}, {"kernel_width", f.kernelWidth()}, {"stride", f.Stride},
		{"stride_width", f.strideWidth()}, {"dilation", f.Dilation}, {"groups", f.Groups}}); err != nil {
		return g, image, err
	}
	if image[2]%f.Groups != 0 || f.Filters%f.Groups != 0 {
		return g, image, part.KeyErrorf("groups", "%d do not divide %d channels and %d filters", f.Groups, image[2], f.Filters)
	}
	counts := []count{{"kernel_width", f.KernelWidth}, {"kernel", f.Kernel}, {"dilation", f.Dilation}, {"padding", f.Padding.Pixels}}
	if err := bounded(image, max(f.Kernel, f.kernelWidth()), append(counts, more...)); err != nil {
		return g, image, err
	}
	_, err = f.Activation.Activation()
	return g, image, err
}

func (f *Filtering) AddsBias() bool { return f.Bias && f.Activation.isLinear() }

func (f *Filtering) kernelWidth() int { return cmp.Or(f.KernelWidth, f.Kernel) }

// strideWidth returns the stride between columns.
func (f *Filtering) strideWidth() int { return cmp.Or(f.StrideWidth, f.Stride) }

// reach returns the number of rows and columns of the image that a filter spans, dilation included.
func (f *Filtering) reach() (rows, columns int) {
	return (f.Kernel-1)*f.Dilation + 1, (f.kernelWidth()-1)*f.Dilation + 1
}

// filtered computes the geometry of a layer's filters for images of shape in.
type filtered func(in []int) (ops.Convolution, error)

// parameters lists the filters and their biases.
func (f *Filtering) parameters(in []int, geometry filtered) []Parameter {
	g, err := geometry(in)
	if err != nil {
		return nil // OutputShape returns the error
	}
	window := f.Kernel * f.kernelWidth()
	fanIn, fanOut := window*channels(in)/f.Groups, window*f.Filters/f.Groups
	list := []Parameter{{Name: "weight", Shape: g.Filters(), Init: f.Init, FanIn: fanIn, FanOut: fanOut}}
	if f.Bias {
		list = append(list, Parameter{Name: "bias", Shape: []int{f.Filters}, Init: &Zeros{}, FanIn: fanIn, FanOut: fanOut})
	}
	return list
}

// apply adds the filtering, the biases and the activation to the graph of x.
func (f *Filtering) apply(s Scope, x *gorgonia.Node, geometry filtered,
	filter func(g ops.Convolution) (*gorgonia.Node, error)) (*gorgonia.Node, error) {
	g, err := geometry(x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	activation, err := f.Activation.Activation()
	if err != nil {
		return nil, err
	}
	y, err := filter(g)
	if err != nil {
		return nil, err
	}
	if f.Bias {
		var c ops.Chain
		if y = addChannels(&c, y, s.Parameter("bias")); c.Err() != nil {
			return nil, c.Err()
		}
	}
	return activation.Activate(y)
}

func (f *Filtering) OutputRange(Interval) Interval {
	return f.Activation.outputRange()
}
