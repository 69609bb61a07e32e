package engine

import (
	"slices"

	"tessera/graph"
)

// fold computes what is known before the first step: arithmetic on constants, reshapes of reshapes, broadcasts of
// broadcasts and reductions of broadcast values. Constants are rounded to T after every operation, as a run would.
func fold[T graph.Float](m *module) bool {
	return m.rebuild(func(v *value) *value {
		switch o := v.op.(type) {
		case reshape:
			return foldReshape(v)
		case broadcast:
			return foldBroadcast(v)
		case pointwise:
			return foldPointwise[T](v, o)
		case reduction:
			return foldReduction[T](v, o)
		}
		return v
	})
}

func foldReshape(v *value) *value {
	a := v.args[0]
	if slices.Equal(a.shape, v.shape) {
		return a
	}
	switch o := a.op.(type) {
	case reshape:
		return reshaped(a.args[0], v.shape)
	case constant:
		if size(v.shape) == 1 {
			return &value{op: o, shape: v.shape}
		}
	case broadcast:
		if _, ok := constantOf(a); ok || size(a.args[0].shape) == 1 {
			return broadcasted(a.args[0], v.shape)
		}
	}
	return v
}

func foldBroadcast(v *value) *value {
	a := v.args[0]
	if slices.Equal(a.shape, v.shape) {
		return a
	}
	if _, ok := a.op.(broadcast); ok && (len(a.args[0].shape) == len(v.shape) || size(a.args[0].shape) == 1) {
		return broadcasted(a.args[0], v.shape)
	}
	return v
}

// foldPointwise evaluates a primitive whose args are all constants.
func foldPointwise[T graph.Float](v *value, o pointwise) *value {
	p, ok := o.f.(primitive)
	if !ok {
		return v
	}
	var x [2]float64
	for i, a := range v.args {
		if x[i], ok = constantOf(a); !ok {
			return v
		}
	}
	return uniform(float64(T(primitiveInfo[p].eval(x[0], x[1]))), v.shape)
}

// foldReduction evaluates the fold of a constant.
func foldReduction[T graph.Float](v *value, o reduction) *value {
	c, ok := constantOf(v.args[0])
	if !ok {
		return v
	}
	if o.f == sum {
		c = float64(T(c * float64(size(v.args[0].shape)/max(size(v.shape), 1))))
	}
	return uniform(c, v.shape)
}

// uniform is the constant c in every element of shape.
func uniform(c float64, shape []int) *value {
	v := &value{op: constant{c}}
	if len(shape) == 0 {
		return v
	}
	v.shape = slices.Repeat([]int{1}, len(shape))
	if slices.Equal(v.shape, shape) {
		return v
	}
	return &value{op: broadcast{}, args: []*value{v}, shape: shape}
}
