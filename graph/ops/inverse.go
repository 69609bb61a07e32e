package ops

import (
	"fmt"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"

	vector "tessera/internal/engine/kernel"
)

// ShiftedInverseOp is the spec of [ShiftedInverse].
type ShiftedInverseOp struct{}

// ShiftedInverse returns (A + diag(d))⁻¹ of a square matrix A (n, n) and a vector d (n). It eliminates blocks without
// exchanging rows, in float64 whatever the precision of the graph. This is stable if A is symmetric and positive
// semi-definite and d is positive, as for the products of all pairs of atoms; a singular block gives infinite or undefined
// values. The result does not depend on the number of threads. With the result Y and the gradient C of Y, the gradients are
//
//	dA = -Yᵀ C Yᵀ,  dd = the diagonal of dA
//
// and can be differentiated any number of times.
func ShiftedInverse(a, d *gorgonia.Node) (*gorgonia.Node, error) {
	n := d.Shape().TotalSize()
	if len(d.Shape()) != 1 || !slices.Equal(a.Shape(), []int{n, n}) {
		return nil, fmt.Errorf("shifted inverse: got shapes %v and %v, want (n, n) and (n)", a.Shape(), d.Shape())
	}
	o := &Unitwise{
		Spec:    ShiftedInverseOp{},
		Out:     []int{n, n},
		Units:   1,
		ByUnit:  []bool{false, false},
		Work:    2 * float64(n*n) * float64(n),
		Float32: shiftedInverse[float32](n),
		Float64: shiftedInverse[float64](n),
		Derivative: func(_ gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			turned := c.Transpose(y)
			half := c.Neg(c.MatMul(turned, grad))
			return gorgonia.Nodes{c.MatMul(half, turned), c.Sum(c.Mul(half, y), 1)}, c.Err()
		},
	}
	return o.Apply(a, d)
}

// shiftedInverse returns the kernel for matrices of n rows.
func shiftedInverse[T Float](n int) units[T] {
	workspaces := sync.Pool{New: func() any { return &[2][]float64{make([]float64, n*n), make([]float64, n*n)} }}
	return func(dst []T, in [][]T, _ []T, _, _ int) {
		w := workspaces.Get().(*[2][]float64)
		defer workspaces.Put(w)
		a := w[0]
		for i, v := range in[0] {
			a[i] = float64(v)
		}
		for i, v := range in[1] {
			a[i*n+i] += float64(v)
		}
		invert(a, n, n, w[1])
		for i, v := range a {
			dst[i] = T(v)
		}
	}
}

// small is the number of rows from which a matrix is inverted by blocks.
const small = 16

// invert replaces the matrix a of n rows, which start every stride elements, by its inverse. work has at least n² elements.
// With the blocks P, Q, R, S of a and the Schur complement Z = S - R P⁻¹ Q, the inverse has the blocks
//
//	P⁻¹ + P⁻¹ Q Z⁻¹ R P⁻¹,  -P⁻¹ Q Z⁻¹
//	-Z⁻¹ R P⁻¹,             Z⁻¹
func invert(a []float64, n, stride int, work []float64) {
	if n < small {
		eliminate(a, n, stride)
		return
	}
	h, g := n/2, n-n/2
	p, q, r, s := a, a[h:], a[h*stride:], a[h*stride+h:]
	gemm := vector.Float64().Gemm
	invert(p, h, stride, work)
	along, below := work[:h*g], work[h*g:2*h*g] // P⁻¹ Q and R P⁻¹
	gemm(false, false, h, g, h, 1, p, stride, q, stride, 0, along, g)
	gemm(false, false, g, h, h, 1, r, stride, p, stride, 0, below, h)
	gemm(false, false, g, g, h, -1, r, stride, along, g, 1, s, stride)
	invert(s, g, stride, work[2*h*g:])
	gemm(false, false, h, g, g, -1, along, g, s, stride, 0, q, stride)
	gemm(false, false, g, h, g, -1, s, stride, below, h, 0, r, stride)
	gemm(false, false, h, h, g, -1, q, stride, below, h, 1, p, stride)
}

// eliminate is [invert] by Gauss and Jordan's elimination.
func eliminate(a []float64, n, stride int) {
	for i := range n {
		pivot := a[i*stride : i*stride+n]
		scale := 1 / pivot[i]
		pivot[i] = 1
		for j := range pivot {
			pivot[j] *= scale
		}
		for k := range n {
			if k == i {
				continue
			}
			row := a[k*stride : k*stride+n]
			factor := row[i]
			row[i] = 0
			for j, v := range pivot {
				row[j] -= factor * v
			}
		}
	}
}
