package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

var _ Reader = (*Add)(nil)

// Add adds another value of the model to its input, y = x + v: a skip connection over any layers, or the sum of two embeddings. Both have the same
// shape. There are no parameters.
type Add struct {
	Value string `toml:"value" required:"true" doc:"name of the value that is added"`

	shape []int // of the value
}

func init() {
	Registry.Register("add", "adds another value of the model, y = x + v", func() Layer { return &Add{} })
}

func (l *Add) Reads() []Reading       { return []Reading{{Key: "value", Name: l.Value, Shape: l.shape}} }
func (l *Add) Receive(shapes [][]int) { l.shape = shapes[0] }

func (l *Add) OutputShape(in []int) ([]int, error) {
	if !slices.Equal(l.shape, in) {
		return nil, part.KeyErrorf("value", "%q has the shape %v, want that of the input, %v", l.Value, l.shape, in)
	}
	return in, nil
}

func (*Add) Parameters([]int) []Parameter { return nil }

func (l *Add) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Add(x, c.Reshape(s.Value(l.Value), x.Shape()...)), c.Err()
}
