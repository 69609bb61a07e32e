package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/internal/engine/ir"
	"tessera/internal/volume"
)

// module is a program under compilation.
type module struct {
	values []*ir.Value // in topological order; the ID of a value is its index
	wanted []*ir.Value // taps, gradients and updates, in the order of ir.Module.Wanted
	// trained[i] is true if a gradient with respect to parameter i is wanted.
	trained []bool
}

// newModule copies a program, so that passes can change its values.
func newModule(program *ir.Module) *module {
	program = program.Clone()
	m := &module{wanted: program.Wanted(), trained: make([]bool, len(program.Parameters))}
	for _, g := range program.Gradients {
		m.trained[g.Parameter] = true
	}
	m.values = ir.Sorted(m.wanted)
	return m
}

// rebuild visits every value that the wanted values depend on, args first, and replaces it by the result of f. The args
// of the value passed to f are already replaced. Every pass uses rebuild. Values that are no longer needed are removed.
// rebuild reports whether f replaced any value.
func (m *module) rebuild(f func(*ir.Value) *ir.Value) (changed bool) {
	done := map[*ir.Value]*ir.Value{}
	var visit func(*ir.Value) *ir.Value
	visit = func(v *ir.Value) *ir.Value {
		if r, ok := done[v]; ok {
			return r
		}
		for i, a := range v.Args {
			v.Args[i] = visit(a)
		}
		r := f(v)
		if r != v {
			changed = true
			r = visit(r) // a rewritten value may be rewritten again
		}
		done[v] = r
		done[r] = r
		return r
	}
	for i, w := range m.wanted {
		m.wanted[i] = visit(w)
	}
	m.values = ir.Sorted(m.wanted)
	return changed
}

// readers counts the readers of each value. The caller counts as a reader of every wanted value.
func (m *module) readers() map[*ir.Value]int {
	n := map[*ir.Value]int{}
	for _, v := range m.values {
		for _, a := range v.Args {
			n[a]++
		}
	}
	for _, w := range m.wanted {
		n[w]++
	}
	return n
}

// String lists the values, one per line.
func (m *module) String() string { return ir.Text(m.values) }

// materializeViews stores views that their reader cannot resolve: broadcasts and constants that are wanted values, or
// that are read by another broadcast, a matrix product, a transpose, an op in blocks or units, a foreign op or a
// message.
func materializeViews(m *module) {
	copies := map[*ir.Value]*ir.Value{}
	materialized := func(v *ir.Value) *ir.Value {
		switch skipReshapes(v).Op.(type) {
		case ir.Broadcast, ir.Constant:
			if c, ok := copies[v]; ok {
				return c
			}
			c := &ir.Value{Op: ir.Pointwise{F: ir.Copy}, Args: []*ir.Value{v}, Shape: v.Shape}
			copies[v] = c
			return c
		}
		return v
	}
	m.rebuild(func(v *ir.Value) *ir.Value {
		switch v.Op.(type) {
		case ir.Product, ir.Transpose, ir.Blockwise, ir.Unitwise, ir.Foreign, ir.AllReduce, ir.AllGather:
			for i, a := range v.Args {
				v.Args[i] = materialized(a)
			}
		case ir.Broadcast:
			if _, ok := skipReshapes(v.Args[0]).Op.(ir.Broadcast); ok {
				v.Args[0] = materialized(v.Args[0])
			}
		}
		return v
	})
	for i, w := range m.wanted {
		m.wanted[i] = materialized(w)
	}
	m.rebuild(func(v *ir.Value) *ir.Value { return v })
}

// fold simplifies arithmetic on constants, reductions of constants, reshapes of reshapes and broadcasts of broadcasts.
// Constants are rounded to T after every operation, as in a run.
func fold[T ir.Float](m *module) bool {
	return m.rebuild(func(v *ir.Value) *ir.Value {
		switch o := v.Op.(type) {
		case ir.Reshape:
			return foldReshape(v)
		case ir.Broadcast:
			return foldBroadcast(v)
		case ir.Pointwise:
			return foldPointwise[T](v, o)
		case ir.Reduction:
			return foldReduction[T](v, o)
		}
		return v
	})
}

