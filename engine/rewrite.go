package engine

import (
	"math"
	"slices"

	"tessera/graph"
)

// rewrite applies algebraic rules that save work, and reports whether any applied. Each rule keeps the value up to
// rounding; T is the precision in which the plan holds constants.
func rewrite[T graph.Float](m *module) bool {
	rules, readers := rules[T](), m.readers()
	return m.rebuild(func(v *value) *value {
		switch o := v.op.(type) {
		case reduction:
			return foldsTogether(v, o)
		case product:
			return transposedFactors(v, o)
		case transpose:
			return transposedProduct(v, o, readers)
		}
		p, ok := v.op.(pointwise)
		if !ok {
			return v
		}
		for _, rule := range rules {
			if w := rule(v, p.f); w != nil {
				return w
			}
		}
		return v
	})
}

// foldsTogether: a fold of everything that is left of a fold of the same kind is one fold. A factor between them,
// sum(c*sum(x)), moves out.
func foldsTogether(v *value, r reduction) *value {
	a := v.args[0]
	if len(v.shape) > 0 {
		return v
	}
	if m, ok := applied(a, mul); ok && r.f == sum {
		for i := range m {
			if c, isConstant := constantOf(m[i]); isConstant && isFold(m[1-i], sum) {
				inner := &value{op: r, args: []*value{m[1-i]}, shape: v.shape}
				return point(mul, v.shape, uniform(c, v.shape), inner)
			}
		}
	}
	if isFold(a, r.f) {
		return reduce(r.f, "", a.args[0], v.shape)
	}
	return v
}

// transposedFactors: a product reads a transposed matrix as it stands in memory.
func transposedFactors(v *value, p product) *value {
	if len(v.shape) != 2 {
		return v
	}
	args := slices.Clone(v.args)
	for i, flag := range []*bool{&p.transA, &p.transB} {
		if args[i].op == (transpose{swapped}) {
			args[i], *flag = args[i].args[0], !*flag
		}
	}
	if slices.Equal(args, v.args) {
		return v
	}
	return &value{op: p, args: args, shape: v.shape}
}

// transposedProduct: (A B)ᵀ is Bᵀ Aᵀ, where nothing else reads A B; and a matrix transposed twice is itself.
func transposedProduct(v *value, t transpose, readers map[*value]int) *value {
	a := v.args[0]
	if t.axes != swapped {
		return v
	}
	switch o := a.op.(type) {
	case transpose:
		if o == t {
			return a.args[0]
		}
	case product:
		if readers[a] == 1 {
			return &value{op: product{!o.transB, !o.transA}, args: []*value{a.args[1], a.args[0]}, shape: v.shape}
		}
	}
	return v
}

func isFold(v *value, f reducer) bool {
	r, ok := v.op.(reduction)
	return ok && r.f == f
}

// rules are tried in order; each returns nil where it does not apply.
func rules[T graph.Float]() []func(v *value, f function) *value {
	return []func(v *value, f function) *value{
		neutralElement, signs, mirroredSigmoid, divisionByConstant[T], constantsTogether[T], hoistBroadcast,
	}
}

// holds reports whether T has room for a constant that a rule computes: that it neither overflows nor vanishes.
func holds[T graph.Float](c float64) bool {
	rounded := float64(T(c))
	return rounded != 0 && !math.IsInf(rounded, 0) && !math.IsNaN(rounded)
}

// applied reports whether v is f of args, and returns them.
func applied(v *value, f primitive) ([]*value, bool) {
	p, ok := v.op.(pointwise)
	if !ok || p.f != f {
		return nil, false
	}
	return v.args, true
}

// neutralElement: x+0, x-0, x*1, x/1 are x.
func neutralElement(v *value, f function) *value {
	if len(v.args) != 2 {
		return nil
	}
	x, y := v.args[0], v.args[1]
	c, okY := constantOf(y)
	d, okX := constantOf(x)
	switch {
	case okY && c == 0 && (f == add || f == sub), okY && c == 1 && (f == mul || f == div):
		return x
	case okX && d == 0 && f == add, okX && d == 1 && f == mul:
		return y
	}
	return nil
}

