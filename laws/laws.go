// Package laws contains conformance tests: properties of every constraint, optimizer, layer, loss, weight schedule,
// augmentation and metric. A package's test iterates over its registry and thus also covers new parts:
//
//	for _, e := range constraints.Registry.All() {
//		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Constraint, e.New) })
//	}
//
// A law is a function that returns an error instead of failing a test. The kits are themselves tested with parts that break
// laws on purpose.
package laws

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Kit contains the laws of one kind of part.
type Kit[T any] interface {
	// Names lists the laws: "leaves feasible points as they are".
	Names() []string
	// Test tests parts from fresh, which returns new parts with the same settings, and returns the errors by the name of the
	// law.
	Test(fresh func() T) map[string]error
}

// Check tests the parts from fresh and reports every law as a subtest.
func Check[T any](t *testing.T, kit Kit[T], fresh func() T) {
	t.Helper()
	broken := kit.Test(fresh)
	for _, name := range kit.Names() {
		t.Run(name, func(t *testing.T) {
			if err := broken[name]; err != nil {
				t.Error(err)
			}
		})
	}
}

// Laws are a kit of independent laws.
type Laws[T any] []Law[T]

// Law is one statement that holds for every part of a kind.
type Law[T any] struct {
	Name   string
	Broken func(fresh func() T) error // returns nil if the part obeys the law
}

// Names implements [Kit].
func (l Laws[T]) Names() []string {
	names := make([]string, len(l))
	for i, law := range l {
		names[i] = law.Name
	}
	return names
}

// Test implements [Kit].
func (l Laws[T]) Test(fresh func() T) map[string]error {
	broken := map[string]error{}
	for _, law := range l {
		if err := law.Broken(fresh); err != nil {
			broken[law.Name] = err
		}
	}
	return broken
}

// Broken returns the names of the laws that the parts of fresh break.
func Broken[T any](kit Kit[T], fresh func() T) []string {
	broken := kit.Test(fresh)
	return slices.DeleteFunc(kit.Names(), func(name string) bool { return broken[name] == nil })
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

// uniform returns n values of U(low, high).
func uniform[T float32 | float64](n int, low, high float64) []T {
	r := source()
	x := make([]T, n)
	for i := range x {
		x[i] = T(low + (high-low)*r.Float64())
	}
	return x
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

// allocates returns an error if f allocates.
func allocates(f func()) error {
	if n := testing.AllocsPerRun(20, f); n != 0 {
		return fmt.Errorf("%v allocations per call", n)
	}
	return nil
}
