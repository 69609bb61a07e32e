package layers

import (
	"slices"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Reshape changes the shape of every input to another one of equal size and preserves the order of the values.
type Reshape struct {
	Shape []int `toml:"shape" want:"> 0" doc:"shape of one output, without the batch axis" required:"true"`
}

func init() {
	Registry.Register("reshape", "the same values in another shape", func() Layer { return &Reshape{} })
}

func (*Reshape) Rearranges() {}

func (r *Reshape) OutputShape(in []int) ([]int, error) {
	if len(r.Shape) == 0 {
		return nil, part.KeyErrorf("shape", "got none, want at least one axis")
	}
	for _, d := range r.Shape {
		if d < 1 {
			return nil, part.KeyErrorf("shape", "got %v, want every axis > 0", r.Shape)
		}
	}
	if volume.Of(r.Shape) != volume.Of(in) {
		return nil, part.KeyErrorf("shape", "%v has %d values, the input %v has %d", r.Shape, volume.Of(r.Shape), in, volume.Of(in))
	}
	return slices.Clone(r.Shape), nil
}

func (*Reshape) Parameters([]int) []Parameter { return nil }

func (r *Reshape) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Reshape(x, append([]int{x.Shape()[0]}, r.Shape...)...), c.Err()
}

func (*Reshape) OutputRange(in Interval) Interval { return in }
