package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Log is sum_j log(1 + (p - t_j)²), where t_j is the mean of unit j over the batch. The form is from Olshausen and Field,
// Emergence of Simple-Cell Receptive Field Properties by Learning a Sparse Code, Nature 381 (1996).
type Log struct{ Targeted }

func init() {
	Registry.Register("log", "sum over units of log(1 + (p-t)²), t the mean over the batch", func() Loss {
		return &Log{Targeted{Target: 0.1}}
	})
}

func (l *Log) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Sum(c.Log1p(c.Square(l.fromTarget(&c, v)))), c.Err()
}
