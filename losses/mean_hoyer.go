package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// MeanHoyer is |s - mean over images of sigma(h)|, where s is the target and sigma the sparseness of a code as in [Hoyer].
// Only the mean is held to the target: images that need more units may have more. Where the weight is larger than what the
// other terms gain by less sparse codes, the mean ends at the target, whatever the data set. Hoyer, Non-negative Matrix
// Factorization with Sparseness Constraints, JMLR 5 (2004); |.| as an exact penalty: Nocedal and Wright, Numerical
// Optimization, 2006, section 17.2.
type MeanHoyer struct {
	meanActivation
	Target float64 `toml:"target" want:"in [0,1]" doc:"s, the wanted mean sparseness of the codes"`
}

func init() {
	Registry.Register("mean_hoyer", "|s - mean over images of sigma(h)|, sigma Hoyer's sparseness of the code", func() Loss {
		return &MeanHoyer{Target: 0.6}
	})
}

// CheckUnits implements [UnitsChecker].
func (*MeanHoyer) CheckUnits(units int) error { return checkUnits(units) }

// Build implements [Loss].
func (l *MeanHoyer) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	mean := c.Mean(sparseness(&c, v))
	return c.Abs(c.From(l.Target, mean)), c.Err()
}
