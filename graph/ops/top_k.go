package ops

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"

	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
)

// TopKOp is the spec of [TopK]. topKGradOp is the spec of its derivative: it maps x, y = TopK(x) and g to g where TopK keeps x, and
// to 0 elsewhere.
type (
	TopKOp     struct{ K int }
	topKGradOp struct{ K int }
)

// TopK keeps the k largest values of each row of the last axis of x and sets the others to 0. Of equal values it keeps
// the first ones. Rows of at most k values stay unchanged. The derivative passes the gradients of the kept values.
func TopK(x *gorgonia.Node, k int) (*gorgonia.Node, error) {
	return Blockwise{
		Spec:    TopKOp{k},
		Rows:    true,
		Sparse:  true,
		Float32: topK(k, vector.Float32),
		Float64: topK(k, vector.Float64),
		Selects: &ir.Selection{Most: k, Float32: largestOf(k, vector.Float32), Float64: largestOf(k, vector.Float64)},
		Derivative: func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(topKGrad(k).Apply(in[0], y, grad))
		},
	}.Apply(x)
}

func topKGrad(k int) Blockwise {
	return Blockwise{
		Spec:    topKGradOp{k},
		Rows:    true,
		Sparse:  true,
		Float32: topKSlope(k, vector.Float32),
		Float64: topKSlope(k, vector.Float64),
		Fixed:   []bool{true, true, false},
		Selects: &ir.Selection{Most: k, Float32: keptByTopK(k, vector.Float32), Float64: keptByTopK(k, vector.Float64), Like: 1},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			slope, err := topKGrad(k).Apply(in[0], in[1], grad)
			return gorgonia.Nodes{nil, nil, slope}, err
		},
	}
}

// LeastOp is the spec of [Least].
type LeastOp struct{ Rows, Of int }

// Least returns, with the shape (1), the largest value of x that lies below the k largest values of each of its rows on average:
// the (m+1)-th largest of all its values with m = round(k rows), and at least 0. It is 0 if x has at most m values. k has the
// shape (1). Of values that hold a NaN it is NaN. Nothing has a gradient.
func Least(x, k *gorgonia.Node) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 || k.Shape().TotalSize() != 1 {
		return nil, fmt.Errorf("least: got values of shape %v and a number of shape %v, want (batch, units) and (1)", x.Shape(), k.Shape())
	}
	s := LeastOp{x.Shape()[0], x.Shape()[1]}
	return Unitwise{
		Spec:    s,
		Out:     []int{1},
		Units:   1,
		ByUnit:  []bool{false, false},
		Fixed:   []bool{true, true},
		Work:    float64(x.Shape().TotalSize()),
		Float32: least(s, vector.Float32),
		Float64: least(s, vector.Float64),
	}.Apply(x, k)
}

func least[T Float](s LeastOp, kernels func() *vector.Set[T]) units[T] {
	var pool sync.Pool // contains *largest[T]
	return func(dst []T, in [][]T, _ []T, _, _ int) {
		x, kept := in[0], int(math.Round(float64(in[1][0])*float64(s.Rows)))
		l, _ := pool.Get().(*largest[T])
		if l == nil || len(l.chosen) != kept+1 {
			l = newLargest(kept+1, len(x), kernels)
		}
		defer pool.Put(l)
		l.measure(x)
		if kept+1 < len(x) {
			dst[0], _ = l.least(x)
		} else {
			dst[0] = slices.Min(x)
		}
		switch {
		case slices.ContainsFunc(l.maxima, func(v T) bool { return v != v }):
			dst[0] = nan[T]()
		case kept >= len(x), dst[0] < 0:
			dst[0] = 0
		}
	}
}

func topK[T Float](k int, kernels func() *vector.Set[T]) kernel[T] {
	return func(dst []T, in [][]T, block int) {
		if k >= block {
			copy(dst, in[0])
			return
		}
		l := newLargest(k, block, kernels)
		copyPlaces(dst, in[0], k, block, func(start int) []int { return l.of(in[0][start : start+block]) })
	}
}

// topKSlope copies in[2] to dst where [TopK] of in[0], which is in[1], keeps the values of its rows, and writes 0 elsewhere.
func topKSlope[T Float](k int, kernels func() *vector.Set[T]) kernel[T] {
	return func(dst []T, in [][]T, block int) {
		if k >= block {
			copy(dst, in[2])
			return
		}
		kept, row := keptByTopK(k, kernels)(block, k), make([][]T, 2)
		copyPlaces(dst, in[2], k, block, func(start int) []int {
			row[0], row[1] = in[0][start:start+block], in[1][start:start+block]
			return kept(row)
		})
	}
}

// copyPlaces copies the values of from at k places of each row to dst, and writes 0 elsewhere. places returns those of the row that
// begins at start; dst may share memory with what they depend on, and with from.
func copyPlaces[T Float](dst, from []T, k, block int, places func(start int) []int) {
	values := make([]T, k)
	for start := 0; start < len(dst); start += block {
		list := places(start)
		for i, j := range list {
			values[i] = from[start+j]
		}
		row := dst[start : start+block]
		clear(row)
		for i, j := range list {
			row[j] = values[i]
		}
	}
}

// largestOf returns a constructor for row length block > k. The constructed function returns the indices of the values of a row
// that [TopK] keeps, in ascending order, from the row.
func largestOf[T Float](k int, kernels func() *vector.Set[T]) func(block, _ int) func(row [][]T) []int {
	return func(block, _ int) func(row [][]T) []int {
		l := newLargest(k, block, kernels)
		return func(row [][]T) []int { return l.of(row[0]) }
	}
}

