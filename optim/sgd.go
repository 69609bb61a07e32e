package optim

import (
	"tessera/config/part"
	"tessera/internal/engine/kernel"
)

var _ Resting = (*SGD)(nil)

// SGD is stochastic gradient descent with optional momentum. With d = g + weight_decay * w:
//
//	b <- momentum * b + d                 only with momentum, initially b = 0
//	w <- w - lr * d                       without momentum
//	w <- w - lr * b                       with momentum
//	w <- w - lr * (d + momentum * b)      with momentum and nesterov
//
// Source: Polyak 1964; Nesterov 1983 in the form of Sutskever et al. 2013. As in PyTorch with dampening 0, the learning
// rate multiplies the whole step, not the gradient that enters b. Defaults are PyTorch's.
type SGD struct {
	Rate        float64 `toml:"learning_rate" want:"> 0" doc:"base learning rate"`
	Momentum    float64 `toml:"momentum" want:"in [0,1)" doc:"fraction of the previous step that is added to the next; 0 keeps no state"`
	Nesterov    bool    `toml:"nesterov" doc:"Nesterov momentum: the gradient one momentum step ahead"`
	WeightDecay float64 `toml:"weight_decay" want:">= 0" doc:"L2 penalty: weight_decay times the weight is added to its gradient"`
}

func init() {
	Registry.Register("sgd", "gradient descent, momentum optional: w <- w - lr * g",
		func() Optimizer { return &SGD{Rate: 0.001} })
}

// Check returns an error for nesterov without momentum, which would be plain gradient descent.
func (o *SGD) Check() error {
	if o.Nesterov && o.Momentum == 0 {
		return part.KeyError{Key: "nesterov", Problem: "got true without momentum, want momentum > 0"}
	}
	return nil
}

func (o *SGD) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The state is b, with momentum only.
func (o *SGD) States() int {
	if o.Momentum == 0 {
		return 0
	}
	return 1
}

func (o *SGD) Rests() bool { return o.Momentum == 0 && o.WeightDecay == 0 }

func (o *SGD) Update(w, g []float32, state [][]float32, lr float64, _ int) {
	var b []float32
	if o.Momentum != 0 {
		b = state[0]
	}
	kernel.SGD(w, g, b, kernel.SGDParams{
		LR: lr, Momentum: o.Momentum, Nesterov: o.Nesterov, WeightDecay: o.WeightDecay,
	})
}
