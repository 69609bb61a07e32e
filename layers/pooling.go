package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Pooling is embedded by layers that compute one value from every window of an image, for each channel.
type Pooling struct {
	Kernel  int     `toml:"kernel" want:"> 0" doc:"height and width of a window"`
	Stride  int     `toml:"stride" want:"> 0" doc:"stride in pixels; the kernel's size by default"`
	Padding Padding `toml:"padding" doc:"\"same\", \"valid\" or a number of pixels on every side, less than the kernel's"`
}

// geometry returns the geometry of the windows over images of shape in.
func (p *Pooling) geometry(in []int) (ops.Pooling, error) {
	image, err := imageOf(in)
	if err != nil {
		return ops.Pooling{}, err
	}
	stride := p.Stride
	if stride == 0 {
		stride = p.Kernel
	}
	if err := positive([]count{{"kernel", p.Kernel}, {"stride", stride}}); err != nil {
		return ops.Pooling{}, err
	}
	if p.Padding.Pixels >= p.Kernel {
		return ops.Pooling{}, part.KeyErrorf("padding", "got %d, want less than the kernel's %d pixels: every window must overlap the image",
			p.Padding.Pixels, p.Kernel)
	}
	g := ops.Pooling{In: image, Kernel: p.Kernel, Stride: stride}
	g.Out[0], g.Top = p.Padding.along(image[0], p.Kernel, stride)
	g.Out[1], g.Left = p.Padding.along(image[1], p.Kernel, stride)
	g.Out[2] = image[2]
	if g.Out[0] < 1 || g.Out[1] < 1 {
		return g, part.KeyErrorf("kernel", "a window of %d x %d pixels does not fit into an image of %d x %d", p.Kernel, p.Kernel, image[0], image[1])
	}
	return g, g.Check()
}

func (p *Pooling) OutputShape(in []int) ([]int, error) {
	g, err := p.geometry(in)
	if err != nil {
		return nil, err
	}
	return resized(in, g.Out), nil
}

func (*Pooling) Parameters([]int) []Parameter { return nil }

func (*Pooling) OutputRange(in Interval) Interval { return in }

// apply adds the op that f returns for the geometry to the graph of x.
func (p *Pooling) apply(x *gorgonia.Node, f func(g ops.Pooling, images *gorgonia.Node) (*gorgonia.Node, error)) (*gorgonia.Node, error) {
	g, err := p.geometry(x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	return onImages(x, g.In, resized(x.Shape()[1:], g.Out), func(images *gorgonia.Node) (*gorgonia.Node, error) { return f(g, images) })
}
