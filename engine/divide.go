package engine

import (
	"slices"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

// A trained weight and its gradient are written at every step. Values that one processor writes and another one reads next
// must move between their caches. Every thread therefore permanently keeps one part of a trained matrix along its longer
// side, rows or columns: only this thread reads the part, computes its gradient and updates it. Only values of the shorter
// side, which are fewer, move between caches.
//
// A product with such a matrix is shared along that side. If the result has that side, a thread computes columns of the
// result. If the product sums over that side, divide makes a sum of partial products, one per thread, which the next chain
// adds up.

// partialProduct is A op(B), summed over one thread's columns of A.
type partialProduct struct {
	ir.Product
	thread int
}

func (p partialProduct) String() string { return p.Product.String() + " partial" }

// Smaller matrices, in elements and in elements per thread, are not worth the barriers that their division costs.
const (
	divideFrom = 1 << 14
	leastShare = 64
)

// divide replaces products that are summed over the longer side of a trained matrix by the sum of partial products.
func divide(m *module, threads int) {
	m.rebuild(func(v *ir.Value) *ir.Value {
		o, ok := v.Op.(ir.Product)
		if !ok || !m.keeps(v, threads) || !summedAlong(v, o) {
			return v
		}
		var total *ir.Value
		for thread := range threads {
			p := &ir.Value{Op: partialProduct{o, thread}, Args: slices.Clone(v.Args), Shape: v.Shape}
			if total == nil {
				total = p
			} else {
				total = ir.Point(ir.Add, v.Shape, total, p)
			}
		}
		return total
	})
}

// keeps reports whether v is a product of a batch and a trained matrix that threads keep their shares of.
func (m *module) keeps(v *ir.Value, threads int) bool {
	o, ok := v.Op.(ir.Product)
	if !ok || threads == 1 || o.TransA || len(v.Shape) != 2 {
		return false
	}
	b := v.Args[1]
	l, ok := b.Op.(ir.Leaf)
	if !ok || l.Kind != ir.ParameterLeaf || !m.trained[l.Index] {
		return false
	}
	longer := max(b.Shape[0], b.Shape[1])
	return v.Shape[0] <= longer && volume.Of(b.Shape) >= divideFrom && longer >= leastShare*threads
}

// summedAlong reports whether the longer side of B is the one that the product is summed over.
func summedAlong(v *ir.Value, o ir.Product) bool {
	b := v.Args[1].Shape
	return (b[0] >= b[1]) != o.TransB
}

// byColumns reports whether threads share the columns of a product rather than its rows.
func (m *module) byColumns(v *ir.Value, threads int) bool {
	o, ok := v.Op.(ir.Product)
	if !ok || len(v.Shape) != 2 {
		return false
	}
	if m.keeps(v, threads) {
		return true // what is summed along has been divided
	}
	rows, columns, depth := v.Shape[0], v.Shape[1], v.Args[0].Shape[1]
	// A product that reads A by rows stays in the phase that makes A's rows, unless packing all of B twice costs more.
	return columns > rows && (o.TransA || depth*columns >= packedTwice)
}

// packedTwice is the number of elements of B from which two threads should not both pack B.
const packedTwice = 1 << 20

// inColumns reports whether threads share the columns of a group's matrices rather than their rows: if a product computes
// columns of the group's input, or a partial product reads columns of its output.
func (f *fusion) inColumns(g *group, threads int) bool {
	matrix := func(v *ir.Value) bool { return len(v.Shape) == 2 && volume.Of(v.Shape) == g.size }
	return slices.ContainsFunc(g.members, func(v *ir.Value) bool {
		if slices.ContainsFunc(v.Args, func(a *ir.Value) bool {
			a = skipReshapes(a)
			return f.groupOf[a] != g && matrix(a) && f.module.byColumns(a, threads)
		}) {
			return true
		}
		return matrix(v) && slices.ContainsFunc(f.readers[v], func(r *ir.Value) bool {
			_, ok := r.Op.(partialProduct)
			return ok && skipReshapes(r.Args[0]) == v
		})
	})
}
