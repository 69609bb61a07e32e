package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Patches cuts an image (height, width) or (height, width, channels) into adjacent square patches. The output is a sequence
// of tokens (height/size * width/size, size*size*channels). Patches are ordered row by row, and so are the pixels of a
// patch, with channels last. A token_dense layer can then compute the embeddings of the patches.
type Patches struct {
	Size int `toml:"size" want:"> 0" doc:"height and width of a patch; must divide those of the image"`
}

func init() {
	Registry.Register("patches", "an image as the sequence of its patches", func() Layer { return &Patches{Size: 4} })
}

// geometry returns the geometry of the patches of images of shape in.
func (p *Patches) geometry(in []int) (ops.Patching, error) {
	image, err := imageOf(in)
	if err != nil {
		return ops.Patching{}, err
	}
	g := ops.Patching{Height: image[0], Width: image[1], Channels: image[2], Size: p.Size}
	if p.Size < 1 || g.Height%p.Size != 0 || g.Width%p.Size != 0 {
		return g, part.KeyErrorf("size", "patches of %d x %d pixels do not divide an image of %d x %d",
			p.Size, p.Size, g.Height, g.Width)
	}
	return g, nil
}

func (*Patches) Rearranges() {}

func (p *Patches) OutputShape(in []int) ([]int, error) {
	g, err := p.geometry(in)
	if err != nil {
		return nil, err
	}
	return []int{g.Tokens(), g.Features()}, nil
}

func (*Patches) Parameters([]int) []Parameter { return nil }

func (p *Patches) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	g, err := p.geometry(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("patches: %w", err)
	}
	return g.Cut(x)
}

func (*Patches) OutputRange(in Interval) Interval { return in }
