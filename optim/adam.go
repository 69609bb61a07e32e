package optim

import (
	"math"

	"tessera/internal/engine/kernel"
)

var _ Resting = (*Adam)(nil)

// Adam scales every step by running moments of the gradient. At step t, with d = g + weight_decay * w and initially m = v =
// 0:
//
//	m <- beta1 * m + (1-beta1) * d
//	v <- beta2 * v + (1-beta2) * d²
//	w <- w - lr * m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon)
//
// With lazy = true, elements whose gradient is exactly 0 keep their weight and their moments in that step. Of a table of which a step
// reads a few rows, only these rows cost time. The moments of a rare row then average its last gradients, however long ago, while
// those of adam decay in every step. PyTorch's SparseAdam is equal on rows without zeros.
//
// Source: Kingma and Ba, Adam: a method for stochastic optimization, 2015. Defaults are PyTorch's.
type Adam struct {
	Rate        float64 `toml:"learning_rate" want:"> 0" doc:"base learning rate"`
	Beta1       float64 `toml:"beta1" want:"in [0,1)" doc:"decay of the running mean of gradients"`
	Beta2       float64 `toml:"beta2" want:"in [0,1)" doc:"decay of the running mean of squared gradients"`
	Epsilon     float64 `toml:"epsilon" want:"> 0" doc:"added to the root to avoid division by zero"`
	WeightDecay float64 `toml:"weight_decay" want:">= 0" doc:"L2 penalty: weight_decay times the weight is added to its gradient"`
	Lazy        bool    `toml:"lazy" optional:"true" doc:"leave elements alone whose gradient is 0, for large tables of which a step reads a few rows"`
}

func init() {
	Registry.Register("adam", "steps scaled by running moments of the gradient: w <- w - lr * m / (sqrt(v) + epsilon)",
		func() Optimizer { return &Adam{Rate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8} })
}

func (o *Adam) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The states are m and v.
func (o *Adam) States() int { return 2 }

func (o *Adam) Rests() bool { return o.Lazy }

func (o *Adam) Update(w, g []float32, state [][]float32, lr float64, step int) {
	p := adamParams(lr, o.Beta1, o.Beta2, o.Epsilon, o.WeightDecay, step)
	if !o.Lazy {
		kernel.Adam(w, g, state[0], state[1], p)
		return
	}
	for from := 0; from < len(w); { // the next elements that all move
		to := from
		for to < len(w) && g[to] != 0 {
			to++
		}
		if to > from {
			kernel.Adam(w[from:to], g[from:to], state[0][from:to], state[1][from:to], p)
		}
		for from = to; from < len(w) && g[from] == 0; {
			from++
		}
	}
}

// adamParams returns the kernel's settings for a step, including the bias corrections.
func adamParams(lr, beta1, beta2, epsilon, decay float64, step int) kernel.AdamParams {
	return kernel.AdamParams{
		LR: lr, Beta1: beta1, Beta2: beta2, Eps: epsilon, WeightDecay: decay,
		Correction1: 1 - math.Pow(beta1, float64(step)),
		Correction2: 1 - math.Pow(beta2, float64(step)),
	}
}
