// Package volume counts the values of tensors.
package volume

import "math"

// Of returns the number of values of a tensor with the given shape, 1 for a scalar. On overflow it returns the largest
// int.
func Of(shape []int) int {
	n := 1
	for _, d := range shape {
		if d > 0 && n > math.MaxInt/d {
			return math.MaxInt
		}
		n *= d
	}
	return n
}

// Within is like [Of] for a shape from an untrusted source. ok is false if a length is negative or if there are more
// than most values.
func Within(shape []int, most int) (n int, ok bool) {
	for _, d := range shape {
		if d < 0 {
			return 0, false
		}
	}
	n = Of(shape)
	return n, n <= most
}

// MostExpanded is the maximum number of values of a parameter, and of a tensor for a batch: 2 GiB. Training stores several tensors of
// this size.
const MostExpanded = 1 << 29
