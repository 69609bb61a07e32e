package layers

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Unpatch undoes [Patches]: it turns tokens (tokens, size*size*channels), ordered row by row, into an image (height, width),
// or (height, width, channels) if there are several channels.
type Unpatch struct {
	Size   int `toml:"size" want:"> 0" doc:"height and width of a patch"`
	Height int `toml:"height" want:">= 0" doc:"height of the image; 0: that of a square one"`
}

func init() {
	Registry.Register("unpatch", "an image from the sequence of its patches", func() Layer { return &Unpatch{Size: 4} })
}

// geometry returns the geometry of the image that is composed of tokens of shape in.
func (u *Unpatch) geometry(in []int) (ops.Patching, error) {
	tokens, features, err := sequenceOf(in)
	if err != nil {
		return ops.Patching{}, err
	}
	if u.Size < 1 || features%(u.Size*u.Size) != 0 {
		return ops.Patching{}, part.KeyErrorf("size", "%d features of a token are not patches of %d x %d pixels", features, u.Size, u.Size)
	}
	rows := u.Height / u.Size
	if u.Height == 0 {
		for rows = 1; rows*rows < tokens; rows++ {
		}
	}
	if rows < 1 || tokens%rows != 0 || u.Height%u.Size != 0 || u.Height == 0 && rows*rows != tokens {
		return ops.Patching{}, part.KeyErrorf("height", "got %d, but there are %d patches of %d x %d pixels", u.Height, tokens, u.Size, u.Size)
	}
	return ops.Patching{Height: rows * u.Size, Width: tokens / rows * u.Size, Channels: features / (u.Size * u.Size), Size: u.Size}, nil
}

func (*Unpatch) Rearranges() {}

func (u *Unpatch) OutputShape(in []int) ([]int, error) {
	g, err := u.geometry(in)
	if err != nil {
		return nil, err
	}
	if g.Channels == 1 {
		return []int{g.Height, g.Width}, nil
	}
	return []int{g.Height, g.Width, g.Channels}, nil
}

func (*Unpatch) Parameters([]int) []Parameter { return nil }

func (u *Unpatch) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	out, err := u.OutputShape(x.Shape()[1:])
	if err != nil {
		return nil, fmt.Errorf("unpatch: %w", err)
	}
	g, err := u.geometry(x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	y := c.Do("join patches", func() (*gorgonia.Node, error) { return g.Join(x) })
	return c.Reshape(y, append([]int{x.Shape()[0]}, out...)...), c.Err()
}

func (*Unpatch) OutputRange(in Interval) Interval { return in }