func foldReshape(v *ir.Value) *ir.Value {
	a := v.Args[0]
	if slices.Equal(a.Shape, v.Shape) {
		return a
	}
	switch o := a.Op.(type) {
	case ir.Reshape:
		return ir.Reshaped(a.Args[0], v.Shape)
	case ir.Constant:
		if volume.Of(v.Shape) == 1 {
			return &ir.Value{Op: o, Shape: v.Shape}
		}
	case ir.Broadcast:
		if _, ok := ir.ConstantOf(a); ok || volume.Of(a.Args[0].Shape) == 1 {
			return ir.Broadcasted(a.Args[0], v.Shape)
		}
	}
	return v
}

func foldBroadcast(v *ir.Value) *ir.Value {
	a := v.Args[0]
	if slices.Equal(a.Shape, v.Shape) {
		return a
	}
	if _, ok := a.Op.(ir.Broadcast); ok && (len(a.Args[0].Shape) == len(v.Shape) || volume.Of(a.Args[0].Shape) == 1) {
		return ir.Broadcasted(a.Args[0], v.Shape)
	}
	return v
}

// foldPointwise returns the value of a primitive if all its arguments are constants, otherwise v.
func foldPointwise[T ir.Float](v *ir.Value, o ir.Pointwise) *ir.Value {
	p, ok := o.F.(ir.Primitive)
	if !ok {
		return v
	}
	var x [2]float64
	for i, a := range v.Args {
		if x[i], ok = ir.ConstantOf(a); !ok {
			return v
		}
	}
	return ir.Uniform(float64(T(p.Eval(x[0], x[1]))), v.Shape)
}

// foldReduction evaluates the reduction of a constant.
func foldReduction[T ir.Float](v *ir.Value, o ir.Reduction) *ir.Value {
	c, ok := ir.ConstantOf(v.Args[0])
	if !ok {
		return v
	}
	if o.F == ir.Sum {
		c = float64(T(c * float64(volume.Of(v.Args[0].Shape)/max(volume.Of(v.Shape), 1))))
	}
	return ir.Uniform(c, v.Shape)
}

// merge combines equal operations on equal args into one value (common subexpressions). It reports whether it combined
// any. It skips foreign ops, which may have state.
func merge(m *module) bool {
	seen := map[string]*ir.Value{}
	number := map[*ir.Value]int{}
	return m.rebuild(func(v *ir.Value) *ir.Value {
		if _, ok := v.Op.(ir.Foreign); ok {
			return v
		}
		key := mergeKey(v, number)
		if first, ok := seen[key]; ok {
			return first
		}
		seen[key] = v
		return v
	})
}

// mergeKey identifies an operation, its shape and its args. The args of additions and multiplications are sorted by
// first occurrence, so that a+b and b+a are the same value.
func mergeKey(v *ir.Value, number map[*ir.Value]int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%T %v %v%s", v.Op, v.Op, v.Shape, identity(v.Op))
	ids := make([]int, len(v.Args))
	for i, a := range v.Args {
		if _, ok := number[a]; !ok {
			number[a] = len(number)
		}
		ids[i] = number[a]
	}
	if p, ok := v.Op.(ir.Pointwise); ok && (p.F == ir.Add || p.F == ir.Mul) && ids[0] > ids[1] {
		ids[0], ids[1] = ids[1], ids[0]
	}
	if l, ok := v.Op.(ir.Leaf); ok {
		fmt.Fprintf(&b, " %d", l.Index)
	}
	fmt.Fprintf(&b, " %v", ids)
	return b.String()
}

// identity returns a text that distinguishes ops with equal texts. The text of an op may omit attributes, its hash
// includes all.
func identity(o ir.Op) string {
	switch o := o.(type) {
	case ir.Pointwise:
		if f, ok := o.F.(ir.Elementwise); ok {
			return fmt.Sprintf(" op %x", f.Hashcode())
		}
	case ir.Blockwise:
		return fmt.Sprintf(" op %x", o.Kernel.Hashcode())
	case ir.Unitwise:
		return fmt.Sprintf(" op %x", o.Kernel.Hashcode())
	}
	return ""
}

