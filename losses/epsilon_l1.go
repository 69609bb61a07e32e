package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// EpsilonL1 is a smooth absolute value, sum_j sqrt((p - t_j)² + epsilon), where t_j is the mean of unit j over the batch. Its
// minimum is sqrt(epsilon) per unit, not 0. Sources: Lee, Lee, Abbeel and Ng, Efficient L1 Regularized Logistic Regression,
// 2006 (the smoothing); Zhang and Lu use p = 0.
type EpsilonL1 struct {
	Targeted
	Epsilon float64 `toml:"epsilon" want:"> 0" doc:"smooths the corner at t = p"`
}

func init() {
	Registry.Register("epsilon_l1", "sum over units of sqrt((p-t)² + epsilon), t the mean over the batch", func() Loss {
		return &EpsilonL1{Targeted: Targeted{Target: 0.1}, Epsilon: 1e-4}
	})
}

func (l *EpsilonL1) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Sum(c.Sqrt(c.Shift(c.Square(l.fromTarget(&c, v)), l.Epsilon))), c.Err()
}
