package metrics

import (
	"fmt"
	"math"
)

// The metric hoyer is the mean over images of the [Hoyer] sparsity of their codes.
func init() {
	register("hoyer", "sparsity of the codes", Description{
		Measures: []Measure{{Name: "hoyer", Better: Higher, Doc: "mean over images of the sparsity of h, (√k - \\|h\\|₁ / \\|h\\|₂) / (√k - 1). " +
			"0 if all units are equally active, 1 if only one is; an image whose code is all zero counts as 0. The study's sparsity of encodings"}},
		Reads: ReadsCodes,
	}, ofCodes(Hoyer))
}

// Hoyer returns the sparsity of a vector of k values, (sqrt k - |v|_1 / |v|_2) / (sqrt k - 1): 0 when all values are equal,
// 1 when one value is not zero. An all-zero vector has sparsity 0 by definition, and so has a vector of one value. The study
// adds 1e-7 to |v|_2: small equal values then look sparse, and other sparsities change by about 1e-7 / |v|_2.
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

// sparsity returns the sparsity of n values from the sums of their magnitudes and of their squares.
func sparsity(n int, l1, squares float64) float64 {
	if n < 2 || squares == 0 {
		return 0
	}
	root := math.Sqrt(float64(n))
	return max(0, min(1, (root-l1/math.Sqrt(squares))/(root-1))) // rounding can leave [0,1]
}

// MeanHoyer returns the mean sparsity of the rows of a matrix: of codes (width = units) or of atoms (width = pixels).
func MeanHoyer(rows []float32, width int) (float64, error) {
	n, err := rowCount(rows, width)
	if err != nil {
		return 0, err
	}
	var sum imageSum
	sum.add(n, 64, func(i int) float64 { return Hoyer(rows[i*width : (i+1)*width]) })
	return sum.mean(1), nil
}

// rowCount checks that values are whole rows of that width and returns their number.
func rowCount(values []float32, width int) (int, error) {
	if width < 1 || len(values)%width != 0 {
		return 0, fmt.Errorf("metrics: got %d values, want a multiple of %d", len(values), width)
	}
	return len(values) / width, nil
}