// rewrite applies algebraic rules that save work, and reports whether any applied. Each rule preserves the value up to
// rounding; T is the precision of the plan's constants.
func rewrite[T ir.Float](m *module) bool {
	rules, readers := rules[T](), m.readers()
	return m.rebuild(func(v *ir.Value) *ir.Value {
		switch o := v.Op.(type) {
		case ir.Reduction:
			return nestedReductions(v, o)
		case ir.Product:
			return transposedFactors(v, o)
		case ir.Transpose:
			return transposedProduct(v, o, readers)
		}
		p, ok := v.Op.(ir.Pointwise)
		if !ok {
			return v
		}
		for _, rule := range rules {
			if w := rule(v, p.F); w != nil {
				return w
			}
		}
		return v
	})
}

// nestedReductions: a reduction to a scalar of a reduction of the same kind becomes one reduction. A constant factor
// between the two, as in sum(c*sum(x)), moves outside.
func nestedReductions(v *ir.Value, r ir.Reduction) *ir.Value {
	a := v.Args[0]
	if len(v.Shape) > 0 {
		return v
	}
	if m, ok := applied(a, ir.Mul); ok && r.F == ir.Sum {
		for i := range m {
			if c, isConstant := ir.ConstantOf(m[i]); isConstant && isReduction(m[1-i], ir.Sum) {
				inner := &ir.Value{Op: r, Args: []*ir.Value{m[1-i]}, Shape: v.Shape}
				return ir.Point(ir.Mul, v.Shape, ir.Uniform(c, v.Shape), inner)
			}
		}
	}
	if isReduction(a, r.F) {
		return ir.Reduce(r.F, a.Args[0], v.Shape)
	}
	return v
}

// transposedFactors: a product reads a transposed matrix without copying it.
func transposedFactors(v *ir.Value, p ir.Product) *ir.Value {
	if len(v.Shape) != 2 {
		return v
	}
	args := slices.Clone(v.Args)
	for i, flag := range []*bool{&p.TransA, &p.TransB} {
		if args[i].Op == ir.Swapped {
			args[i], *flag = args[i].Args[0], !*flag
		}
	}
	if slices.Equal(args, v.Args) {
		return v
	}
	return &ir.Value{Op: p, Args: args, Shape: v.Shape}
}

// transposedProduct: (A B)ᵀ is Bᵀ Aᵀ if nothing else reads A B; a matrix transposed twice is itself.
func transposedProduct(v *ir.Value, t ir.Transpose, readers map[*ir.Value]int) *ir.Value {
	a := v.Args[0]
	if t != ir.Swapped {
		return v
	}
	switch o := a.Op.(type) {
	case ir.Transpose:
		if o == t {
			return a.Args[0]
		}
	case ir.Product:
		if readers[a] == 1 {
			return &ir.Value{Op: ir.Product{TransA: !o.TransB, TransB: !o.TransA}, Args: []*ir.Value{a.Args[1], a.Args[0]}, Shape: v.Shape}
		}
	}
	return v
}

func isReduction(v *ir.Value, f ir.Reducer) bool {
	r, ok := v.Op.(ir.Reduction)
	return ok && r.F == f
}

// rules lists the rules in the order in which they are tried. A rule returns nil if it does not apply.
func rules[T ir.Float]() []func(v *ir.Value, f ir.Function) *ir.Value {
	return []func(v *ir.Value, f ir.Function) *ir.Value{
		neutralElement, signs, mirroredSigmoid, divisionByConstant[T], nestedFactors[T], hoistBroadcast,
	}
}

// representable reports whether T can represent a constant c that a rule computes: c neither overflows nor becomes 0.
func representable[T ir.Float](c float64) bool {
	rounded := float64(T(c))
	return rounded != 0 && !math.IsInf(rounded, 0) && !math.IsNaN(rounded)
}

