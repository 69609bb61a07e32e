package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// MeanHoyer is (s - mean over images of sigma(h))², where s is the target and sigma the sparseness of a code as in [Hoyer].
// Only the mean must meet the target: images that need more units may use more. A weight that rises to a large value brings the
// mean as close to the target as the batches allow, for any data set. Hoyer, Non-negative Matrix Factorization with
// Sparseness Constraints, JMLR 5 (2004); the quadratic penalty of a constraint, with a rising weight: Nocedal and Wright,
// Numerical Optimization, 2006, section 17.1.
type MeanHoyer struct {
	meanActivation
	Target float64 `toml:"target" want:"in [0,1]" doc:"s, the wanted mean sparseness of the codes"`
}

func init() {
	Registry.Register("mean_hoyer", "(s - mean over samples of sigma(h))², sigma Hoyer's sparseness of the code", func() Loss {
		return &MeanHoyer{Target: 0.6}
	})
}

func (*MeanHoyer) CheckUnits(units int) error { return checkUnits(units) }

func (l *MeanHoyer) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	mean := c.Mean(sparseness(&c, v))
	return c.Square(c.From(l.Target, mean)), c.Err()
}
