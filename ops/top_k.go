package ops

import (
	"slices"

	"gorgonia.org/gorgonia"
)

// TopKOp is the spec of [TopK], topKGradOp that of its derivative: of x and g it gives g where TopK keeps x, and 0 elsewhere.
type (
	TopKOp     struct{ K int }
	topKGradOp struct{ K int }
)

// TopK keeps the k largest values of each row of the last axis of x and gives 0 elsewhere; of equal values it keeps the first
// ones. All are kept where a row has no more than k. The derivative passes gradients to the kept values.
func TopK(x *gorgonia.Node, k int) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    TopKOp{k},
		Rows:    true,
		Float32: topK[float32](k),
		Float64: topK[float64](k),
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return one(topKGrad(k).Apply(in[0], grad))
		},
	}.Apply(x)
}

func topKGrad(k int) Blockwise {
	return Blockwise{
		Spec:    topKGradOp{k},
		Rows:    true,
		Float32: topKSlope[float32](k),
		Float64: topKSlope[float64](k),
		Fixed:   []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(topKGrad(k).Apply(in[0], grad))
		},
	}
}

func topK[T Float](k int) kernel[T] {
	slope := topKSlope[T](k)
	return func(dst []T, in [][]T, block int) { slope(dst, [][]T{in[0], in[0]}, block) }
}

// topKSlope copies in[1] to dst where in[0] is among the k largest of its row.
func topKSlope[T Float](k int) kernel[T] {
	return func(dst []T, in [][]T, block int) {
		var sorted []T
		for start := 0; start < len(dst); start += block {
			x, from, y := in[0][start:start+block], in[1][start:start+block], dst[start:start+block]
			if k >= block {
				copy(y, from)
				continue
			}
			sorted = append(sorted[:0], x...)
			slices.Sort(sorted)
			least := sorted[block-k]
			equal := 0 // how many of the values that equal the least kept one are kept
			for _, v := range sorted[block-k:] {
				if v == least {
					equal++
				}
			}
			for j, v := range x {
				keep := v > least
				if v == least && equal > 0 {
					keep, equal = true, equal-1
				}
				y[j] = 0
				if keep {
					y[j] = from[j]
				}
			}
		}
	}
}
