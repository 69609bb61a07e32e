package optim

var _ Rule = (*Lion)(nil)

// Lion moves each weight by the sign of an interpolation between its gradient and the running mean of its gradients.
// With initially m = 0:
//
//	w <- w - lr * (sign(beta1 * m + (1-beta1) * g) + weight_decay * w)
//	m <- beta2 * m + (1-beta2) * g
//
// Every weight changes by the learning rate, unless its gradient and mean are 0, so the rate should be a third to a
// tenth of Adam's. Lion stores one value of state per weight, half as many as Adam. Source: Chen et al., Symbolic
// discovery of optimization algorithms, 2023. The default rate is three times that of the paper.
type Lion struct {
	Rate        float64 `toml:"learning_rate" want:"> 0" doc:"base learning rate"`
	Beta1       float64 `toml:"beta1" want:"in [0,1)" doc:"share of the running mean in a step"`
	Beta2       float64 `toml:"beta2" want:"in [0,1)" doc:"decay of the running mean of gradients"`
	WeightDecay float64 `toml:"weight_decay" want:">= 0" doc:"decoupled: every step shrinks the weights by the learning rate times this"`
}

func init() {
	Registry.Register("lion", "steps of the learning rate along the sign of a mean gradient", func() Optimizer {
		return &Lion{Rate: 3e-4, Beta1: 0.9, Beta2: 0.99}
	})
}

func (o *Lion) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The state is m.
func (o *Lion) States() int { return 1 }

func (o *Lion) Update(w, g []float32, state [][]float32, lr float64, _ int) {
	m := state[0][:len(w)]
	for i, gradient := range g[:len(w)] {
		d, mean, x := float64(gradient), float64(m[i]), float64(w[i])
		step := o.WeightDecay * x
		switch c := o.Beta1*mean + (1-o.Beta1)*d; {
		case c > 0:
			step++
		case c < 0:
			step--
		case c != c:
			step = c // so that NaN stays NaN
		}
		w[i] = float32(x - lr*step)
		m[i] = float32(o.Beta2*mean + (1-o.Beta2)*d)
	}
}
