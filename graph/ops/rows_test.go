package ops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The vector kernels of rows give the bytes of the plain loops, for whole and partial groups of rows, in place, and for values
// that overflow or are not finite.
func TestRowsInVectorsEqualPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name        string
		inputs      int
		fast, plain kernel[float32]
	}{
		{"softmax", 1, fastSoftmax, softmax[float32]},
		{"slope of softmax", 2, fastSoftmaxSlope, softmaxSlope[float32]},
		{"logarithm of softmax", 1, fastLogSoftmax, logSoftmax[float32]},
		{"slope of the logarithm of softmax", 2, fastLogSoftmaxSlope, logSoftmaxSlope[float32]},
	} {
		for _, block := range []int{1, 3, 16, 50, 1100} {
			for _, rows := range []int{1, 4, 7, 9} {
				in := make([][]float32, c.inputs)
				for i := range in {
					for range rows * block {
						in[i] = append(in[i], float32(4*r.NormFloat64()))
					}
				}
				in[0][r.IntN(len(in[0]))] = float32(math.Inf(-1))
				in[0][r.IntN(len(in[0]))] = 300
				if rows == 9 {
					in[0][r.IntN(len(in[0]))] = float32(math.NaN())
				}
				want := make([]float32, rows*block)
				c.plain(want, in, block)
				for overwritten := -1; overwritten < c.inputs; overwritten++ {
					t.Run(fmt.Sprintf("%s of %d rows of %d over %d", c.name, rows, block, overwritten), func(t *testing.T) {
						own := [][]float32{}
						for _, x := range in {
							own = append(own, slices.Clone(x))
						}
						got := make([]float32, rows*block)
						if overwritten >= 0 {
							got = own[overwritten]
						}
						c.fast(got, own, block)
						for i, v := range got {
							if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
								t.Fatalf("value %d is %v, plain loops give %v", i, v, want[i])
							}
						}
					})
				}
			}
		}
	}
}

// The softmax over selected elements has the bytes of the plain loops, also where nothing is selected or not finite.
func TestSelectedRowsInVectorsEqualPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 3, 17, 50, 300} {
		const samples, heads = 5, 2
		x, mask := make([]float32, samples*heads*n*n), make([]float32, samples*n)
		for i := range x {
			x[i] = float32(8 * r.NormFloat64())
		}
		for i := range mask {
			mask[i] = float32(r.IntN(2))
		}
		clear(mask[:n])
		for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			x[(i+1)*heads*n*n+r.IntN(n*n)] = float32(v)
		}
		for i := range n { // a row of -Inf
			x[4*heads*n*n+i] = float32(math.Inf(-1))
		}
		for name, kernels := range map[string][2]units[float32]{
			"mask":   {fastMaskedSoftmax(MaskedSoftmaxOp{heads * n, n}), maskedSoftmax[float32](MaskedSoftmaxOp{heads * n, n})},
			"causal": {fastCausalSoftmax(CausalSoftmaxOp{heads * n, n}), causalSoftmax[float32](CausalSoftmaxOp{heads * n, n})},
		} {
			got, want := make([]float32, len(x)), make([]float32, len(x))
			kernels[0](got, [][]float32{x, mask}, nil, 0, 2)
			kernels[0](got, [][]float32{x, mask}, nil, 2, samples)
			kernels[1](want, [][]float32{x, mask}, nil, 0, samples)
			for i, v := range got {
				if math.Float32bits(v) != math.Float32bits(want[i]) && (v == v || want[i] == want[i]) {
					t.Fatalf("%s of %d: value %d is %v, plain loops give %v", name, n, i, v, want[i])
				}
			}
		}
	}
}