// keptByTopK returns a constructor for row length block > k. The constructed function returns the indices of the values of a row that
// [TopK] keeps, in ascending order, from the row and its result.
func keptByTopK[T Float](k int, kernels func() *vector.Set[T]) func(block, _ int) func(row [][]T) []int {
	return func(block, _ int) func(row [][]T) []int {
		l := newLargest(k, block, kernels)
		return func(row [][]T) []int {
			if list := l.nonZero(row[1]); len(list) == k {
				return list
			}
			return l.of(row[0]) // some of the kept values are 0
		}
	}
}

func newLargest[T Float](k, n int, kernels func() *vector.Set[T]) *largest[T] {
	pieces := (n + piece - 1) / piece
	set := kernels()
	return &largest[T]{maximum: set.Maximum, sumAbs: set.SumAbs, chosen: make([]int, k), found: make([]T, 0, min(n, 2*k+candidates)),
		maxima: make([]T, pieces), sorted: make([]T, pieces)}
}

// piece is the number of values that are skipped together if their maximum is too small.
const piece = 64

// The search for the k largest values collects 2k + candidates values before it selects among them.
const candidates = 64

// largest finds the k largest values of rows. It is not safe for concurrent use.
type largest[T Float] struct {
	maximum vector.Reduce[T]
	sumAbs  vector.Reduce[T]
	chosen  []int // k indices
	found   []T   // candidates for the k largest values
	maxima  []T   // maxima of the pieces of a row
	sorted  []T   // partly sorted maxima
}

// of returns the indices of the k largest values of x, k < len(x), in ascending order. It returns no indices if one of
// these values is NaN; see [largest.least]. The list is valid until the next call.
func (l *largest[T]) of(x []T) []int {
	l.measure(x)
	least, equal := l.least(x)
	n := 0
	for i, top := range l.maxima {
		if top < least {
			continue
		}
		for j, v := range x[i*piece : min((i+1)*piece, len(x))] {
			if v >= least {
				if v == least {
					if equal == 0 {
						continue
					}
					equal--
				}
				l.chosen[n] = i*piece + j
				n++
			}
		}
	}
	return l.chosen[:n]
}

// nonZero returns the indices of the values of y that differ from 0, of which there are at most k, in ascending order. The list is
// valid until the next call.
func (l *largest[T]) nonZero(y []T) []int {
	n := 0
	for start := 0; start < len(y); start += piece {
		part := y[start:min(start+piece, len(y))]
		if l.sumAbs(part) == 0 {
			continue
		}
		for j, v := range part {
			if v != 0 {
				l.chosen[n] = start + j
				n++
			}
		}
	}
	return l.chosen[:n]
}

// measure sets the maxima of the pieces of x.
func (l *largest[T]) measure(x []T) {
	for i := range l.maxima {
		l.maxima[i] = l.maximum(x[i*piece : min((i+1)*piece, len(x))])
	}
}

// bound returns a lower bound of the k largest values of x: the k-th largest of the maxima of its pieces.
func (l *largest[T]) bound() T {
	k := len(l.chosen)
	if len(l.maxima) < k || slices.ContainsFunc(l.maxima, func(v T) bool { return v != v }) {
		return T(math.Inf(-1))
	}
	copy(l.sorted, l.maxima)
	_, least := kLargest(l.sorted, k)
	return least
}

// least returns the smallest of the k largest values of x, and how many of the values equal to it are kept. A NaN
// counts as smaller than every number. If a NaN is among the k largest values, least returns NaN, and nothing is kept.
//
// least scans x once and collects the values above a lower bound of the result. Whenever the memory for these values is
// full, it keeps the k largest of them, and the smallest of these becomes the bound.
func (l *largest[T]) least(x []T) (least T, equal int) {
	k, found := len(l.chosen), l.found[:0]
	least = l.bound()
	for i, top := range l.maxima {
		if top <= least { // false for a NaN
			continue
		}
		for _, v := range x[i*piece : min((i+1)*piece, len(x))] {
			if v > least {
				if len(found) == cap(found) {
					found, least = kLargest(found, k)
					if v <= least {
						continue
					}
				}
				found = append(found, v)
			}
		}
	}
	if len(found) < k { // the other values equal the bound or are NaN
		for _, v := range x {
			if v == least {
				equal++
			}
		}
		if equal < k-len(found) {
			return T(math.NaN()), 0
		}
		return least, k - len(found)
	}
	found, least = kLargest(found, k)
	for _, v := range found {
		if v == least {
			equal++
		}
	}
	return least, equal
}

// kLargest moves the k largest elements of found to the front and returns them and their minimum. None of the k largest
// may be NaN. It partitions found around pivots (quickselect). After too many bad pivots it sorts the remaining
// elements.
func kLargest[T Float](found []T, k int) (kept []T, least T) {
	place := len(found) - k // index of the smallest kept value if found were in ascending order
	low, high := 0, len(found)-1
	for range badPivots {
		if low >= high {
			break
		}
		pivot := medianOf3(found[low], found[(low+high)/2], found[high])
		i, j := low, high
		for i <= j {
			for found[i] < pivot {
				i++
			}
			for found[j] > pivot {
				j--
			}
			if i <= j {
				found[i], found[j] = found[j], found[i]
				i, j = i+1, j-1
			}
		}
		switch { // found[low:j+1] <= pivot, found[i:high+1] >= pivot, and all values between them equal the pivot
		case place <= j:
			high = j
		case place >= i:
			low = i
		default:
			low, high = place, place
		}
	}
	slices.Sort(found[low : high+1])
	least = found[place]
	return found[:copy(found, found[place:])], least
}

// badPivots is the number of partitions after which kLargest sorts instead. It is more than twice the number that
// random values need.
const badPivots = 24

// medianOf3 returns the second of three values in ascending order.
func medianOf3[T Float](a, b, c T) T { return max(min(a, b), min(max(a, b), c)) }
