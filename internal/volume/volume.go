// Package volume counts the values of tensors.
package volume

import "math"

// Of is the number of values of a tensor of that shape, 1 for a scalar; it stays at the largest int where it would overflow.
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
