package losses

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// KL is the Kullback-Leibler divergence between the target mean activation p and the mean activation t_j of each unit over
// the batch, sum_j p log(p/t_j) + (1-p) log((1-p)/(1-t_j)), in nats, for codes in [0,1]. t is clipped to [1e-7, 1-1e-7]; the
// gradient of a clipped value is 0. Ng, Sparse Autoencoder, CS294A lecture notes, 2011.
type KL struct {
	meanActivation
	Target float64 `toml:"target" want:"in (0,1)" doc:"p, the target mean activation of every unit"`
}

func init() {
	Registry.Register("kl", "sum over units of p log(p/t) + (1-p) log((1-p)/(1-t)), t the mean over the batch", func() Loss {
		return &KL{Target: 0.1}
	})
}

func (*KL) Reads() Reads { return Reads{Per: Means, On: true, Unit: true} }

func (l *KL) Build(v Values) (*gorgonia.Node, error) {
	p := l.Target
	if !(p > 0 && p < 1) {
		return nil, fmt.Errorf("target: got %v, want in (0,1)", p)
	}
	var c ops.Chain
	t := c.Clip(c.Mean(c.Do("on", v.On), 0), epsilon, 1-epsilon)
	on := c.Scale(c.Shift(c.Neg(c.Log(t)), math.Log(p)), p)
	off := c.Scale(c.Shift(c.Neg(c.Log1p(c.Neg(t))), math.Log1p(-p)), 1-p)
	return c.Sum(c.Add(on, off)), c.Err()
}
