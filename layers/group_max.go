package layers

import (
	"gorgonia.org/gorgonia"

	"tessera/config/part"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// GroupMax divides the units of the flattened input into groups of neighbours and keeps the largest value of each group; all
// others are 0. Of equal values the first one is kept. After a relu, codes have at most `groups` active units, as after top_k,
// but no selection over all units is needed. Gradients flow only to the values that are kept. Source: the activation groupmax of
// EleutherAI's sparsify, 2024; without gradients, the winner-take-all groups of Srivastava et al., Compete to compute, 2013.
type GroupMax struct {
	Groups int `toml:"groups" want:"> 0" doc:"number of groups, which divides the number of units"`
}

func init() {
	Registry.Register("group_max", "keeps the largest value of every group of units, 0 elsewhere", func() Layer { return &GroupMax{Groups: 25} })
}

func (l *GroupMax) OutputShape(in []int) ([]int, error) {
	n := volume.Of(in)
	if l.Groups < 1 || n%l.Groups != 0 {
		return nil, part.KeyErrorf("groups", "got %d, want a divisor of the %d units", l.Groups, n)
	}
	return []int{n}, nil
}

func (*GroupMax) Parameters([]int) []Parameter { return nil }

func (l *GroupMax) Apply(_ Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	n := x.Shape().TotalSize()
	rows := c.Reshape(x, x.Shape()[0]*l.Groups, n/x.Shape()[0]/l.Groups)
	kept := c.Do("largest", func() (*gorgonia.Node, error) { return ops.TopK(rows, 1) })
	return c.Reshape(kept, x.Shape()[0], n/x.Shape()[0]), c.Err()
}

func (*GroupMax) OutputRange(in Interval) Interval { return Interval{min(in.Low, 0), max(in.High, 0)} }
