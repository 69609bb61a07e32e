// Package ir is the typed representation of a program: the computation of a model, independent of the library that declared
// it. Package engine compiles it; exporters and other back ends can read it. [tessera/engine/ir/fromgraph] translates a Gorgonia
// graph to it. A program can also be built with the constructors of this package. [Module.Check] verifies it.
//
// A [Module] lists the inputs, the parameters and the wanted values: taps, gradients, updates. Each [Value] has the [Op]
// that computes it and the values that the op reads. Values form a directed acyclic graph; [Module.Values] lists it in an
// order in which args come first.
//
// Every value is a row-major tensor in the precision of the module, with the batch (if any) as its first axis; an empty
// shape is a scalar. The only exception is the result of a [Foreign] op that is marked Boxed.
//
// The ops, by a type switch on [Value].Op:
//
//	Leaf        filled from outside: an input or a parameter
//	Constant    one number
//	Reshape     the same elements under another shape
//	Broadcast   axes of length 1, repeated
//	Pointwise   a function of corresponding elements: a Primitive, or an Elementwise kernel
//	Reduction   the sum or the maximum over some axes
//	Product     a matrix product, batched where there are more than two axes
//	Transpose   a permutation of the axes
//	Blockwise   an op with a kernel that computes blocks of elements, such as the rows of a softmax
//	Unitwise    an op with a kernel that computes units, equally long slices of its output, such as the images of a convolution
//	AllReduce   the sum or the maximum over the processes that run the program together
//	AllGather   the images of the batch that the processes hold
//	Foreign     an op of which only its own implementation is known
//
// [Kernel].Spec describes Elementwise, Blockwise and Unitwise ops: it is a struct whose type is the function and whose
// fields are its attributes (see the ...Op types of package ops).
package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Dtype is the precision of a module.
type Dtype uint8

// The precisions.
const (
	Float32 Dtype = iota
	Float64
)

// String is "float32" or "float64".
func (d Dtype) String() string {
	if d == Float64 {
		return "float64"
	}
	return "float32"
}

// Float is the Go type of a number of a program.
type Float interface{ float32 | float64 }

// DtypeOf is the precision that T has.
func DtypeOf[T Float]() Dtype {
	if _, ok := any(T(0)).(float64); ok {
		return Float64
	}
	return Float32
}

// Value is one tensor of a program.
type Value struct {
	ID    int // position in the list that Module.Values returned last
	Op    Op
	Args  []*Value
	Shape []int
	Name  string // of a leaf: the input's or parameter's name; empty for all others
	Layer string // path and kind of the layer that it belongs to, "encoder.0 (dense)"; empty for leaves and where none is known
}

// Module is a program.
type Module struct {
	Dtype      Dtype
	Batch      int // images per run; 0 where that means nothing
	Inputs     []Input
	Parameters []Parameter
	Taps       []Tap
	Gradients  []Gradient
	Updates    []Update
}

// Input is filled by the caller before every run. [Leaf] refers to it by its index.
type Input struct {
	Name  string
	Shape []int // batch included
}

// Parameter is a tensor of the model. [Leaf] refers to it by its index.
type Parameter struct {
	Name      string // the path: "encoder.0.weight"
	Shape     []int
	Data      []float32 // row-major; shared with the model, not a copy
	Trainable bool      // moved by the optimizer
}

// Tap is a value that can be read after a run.
type Tap struct {
	Name  string // "loss", "loss.mse", "code", "output", ...
	Value *Value
}

// Gradient is the derivative of the loss with respect to a parameter.
type Gradient struct {
	Parameter int // index in Module.Parameters
	Value     *Value
}

// Update is a value that is assigned to a parameter after the run (a running average).
type Update struct {
	Parameter int // index in Module.Parameters
	Value     *Value
}

// Wanted lists the values of the taps, the gradients and the updates, in this order.
func (m *Module) Wanted() []*Value {
	var list []*Value
	for _, t := range m.Taps {
		list = append(list, t.Value)
	}
	for _, g := range m.Gradients {
		list = append(list, g.Value)
	}
	for _, u := range m.Updates {
		list = append(list, u.Value)
	}
	return list
}

// Values lists every value that the wanted ones need, args before the values that read them, and numbers them.
func (m *Module) Values() []*Value { return Sorted(m.Wanted()) }

// Sorted lists every value that the wanted ones need, args before the values that read them, and numbers them.
func Sorted(wanted []*Value) []*Value {
	var list []*Value
	seen := map[*Value]bool{}
	var keep func(v *Value)
	keep = func(v *Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		for _, a := range v.Args {
			keep(a)
		}
		v.ID = len(list)
		list = append(list, v)
	}
	for _, w := range wanted {
		keep(w)
	}
	return list
}

// Clone returns a module with its own values, so that passes can change them. Parameters keep their data.
func (m *Module) Clone() *Module {
	copied := map[*Value]*Value{}
	for _, v := range m.Values() {
		c := *v
		c.Args = make([]*Value, len(v.Args))
		for i, a := range v.Args {
			c.Args[i] = copied[a]
		}
		copied[v] = &c
	}
	clone := *m
	clone.Taps, clone.Gradients, clone.Updates = slices.Clone(m.Taps), slices.Clone(m.Gradients), slices.Clone(m.Updates)
	for i := range clone.Taps {
		clone.Taps[i].Value = copied[m.Taps[i].Value]
	}
	for i := range clone.Gradients {
		clone.Gradients[i].Value = copied[m.Gradients[i].Value]
	}
	for i := range clone.Updates {
		clone.Updates[i].Value = copied[m.Updates[i].Value]
	}
	return &clone
}

// String lists the values, one per line: "%4 A×B[32 100] %0 %1".
func (m *Module) String() string { return Text(m.Values()) }

// Text lists values that are numbered by their ID, one per line.
func Text(values []*Value) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, "%%%d %v%v", v.ID, v.Op, v.Shape)
		if v.Name != "" {
			fmt.Fprintf(&b, " %s", v.Name)
		}
		for _, a := range v.Args {
			fmt.Fprintf(&b, " %%%d", a.ID)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
