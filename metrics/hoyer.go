package metrics

import (
	"fmt"
	"math"
)

func init() {
	register("hoyer", "sparsity of the codes", Description{
		Measures: []Measure{{Name: "hoyer", Better: Higher, Doc: "mean over samples of the sparsity of h, (√k - \\|h\\|₁ / \\|h\\|₂) / (√k - 1). " +
			"0 if all units are equally active, 1 if only one is; a sample whose code is all zero counts as 0, and rounding errors in the code of a sample of zeros count as a code (not in `hoyer_contribution`). The study's sparsity of encodings"}},
		Reads: ReadsCodes,
	}, ofCodes(Hoyer))
}

// Hoyer returns the sparsity of a vector of k values, (sqrt k - |v|_1 / |v|_2) / (sqrt k - 1): 0 if all values are equal, 1
// if exactly one value is not zero. For an all-zero vector and for k = 1 the sparsity is defined as 0. The study adds 1e-7 to
// |v|_2, which makes small equal values appear sparse and changes other sparsities by about 1e-7 / |v|_2.
//
// Source: P. O. Hoyer, Non-negative matrix factorization with sparseness constraints, JMLR 5, 2004.
func Hoyer(v []float32) float64 {
	var l1, squares float64
	for _, x := range v {
		f := float64(x)
		l1 += math.Abs(f)
		squares += f * f
	}
	return sparsity(len(v), l1, squares)
}

// sparsity returns the Hoyer sparsity of n values, given the sum of their magnitudes (l1) and of their squares.
func sparsity(n int, l1, squares float64) float64 {
	if n < 2 || squares == 0 {
		return 0
	}
	root := math.Sqrt(float64(n))
	return max(0, min(1, (root-l1/math.Sqrt(squares))/(root-1))) // rounding can leave [0,1]
}

// MeanHoyer returns the mean sparsity of the rows of a matrix: codes (width = units) or atoms (width = pixels).
func MeanHoyer(rows []float32, width int) (float64, error) {
	n, err := rowCount(rows, width)
	if err != nil {
		return 0, err
	}
	var sum imageSum
	sum.add(n, 64, func(i int) float64 { return Hoyer(rows[i*width : (i+1)*width]) })
	return sum.mean(1), nil
}

// rowCount returns the number of rows of the given width, or an error if the length of values is not a multiple of the width.
func rowCount(values []float32, width int) (int, error) {
	if width < 1 || len(values)%width != 0 {
		return 0, fmt.Errorf("metrics: got %d values, want a multiple of %d", len(values), width)
	}
	return len(values) / width, nil
}