// signs: -(-x) is x, x+(-y) is x-y, (-x)+y is y-x, x-(-y) is x+y, (-x)*c is x*(-c), -(x*c) is x*(-c).
func signs(v *value, f function) *value {
	switch f {
	case neg:
		if a, ok := applied(v.args[0], neg); ok {
			return a[0]
		}
		if a, ok := applied(v.args[0], mul); ok {
			for i := range a {
				if c, isConstant := constantOf(a[i]); isConstant {
					return point(mul, v.shape, a[1-i], uniform(-c, v.shape))
				}
			}
		}
	case add:
		if a, ok := applied(v.args[1], neg); ok {
			return point(sub, v.shape, v.args[0], a[0])
		}
		if a, ok := applied(v.args[0], neg); ok {
			return point(sub, v.shape, v.args[1], a[0])
		}
	case sub:
		if a, ok := applied(v.args[1], neg); ok {
			return point(add, v.shape, v.args[0], a[0])
		}
	case mul:
		for i := range v.args {
			c, isConstant := constantOf(v.args[1-i])
			if a, ok := applied(v.args[i], neg); ok && isConstant {
				return point(mul, v.shape, a[0], uniform(-c, v.shape))
			}
		}
	}
	return nil
}

// mirroredSigmoid: sigmoid(x)*sigmoid(-x), as Gorgonia differentiates sigmoid, is sigmoid(x)*(1-sigmoid(x)). A sigmoid(-x)
// by itself stays: near 0 the difference has no correct digit, which a logarithm or a quotient of it would show.
func mirroredSigmoid(v *value, f function) *value {
	if f != mul {
		return nil
	}
	for i, y := range v.args {
		x, isSigmoid := applied(y, sigmoid)
		mirrored, both := applied(v.args[1-i], sigmoid)
		if !isSigmoid || !both {
			continue
		}
		if minus, ok := applied(mirrored[0], neg); ok && minus[0] == x[0] {
			return point(mul, v.shape, y, point(sub, v.shape, uniform(1, v.shape), y))
		}
	}
	return nil
}

// divisionByConstant: x/c is x*(1/c), where T holds 1/c.
func divisionByConstant[T graph.Float](v *value, f function) *value {
	if f != div {
		return nil
	}
	if c, ok := constantOf(v.args[1]); ok && holds[T](1/c) {
		return point(mul, v.shape, v.args[0], uniform(1/c, v.shape))
	}
	return nil
}

// constantsTogether: (x*c)*d is x*(c*d), where T holds c*d.
func constantsTogether[T graph.Float](v *value, f function) *value {
	if f != mul {
		return nil
	}
	for i := range v.args {
		d, ok := constantOf(v.args[1-i])
		if !ok {
			continue
		}
		a, ok := applied(v.args[i], mul)
		if !ok {
			continue
		}
		for j := range a {
			if c, ok := constantOf(a[j]); ok && holds[T](c*d) {
				return point(mul, v.shape, a[1-j], uniform(c*d, v.shape))
			}
		}
	}
	return nil
}

// hoistBroadcast: f of values that were all broadcast from one smaller shape is computed there and broadcast once.
func hoistBroadcast(v *value, f function) *value {
	var small []int
	for _, a := range v.args {
		if _, ok := constantOf(a); ok {
			continue
		}
		if _, ok := a.op.(broadcast); !ok {
			return nil
		}
		if from := a.args[0].shape; small == nil {
			small = from
		} else if !slices.Equal(small, from) {
			return nil
		}
	}
	if small == nil {
		return nil
	}
	args := make([]*value, len(v.args))
	for i, a := range v.args {
		if c, ok := constantOf(a); ok {
			args[i] = uniform(c, small)
		} else {
			args[i] = a.args[0]
		}
	}
	return &value{op: broadcast{}, args: []*value{point(f, small, args...)}, shape: v.shape}
}
