package parts

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/layers"
)

// Twice applies one layer twice with the same parameters: y = f(f(x)). The layer must preserve the shape.
type Twice struct {
	Layers []layers.Layer `toml:"layers" doc:"the layer, a list of one" required:"true"`
}

func init() {
	layers.Registry.Register("twice", "one layer two times, with the same parameters", func() layers.Layer { return &Twice{} })
}

// Check returns an error unless there is exactly one layer.
func (t *Twice) Check() error {
	if len(t.Layers) != 1 {
		return part.KeyError{Key: "layers", Problem: fmt.Sprintf("got %d, want one layer", len(t.Layers))}
	}
	return nil
}

// Inner implements [layers.Block].
func (t *Twice) Inner() []layers.Layer { return t.Layers }

// OutputShape implements [layers.Layer].
func (t *Twice) OutputShape(in []int) ([]int, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	shapes, err := layers.StackShapes(t.Layers, in)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(in, shapes[1]) {
		return nil, part.KeyErrorf("layers", "the layer turns shape %v into %v, want the same", in, shapes[1])
	}
	return slices.Clone(in), nil
}

// Parameters implements [layers.Layer].
func (t *Twice) Parameters(in []int) []layers.Parameter { return layers.StackParameters(t.Layers, in) }

// Apply implements [layers.Layer].
func (t *Twice) Apply(s layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	inner := t.Layers[0]
	for range 2 {
		var err error
		if x, err = inner.Apply(layers.Inner(s, 0, inner, x.Shape()[1:]), x); err != nil {
			return nil, err
		}
	}
	return x, nil
}
