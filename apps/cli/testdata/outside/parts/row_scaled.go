package parts

import (
	"math"

	"tessera/optim"
)

// RowScaled divides the gradient of every row of a matrix by the root of the mean squared norm of the row's gradients so far, one number of state
// per row. All other parameters take plain gradient steps.
type RowScaled struct {
	Rate float64 `toml:"learning_rate" want:"> 0" doc:"learning rate"`
}

func init() {
	optim.Registry.Register("row_scaled", "gradient steps, scaled for each row", func() optim.Optimizer { return &RowScaled{Rate: 0.01} })
}

// LearningRate implements [optim.Rule].
func (r *RowScaled) LearningRate() float64 { return r.Rate }

// States implements [optim.Optimizer]: the rule has no state.
func (*RowScaled) States() int { return 0 }

// Update implements [optim.Rule], for parameters other than matrices.
func (*RowScaled) Update(w, g []float32, _ [][]float32, lr float64, _ int) {
	for i, v := range g {
		w[i] -= float32(lr) * v
	}
}

// Takes implements [optim.Whole].
func (*RowScaled) Takes(shape []int) bool { return len(shape) == 2 }

// WholeStates implements [optim.Whole].
func (*RowScaled) WholeStates(shape []int) []int { return []int{shape[0]} }

// UpdateWhole implements [optim.Whole].
func (*RowScaled) UpdateWhole(w, g []float32, shape []int, state [][]float32, lr float64, step int) {
	n, sums := shape[1], state[0]
	for row := range shape[0] {
		for _, v := range g[row*n : (row+1)*n] {
			sums[row] += v * v
		}
		if sums[row] == 0 {
			continue
		}
		by := lr / math.Sqrt(float64(sums[row])/float64(step))
		for i := row * n; i < (row+1)*n; i++ {
			w[i] -= float32(by * float64(g[i]))
		}
	}
}
