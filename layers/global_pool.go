package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// GlobalPool maps an image (height, width, channels) or (height, width) to the vector of the means, or the maxima, of its
// channels. Lin, Chen and Yan, Network in network, 2013; PyTorch's AdaptiveAvgPool2d(1) and AdaptiveMaxPool2d(1).
type GlobalPool struct {
	Value string `toml:"value" oneof:"mean max" doc:"value of a channel"`
}

func init() {
	Registry.Register("global_pool", "the mean, or the maximum, of every channel of an image", func() Layer { return &GlobalPool{Value: "mean"} })
}

// geometry returns the geometry of a single window over the entire image. The window may be larger than the image: pooling
// ignores the part outside.
func (g *GlobalPool) geometry(in []int) (ops.Pooling, error) {
	image, err := imageOf(in)
	if err != nil {
		return ops.Pooling{}, err
	}
	side := max(image[0], image[1])
	p := ops.Pooling{In: image, Out: [3]int{1, 1, image[2]}, Kernel: side, Stride: side, Mean: g.Value == "mean"}
	return p, p.Check()
}

func (g *GlobalPool) OutputShape(in []int) ([]int, error) {
	p, err := g.geometry(in)
	if err != nil {
		return nil, err
	}
	return p.Out[2:], nil
}

func (*GlobalPool) Parameters([]int) []Parameter { return nil }

func (g *GlobalPool) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	p, err := g.geometry(x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	pool := p.Sum
	if !p.Mean {
		pool = p.Max
	}
	return onImages(x, p.In, p.Out[2:], pool)
}

func (*GlobalPool) OutputRange(in Interval) Interval { return in }
