package layers

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

var _ Reader = (*Condition)(nil)

// Condition adds a vector to every pixel of an image, or to every token, of its input:
//
//	y(i,j,c) = x(i,j,c) + v_c
//
// v is the value that `by` names, with one number for each channel, for example an embedding of the noise level in a diffusion
// model, or of a class. An input (height, width) is read as tokens of width values. Source: Ho, Jain and Abbeel, Denoising
// diffusion probabilistic models, 2020.
type Condition struct {
	By string `toml:"by" required:"true" doc:"name of the value that is added, with one number for each channel"`

	of []int // shape of the value
}

func init() {
	Registry.Register("condition", "adds a vector to every pixel, y(i,j,c) = x(i,j,c) + v_c", func() Layer { return &Condition{} })
}

func (l *Condition) Reads() []Reading       { return []Reading{{Key: "by", Name: l.By, Shape: l.of}} }
func (l *Condition) Receive(shapes [][]int) { l.of = shapes[0] }

func (l *Condition) OutputShape(in []int) ([]int, error) {
	if _, n := tokensOf(in); l.of == nil || volume.Of(l.of) != n {
		return nil, part.KeyErrorf("by", "%q has the shape %v, want %d values, one for each channel of the input", l.By, l.of, n)
	}
	return slices.Clone(in), nil
}

func (*Condition) Parameters([]int) []Parameter { return nil }

func (l *Condition) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	batch := x.Shape()[0]
	places, n := tokensOf(x.Shape()[1:])
	v := s.Value(l.By)
	if v.Shape().TotalSize() != batch*n {
		return nil, fmt.Errorf("condition: by: %q has the shape %v, want %d values for each of %d inputs", l.By, v.Shape(), n, batch)
	}
	var c ops.Chain
	y := c.Do("add to every pixel", func() (*gorgonia.Node, error) {
		return gorgonia.BroadcastAdd(c.Reshape(x, batch, places, n), c.Reshape(v, batch, 1, n), nil, []byte{1})
	})
	return c.Reshape(y, x.Shape()...), c.Err()
}
