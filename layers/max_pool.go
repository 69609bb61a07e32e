package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// MaxPool gives the largest value of every window, channel by channel, for images (height, width, channels) or (height,
// width). Windows of kernel x kernel pixels start every stride pixels, without a stride side by side; [Padding] says how
// far they reach over the edges, where they see nothing, and with it the output's size: without it, height' =
// floor((height - kernel) / stride) + 1. The gradient goes to the largest value, of several equal ones to the first.
type MaxPool struct{ Pooling }

func init() {
	Registry.Register("max_pool", "max pooling: the largest value of every window of an image", func() Layer {
		return &MaxPool{Pooling{Kernel: 2}}
	})
}

// Apply implements [Layer].
func (m *MaxPool) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return m.apply(x, ops.Pooling.Max)
}
