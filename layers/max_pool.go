package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// MaxPool computes the maximum of every window for each channel of images (height, width, channels) or (height, width).
// Windows of kernel x kernel pixels start every stride pixels; the default stride is the kernel's size. With [Padding],
// windows extend over the edges and ignore the part outside. [Padding] also determines the output's size: without padding,
// height' = floor((height - kernel) / stride) + 1. The gradient goes to the maximum, or to the first of several equal maxima.
type MaxPool struct{ Pooling }

func init() {
	Registry.Register("max_pool", "max pooling: the largest value of every window of an image", func() Layer {
		return &MaxPool{Pooling{Kernel: 2}}
	})
}

func (*MaxPool) Rearranges() {}

func (m *MaxPool) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return m.apply(x, ops.Pooling.Max)
}