// applied returns the args of v and true if v is computed by the function f.
func applied(v *ir.Value, f ir.Primitive) ([]*ir.Value, bool) {
	p, ok := v.Op.(ir.Pointwise)
	if !ok || p.F != f {
		return nil, false
	}
	return v.Args, true
}

// neutralElement: x+0, x-0, x*1, x/1 are x.
func neutralElement(v *ir.Value, f ir.Function) *ir.Value {
	if len(v.Args) != 2 {
		return nil
	}
	x, y := v.Args[0], v.Args[1]
	c, okY := ir.ConstantOf(y)
	d, okX := ir.ConstantOf(x)
	switch {
	case okY && c == 0 && (f == ir.Add || f == ir.Sub), okY && c == 1 && (f == ir.Mul || f == ir.Div):
		return x
	case okX && d == 0 && f == ir.Add, okX && d == 1 && f == ir.Mul:
		return y
	}
	return nil
}

// signs: -(-x) is x, x+(-y) is x-y, (-x)+y is y-x, x-(-y) is x+y, (-x)*c is x*(-c), -(x*c) is x*(-c).
func signs(v *ir.Value, f ir.Function) *ir.Value {
	switch f {
	case ir.Neg:
		if a, ok := applied(v.Args[0], ir.Neg); ok {
			return a[0]
		}
		if a, ok := applied(v.Args[0], ir.Mul); ok {
			for i := range a {
				if c, isConstant := ir.ConstantOf(a[i]); isConstant {
					return ir.Point(ir.Mul, v.Shape, a[1-i], ir.Uniform(-c, v.Shape))
				}
			}
		}
	case ir.Add:
		if a, ok := applied(v.Args[1], ir.Neg); ok {
			return ir.Point(ir.Sub, v.Shape, v.Args[0], a[0])
		}
		if a, ok := applied(v.Args[0], ir.Neg); ok {
			return ir.Point(ir.Sub, v.Shape, v.Args[1], a[0])
		}
	case ir.Sub:
		if a, ok := applied(v.Args[1], ir.Neg); ok {
			return ir.Point(ir.Add, v.Shape, v.Args[0], a[0])
		}
	case ir.Mul:
		for i := range v.Args {
			c, isConstant := ir.ConstantOf(v.Args[1-i])
			if a, ok := applied(v.Args[i], ir.Neg); ok && isConstant {
				return ir.Point(ir.Mul, v.Shape, a[0], ir.Uniform(-c, v.Shape))
			}
		}
	}
	return nil
}

// mirroredSigmoid: sigmoid(x)*sigmoid(-x), Gorgonia's derivative of sigmoid, is sigmoid(x)*(1-sigmoid(x)). A single
// sigmoid(-x) is not rewritten, because 1-sigmoid(x) has no correct digit near 0, and a logarithm or quotient would amplify
// the error.
func mirroredSigmoid(v *ir.Value, f ir.Function) *ir.Value {
	if f != ir.Mul {
		return nil
	}
	for i, y := range v.Args {
		x, isSigmoid := applied(y, ir.Sigmoid)
		mirrored, both := applied(v.Args[1-i], ir.Sigmoid)
		if !isSigmoid || !both {
			continue
		}
		if minus, ok := applied(mirrored[0], ir.Neg); ok && minus[0] == x[0] {
			return ir.Point(ir.Mul, v.Shape, y, ir.Point(ir.Sub, v.Shape, ir.Uniform(1, v.Shape), y))
		}
	}
	return nil
}

// divisionByConstant: x/c is x*(1/c) if T can represent 1/c.
func divisionByConstant[T ir.Float](v *ir.Value, f ir.Function) *ir.Value {
	if f != ir.Div {
		return nil
	}
	if c, ok := ir.ConstantOf(v.Args[1]); ok && representable[T](1/c) {
		return ir.Point(ir.Mul, v.Shape, v.Args[0], ir.Uniform(1/c, v.Shape))
	}
	return nil
}

