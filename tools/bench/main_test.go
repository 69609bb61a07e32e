package main

import "testing"

// Without a round there is no median.
func TestNoRoundsAreAMistake(t *testing.T) {
	for _, rounds := range []int{0, -1} {
		if err := run(settings{}, t.TempDir(), "nmf", rounds); err == nil {
			t.Errorf("%d rounds: no error", rounds)
		}
	}
}
