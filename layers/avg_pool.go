package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// AvgPool computes the mean of every window for each channel; the windows are those of [MaxPool]. Windows over the edges
// average only pixels of the image (PyTorch's count_include_pad = False). A kernel of the image's size is global pooling.
type AvgPool struct{ Pooling }

func init() {
	Registry.Register("avg_pool", "average pooling: the mean of every window of an image", func() Layer {
		return &AvgPool{Pooling{Kernel: 2}}
	})
}

func (a *AvgPool) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	return a.apply(x, func(g ops.Pooling, images *gorgonia.Node) (*gorgonia.Node, error) {
		g.Mean = true
		return g.Sum(images)
	})
}
