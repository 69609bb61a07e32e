package parts

import "tessera/optim"

// Signed moves every weight by the learning rate against the sign of its gradient: signSGD of Bernstein et al., 2018.
type Signed struct {
	Rate float64 `toml:"learning_rate" want:"> 0" doc:"size of a step"`
}

func init() {
	optim.Registry.Register("signed", "w <- w - lr * sign(g)", func() optim.Optimizer { return &Signed{Rate: 0.001} })
}

// LearningRate implements [optim.Rule].
func (s *Signed) LearningRate() float64 { return s.Rate }

// States implements [optim.Optimizer]: the rule has no state.
func (*Signed) States() int { return 0 }

// Update implements [optim.Rule].
func (*Signed) Update(w, g []float32, _ [][]float32, lr float64, _ int) {
	for i, v := range g {
		switch {
		case v > 0:
			w[i] -= float32(lr)
		case v < 0:
			w[i] += float32(lr)
		}
	}
}
