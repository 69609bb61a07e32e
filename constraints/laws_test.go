package constraints_test

import (
	"math"
	"testing"

	"tessera/constraints"
	"tessera/laws"
)

func TestEveryConstraintObeysTheLaws(t *testing.T) {
	for _, e := range constraints.Registry.All() {
		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Constraint, e.New) })
	}
}

func TestConstraintsObeyTheLawsWithOtherSettings(t *testing.T) {
	for name, c := range map[string]constraints.Constraint{
		"box of negative values": &constraints.Box{Min: -3, Max: -0.1},
		"box of one value":       &constraints.Box{Min: 0.3, Max: 0.3},
		"box open above":         &constraints.Box{Min: -0.5, Max: math.Inf(1)},
		"simplex of another sum": &constraints.Simplex{Sum: 5},
		"sparse rows":            &constraints.Sparse{Sparseness: 0.9},
		"rows of one value":      &constraints.Sparse{Sparseness: 1},
		"small ball":             &constraints.MaxNorm{Max: 1e-3},
		"large ball":             &constraints.MaxNorm{Max: 2.5},
	} {
		t.Run(name, func(t *testing.T) {
			laws.Check(t, laws.Constraint, func() constraints.Constraint { return c })
		})
	}
}
