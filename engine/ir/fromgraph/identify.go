// Package fromgraph translates Gorgonia's expressions to package ir. It is the only package that distinguishes Gorgonia's
// ops. They are not exported, so an op is identified by its Go type and its text. Both are fixed by the version in go.mod,
// and a test compares the tables below with the source of that version. An op outside of the tables becomes an [ir.Foreign]
// op, which runs its own Do method.
package fromgraph

import (
	"fmt"
	"strconv"
	"strings"

	"gorgonia.org/gorgonia"
	"tessera/engine/ir"
)

// Version is the version of Gorgonia that the tables describe.
const Version = "v0.9.18"

// Class is a kind of Gorgonia's own ops.
type Class uint8

// The kinds that have a counterpart in package ir. All others, and the ops of other packages, are Unknown.
const (
	Unknown   Class = iota
	Constant        // a number, or a tensor, that never changes
	Pointwise       // Identity.F of corresponding elements
	MatMul          // matrix × matrix, or batches of them
	MatVec          // matrix × vector
	Outer           // vector × vector to a matrix
	Dot             // vector × vector to a scalar
	Reduction       // Identity.Reducer along Identity.Axes; along all axes where there are none
	Reshape         // the same elements under the node's shape
	Repeat          // elements repeated along an axis, to the node's shape
	Size            // the length of an axis: Identity.Size
	Transpose       // axes permuted by Identity.Axes
)

// Identity is the class of a Gorgonia op and its attributes.
type Identity struct {
	Class          Class
	F              ir.Primitive // of Pointwise
	Reducer        ir.Reducer   // of Reduction
	Batched        bool         // of MatMul
	TransA, TransB bool         // of MatMul and MatVec: a matrix that is read transposed
	Axes           []int        // of Reduction and Transpose
	Size           float64      // of Size
}

// readers holds, by the Go type of an op, how its text is read. The result is ignored unless ok.
var readers = map[string]func(text string) (id Identity, ok bool){
	"gorgonia.constantScalar": is(Constant),
	"gorgonia.constantTensor": is(Constant),
	"gorgonia.elemUnaryOp":    func(text string) (Identity, bool) { return pointwise(unaries, text) },
	"gorgonia.elemBinOp": func(text string) (Identity, bool) {
		sign, _, _ := strings.Cut(text, " ") // "+ true": whether comparisons return numbers
		return pointwise(binaries, sign)
	},
	"gorgonia.maxBetween":  func(string) (Identity, bool) { return Identity{Class: Pointwise, F: ir.Maximum}, true },
	"gorgonia.minBetween":  func(string) (Identity, bool) { return Identity{Class: Pointwise, F: ir.Minimum}, true },
	"gorgonia.linAlgBinOp": linearAlgebra,
	"gorgonia.sumOp":       func(text string) (Identity, bool) { return reduction(ir.Sum, text, "Σ") },
	"gorgonia.maxOp":       func(text string) (Identity, bool) { return reduction(ir.Largest, text, "MaxAlong") },
	"gorgonia.reshapeOp":   is(Reshape),
	"gorgonia.repeatOp":    is(Repeat),
	"gorgonia.sizeOp": func(text string) (Identity, bool) {
		number, known := strings.CutPrefix(text, "SizeOf=")
		size, err := strconv.ParseFloat(number, 64)
		return Identity{Class: Size, Size: size}, known && err == nil
	},
	"gorgonia.transposeOp": func(text string) (Identity, bool) {
		axes, ok := list(text, "Aᵀ{", ", ", "}")
		return Identity{Class: Transpose, Axes: axes}, ok
	},
}

// unaries and binaries are Gorgonia's texts of its element-wise functions, in its order.
var unaries = map[string]ir.Primitive{
	"abs": ir.Abs, "sign": ir.Sign, "ceil": ir.Ceil, "floor": ir.Floor,
	"sin": ir.Sin, "cos": ir.Cos, "exp": ir.Exp,
	"ln": ir.Log, "log2": ir.Log2, "neg": ir.Neg, "square": ir.Square, "sqrt": ir.Sqrt,
	"inv": ir.Reciprocal, "invSqrt": ir.InvSqrt,
	"cube": ir.Cube, "tanh": ir.Tanh, "sigmoid": ir.Sigmoid,
	"log1p": ir.Log1p, "expm1": ir.Expm1, "softplus": ir.Softplus,
}

var binaries = map[string]ir.Primitive{
	"+": ir.Add, "-": ir.Sub, "⊙": ir.Mul, "÷": ir.Div, "^": ir.Pow,
	"<": ir.Lt, ">": ir.Gt, "<=": ir.Lte, ">=": ir.Gte, "==": ir.Eq, "!=": ir.Ne,
}

// products are the texts of Gorgonia's products, less the marks of transposed factors.
var products = map[string]Identity{
	"A × B":   {Class: MatMul},
	"A ××× B": {Class: MatMul, Batched: true},
	"A × b":   {Class: MatVec},
	"a ⊗ b":   {Class: Outer},
	"a ⋅ b":   {Class: Dot},
}

// Identify returns the identity of a Gorgonia op.
func Identify(op gorgonia.Op) Identity {
	if op == nil {
		return Identity{}
	}
	read, ok := readers[strings.TrimPrefix(fmt.Sprintf("%T", op), "*")]
	if !ok {
		return Identity{}
	}
	if id, ok := read(op.String()); ok {
		return id
	}
	return Identity{}
}

// is reads every text as the same class.
func is(c Class) func(string) (Identity, bool) {
	return func(string) (Identity, bool) { return Identity{Class: c}, true }
}

func pointwise(table map[string]ir.Primitive, text string) (Identity, bool) {
	f, ok := table[text]
	return Identity{Class: Pointwise, F: f}, ok
}

func reduction(f ir.Reducer, text, prefix string) (Identity, bool) {
	axes, ok := list(text, prefix+"[", " ", "]")
	return Identity{Class: Reduction, Reducer: f, Axes: axes}, ok
}

func linearAlgebra(text string) (Identity, bool) {
	const transposed = "ᵀ"
	id, ok := products[strings.ReplaceAll(text, transposed, "")]
	if id.Class == MatMul || id.Class == MatVec {
		a, _, _ := strings.Cut(text, " ")
		id.TransA = strings.HasSuffix(a, transposed)
		id.TransB = strings.HasSuffix(text, transposed) && id.Class == MatMul
	}
	return id, ok
}

// list reads the numbers between two marks.
func list(text, open, separator, end string) (numbers []int, ok bool) {
	inside, opens := strings.CutPrefix(text, open)
	inside, ends := strings.CutSuffix(inside, end)
	if !opens || !ends {
		return nil, false
	}
	if inside == "" {
		return nil, true
	}
	for word := range strings.SplitSeq(inside, separator) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, false
		}
		numbers = append(numbers, n)
	}
	return numbers, true
}

// Children lists the nodes that a node is computed from: in order, one that is used twice listed twice.
func Children(n *gorgonia.Node) (list gorgonia.Nodes) {
	for it := n.Graph().From(n.ID()); it.Next(); {
		list = append(list, it.Node().(*gorgonia.Node))
	}
	return list
}
