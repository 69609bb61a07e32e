package optim

import "tessera/internal/engine/kernel"

var _ Rule = (*RMSProp)(nil)

// RMSProp divides every step by the root of a running mean of squared gradients. With d = g + weight_decay * w and
// initially s = b = 0:
//
//	s <- rho * s + (1-rho) * d²
//	u  = d / (sqrt(s) + epsilon)
//	w <- w - lr * u                              without momentum
//	b <- momentum * b + u;  w <- w - lr * b      with momentum
//
// Source: Hinton, Neural networks for machine learning, lecture 6, 2012, in PyTorch's form: not centred, and epsilon
// outside of the root. Defaults are PyTorch's; PyTorch calls rho alpha.
type RMSProp struct {
	Rate        float64 `toml:"learning_rate" want:"> 0" doc:"base learning rate"`
	Rho         float64 `toml:"rho" want:"in [0,1)" doc:"decay of the running mean of squared gradients"`
	Epsilon     float64 `toml:"epsilon" want:"> 0" doc:"added to the root to avoid division by zero"`
	Momentum    float64 `toml:"momentum" want:"in [0,1)" doc:"fraction of the previous step that is added to the next; 0 keeps no state for it"`
	WeightDecay float64 `toml:"weight_decay" want:">= 0" doc:"L2 penalty: weight_decay times the weight is added to its gradient"`
}

func init() {
	Registry.Register("rmsprop", "steps divided by the running root mean square: w <- w - lr * g / (rms(g) + epsilon)",
		func() Optimizer { return &RMSProp{Rate: 0.01, Rho: 0.99, Epsilon: 1e-8} })
}

func (o *RMSProp) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The states are s and, with momentum, b.
func (o *RMSProp) States() int {
	if o.Momentum == 0 {
		return 1
	}
	return 2
}

func (o *RMSProp) Update(w, g []float32, state [][]float32, lr float64, _ int) {
	var b []float32
	if o.Momentum != 0 {
		b = state[1]
	}
	kernel.RMSProp(w, g, state[0], b, kernel.RMSPropParams{
		LR: lr, Alpha: o.Rho, Eps: o.Epsilon, Momentum: o.Momentum, WeightDecay: o.WeightDecay,
	})
}
