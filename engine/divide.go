package engine

import "slices"

// A weight that the optimizer moves is written at every step, and so is its gradient: what one processor wrote and
// another reads next has to cross between their caches. Of a trained matrix every thread therefore keeps one part along
// the longer side, rows or columns, for good: it alone reads it, computes its gradient and moves it. What crosses is only
// what belongs to the shorter side, which is smaller.
//
// A product with such a matrix is shared along that side. Where it is a side of the result, a thread computes columns of
// it; where it is summed over, divide makes a sum of parts of the product, one per thread, which the next chain adds up.

// part is the share of one thread of A op(B), summed over its columns of A.
type part struct {
	product
	thread int
}

func (p part) String() string { return p.product.String() + " part" }

// Smaller matrices are not worth the barriers that their division costs: elements, and elements of a thread's share.
const (
	divideFrom = 1 << 14
	leastShare = 64
)

// divide replaces products that are summed over the longer side of a trained matrix by the sum of parts.
func divide(m *module, threads int) {
	m.rebuild(func(v *value) *value {
		o, ok := v.op.(product)
		if !ok || !m.keeps(v, threads) || !summedAlong(v, o) {
			return v
		}
		var total *value
		for thread := range threads {
			p := &value{op: part{o, thread}, args: slices.Clone(v.args), shape: v.shape}
			if total == nil {
				total = p
			} else {
				total = point(add, v.shape, total, p)
			}
		}
		return total
	})
}

// keeps reports whether v is a product of a batch and a trained matrix that threads keep their parts of.
func (m *module) keeps(v *value, threads int) bool {
	o, ok := v.op.(product)
	if !ok || threads == 1 || o.transA || len(v.shape) != 2 {
		return false
	}
	b := v.args[1]
	l, ok := b.op.(leaf)
	if !ok || l.kind != parameterLeaf || !m.trained[l.index] {
		return false
	}
	longer := max(b.shape[0], b.shape[1])
	return v.shape[0] <= longer && size(b.shape) >= divideFrom && longer >= leastShare*threads
}

// summedAlong reports whether the longer side of B is the one that the product is summed over.
func summedAlong(v *value, o product) bool {
	b := v.args[1].shape
	return (b[0] >= b[1]) != o.transB
}

// byColumns reports whether threads share the columns of a product rather than its rows.
func (m *module) byColumns(v *value, threads int) bool {
	o, ok := v.op.(product)
	if !ok || len(v.shape) != 2 {
		return false
	}
	if m.keeps(v, threads) {
		return true // what is summed along has been divided
	}
	rows, columns, depth := v.shape[0], v.shape[1], v.args[0].shape[1]
	// A product that reads A by rows stays in the phase that makes A's rows, unless packing all of B twice costs more.
	return columns > rows && (o.transA || depth*columns >= packedTwice)
}

// packedTwice is how many elements of B two threads should not both pack.
const packedTwice = 1 << 20

// inColumns reports whether threads share the columns of a group's matrices rather than their rows: where a product
// makes columns of what it reads, or a part reads columns of what it makes.
func (f *fusion) inColumns(g *group, threads int) bool {
	matrix := func(v *value) bool { return len(v.shape) == 2 && size(v.shape) == g.size }
	return slices.ContainsFunc(g.members, func(v *value) bool {
		if slices.ContainsFunc(v.args, func(a *value) bool {
			a = skipReshapes(a)
			return f.groupOf[a] != g && matrix(a) && f.module.byColumns(a, threads)
		}) {
			return true
		}
		return matrix(v) && slices.ContainsFunc(f.readers[v], func(r *value) bool {
			_, ok := r.op.(part)
			return ok && skipReshapes(r.args[0]) == v
		})
	})
}
