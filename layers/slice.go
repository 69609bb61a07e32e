package layers

import (
	"errors"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Slice keeps `count` elements of the first axis of its input, from number `first` on, counted from 0: tokens of a sequence, rows of an image, units of
// a vector. There are no parameters.
type Slice struct {
	First int `toml:"first" want:">= 0" doc:"number of the first element that is kept"`
	Count int `toml:"count" want:"> 0" required:"true" doc:"number of elements that are kept"`
}

func init() {
	Registry.Register("slice", "some elements of the first axis: tokens, rows or units", func() Layer { return &Slice{} })
}

func (*Slice) Rearranges() {}

func (l *Slice) OutputShape(in []int) ([]int, error) {
	if len(in) == 0 {
		return nil, errors.New("got an input without axes")
	}
	if l.First < 0 || l.Count < 1 || l.Count > in[0]-l.First {
		return nil, part.KeyErrorf("count", "got %d elements from number %d of the shape %v, which has %d", l.Count, l.First, in, in[0])
	}
	out := slices.Clone(in)
	out[0] = l.Count
	return out, nil
}

func (*Slice) Parameters([]int) []Parameter { return nil }

func (l *Slice) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	shape := slices.Clone(x.Shape())
	size := volume.Of(shape[2:])
	shape[1] = l.Count
	var c ops.Chain
	return c.Reshape(c.Columns(c.Flatten(x), l.First*size, l.Count*size), shape...), c.Err()
}

func (*Slice) OutputRange(in Interval) Interval { return in }
