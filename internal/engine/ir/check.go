package ir

import (
	"errors"
	"fmt"
	"slices"

	"tessera/internal/lists"
	"tessera/internal/volume"
)

// Check returns an error for the first invalid value of a module: an incomplete op, a wrong number of args, incompatible
// shapes, an index out of range. A back end checks every module first.
func (m *Module) Check() error {
	switch {
	case m == nil:
		return errors.New("ir: no module")
	case m.Dtype > Float64:
		return fmt.Errorf("ir: unknown precision, %d", uint8(m.Dtype))
	}
	if err := m.wellFormed(); err != nil {
		return fmt.Errorf("ir: %w", err)
	}
	for _, v := range m.Values() {
		if err := m.fits(v); err != nil {
			return fmt.Errorf("ir: %%%d %v%v: %w", v.ID, v.Op, v.Shape, err)
		}
	}
	if err := m.inOrder(); err != nil {
		return fmt.Errorf("ir: %w", err)
	}
	for _, w := range m.Wanted() {
		if f, ok := w.Op.(Foreign); ok && f.Boxed {
			return fmt.Errorf("ir: %v%v is wanted but is no tensor in %v", w.Op, w.Shape, m.Dtype)
		}
	}
	for _, p := range m.Parameters {
		if len(p.Data) != volume.Of(p.Shape) {
			return fmt.Errorf("ir: parameter %s: got %d values, want shape %v", p.Name, len(p.Data), p.Shape)
		}
	}
	for _, g := range m.Gradients {
		if err := m.ofParameter(g.Parameter, g.Value); err != nil {
			return fmt.Errorf("ir: gradient: %w", err)
		}
	}
	for _, u := range m.Updates {
		if err := m.ofParameter(u.Parameter, u.Value); err != nil {
			return fmt.Errorf("ir: update: %w", err)
		}
	}
	return nil
}

// wellFormed returns an error for nil values, incomplete ops and cycles.
func (m *Module) wellFormed() error {
	const entered, left = 1, 2
	state := map[*Value]int{}
	var visit func(v *Value) error
	visit = func(v *Value) error {
		switch {
		case v == nil:
			return errors.New("a value is nil")
		case state[v] == entered:
			return fmt.Errorf("%v%v is computed from itself", v.Op, v.Shape)
		case state[v] == left:
			return nil
		}
		if err := complete(v.Op); err != nil {
			return fmt.Errorf("a value of shape %v %w", v.Shape, err)
		}
		state[v] = entered
		for _, a := range v.Args {
			if err := visit(a); err != nil {
				return err
			}
		}
		state[v] = left
		return nil
	}
	for _, w := range m.Wanted() {
		if err := visit(w); err != nil {
			return err
		}
	}
	return nil
}

// ofParameter returns an error if parameter index does not exist or its size differs from that of v.
func (m *Module) ofParameter(index int, v *Value) error {
	if index < 0 || index >= len(m.Parameters) {
		return fmt.Errorf("parameter %d of %d", index, len(m.Parameters))
	}
	if p := m.Parameters[index]; volume.Of(p.Shape) != volume.Of(v.Shape) {
		return fmt.Errorf("%s has shape %v, the value %v", p.Name, p.Shape, v.Shape)
	}
	return nil
}

// arity returns the number of args of an op, -1 if it takes any number.
func arity(o Op) int {
	switch o := o.(type) {
	case Leaf, Constant:
		return 0
	case Reshape, Broadcast, Reduction, Transpose, AllReduce, AllGather:
		return 1
	case Product:
		return 2
	case Pointwise:
		if p, ok := o.F.(Primitive); ok {
			return p.Args()
		}
	}
	return -1
}

// fits returns an error if the op or the shape of v does not match its args. The args must be valid.
func (m *Module) fits(v *Value) error {
	if n := arity(v.Op); n >= 0 && len(v.Args) != n {
		return fmt.Errorf("got %d args, want %d", len(v.Args), n)
	}
	if slices.ContainsFunc(v.Shape, func(d int) bool { return d < 0 }) {
		return errors.New("a length is negative")
	}
	if _, foreign := v.Op.(Foreign); foreign {
		return nil
	}
	for _, a := range v.Args {
		if f, ok := a.Op.(Foreign); ok && f.Boxed {
			return fmt.Errorf("reads %v, which is no tensor in %v", a.Op, m.Dtype)
		}
	}
	switch o := v.Op.(type) {
	case Leaf:
		return m.fitsLeaf(v, o)
	case Constant:
		return want(volume.Of(v.Shape) == 1, "a constant has one element")
	case Pointwise:
		return fitsPointwise(v)
	case Blockwise:
		return fitsBlocks(v, o.Block)
	case Unitwise:
		units := max(1, o.Kernel.Units())
		return want(volume.Of(v.Shape)%units == 0, "its size is not a multiple of %d units", units)
	case AllReduce, AllGather:
		return fitsCollective(v)
	}
	return fitsShape(v)
}

func want(so bool, format string, args ...any) error {
	if so {
		return nil
	}
	return fmt.Errorf(format, args...)
}

