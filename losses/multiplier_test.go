package losses_test

import (
	"math"
	"testing"

	"tessera/losses"
)

// The minimum of (x-1)² + w x is at x = 1 - w/2, so that the constraint x <= 0.3 has the multiplier 1.4.
func TestMultiplierSolvesAConstrainedProblem(t *testing.T) {
	m := &losses.Multiplier{From: 1e-6, Limit: 0.3, Rate: 0.05}
	w, x := m.At(0), 1.0
	for range 2000 {
		w, x = m.Next(w, x), x-0.1*(2*(x-1)+w)
	}
	if math.Abs(w-1.4) > 1e-6 || math.Abs(x-0.3) > 1e-6 {
		t.Errorf("got multiplier %v at x = %v, want 1.4 at 0.3", w, x)
	}
}

// Without the term, x is 1 and the constraint x <= 2 holds: the multiplier falls to almost 0 and stays positive.
func TestMultiplierOfAnInactiveConstraintIsAlmostZero(t *testing.T) {
	m := &losses.Multiplier{From: 0.5, Limit: 2, Rate: 0.05}
	w := m.At(0)
	for range 100 {
		w = m.Next(w, 1-w/2)
	}
	if !(w > 0 && w < 1e-8) {
		t.Errorf("got %v, want a tiny positive number", w)
	}
}
