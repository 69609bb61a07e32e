package optim

import "math"

var _ Rule = (*NAdam)(nil)

// NAdam is [Adam] with Nesterov's momentum. At step t, with d = g + weight_decay * w, initially m = v = 0, the momentum mu(t)
// = beta1 (1 - 0.96^(t momentum_decay) / 2) and the product M(t) = mu(1) ... mu(t):
//
//	m <- beta1 * m + (1-beta1) * d
//	v <- beta2 * v + (1-beta2) * d²
//	w <- w - lr * (mu(t+1) m / (1-M(t+1)) + (1-mu(t)) d / (1-M(t))) / (sqrt(v/(1-beta2^t)) + epsilon)
//
// Source: Dozat, Incorporating Nesterov momentum into Adam, 2016. Defaults are PyTorch's.
type NAdam struct {
	Rate          float64 `toml:"learning_rate" want:"> 0" doc:"base learning rate"`
	Beta1         float64 `toml:"beta1" want:"in [0,1)" doc:"decay of the running mean of gradients"`
	Beta2         float64 `toml:"beta2" want:"in [0,1)" doc:"decay of the running mean of squared gradients"`
	Epsilon       float64 `toml:"epsilon" want:"> 0" doc:"added to the root to avoid division by zero"`
	WeightDecay   float64 `toml:"weight_decay" want:">= 0" doc:"L2 penalty: weight_decay times the weight is added to its gradient"`
	MomentumDecay float64 `toml:"momentum_decay" want:">= 0" doc:"how fast the momentum rises from beta1/2 to beta1"`
}

func init() {
	Registry.Register("nadam", "adam with Nesterov's momentum", func() Optimizer {
		return &NAdam{Rate: 0.002, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, MomentumDecay: 0.004}
	})
}

func (o *NAdam) LearningRate() float64 { return o.Rate }

// States implements [Optimizer]. The states are m and v.
func (o *NAdam) States() int { return 2 }

func (o *NAdam) Update(w, g []float32, state [][]float32, lr float64, step int) {
	now, next, product := o.momenta(step)
	ofMean, ofGradient := lr*next/(1-product*next), lr*(1-now)/(1-product)
	correction := 1 - math.Pow(o.Beta2, float64(step))
	m, v := state[0][:len(w)], state[1][:len(w)]
	for i, gradient := range g[:len(w)] {
		d := float64(gradient) + o.WeightDecay*float64(w[i])
		mean := o.Beta1*float64(m[i]) + (1-o.Beta1)*d
		square := o.Beta2*float64(v[i]) + (1-o.Beta2)*d*d
		w[i] -= float32((ofMean*mean + ofGradient*d) / (math.Sqrt(square/correction) + o.Epsilon))
		m[i], v[i] = float32(mean), float32(square)
	}
}

// momenta returns the momenta of a step and of the next one, and their product up to this step. The product is 0 when it no
// longer changes 1 - M.
func (o *NAdam) momenta(step int) (now, next, product float64) {
	at := func(t int) float64 { return o.Beta1 * (1 - math.Pow(0.96, float64(t)*o.MomentumDecay)/2) }
	ratio, power := math.Pow(0.96, o.MomentumDecay), 1.0
	product = 1
	for t := 1; t <= step && product > 1e-18; t++ {
		power *= ratio
		product *= o.Beta1 * (1 - power/2)
	}
	return at(step), at(step + 1), product
}
