package constraints

import (
	"iter"
	"math"
)

// rounding is float32's relative rounding. A row whose length is that near to its bound is left as it is: scaling it
// again would only move its last bits, and projecting twice would differ from projecting once.
const rounding = 1.0 / (1 << 23)

// rows yields the rows of the first axis of w; fewer than two axes are one row.
func rows(w []float32, shape []int) iter.Seq[[]float32] {
	return func(yield func([]float32) bool) {
		size := len(w)
		if len(shape) > 1 && shape[0] > 0 {
			size /= shape[0]
		}
		for ; len(w) > 0 && size > 0; w = w[size:] {
			if !yield(w[:size]) {
				return
			}
		}
	}
}

// worstRow returns the largest violation of a row.
func worstRow(w []float32, shape []int, violation func(row []float32) float64) float64 {
	largest := 0.0
	for row := range rows(w, shape) {
		largest = max(largest, violation(row))
	}
	return largest
}

// length returns the Euclidean length of a row. In float64 no square of a float32 overflows or vanishes.
func length(row []float32) float64 {
	var s [4]float64 // four sums at a time: one alone would wait for each addition
	i := 0
	for ; i+4 <= len(row); i += 4 {
		a, b, c, d := float64(row[i]), float64(row[i+1]), float64(row[i+2]), float64(row[i+3])
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += d * d
	}
	for ; i < len(row); i++ {
		s[0] += float64(row[i]) * float64(row[i])
	}
	return math.Sqrt((s[0] + s[1]) + (s[2] + s[3]))
}

// rescale multiplies a row by factor. The product is rounded once, so a row of denormals keeps its direction.
func rescale(row []float32, factor float64) {
	for i, v := range row {
		row[i] = float32(float64(v) * factor)
	}
}
