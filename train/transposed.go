package train

import (
	"slices"

	"tessera/config"
	"tessera/constraints"
)

// constrains reports whether a constraint on glob applies to the parameter at path: to the parameter itself, or to its
// transpose if the glob matches a tied decoder's weight.
func constrains(glob, path string, layout *config.Layout) (asIs, swapped bool) {
	matched := layout.MatchParameters(glob)
	for _, p := range layout.Parameters() {
		if slices.Contains(matched, p.Path) {
			asIs = asIs || p.Path == path
			swapped = swapped || p.TransposeOf == path
		}
	}
	return asIs, swapped
}

// transposed applies a constraint to the transpose of a parameter, seen as the matrix whose columns belong to the indices of
// its last axis: to the atoms of a tied decoder, which are the columns of the encoder's weight, and to the filters of a
// convolution.
type transposed struct {
	of   constraints.Constraint
	rows []float32 // the transpose
}

// Project implements [constraints.Constraint].
func (t *transposed) Project(w []float32, shape []int) {
	rows, turned := t.turn(w, shape)
	t.of.Project(rows, turned)
	m := shape[len(shape)-1]
	n := len(w) / m
	for i := range w {
		w[i] = rows[i%m*n+i/m]
	}
}

// Violation implements [constraints.Constraint].
func (t *transposed) Violation(w []float32, shape []int) float64 {
	return t.of.Violation(t.turn(w, shape))
}

// turn returns the transpose and its shape; both are valid until the next call.
func (t *transposed) turn(w []float32, shape []int) ([]float32, []int) {
	m := shape[len(shape)-1]
	n := len(w) / m
	if t.rows == nil {
		t.rows = make([]float32, len(w))
	}
	for i, v := range w {
		t.rows[i%m*n+i/m] = v
	}
	return t.rows, []int{m, n}
}
