package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// L2 is sum_j (p - t_j)², where t_j is the mean of unit j over the batch. Lee, Ekanadham and Ng, Sparse Deep Belief Net
// Model for Visual Area V2, 2008.
type L2 struct{ Targeted }

func init() {
	Registry.Register("l2", "sum over units of (p-t)², t the mean over the batch", func() Loss {
		return &L2{Targeted{Target: 0.1}}
	})
}

func (l *L2) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Sum(c.Square(l.fromTarget(&c, v))), c.Err()
}
