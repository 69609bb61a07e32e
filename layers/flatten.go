package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Flatten turns an image into the vector of its values, row by row.
type Flatten struct{}

func init() {
	Registry.Register("flatten", "an image as the vector of its values", func() Layer { return &Flatten{} })
}

func (Flatten) Rearranges()                         {}
func (Flatten) OutputShape(in []int) ([]int, error) { return []int{volume.Of(in)}, nil }
func (Flatten) Parameters([]int) []Parameter        { return nil }

func (Flatten) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Flatten(x), c.Err()
}

func (Flatten) OutputRange(in Interval) Interval { return in }
