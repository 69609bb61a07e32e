package volume

import (
	"math"
	"testing"

	"tessera/internal/expect"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		shape []int
		want  int
	}{
		{nil, 1}, {[]int{7}, 7}, {[]int{28, 28, 3}, 2352}, {[]int{4, 0, 5}, 0},
		{[]int{1 << 31, 1 << 31}, 1 << 62}, {[]int{1 << 31, 1 << 31, 2}, math.MaxInt}, {[]int{math.MaxInt, math.MaxInt}, math.MaxInt},
	} {
		expect.Equal(t, Of(c.shape), c.want, c.shape)
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		shape []int
		most  int
		want  bool
	}{
		{nil, 1, true}, {[]int{3, 4}, 12, true}, {[]int{3, 4}, 11, false}, {[]int{0, 4}, 0, true}, {[]int{-3, -4}, 12, false},
		{[]int{math.MaxInt, math.MaxInt}, math.MaxInt / 16, false},
	} {
		if _, ok := Within(c.shape, c.most); ok != c.want {
			t.Errorf("%v within %d: got %v, want %v", c.shape, c.most, ok, c.want)
		}
	}
}
