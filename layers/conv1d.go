package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Conv1D convolves sequences (length, channels) with filters; a vector (length) has one channel. The output is (length',
// filters):
//
//	y(i,f) = activation( bias(f) + sum over u,c of x(i stride + u dilation - before, c) weight(u,c,f) )
//
// with 0 <= u < kernel and zeros outside of the sequence. [Padding] determines before and the length of the output; without
// padding, length' = floor((length - dilation (kernel-1) - 1) / stride) + 1. With groups > 1 channels and filters are split
// into equal groups, and each filter reads the channels of its group. Parameters: weight (kernel, channels/groups, filters) and
// bias (filters), which starts at 0.
type Conv1D struct {
	Filters    int            `toml:"filters" want:"> 0" doc:"channels of the output" required:"true"`
	Kernel     int            `toml:"kernel" want:"> 0" doc:"length of a filter"`
	Stride     int            `toml:"stride" want:"> 0" doc:"stride in places of the input"`
	Padding    Padding        `toml:"padding" doc:"\"same\", \"valid\" or a number of places at both ends"`
	Dilation   int            `toml:"dilation" want:"> 0" doc:"distance in places between neighbouring weights of a filter"`
	Groups     int            `toml:"groups" want:"> 0" doc:"number of channel groups that are convolved separately"`
	Activation ActivationName `toml:"activation" doc:"activation function, with its default settings"`
	Bias       bool           `toml:"bias" doc:"learn a bias for every filter"`
	Init       Init           `toml:"init" doc:"initial values of the weights"`
}

func init() {
	Registry.Register("conv1d", "1D convolution of sequences", func() Layer {
		f := usualFiltering()
		return &Conv1D{f.Filters, f.Kernel, f.Stride, f.Padding, f.Dilation, f.Groups, f.Activation, f.Bias, f.Init}
	})
}

// filtering returns the settings as those of a convolution of images of one column.
func (l *Conv1D) filtering() *Filtering {
	return &Filtering{Filters: l.Filters, Kernel: l.Kernel, KernelWidth: 1, Stride: l.Stride, StrideWidth: 1, Padding: l.Padding, Dilation: l.Dilation,
		Groups: l.Groups, Activation: l.Activation, Bias: l.Bias, Init: l.Init}
}

// column returns the shape of a sequence of shape in as an image of one column.
func column(in []int) ([]int, error) {
	switch len(in) {
	case 1:
		return []int{in[0], 1, 1}, nil
	case 2:
		return []int{in[0], 1, in[1]}, nil
	}
	return nil, fmt.Errorf("got an input of shape %v, want a sequence (length, channels) or (length)", in)
}

// geometry returns the geometry of the convolution of sequences of shape in.
func (l *Conv1D) geometry(in []int) (ops.Convolution, error) {
	image, err := column(in)
	if err != nil {
		return ops.Convolution{}, err
	}
	f := l.filtering()
	g, size, err := f.fitting(image)
	if err != nil {
		return g, err
	}
	reach, _ := f.reach()
	g.In, g.Out[1], g.Out[2] = size, 1, l.Filters
	if g.Out[0], g.Top = l.Padding.along(image[0], reach, l.Stride); g.Out[0] < 1 {
		return g, part.KeyErrorf("kernel", "a filter that spans %d places does not fit into a sequence of %d", reach, image[0])
	}
	return g, boundedWindows(g)
}

func (l *Conv1D) OutputShape(in []int) ([]int, error) {
	g, err := l.geometry(in)
	if err != nil {
		return nil, err
	}
	return []int{g.Out[0], g.Out[2]}, nil
}

func (l *Conv1D) Parameters(in []int) []Parameter {
	image, err := column(in)
	if err != nil {
		return nil // OutputShape returns the error
	}
	list := l.filtering().parameters(image, func([]int) (ops.Convolution, error) { return l.geometry(in) })
	if len(list) > 0 {
		list[0].Shape = []int{l.Kernel, image[2] / l.Groups, l.Filters}
	}
	return list
}

func (l *Conv1D) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	y := c.Do("conv1d", func() (*gorgonia.Node, error) {
		return l.filtering().apply(s, x, l.geometry, func(g ops.Convolution) (*gorgonia.Node, error) {
			images := c.Reshape(x, x.Shape()[0], g.In[0], 1, g.In[2])
			weight := c.Reshape(s.Parameter("weight"), g.Filters()...)
			if c.Err() != nil {
				return nil, c.Err()
			}
			return g.Convolve(images, weight)
		})
	})
	if c.Err() != nil {
		return nil, c.Err()
	}
	return c.Reshape(y, x.Shape()[0], volume.Of(y.Shape()[1:3]), l.Filters), c.Err()
}

func (l *Conv1D) AddsBias() bool { return l.filtering().AddsBias() }

// OutputRange implements [Ranged]: the range of the activation.
func (l *Conv1D) OutputRange(in Interval) Interval { return l.filtering().OutputRange(in) }
