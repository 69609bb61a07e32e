package main

import "testing"

// A median needs at least one round.
func TestNoRoundsAreAMistake(t *testing.T) {
	for _, rounds := range []int{0, -1} {
		if err := run(settings{}, t.TempDir(), "nmf", rounds); err == nil {
			t.Errorf("%d rounds: no error", rounds)
		}
	}
}
