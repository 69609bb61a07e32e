package ops

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
)

// SelectOp is the spec of [Select].
type SelectOp struct{ Count, Of int }

// Select returns matrices (batch, count, n) that select the entries where a mask (batch, n) is 0. Row i of a sample is
// 1 at the i-th such entry, and 0 elsewhere. A sample whose mask does not have exactly count zeros gives NaN. The mask
// has no gradient. [Attention.Mix] with these matrices gathers the selected tokens, [Attention.MixTransposed] puts them
// back.
func Select(mask *gorgonia.Node, count int) (*gorgonia.Node, error) {
	if len(mask.Shape()) != 2 || count < 1 || count > mask.Shape()[1] {
		return nil, fmt.Errorf("select: got %d entries of a mask of shape %v, want a matrix with at least as many columns", count, mask.Shape())
	}
	s := SelectOp{count, mask.Shape()[1]}
	return Unitwise{
		Spec:     s,
		Out:      tensor.Shape{mask.Shape()[0], s.Count, s.Of},
		Units:    mask.Shape()[0],
		ByUnit:   []bool{true},
		Fixed:    []bool{true},
		Division: ir.ByUnits,
		Float32:  selected[float32](s),
		Float64:  selected[float64](s),
	}.Apply(mask)
}

func selected[T Float](s SelectOp) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for b := from; b < to; b++ {
			rows := dst[b*s.Count*s.Of:][:s.Count*s.Of]
			clear(rows)
			found := 0
			for i, v := range in[0][b*s.Of:][:s.Of] {
				if v != 0 {
					continue
				}
				if found < s.Count {
					rows[found*s.Of+i] = 1
				}
				found++
			}
			if found != s.Count {
				for i := range rows {
					rows[i] = nan[T]()
				}
			}
		}
	}
}

// PrefixOp is the spec of [Prefix].
type PrefixOp struct{ Count int }

// Prefix keeps the first count values of each row of the last axis of x and sets the others to 0. The derivative is the same op.
func Prefix(x *gorgonia.Node, count int) (*gorgonia.Node, error) { return prefix(count).Apply(x) }

func prefix(count int) Blockwise {
	return Blockwise{
		Spec:    PrefixOp{count},
		Rows:    true,
		Sparse:  true,
		Float32: prefixed[float32](count),
		Float64: prefixed[float64](count),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(prefix(count).Apply(grad))
		},
	}
}

func prefixed[T Float](count int) kernel[T] {
	return func(dst []T, in [][]T, block int) {
		for at := 0; at < len(dst); at += block {
			kept := min(count, block)
			copy(dst[at:at+kept], in[0][at:at+kept])
			clear(dst[at+kept : at+block])
		}
	}
}