func (m *Module) fitsLeaf(v *Value, l Leaf) error {
	var shapes [][]int
	switch l.Kind {
	case InputLeaf:
		for _, in := range m.Inputs {
			shapes = append(shapes, in.Shape)
		}
	case ParameterLeaf:
		for _, p := range m.Parameters {
			shapes = append(shapes, p.Shape)
		}
	}
	if l.Index < 0 || l.Index >= len(shapes) {
		return fmt.Errorf("leaf %d of %d", l.Index, len(shapes))
	}
	return want(slices.Equal(shapes[l.Index], v.Shape), "the module says shape %v", shapes[l.Index])
}

func fitsPointwise(v *Value) error {
	for _, a := range v.Args {
		if !slices.Equal(a.Shape, v.Shape) {
			return fmt.Errorf("an arg has shape %v", a.Shape)
		}
	}
	return want(len(v.Args) > 0, "got no args")
}

func fitsBlocks(v *Value, block int) error {
	for _, a := range v.Args {
		if volume.Of(a.Shape) != volume.Of(v.Shape) {
			return fmt.Errorf("an arg has shape %v", a.Shape)
		}
	}
	return want(block > 0 && volume.Of(v.Shape)%block == 0, "its size is not a multiple of blocks of %d", block)
}

// fitsShape checks ops whose result has a shape that follows from the shapes of the args.
func fitsShape(v *Value) error {
	a := v.Args[0].Shape
	switch o := v.Op.(type) {
	case Reshape:
		return want(volume.Of(a) == volume.Of(v.Shape), "the arg has shape %v, another size", a)
	case Broadcast:
		if len(a) != len(v.Shape) {
			return fmt.Errorf("the arg has shape %v, another number of axes", a)
		}
		for i, d := range a {
			if d != v.Shape[i] && d != 1 {
				return fmt.Errorf("axis %d of the arg has length %d", i, d)
			}
		}
	case Reduction:
		axes := o.Axes.List()
		ascending := slices.IsSorted(axes) && len(slices.Compact(slices.Clone(axes))) == len(axes)
		if !ascending || len(axes) > 0 && (axes[0] < 0 || axes[len(axes)-1] >= len(a)) {
			return fmt.Errorf("axes %v of an arg of shape %v", o.Axes, a)
		}
		return want(slices.Equal(without(a, axes), v.Shape), "axes %v of %v leave %v", o.Axes, a, without(a, axes))
	case Transpose:
		axes := o.Axes.List()
		if order := slices.Sorted(slices.Values(axes)); len(axes) != len(a) || len(a) != len(v.Shape) || !slices.Equal(order, lists.Range(0, len(a))) {
			return fmt.Errorf("axes %v of an arg of shape %v", o.Axes, a)
		}
		for i, x := range axes {
			if v.Shape[i] != a[x] {
				return fmt.Errorf("axis %d of the arg has length %d", x, a[x])
			}
		}
	case Product:
		return fitsProduct(v, o)
	}
	return nil
}

func fitsProduct(v *Value, o Product) error {
	a, b := slices.Clone(v.Args[0].Shape), slices.Clone(v.Args[1].Shape)
	n := len(v.Shape)
	if n < 2 || len(a) != n || len(b) != n {
		return fmt.Errorf("the factors have shapes %v and %v", a, b)
	}
	if o.TransA {
		a[n-2], a[n-1] = a[n-1], a[n-2]
	}
	if o.TransB {
		b[n-2], b[n-1] = b[n-1], b[n-2]
	}
	fits := slices.Equal(a[:n-2], b[:n-2]) && slices.Equal(a[:n-1], v.Shape[:n-1]) && a[n-1] == b[n-2] && b[n-1] == v.Shape[n-1]
	return want(fits, "the factors have shapes %v and %v", v.Args[0].Shape, v.Args[1].Shape)
}

// complete returns an error for an op that does not belong to this package or lacks its function, kernel or
// implementation. It runs before all other checks, because they may call the String method of the op.
func complete(o Op) error {
	switch o := o.(type) {
	case nil:
		return errors.New("has no op")
	case Leaf, Constant, Reshape, Broadcast, Product, Transpose, AllGather:
	case Pointwise:
		return completeFunction(o.F)
	case Reduction:
		return want(o.F <= Max, "has an unknown reducer, %d", uint8(o.F))
	case AllReduce:
		return want(o.F <= Max, "has an unknown reducer, %d", uint8(o.F))
	case Blockwise:
		return want(o.Kernel != nil, "has no kernel")
	case Unitwise:
		return want(o.Kernel != nil, "has no kernel")
	case Foreign:
		return want(o.Run != nil, "has no implementation")
	default:
		return fmt.Errorf("has an op of type %T, want one of package ir", o)
	}
	return nil
}

func completeFunction(f Function) error {
	switch f := f.(type) {
	case nil:
		return errors.New("has no function")
	case Primitive:
		return want(f < Primitives, "has an unknown primitive, %d", uint8(f))
	case Elementwise:
		return want(f.Blocks != nil, "has no kernel")
	}
	return fmt.Errorf("has a function of type %T, want a Primitive or an Elementwise", f)
}
