package optim

import "tessera/internal/engine/kernel"

var _ Resting = (*Adagrad)(nil)

// Adagrad divides every step by the root of the sum of all squared gradients so far. With d = g + weight_decay * w and
// initially s = 0:
//
//	s <- s + d²
//	w <- w - lr * d / (sqrt(s) + epsilon)
//
// Source: Duchi, Hazan and Singer, Adaptive subgradient methods for online learning and stochastic optimization, 2011.
// Defaults are PyTorch's.
type Adagrad struct {
	Rate        float64 `toml:"learning_rate" want:"> 0" doc:"base learning rate"`
	Epsilon     float64 `toml:"epsilon" want:"> 0" doc:"added to the root to avoid division by zero"`
	WeightDecay float64 `toml:"weight_decay" want:">= 0" doc:"L2 penalty: weight_decay times the weight is added to its gradient"`
}

func init() {
	Registry.Register("adagrad", "steps divided by the root of all squared gradients: w <- w - lr * g / sqrt(sum g²)",
		func() Optimizer { return &Adagrad{Rate: 0.01, Epsilon: 1e-10} })
}

func (o *Adagrad) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The state is s.
func (o *Adagrad) States() int { return 1 }

func (o *Adagrad) Rests() bool { return o.WeightDecay == 0 }

func (o *Adagrad) Update(w, g []float32, state [][]float32, lr float64, _ int) {
	kernel.Adagrad(w, g, state[0], kernel.AdagradParams{LR: lr, Eps: o.Epsilon, WeightDecay: o.WeightDecay})
}