// nestedFactors: (x*c)*d is x*(c*d) if T can represent c*d.
func nestedFactors[T ir.Float](v *ir.Value, f ir.Function) *ir.Value {
	if f != ir.Mul {
		return nil
	}
	for i := range v.Args {
		d, ok := ir.ConstantOf(v.Args[1-i])
		if !ok {
			continue
		}
		a, ok := applied(v.Args[i], ir.Mul)
		if !ok {
			continue
		}
		for j := range a {
			if c, ok := ir.ConstantOf(a[j]); ok && representable[T](c*d) {
				return ir.Point(ir.Mul, v.Shape, a[1-j], ir.Uniform(c*d, v.Shape))
			}
		}
	}
	return nil
}

// hoistBroadcast: a function of values that are all broadcast from one smaller shape is computed in that shape, and the
// result is broadcast once.
func hoistBroadcast(v *ir.Value, f ir.Function) *ir.Value {
	var small []int
	for _, a := range v.Args {
		if _, ok := ir.ConstantOf(a); ok {
			continue
		}
		if _, ok := a.Op.(ir.Broadcast); !ok {
			return nil
		}
		if from := a.Args[0].Shape; small == nil {
			small = from
		} else if !slices.Equal(small, from) {
			return nil
		}
	}
	if small == nil {
		return nil
	}
	args := make([]*ir.Value, len(v.Args))
	for i, a := range v.Args {
		if c, ok := ir.ConstantOf(a); ok {
			args[i] = ir.Uniform(c, small)
		} else {
			args[i] = a.Args[0]
		}
	}
	return &ir.Value{Op: ir.Broadcast{}, Args: []*ir.Value{ir.Point(f, small, args...)}, Shape: v.Shape}
}

// A trained weight and its gradient are written at every step. Values that one processor writes and another processor
// reads next must move between their caches. Every thread therefore always works on the same part of a trained matrix
// along its longer side, rows or columns: only this thread reads the part, computes its gradient and updates it. Only
// values along the shorter side, which are fewer, move between caches.
//
// A product with such a matrix is divided along the longer side. If the result has that side, a thread computes columns
// of the result. If the product sums over that side, divide makes a sum of partial products, one per thread, which the
// next chain adds up.

// partialProduct is the product A op(B), summed over one thread's columns of A.
type partialProduct struct {
	ir.Product
	thread int
}

func (p partialProduct) String() string { return p.Product.String() + " partial" }

// Minimum sizes of divided matrices. Dividing smaller matrices costs more in barriers than it saves.
const (
	minDivided = 1 << 14 // number of elements
	minShare   = 64      // length of a thread's part of the longer side
)

// divide replaces products that are summed over the longer side of a trained matrix by sums of partial products.
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

// dropCopies removes copies of computed values: the other passes have seen their readers as those of another value. Copies of views
// and of parameters stay.
func dropCopies(m *module) {
	m.rebuild(func(v *ir.Value) *ir.Value {
		if p, ok := v.Op.(ir.Pointwise); ok && p.F == ir.Copy {
			switch a := v.Args[0]; skipReshapes(a).Op.(type) {
			case ir.Leaf, ir.Constant, ir.Broadcast:
			default:
				return a
			}
		}
		return v
	})
}

// keeps reports whether v is the product of a batch and a trained matrix that is divided among the threads.
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
	return v.Shape[0] <= longer && volume.Of(b.Shape) >= minDivided && longer >= minShare*threads
}

// summedAlong reports whether the product o sums over the longer side of B.
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
		return true // divide has already replaced products that sum along the longer side
	}
	rows, columns, depth := v.Shape[0], v.Shape[1], v.Args[0].Shape[1]
	// A product that reads A by rows stays in the phase that computes the rows of A, unless packing all of B in both
	// threads costs more.
	return columns > rows && (o.TransA || depth*columns >= packedTwice)
}

// packedTwice is the number of elements of B above which packing B in two threads is too slow.
const packedTwice = 1 << 20

// inColumns reports whether threads divide the matrices of a group by columns rather than by rows. This is so if a
// product computes columns of the group's input, or a partial product reads columns of its output.
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
