package layers

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
)

// Residual is a block of layers with a skip connection, y = x + block(x). The block must preserve the shape. Its layers are
// declared like the layers of an encoder. The names of their parameters start with the layer's index in the block:
// "0.weight" is the weight of its first layer. Source: He, Zhang, Ren and Sun, Deep Residual Learning for Image
// Recognition, 2015.
type Residual struct {
	Layers []Layer `toml:"layers" doc:"layers of the block, in order; the block must keep the shape" required:"true"`
}

func init() {
	Registry.Register("residual", "a block of layers with a skip connection, y = x + block(x)", func() Layer { return &Residual{} })
}

// Check returns an error for an empty block.
func (r *Residual) Check() error { return notEmpty(r.Layers) }

func (r *Residual) Inner() []Layer { return r.Layers }

func (r *Residual) OutputShape(in []int) ([]int, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	shapes, err := StackShapes(r.Layers, in)
	if err != nil {
		return nil, err
	}
	if out := shapes[len(r.Layers)]; !alike(in, out) {
		return nil, part.KeyErrorf("layers", "the block turns shape %v into %v, want the same: stride 1 and as many filters as channels, or units as values", in, out)
	}
	return slices.Clone(in), nil
}

func (r *Residual) Parameters(in []int) []Parameter { return StackParameters(r.Layers, in) }
func (r *Residual) Publishes(in []int) []Value      { return StackPublishes(r.Layers, in) }

func (r *Residual) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	y, err := ApplyStack("residual", r.Layers, s, x)
	if err != nil {
		return nil, err
	}
	if !alike(x.Shape()[1:], y.Shape()[1:]) {
		return nil, fmt.Errorf("residual: the block turns shape %v into %v, want the same", x.Shape(), y.Shape())
	}
	var c ops.Chain
	return c.Add(x, c.Reshape(y, x.Shape()...)), c.Err()
}

// alike reports whether in and out are equal shapes of images, where (height, width) equals (height, width, 1).
func alike(in, out []int) bool {
	return slices.Equal(in, out) || len(in) == 2 && slices.Equal([]int{in[0], in[1], 1}, out)
}

func (r *Residual) OutputRange(in Interval) Interval {
	out := StackRange(r.Layers, in)
	return Interval{in.Low + out.Low, in.High + out.High}
}

// notEmpty returns an error for a block without layers.
func notEmpty(inner []Layer) error {
	if len(inner) == 0 {
		return part.KeyError{Key: "layers", Problem: "got none, want at least one layer"}
	}
	return nil
}
