package constraints_test

import (
	"fmt"

	"tessera/constraints"
)

// Several constraints are applied in order. Here they give non-negative atoms of norm 1.
func ExampleConstraint() {
	atoms, shape := []float32{3, -1, 4, -2, 0, 5}, []int{2, 3}
	for _, c := range []constraints.Constraint{constraints.NonNeg{}, constraints.UnitNorm{}} {
		c.Project(atoms, shape)
	}
	fmt.Printf("%.1f\n", atoms)
	// Output: [0.6 0.0 0.8 0.0 0.0 1.0]
}
