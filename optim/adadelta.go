package optim

import "tessera/internal/engine/kernel"

var _ Rule = (*Adadelta)(nil)

// Adadelta scales steps to the units of the weights by running means of squared gradients and of squared steps. With d
// = g + weight_decay * w and initially s = a = 0:
//
//	s <- rho * s + (1-rho) * d²
//	u  = d * sqrt(a + epsilon) / sqrt(s + epsilon)
//	w <- w - lr * u
//	a <- rho * a + (1-rho) * u²
//
// Source: Zeiler, ADADELTA: an adaptive learning rate method, 2012. The defaults are those of the study (Keras): rate
// 1, rho 0.95, epsilon 1e-7. PyTorch's are 1, 0.9 and 1e-6.
type Adadelta struct {
	Rate        float64 `toml:"learning_rate" want:"> 0" doc:"factor of the step that the rule computes"`
	Rho         float64 `toml:"rho" want:"in [0,1)" doc:"decay of the running means"`
	Epsilon     float64 `toml:"epsilon" want:"> 0" doc:"added under both roots; sets the size of the first steps"`
	WeightDecay float64 `toml:"weight_decay" want:">= 0" doc:"L2 penalty: weight_decay times the weight is added to its gradient"`
}

func init() {
	Registry.Register("adadelta", "steps in units of the weights: w <- w - lr * g * rms(steps) / rms(gradients)",
		func() Optimizer { return &Adadelta{Rate: 1, Rho: 0.95, Epsilon: 1e-7} })
}

func (o *Adadelta) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The states are s and a.
func (o *Adadelta) States() int { return 2 }

func (o *Adadelta) Update(w, g []float32, state [][]float32, lr float64, _ int) {
	kernel.Adadelta(w, g, state[0], state[1], kernel.AdadeltaParams{
		LR: lr, Rho: o.Rho, Eps: o.Epsilon, WeightDecay: o.WeightDecay,
	})
}
