package ops

import (
	"errors"
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/engine/ir"
	"tessera/internal/volume"
)

// Parallel is an op that is computed in units.
type Parallel interface {
	gorgonia.Op
	ir.Units
}

// Unitwise describes a user-defined op whose output consists of units: slices of equal length in row-major order, each
// computed independently from all inputs. The engine distributes the units over its threads.
type Unitwise struct {
	// Spec identifies the op, like [Blockwise].Spec. It need not contain shapes.
	Spec   any
	Out    []int  // shape of the output
	Units  int    // number of units of the output
	ByUnit []bool // per input: it has the same number of units, and unit i of the output reads only its unit i
	// Scratch is the number of elements that one call needs as workspace.
	Scratch int
	// Work is the approximate number of additions and multiplications for the whole output; default and minimum: one per
	// element.
	Work float64
	// Prepared is an op that transforms the last input once before all units; the kernels read its result instead. nil: the
	// kernels read the input. It needs no derivative.
	Prepared *Unitwise
	// Float32 computes units [from, to) of dst, the whole output, from the whole inputs, and does not change the others.
	// scratch has undefined contents. Float32 must be safe for concurrent use.
	Float32 func(dst []float32, in [][]float32, scratch []float32, from, to int)
	// Float64 is Float32 in the other precision.
	Float64 func(dst []float64, in [][]float64, scratch []float64, from, to int)
	// Derivative returns the gradients; nil for an op without derivative.
	Derivative Derivative
	// Fixed marks inputs without a derivative, for example indices; nil if all have one.
	Fixed []bool
	// Division tells how processes that train one model together share the op. The default is correct for every op and the
	// slowest: every process computes the whole op from the images of all processes. Kernels of an op with another division
	// take sizes from the description, not from the lengths of their arguments: with [ir.ByUnits] these hold fewer units,
	// with [ir.BySums] fewer images.
	Division ir.Division
	// At returns the kernels for a part of the units, whose unit i is unit at(i) of the op; nil if the kernels use the number
	// of a unit only to find its values. Division is [ir.ByUnits].
	At func(at func(unit int) int) (Float32 func(dst []float32, in [][]float32, scratch []float32, from, to int),
		Float64 func(dst []float64, in [][]float64, scratch []float64, from, to int))
}

// Apply adds the op to the graph of its inputs. It returns an error if the description is incomplete.
func (u Unitwise) Apply(in ...*gorgonia.Node) (*gorgonia.Node, error) {
	o, err := u.op(in)
	if err != nil {
		return nil, err
	}
	if q := u.Prepared; q != nil {
		if o.prepared, err = q.op(in[len(in)-1:]); err != nil {
			return nil, err
		}
	}
	o.f32 = func(dst []float32, in [][]float32) {
		all(o, dst, in, func(o *unitwise) units[float32] { return o.describe.Float32 })
	}
	o.f64 = func(dst []float64, in [][]float64) {
		all(o, dst, in, func(o *unitwise) units[float64] { return o.describe.Float64 })
	}
	return gorgonia.ApplyOp(o, in...)
}

// op checks the description.
func (u Unitwise) op(in gorgonia.Nodes) (*unitwise, error) {
	o := &unitwise{describe: u}
	var err error
	if o.op, err = newOp(u.Spec, in, tensor.Shape(u.Out), u.Fixed, u.Derivative); err != nil {
		return nil, err
	}
	switch {
	case u.Float32 == nil || u.Float64 == nil:
		err = errors.New("got no kernel for one of the precisions, want Float32 and Float64")
	case len(u.ByUnit) != len(in):
		err = fmt.Errorf("got ByUnit of %d inputs, want %d", len(u.ByUnit), len(in))
	case len(u.Out) == 0:
		err = errors.New("got a scalar output, want at least one axis")
	case u.Units < 1 || volume.Of(u.Out)%u.Units != 0:
		err = fmt.Errorf("shape %v does not divide into %d units", u.Out, u.Units)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	return o, nil
}

// units computes units of an output; see [Unitwise].
type units[T Float] = func(dst []T, in [][]T, scratch []T, from, to int)

// unitwise is the op of a [Unitwise].
type unitwise struct {
	op
	describe Unitwise
	prepared *unitwise
}

var _ Parallel = (*unitwise)(nil)

// all computes the whole output.
func all[T Float](o *unitwise, dst []T, in [][]T, kernel func(o *unitwise) units[T]) {
	if q := o.prepared; q != nil {
		last := len(in) - 1
		prepared := make([]T, volume.Of(q.out))
		kernel(q)(prepared, in[last:], make([]T, q.describe.Scratch), 0, q.describe.Units)
		in[last] = prepared
	}
	kernel(o)(dst, in, make([]T, o.describe.Scratch), 0, o.describe.Units)
}

// Units implements [ir.Units].
func (o *unitwise) Units() int { return o.describe.Units }

// ByUnit implements [ir.Units].
func (o *unitwise) ByUnit(i int) bool { return o.describe.ByUnit[i] }

// Scratch implements [ir.Units].
func (o *unitwise) Scratch() int { return o.describe.Scratch }

// Work implements [ir.Units].
func (o *unitwise) Work() float64 { return max(o.describe.Work, float64(volume.Of(o.out))) }

// Prepared implements [ir.Units].
func (o *unitwise) Prepared() (ir.Units, []int) {
	if o.prepared == nil {
		return nil, nil
	}
	return o.prepared, o.prepared.out
}

// Float32 implements [ir.Units].
func (o *unitwise) Float32(dst []float32, in [][]float32, scratch []float32, from, to int) {
	o.describe.Float32(dst, in, scratch, from, to)
}

// Float64 implements [ir.Units].
func (o *unitwise) Float64(dst []float64, in [][]float64, scratch []float64, from, to int) {
	o.describe.Float64(dst, in, scratch, from, to)
}

// Division implements [ir.Divisible].
func (o *unitwise) Division() ir.Division { return o.describe.Division }

// Part implements [ir.Divisible].
func (o *unitwise) Part(n int, at func(unit int) int) ir.Units {
	p := &unitPart{unitwise: o, units: n, f32: o.describe.Float32, f64: o.describe.Float64}
	if o.describe.At != nil {
		p.f32, p.f64 = o.describe.At(at)
	}
	return p
}

// unitPart is some units of an op.
type unitPart struct {
	*unitwise
	units int
	f32   units[float32]
	f64   units[float64]
}

// String implements [ir.Kernel].
func (p *unitPart) String() string { return fmt.Sprintf("%s, %d units", p.name, p.units) }

// Units implements [ir.Units].
func (p *unitPart) Units() int { return p.units }

// Work implements [ir.Units].
func (p *unitPart) Work() float64 {
	return p.unitwise.Work() * float64(p.units) / float64(p.describe.Units)
}

// Prepared implements [ir.Units]: the last input of the whole op is prepared already.
func (p *unitPart) Prepared() (ir.Units, []int) { return nil, nil }

// Float32 implements [ir.Units].
func (p *unitPart) Float32(dst []float32, in [][]float32, scratch []float32, from, to int) {
	p.f32(dst, in, scratch, from, to)
}

// Float64 implements [ir.Units].
func (p *unitPart) Float64(dst []float64, in [][]float64, scratch []float64, from, to int) {
	p.f64(dst, in, scratch, from, to)
}
