// Package engine compiles a differentiated Gorgonia graph once into a static, fused plan and runs that.
//
// The passes, in order, one file each:
//
//	lower     ExprGraph -> values of a small typed representation (ir.go)
//	fold      constants, sizes, no-op reshapes and repeats
//	merge     common subexpressions
//	rewrite   algebraic rules
//	settle    memory for views that their consumer cannot read
//	divide    products with trained matrices into parts, so that threads keep theirs
//	fuse      element-wise values and the reductions of them into groups, each one pass over its elements
//	compile   groups into chains of instructions (chain_build), everything else into steps of its own
//	schedule  steps into phases: inside a phase every thread works on rows or columns of its own, between phases there is a barrier
//	bands     steps of a phase that a thread goes through a few rows at a time
//	place     liveness, and one arena of static buffers
//
// and plan and run are the result.
//
// A value that nothing wanted depends on never enters the representation: dead code needs no pass.
package engine

import (
	"fmt"
	"strings"

	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// value is one node of the representation: a tensor in row-major order, or a scalar (empty shape).
type value struct {
	id    int // position in module.values, a topological order
	op    op
	args  []*value
	shape []int
	name  string // of leaves: the input's or parameter's name
}

// module is a program under compilation.
type module struct {
	values []*value
	wanted []*value // taps, gradients and updates, in the order of the program
	// trained says of every parameter whether a gradient with respect to it is wanted.
	trained []bool
}

// op says how a value is computed from its args. Ops are comparable: equal ops on equal args are the same value.
type op interface{ String() string }

type (
	// leaf is filled from outside: input i or parameter i of the program.
	leaf struct {
		kind  leafKind
		index int
	}
	// constant is the same number everywhere.
	constant struct{ v float64 }
	// reshape is its arg under another shape; it costs nothing.
	reshape struct{}
	// broadcast repeats its arg along axes of length 1 (and along a scalar's missing axes); it costs nothing
	// where its consumer can read with stride 0.
	broadcast struct{}
	// pointwise applies a function to corresponding elements of args of equal shape.
	pointwise struct{ f function }
	// reduction folds its arg along axes.
	reduction struct {
		f    reducer
		axes string // sorted, as text so that the op is comparable: "0 1"
	}
	// product is C = op(A) op(B) of matrices; vectors are lowered with an axis of length 1.
	product struct{ transA, transB bool }
	// transpose permutes axes.
	transpose struct{ axes string }
	// blockwise is an op of ours that computes blocks of consecutive elements from the same blocks of its args.
	blockwise struct {
		kernel ops.Kernel
		block  int
	}
	// unitwise is an op of ours that computes units of its output from its args.
	unitwise struct{ op ops.Parallel }
	// opaque is an op that the engine does not know: it runs through its own Do.
	opaque struct{ node *gorgonia.Node }
)

type leafKind uint8

const (
	inputLeaf leafKind = iota
	parameterLeaf
)

func (l leaf) String() string {
	if l.kind == inputLeaf {
		return "input"
	}
	return "parameter"
}
func (c constant) String() string  { return fmt.Sprintf("%g", c.v) }
func (reshape) String() string     { return "reshape" }
func (broadcast) String() string   { return "broadcast" }
func (p pointwise) String() string { return p.f.String() }
func (r reduction) String() string { return fmt.Sprintf("%v[%s]", r.f, r.axes) }
func (p product) String() string {
	a, b := "A", "B"
	if p.transA {
		a = "Aᵀ"
	}
	if p.transB {
		b = "Bᵀ"
	}
	return a + "×" + b
}
func (t transpose) String() string { return "transpose[" + t.axes + "]" }
func (b blockwise) String() string { return b.kernel.String() }
func (u unitwise) String() string  { return u.op.String() }
func (o opaque) String() string {
	if o.node.Op() == nil { // a leaf of the graph with a value of its own
		return o.node.Name()
	}
	return o.node.Op().String()
}

// constantOf returns the number that v is everywhere, looking through broadcasts and reshapes.
func constantOf(v *value) (float64, bool) {
	for {
		switch o := v.op.(type) {
		case constant:
			return o.v, true
		case broadcast, reshape:
			v = v.args[0]
		default:
			return 0, false
		}
	}
}

// size is the number of elements of a tensor of that shape.
func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// swapped are the axes of a transposed matrix.
const swapped = "1 0"

// axesText and axesOf convert between a list of axes and its comparable form.
func axesText(axes []int) string { return strings.Trim(fmt.Sprint(axes), "[]") }

func axesOf(text string) []int {
	var axes []int
	for _, f := range strings.Fields(text) {
		var a int
		fmt.Sscan(f, &a)
		axes = append(axes, a)
	}
	return axes
}

// rebuild visits every value that the wanted ones need, args first, and replaces each by what f returns for it (with
// its args replaced already). It is the frame of every pass; values that are no longer needed drop out. It reports whether f
// replaced any.
func (m *module) rebuild(f func(*value) *value) (changed bool) {
	done := map[*value]*value{}
	var values []*value
	var visit func(*value) *value
	visit = func(v *value) *value {
		if r, ok := done[v]; ok {
			return r
		}
		for i, a := range v.args {
			v.args[i] = visit(a)
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
	// A second walk keeps only what is still reachable, in topological order.
	seen := map[*value]bool{}
	var keep func(*value)
	keep = func(v *value) {
		if seen[v] {
			return
		}
		seen[v] = true
		for _, a := range v.args {
			keep(a)
		}
		v.id = len(values)
		values = append(values, v)
	}
	for _, w := range m.wanted {
		keep(w)
	}
	m.values = values
	return changed
}

// readers counts who reads each value, wanted ones included.
func (m *module) readers() map[*value]int {
	n := map[*value]int{}
	for _, v := range m.values {
		for _, a := range v.args {
			n[a]++
		}
	}
	for _, w := range m.wanted {
		n[w]++
	}
	return n
}

// String lists the values, one per line, for tests and for people.
func (m *module) String() string {
	var b strings.Builder
	for _, v := range m.values {
		fmt.Fprintf(&b, "%%%d %v%v", v.id, v.op, v.shape)
		if v.name != "" {
			fmt.Fprintf(&b, " %s", v.name)
		}
		for _, a := range v.args {
			fmt.Fprintf(&b, " %%%d", a.id)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
