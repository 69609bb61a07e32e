// Package laws holds the conformance kits of the vocabulary: what every constraint, optimizer, layer and loss must obey,
// whatever it computes. A room's test ranges over its registry, so that a part added tomorrow is covered today:
//
//	for _, e := range constraints.Registry.All() {
//		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Constraint, e.New) })
//	}
//
// A law is a function that returns what is broken, not one that fails a test: that is how the kit is tested itself, with
// parts that are wrong on purpose.
package laws

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Law is one statement that holds for every part of a kind.
type Law[T any] struct {
	Name   string                     // what the part does when it obeys: "leaves feasible points as they are"
	Broken func(fresh func() T) error // nil when the part obeys; fresh returns a new part with the same settings
}

// Check runs every law on the parts that fresh returns, each as a test of its own.
func Check[T any](t *testing.T, laws []Law[T], fresh func() T) {
	t.Helper()
	for _, law := range laws {
		t.Run(law.Name, func(t *testing.T) {
			if err := law.Broken(fresh); err != nil {
				t.Error(err)
			}
		})
	}
}

// Broken returns the names of the laws that the parts of fresh break.
func Broken[T any](laws []Law[T], fresh func() T) []string {
	var names []string
	for _, law := range laws {
		if law.Broken(fresh) != nil {
			names = append(names, law.Name)
		}
	}
	return names
}

// source returns the generator of a law: the same in every run.
func source() *rand.Rand { return rand.New(rand.NewPCG(20180901, 784)) }

// normal returns n values from N(0, scale²).
func normal(r *rand.Rand, n int, scale float64) []float32 {
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(r.NormFloat64() * scale)
	}
	return w
}

// differ returns an error that names the first element whose bits differ; all NaN are equal.
func differ(what string, got, want []float32) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range got {
		a, b := got[i], want[i]
		if math.Float32bits(a) != math.Float32bits(b) && !(a != a && b != b) {
			return fmt.Errorf("%s: element %d is %v, want %v", what, i, a, b)
		}
	}
	return nil
}

// allocates returns an error when f allocates.
func allocates(f func()) error {
	if n := testing.AllocsPerRun(20, f); n != 0 {
		return fmt.Errorf("%v allocations per call", n)
	}
	return nil
}
