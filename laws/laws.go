// Package laws contains conformance tests: properties of every constraint, optimizer, layer, loss, weight schedule,
// initialisation, augmentation and metric. A package's test iterates over its registry and thus also covers new parts:
//
//	for _, e := range constraints.Registry.All() {
//		t.Run(e.Name, func(t *testing.T) { laws.Check(t, laws.Constraint, e.New) })
//	}
//
// A law is a function that returns an error instead of failing a test. The tests of this package check the kits with parts
// that break laws on purpose.
package laws

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"tessera/internal/lists"
	"tessera/internal/panics"
	"testing"
)

// Kit contains the laws of one kind of part.
type Kit[T any] struct {
	names []string
	test  func(fresh func() T, broken map[string]error)
}

// Names lists the laws by name, for example "leaves feasible points as they are".
func (k Kit[T]) Names() []string { return slices.Clone(k.names) }

// Test tests parts and returns the errors by the name of the law. fresh returns new parts with the same settings. A panic is
// an error.
func (k Kit[T]) Test(fresh func() T) map[string]error {
	broken := map[string]error{}
	k.test(fresh, broken)
	return broken
}

// Check tests the parts from fresh and reports every law as a subtest.
func Check[T any](t *testing.T, kit Kit[T], fresh func() T) {
	t.Helper()
	broken := kit.Test(fresh)
	for _, name := range kit.names {
		t.Run(name, func(t *testing.T) {
			if err := broken[name]; err != nil {
				t.Error(err)
			}
		})
	}
}

// Broken returns the names of the laws that the parts of fresh break.
func Broken[T any](kit Kit[T], fresh func() T) []string {
	broken := kit.Test(fresh)
	return slices.DeleteFunc(kit.Names(), func(name string) bool { return broken[name] == nil })
}

// law is one statement about the parts of a kind. C is a trial: a part with one input, batch size or back end.
type law[C any] struct {
	name   string
	broken func(c C) error // returns nil if the part satisfies the law
}

// inTrials returns a kit whose laws are tested in every trial. The function each passes the trials to try. The laws of a trial
// share its compiled programs. The error of a law is that of the first failing trial, preceded by the String of the trial. An
// error of each is an error of all laws.
func inTrials[T any, C fmt.Stringer](each func(fresh func() T, try func(c C)) error, laws []law[C]) Kit[T] {
	return newKit(each, func(c C) string { return c.String() + ": " }, laws)
}

// once returns a kit of laws that are tested once for each part.
func once[T any](laws []law[func() T]) Kit[T] {
	return newKit(func(fresh func() T, try func(func() T)) error {
		try(fresh)
		return nil
	}, func(func() T) string { return "" }, laws)
}

func newKit[T, C any](each func(fresh func() T, try func(c C)) error, prefix func(c C) string, laws []law[C]) Kit[T] {
	var k Kit[T]
	for _, l := range laws {
		k.names = append(k.names, l.name)
	}
	k.test = func(fresh func() T, broken map[string]error) {
		err := each(fresh, func(c C) {
			for _, l := range laws {
				if broken[l.name] != nil {
					continue
				}
				if err := guarded(func() error { return l.broken(c) }); err != nil {
					broken[l.name] = fmt.Errorf("%s%w", prefix(c), err)
				}
			}
		})
		for _, l := range laws {
			if err != nil {
				broken[l.name] = err
			}
		}
	}
	return k
}

// with returns what is broken of a law that reads the result of a trial.
func with[C interface{ result() (R, error) }, R any](broken func(c C, r R) error) func(c C) error {
	return func(c C) error {
		r, err := c.result()
		if err != nil {
			return err
		}
		return broken(c, r)
	}
}

// and returns the laws of both kits.
func (k Kit[T]) and(other Kit[T]) Kit[T] {
	return Kit[T]{slices.Concat(k.names, other.names), func(fresh func() T, broken map[string]error) {
		k.test(fresh, broken)
		other.test(fresh, broken)
	}}
}

var errPanics = errors.New("panics")

// guarded calls f; a panic becomes an error.
func guarded(f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %w", errPanics, panics.Of(cause))
		}
	}()
	return f()
}

// source returns the random generator for a law. Its seed is constant.
func source() *rand.Rand { return rand.New(rand.NewPCG(20180901, 784)) }

// normal returns n values from N(0, scale²).
func normal(r *rand.Rand, n int, scale float64) []float32 {
	w := lists.Of(n, func(int) float32 { return float32(r.NormFloat64() * scale) })
	return w
}

// uniform returns n values of U(low, high).
func uniform(n int, low, high float64) []float64 {
	r := source()
	x := lists.Of(n, func(int) float64 { return low + (high-low)*r.Float64() })
	return x
}

// notFinite reports whether v is NaN or infinite.
func notFinite[T float32 | float64](v T) bool { return v-v != 0 }

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

// guards is the number of values of a padded slice before its elements, and after them.
const guards = 40

// guardMark is the value of a guard.
const guardMark = -77

// padded returns a copy of w with guards on both sides (all), and the part of all that contains the copy (inner). The capacity
// of inner includes the guards after it.
func padded(w []float32) (all, inner []float32) {
	all = slices.Repeat([]float32{guardMark}, len(w)+2*guards)
	inner = all[guards : guards+len(w)]
	copy(inner, w)
	return all, inner
}

// outside returns an error if a guard of a padded slice has changed.
func outside(all []float32) error {
	for i, v := range all {
		if n := len(all) - 2*guards; (i < guards || i >= guards+n) && v != guardMark {
			return fmt.Errorf("writes %d elements from its start, which has %d", i-guards, n)
		}
	}
	return nil
}

func allocates(f func()) error {
	if n := testing.AllocsPerRun(20, f); n != 0 {
		return fmt.Errorf("%v allocations per call", n)
	}
	return nil
}
