package optim

import "tessera/internal/engine/kernel"

var _ Rule = (*AdamW)(nil)

// AdamW is [Adam] with decoupled weight decay, which the moments do not scale. It first shrinks the weights, then makes a
// step of Adam with d = g:
//
//	w <- w - lr * weight_decay * w
//
// Source: Loshchilov and Hutter, Decoupled weight decay regularization, 2019. Defaults are PyTorch's. As in PyTorch, the
// scheduled learning rate also multiplies the decay.
type AdamW struct {
	Rate        float64 `toml:"learning_rate" want:"> 0" doc:"base learning rate"`
	Beta1       float64 `toml:"beta1" want:"in [0,1)" doc:"decay of the running mean of gradients"`
	Beta2       float64 `toml:"beta2" want:"in [0,1)" doc:"decay of the running mean of squared gradients"`
	Epsilon     float64 `toml:"epsilon" want:"> 0" doc:"added to the root to avoid division by zero"`
	WeightDecay float64 `toml:"weight_decay" want:">= 0" doc:"decoupled: every step shrinks the weights by the learning rate times this"`
}

func init() {
	Registry.Register("adamw", "adam with decoupled weight decay: w <- w - lr * weight_decay * w, then adam's step",
		func() Optimizer {
			return &AdamW{Rate: 0.001, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 0.01}
		})
}

func (o *AdamW) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The states are m and v.
func (o *AdamW) States() int { return 2 }

func (o *AdamW) Update(w, g []float32, state [][]float32, lr float64, step int) {
	kernel.AdamW(w, g, state[0], state[1], adamParams(lr, o.Beta1, o.Beta2, o.Epsilon, o.WeightDecay, step))
}
