package engine

import (
	"slices"

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
