package team

import (
	"testing"

	"tessera/internal/expect"
)

func TestSharesCoverEverythingOnceAndAreNearlyEqual(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 7} {
		for _, n := range []int{0, 1, 5, 128, 100, 255, 784, 785, 6272} {
			next := 0
			for thread := range threads {
				from, to := Share(n, thread, threads)
				if from != next || to < from {
					t.Fatalf("%d of %d threads has [%d, %d) of %d, want it to begin with %d", thread, threads, from, to, n, next)
				}
				if equal := n / threads; to-from > equal+equal/8+1 || to-from < equal-equal/8-1 {
					t.Errorf("%d of %d threads has %d of %d", thread, threads, to-from, n)
				}
				if n >= 128*threads && from%16 != 0 {
					t.Errorf("%d of %d threads begins with %d of %d, in the middle of a cache line", thread, threads, from, n)
				}
				next = to
			}
			expect.Equal(t, next, n, threads, "threads")
		}
	}
}

func TestEvenSharesCoverAllItems(t *testing.T) {
	for _, n := range []int{0, 1, 3, 128} {
		end := 0
		for thread := range 4 {
			from, to := EvenShare(n, thread, 4)
			if from != end || to-from > (n+3)/4 {
				t.Errorf("%d items: thread %d has [%d, %d)", n, thread, from, to)
			}
			end = to
		}
		expect.Equal(t, end, n, n, "items", end, "are covered")
	}
}
