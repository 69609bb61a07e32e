package train

import (
	"math"

	"tessera/kernel"
)

// finite reports whether no value is NaN or infinite. One such value makes the sum NaN or infinite, and a sum is all
// that this costs; should a sum of large finite values overflow, each is looked at.
func finite(v []float32) bool {
	if sum := kernel.Float32().Sum(v); sum-sum == 0 {
		return true
	}
	_, ok := firstBad(v)
	return !ok
}

// firstBad returns the first value that is not finite; ok is false where all are.
func firstBad(v []float32) (value float32, ok bool) {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return x, true
		}
	}
	return 0, false
}
