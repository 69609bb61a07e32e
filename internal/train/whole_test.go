package train

import "tessera/optim"

// perRow adds to every row of a matrix its gradient, divided by one more than the state of the row: the sum of the squares so far.
type perRow struct{ optim.SGD }

func init() {
	optim.Registry.Register("per_row", "a rule with a state of one number per row", func() optim.Optimizer { return &perRow{optim.SGD{Rate: 0.01}} })
}

func (*perRow) Takes(shape []int) bool { return len(shape) == 2 }

func (*perRow) WholeStates(shape []int) []int { return []int{shape[0]} }

func (*perRow) UpdateWhole(w, g []float32, shape []int, state [][]float32, lr float64, _ int) {
	for i, v := range g {
		row := &state[0][i/shape[1]]
		*row += v * v
		w[i] -= float32(lr) * v / (1 + *row)
	}
}
