package engine

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

// fold computes values that are known before the first step: arithmetic on constants, reshapes of reshapes, broadcasts of
// broadcasts and reductions of broadcast values. Constants are rounded to T after every operation, as a run would.
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

// foldPointwise evaluates a primitive whose args are all constants.
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

// foldReduction evaluates the fold of a constant.
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

// merge makes equal operations on equal args one value (common subexpressions), and reports whether there were any. Opaque
// ops are left alone: they may keep state.
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

// mergeKey identifies an operation, its shape and its args. The args of sums and products are sorted by first occurrence, so
// a+b and b+a are one value.
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

// identity distinguishes ops with equal texts: the text of an op need not have every attribute, but its hash must.
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

// rewrite applies algebraic rules that save work, and reports whether any applied. Each rule keeps the value up to
// rounding; T is the precision in which the plan holds constants.
func rewrite[T ir.Float](m *module) bool {
	rules, readers := rules[T](), m.readers()
	return m.rebuild(func(v *ir.Value) *ir.Value {
		switch o := v.Op.(type) {
		case ir.Reduction:
			return foldsTogether(v, o)
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

// foldsTogether: a fold of everything that is left of a fold of the same kind is one fold. A factor between them,
// sum(c*sum(x)), moves out.
func foldsTogether(v *ir.Value, r ir.Reduction) *ir.Value {
	a := v.Args[0]
	if len(v.Shape) > 0 {
		return v
	}
	if m, ok := applied(a, ir.Mul); ok && r.F == ir.Sum {
		for i := range m {
			if c, isConstant := ir.ConstantOf(m[i]); isConstant && isFold(m[1-i], ir.Sum) {
				inner := &ir.Value{Op: r, Args: []*ir.Value{m[1-i]}, Shape: v.Shape}
				return ir.Point(ir.Mul, v.Shape, ir.Uniform(c, v.Shape), inner)
			}
		}
	}
	if isFold(a, r.F) {
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

// transposedProduct: (A B)ᵀ is Bᵀ Aᵀ, where nothing else reads A B; and a matrix transposed twice is itself.
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

func isFold(v *ir.Value, f ir.Reducer) bool {
	r, ok := v.Op.(ir.Reduction)
	return ok && r.F == f
}

// rules are tried in order; each returns nil where it does not apply.
func rules[T ir.Float]() []func(v *ir.Value, f ir.Function) *ir.Value {
	return []func(v *ir.Value, f ir.Function) *ir.Value{
		neutralElement, signs, mirroredSigmoid, divisionByConstant[T], constantsTogether[T], hoistBroadcast,
	}
}

// holds reports whether T can represent a constant that a rule computes: the constant neither overflows nor vanishes.
func holds[T ir.Float](c float64) bool {
	rounded := float64(T(c))
	return rounded != 0 && !math.IsInf(rounded, 0) && !math.IsNaN(rounded)
}

// applied reports whether v is f of args, and returns them.
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

// mirroredSigmoid: sigmoid(x)*sigmoid(-x), as Gorgonia differentiates sigmoid, is sigmoid(x)*(1-sigmoid(x)). A single
// sigmoid(-x) stays, because 1-sigmoid(x) has no correct digit near 0, and a logarithm or quotient would amplify the error.
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

// divisionByConstant: x/c is x*(1/c), where T holds 1/c.
func divisionByConstant[T ir.Float](v *ir.Value, f ir.Function) *ir.Value {
	if f != ir.Div {
		return nil
	}
	if c, ok := ir.ConstantOf(v.Args[1]); ok && holds[T](1/c) {
		return ir.Point(ir.Mul, v.Shape, v.Args[0], ir.Uniform(1/c, v.Shape))
	}
	return nil
}

// constantsTogether: (x*c)*d is x*(c*d), where T holds c*d.
func constantsTogether[T ir.Float](v *ir.Value, f ir.Function) *ir.Value {
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
			if c, ok := ir.ConstantOf(a[j]); ok && holds[T](c*d) {
				return ir.Point(ir.Mul, v.Shape, a[1-j], ir.Uniform(c*d, v.Shape))
			}
		}
	}
	return nil
}

// hoistBroadcast: f of values that were all broadcast from one smaller shape is computed there and broadcast once.
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
