package laws_test

import (
	"testing"

	"tessera/internal/expect"
	"tessera/laws"
	"tessera/optim"
)

// factored is gradient descent with statistics of the rows and columns of matrices: states of other lengths than the parameter.
type factored struct {
	optim.SGD
	unused int // elements of state that nothing uses
}

func (*factored) Takes(shape []int) bool { return len(shape) == 2 }

func (f *factored) WholeStates(shape []int) []int { return []int{shape[0], shape[1] + f.unused} }

func (f *factored) UpdateWhole(w, g []float32, shape []int, state [][]float32, lr float64, _ int) {
	for i, v := range g {
		w[i] -= float32(lr) * v
		state[0][i/shape[1]] += v * v
		state[1][i%shape[1]] += v * v
	}
}

func TestAWholeRuleHasStatesOfItsOwnLengths(t *testing.T) {
	for unused, want := range [][]string{nil, {"uses all of its state and no more"}} {
		broken := laws.Broken(laws.Whole, func() optim.Whole { return &factored{optim.SGD{Rate: 0.1}, unused} })
		expect.Slice(t, broken, want)
	}
}
