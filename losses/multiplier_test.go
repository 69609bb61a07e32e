package losses_test

import (
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/losses"
)

// The minimum of (x-1)² + w x is at x = 1 - w/2, so that the constraint x <= 0.3 has the multiplier 1.4.
func TestMultiplierSolvesAConstrainedProblem(t *testing.T) {
	m := &losses.Multiplier{From: 1e-6, Limit: 0.3, Rate: 0.05}
	w, x := m.At(0), 1.0
	for range 2000 {
		w, x = m.Next(w, x), x-0.1*(2*(x-1)+w)
	}
	expect.Near(t, w, 1.4, 1e-6, "multiplier")
	expect.Near(t, x, 0.3, 1e-6, "multiplier")
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

// With an upper bound an unreachable limit neither empties the model nor goes unnoticed.
func TestABoundedMultiplierStaysInItsBounds(t *testing.T) {
	m := &losses.Multiplier{From: 0.01, Limit: 0.3, Rate: 0.05, Least: 0.002, Most: 0.1}
	w := m.At(0)
	for range 100 {
		w = m.Next(w, 1) // never at the limit
	}
	expect.Equal(t, w, m.Most, "above the limit the weight became")
	for range 100 {
		w = m.Next(w, 0)
	}
	expect.Equal(t, w, m.Least, "below the limit the weight became")
}

func TestAMultiplierSaysWhatItDidNotReach(t *testing.T) {
	m := &losses.Multiplier{From: 0.01, Limit: 0.3, Rate: 0.05, Most: 0.1}
	for _, c := range []struct {
		weight, value, dead float64
		says                string // expected diagnosis; "" for none
	}{
		{0.1, 0.3, 0, ""},
		{0.1, 0.305, 0, ""}, // within the scatter of batches
		{1e-9, 0.1, 0.9, ""},
		{1e-9, 0.02, 0.4, ""},
		{1e-9, 0.02, 0.9, "asked for <= 0.3, reached 0.02, with 90 % of the units dead: the weight rose too far"},
		{0.1, 0.45, 0, "asked for <= 0.3, reached 0.45, with the weight at its upper bound of 0.1"},
		{0.04, 0.45, 0, "asked for <= 0.3, reached 0.45, with the weight still rising at 0.04; train longer"},
	} {
		if got := m.Diagnose(c.weight, c.value, c.dead); (got == "") != (c.says == "") || !strings.HasPrefix(got, c.says) {
			t.Errorf("weight %v, value %v: got %q, want %q", c.weight, c.value, got, c.says)
		}
	}
}

func TestBoundsOfAMultiplierThatExcludeEachOtherAreAnError(t *testing.T) {
	for _, m := range []*losses.Multiplier{{From: 0.1, Least: 1, Most: 0.1}, {From: 5, Most: 0.1}} {
		expect.AnyError(t, m.Check(), m, "is accepted")
	}
	for _, m := range []*losses.Multiplier{{From: 1e-6, Least: 1e-3, Most: 0.1}, {From: 5}, {From: 0.1, Most: 0.1, Least: 0.1}} {
		expect.NoError(t, m.Check(), m)
	}
}
