package ir

import (
	"encoding/binary"
	"fmt"
)

// Op is the computation of a value from its args. Equal ops on equal args give the same value.
type Op interface{ String() string }

type (
	// Leaf is filled from outside: input or parameter number Index of the module. It has no args.
	Leaf struct {
		Kind  LeafKind
		Index int
	}
	// Constant is one number, in every element of its shape, all of whose axes have length 1. It has no args.
	Constant struct{ Value float64 }
	// Reshape is its arg under another shape of the same size.
	Reshape struct{}
	// Broadcast repeats its arg along the axes on which that has length 1. Both have the same number of axes.
	Broadcast struct{}
	// Pointwise applies a function to corresponding elements of args of equal shape.
	Pointwise struct{ F Function }
	// Reduction combines the elements of its arg along Axes, which the result does not have.
	Reduction struct {
		F    Reducer
		Axes Axes // ascending
	}
	// Product is C = op(A) op(B) of matrices, where op transposes a factor or not. With more than two axes it is batched:
	// the leading axes of A, B and C are equal.
	Product struct{ TransA, TransB bool }
	// Transpose permutes axes: axis i of the result is axis Axes[i] of the arg.
	Transpose struct{ Axes Axes }
	// Blockwise computes blocks of Block consecutive elements from the same blocks of its args, which have its shape.
	Blockwise struct {
		Kernel Blocks
		Block  int
	}
	// Unitwise computes the units of its output from its args.
	Unitwise struct{ Kernel Units }
	// Foreign is an op that is known only by its own implementation. It runs on copies, on one thread.
	Foreign struct {
		Run Implementation
		// Boxed is set if the result is not a tensor in the module's precision, for example booleans. Only other foreign ops
		// may read it, and it cannot be a wanted value.
		Boxed bool
	}
)

// LeafKind is the kind of a leaf.
type LeafKind uint8

// The kinds of leaves.
const (
	InputLeaf LeafKind = iota
	ParameterLeaf
)

// Swapped is the transpose of a matrix.
var Swapped = Transpose{NewAxes(1, 0)}

// String is "input" or "parameter".
func (l Leaf) String() string {
	if l.Kind == InputLeaf {
		return "input"
	}
	return "parameter"
}

// String is the number.
func (c Constant) String() string { return fmt.Sprintf("%g", c.Value) }

// String is "reshape".
func (Reshape) String() string { return "reshape" }

// String is "broadcast".
func (Broadcast) String() string { return "broadcast" }

// String is the function's.
func (p Pointwise) String() string { return p.F.String() }

// String is "sum[0 1]".
func (r Reduction) String() string { return fmt.Sprintf("%v%v", r.F, r.Axes) }

// String is "A×B", with "ᵀ" after a transposed factor.
func (p Product) String() string {
	a, b := "A", "B"
	if p.TransA {
		a = "Aᵀ"
	}
	if p.TransB {
		b = "Bᵀ"
	}
	return a + "×" + b
}

// String is "transpose[1 0]".
func (t Transpose) String() string { return fmt.Sprintf("transpose%v", t.Axes) }

// String is the kernel's.
func (b Blockwise) String() string { return b.Kernel.String() }

// String is the kernel's.
func (u Unitwise) String() string { return u.Kernel.String() }

// String is the implementation's.
func (f Foreign) String() string { return f.Run.String() }

// Axes is a list of axes. It is comparable, as ops are.
type Axes struct{ list string } // one varint per axis

// NewAxes is the list of these axes. [Module.Check] finds axes that a tensor does not have.
func NewAxes(axes ...int) Axes {
	list := make([]byte, 0, len(axes))
	for _, a := range axes {
		list = binary.AppendVarint(list, int64(a))
	}
	return Axes{string(list)}
}

// List returns the axes.
func (a Axes) List() []int {
	var axes []int
	for list := []byte(a.list); len(list) > 0; {
		axis, n := binary.Varint(list)
		axes, list = append(axes, int(axis)), list[n:]
	}
	return axes
}

// String is "[0 1]".
func (a Axes) String() string { return fmt.Sprint(a.List()) }
