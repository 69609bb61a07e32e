package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// AvgPool gives the mean of every window, channel by channel, as [MaxPool] gives the largest value. Windows that reach
// over the edges average the pixels that they see (PyTorch's count_include_pad = False). A kernel of the image's size
// is global pooling.
type AvgPool struct{ Pooling }

func init() {
	Registry.Register("avg_pool", "average pooling: the mean of every window of an image", func() Layer {
		return &AvgPool{Pooling{Kernel: 2}}
	})
}

// Apply implements [Layer].
func (a *AvgPool) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return a.apply(x, func(g ops.Pooling, images *gorgonia.Node) (*gorgonia.Node, error) {
		g.Mean = true
		return g.Sum(images)
	})
}
