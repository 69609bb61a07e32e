package ir

import (
	"slices"

	"tessera/internal/volume"
)

// Point returns a pointwise value of that shape. Args of the same size are reshaped, others are broadcast: they are
// single numbers, or have as many axes as shape, of the same length or of length 1.
func Point(f Function, shape []int, args ...*Value) *Value {
	v := &Value{Op: Pointwise{f}, Shape: shape}
	for _, a := range args {
		if !slices.Equal(a.Shape, shape) {
			if volume.Of(a.Shape) == volume.Of(shape) {
				a = Reshaped(a, shape)
			} else {
				a = Broadcasted(a, shape)
			}
		}
		v.Args = append(v.Args, a)
	}
	return v
}

// Reshaped returns a under another shape of the same size.
func Reshaped(a *Value, shape []int) *Value {
	if slices.Equal(a.Shape, shape) {
		return a
	}
	return &Value{Op: Reshape{}, Args: []*Value{a}, Shape: shape}
}

// Broadcasted returns a repeated to shape; a has as many axes, of the same length or 1, or is a single number.
func Broadcasted(a *Value, shape []int) *Value {
	if len(a.Shape) != len(shape) {
		a = Reshaped(a, slices.Repeat([]int{1}, len(shape)))
	}
	return &Value{Op: Broadcast{}, Args: []*Value{a}, Shape: shape}
}

// Reduce returns a combined along axes, all of them where none is named, under shape, which has the size of the rest.
func Reduce(f Reducer, a *Value, shape []int, axes ...int) *Value {
	if len(axes) == 0 {
		for i := range a.Shape {
			axes = append(axes, i)
		}
	}
	axes = slices.Sorted(slices.Values(axes))
	axes = slices.Compact(axes)
	return Reshaped(&Value{Op: Reduction{f, NewAxes(axes...)}, Args: []*Value{a}, Shape: without(a.Shape, axes)}, shape)
}

// without is a shape less some of its axes.
func without(shape, axes []int) (kept []int) {
	for i, d := range shape {
		if !slices.Contains(axes, i) {
			kept = append(kept, d)
		}
	}
	return kept
}

// Uniform is the constant c in every element of shape.
func Uniform(c float64, shape []int) *Value {
	v := &Value{Op: Constant{c}}
	if len(shape) == 0 {
		return v
	}
	v.Shape = slices.Repeat([]int{1}, len(shape))
	if slices.Equal(v.Shape, shape) {
		return v
	}
	return &Value{Op: Broadcast{}, Args: []*Value{v}, Shape: shape}
}

// ConstantOf returns the number that v is everywhere, looking through broadcasts and reshapes; ok is false for a value
// that is not constant.
func ConstantOf(v *Value) (c float64, ok bool) {
	for {
		switch o := v.Op.(type) {
		case Constant:
			return o.Value, true
		case Broadcast, Reshape:
			v = v.Args[0]
		default:
			return 0, false
		}
	}
}

// InBlocks returns the value of a kernel that computes independent blocks, for args of that shape: a [Pointwise] one
// where a block is one element, otherwise a [Blockwise] one.
func InBlocks(k Blocks, shape []int, args ...*Value) *Value {
	block := k.Block(shape)
	if block == 1 {
		return Point(Elementwise{k}, shape, args...)
	}
	return &Value{Op: Blockwise{k, block}, Args: args, Shape: shape}
}

// InUnits returns the value of a kernel that computes units. What it reads in place of its last arg becomes a value of
// its own.
func InUnits(k Units, shape []int, args ...*Value) *Value {
	if q, prepared := k.Prepared(); q != nil {
		last := len(args) - 1
		args = append(slices.Clone(args[:last]), &Value{Op: Unitwise{q}, Args: args[last:], Shape: prepared})
	}
	return &Value{Op: Unitwise{k}, Args: args, Shape: shape}
}
