package ir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"tessera/internal/volume"
)

// Op is the computation of a value from its args. Equal ops with equal args give equal values.
type Op interface{ String() string }

type (
	// Leaf is a value that the caller provides: the input or the parameter with number Index in the module. It has no
	// args.
	Leaf struct {
		Kind  LeafKind
		Index int
	}
	// Constant has the same number in every element. All axes of its shape have length 1. It has no args.
	Constant struct{ Value float64 }
	// Reshape gives its arg another shape of the same size.
	Reshape struct{}
	// Broadcast repeats its arg along axes in which the arg has length 1. Arg and result have the same number of axes.
	Broadcast struct{}
	// Pointwise applies F to corresponding elements of its args, which have equal shapes.
	Pointwise struct{ F Function }
	// Reduction combines the elements of its arg along Axes, and removes these axes.
	Reduction struct {
		F    Reducer
		Axes Axes // ascending
	}
	// Product is the matrix product C = op(A) op(B), where op transposes a factor or leaves it unchanged. With more
	// than two axes the product is batched: the leading axes of A, B and C are equal.
	Product struct{ TransA, TransB bool }
	// Transpose permutes axes: axis i of the result is axis Axes[i] of the arg.
	Transpose struct{ Axes Axes }
	// Blockwise computes each block of Block consecutive elements from the same block of its args. The args have the
	// shape of the result.
	Blockwise struct {
		Kernel Blocks
		Block  int
	}
	// Unitwise computes the units of its output from its args.
	Unitwise struct{ Kernel Units }
	// Foreign is an op that is known only by its implementation. It runs on copies of its args, on one thread.
	Foreign struct {
		Run Implementation
		// Boxed is true if the result is not a tensor in the module's precision, for example booleans. Only other foreign ops
		// may read a boxed result, and it cannot be a wanted value.
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

func (l Leaf) String() string {
	if l.Kind == InputLeaf {
		return "input"
	}
	return "parameter"
}

// String returns the number.
func (c Constant) String() string { return fmt.Sprintf("%g", c.Value) }

func (Reshape) String() string { return "reshape" }

func (Broadcast) String() string { return "broadcast" }

// String returns the text of the function.
func (p Pointwise) String() string { return p.F.String() }

// String returns "sum[0 1]".
func (r Reduction) String() string { return fmt.Sprintf("%v%v", r.F, r.Axes) }

// String returns "A×B", with "ᵀ" after a transposed factor.
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

// String returns "transpose[1 0]".
func (t Transpose) String() string { return fmt.Sprintf("transpose%v", t.Axes) }

// String returns the text of the kernel.
func (b Blockwise) String() string { return b.Kernel.String() }

// String returns the text of the kernel.
func (u Unitwise) String() string { return u.Kernel.String() }

// String returns the text of the implementation.
func (f Foreign) String() string { return f.Run.String() }

// Axes is a list of axes. The type is comparable, because ops must be comparable.
type Axes struct{ list string } // one varint per axis

// NewAxes returns a list of axes. [Module.Check] checks the axes, NewAxes does not.
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

// String returns "[0 1]".
func (a Axes) String() string { return fmt.Sprint(a.List()) }

// Function is the function of a [Pointwise] op: a [Primitive] or an [Elementwise] kernel.
type Function interface{ String() string }

// Elementwise is a function with its own kernel. A block of the kernel is one element.
type Elementwise struct{ Blocks }

// Primitive is a function of one or two numbers.
type Primitive uint8

// The primitives. Comparisons give 1 or 0.
const (
	Add        Primitive = iota // x + y
	Sub                         // x - y
	Mul                         // x y
	Div                         // x / y
	Pow                         // x to the power of y
	Lt                          // x < y
	Gt                          // x > y
	Lte                         // x <= y
	Gte                         // x >= y
	Eq                          // x == y
	Ne                          // x != y
	Maximum                     // the larger of x and y
	Minimum                     // the smaller of x and y
	Abs                         // |x|
	Sign                        // -1, 0 or 1
	Ceil                        // the smallest integer >= x
	Floor                       // the largest integer <= x
	Sin                         // sin x
	Cos                         // cos x
	Exp                         // e to the power of x
	Log                         // natural logarithm
	Log2                        // binary logarithm
	Neg                         // -x
	Square                      // x²
	Sqrt                        // square root
	Reciprocal                  // 1 / x
	InvSqrt                     // 1 / sqrt(x)
	Cube                        // x³
	Tanh                        // hyperbolic tangent
	Sigmoid                     // 1 / (1 + exp(-x))
	Log1p                       // log(1 + x)
	Expm1                       // exp(x) - 1
	Softplus                    // log(1 + exp(x))
	Copy                        // x
	Primitives                  // the number of primitives
)

// primitives lists the text, the number of args and the float64 implementation of every primitive.
var primitives = [Primitives]struct {
	text string
	args int
	eval func(x, y float64) float64
}{
	Add:        {"+", 2, func(x, y float64) float64 { return x + y }},
	Sub:        {"-", 2, func(x, y float64) float64 { return x - y }},
	Mul:        {"⊙", 2, func(x, y float64) float64 { return x * y }},
	Div:        {"÷", 2, func(x, y float64) float64 { return x / y }},
	Pow:        {"^", 2, math.Pow},
	Lt:         {"<", 2, func(x, y float64) float64 { return indicator(x < y) }},
	Gt:         {">", 2, func(x, y float64) float64 { return indicator(x > y) }},
	Lte:        {"<=", 2, func(x, y float64) float64 { return indicator(x <= y) }},
	Gte:        {">=", 2, func(x, y float64) float64 { return indicator(x >= y) }},
	Eq:         {"==", 2, func(x, y float64) float64 { return indicator(x == y) }},
	Ne:         {"!=", 2, func(x, y float64) float64 { return indicator(x != y) }},
	Maximum:    {"MaxBetween", 2, math.Max},
	Minimum:    {"MinBetween", 2, math.Min},
	Abs:        {"abs", 1, func(x, _ float64) float64 { return math.Abs(x) }},
	Sign:       {"sign", 1, func(x, _ float64) float64 { return indicator(x > 0) - indicator(x < 0) }},
	Ceil:       {"ceil", 1, func(x, _ float64) float64 { return math.Ceil(x) }},
	Floor:      {"floor", 1, func(x, _ float64) float64 { return math.Floor(x) }},
	Sin:        {"sin", 1, func(x, _ float64) float64 { return math.Sin(x) }},
	Cos:        {"cos", 1, func(x, _ float64) float64 { return math.Cos(x) }},
	Exp:        {"exp", 1, func(x, _ float64) float64 { return math.Exp(x) }},
	Log:        {"ln", 1, func(x, _ float64) float64 { return math.Log(x) }},
	Log2:       {"log2", 1, func(x, _ float64) float64 { return math.Log2(x) }},
	Neg:        {"neg", 1, func(x, _ float64) float64 { return -x }},
	Square:     {"square", 1, func(x, _ float64) float64 { return x * x }},
	Sqrt:       {"sqrt", 1, func(x, _ float64) float64 { return math.Sqrt(x) }},
	Reciprocal: {"inv", 1, func(x, _ float64) float64 { return 1 / x }},
	InvSqrt:    {"invSqrt", 1, func(x, _ float64) float64 { return 1 / math.Sqrt(x) }},
	Cube:       {"cube", 1, func(x, _ float64) float64 { return x * x * x }},
	Tanh:       {"tanh", 1, func(x, _ float64) float64 { return math.Tanh(x) }},
	Sigmoid:    {"sigmoid", 1, func(x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	Log1p:      {"log1p", 1, func(x, _ float64) float64 { return math.Log1p(x) }},
	Expm1:      {"expm1", 1, func(x, _ float64) float64 { return math.Expm1(x) }},
	Softplus:   {"softplus", 1, func(x, _ float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }},
	Copy:       {"copy", 1, func(x, _ float64) float64 { return x }},
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// String returns the primitive's symbol or name.
func (p Primitive) String() string { return primitives[p].text }

// Args returns the number of arguments: 1 or 2.
func (p Primitive) Args() int { return primitives[p].args }

// Eval returns the value of the function in float64; a function of one number ignores y.
func (p Primitive) Eval(x, y float64) float64 { return primitives[p].eval(x, y) }

// Reducer combines elements.
type Reducer uint8

// The reducers.
const (
	Sum Reducer = iota
	Max
)

func (r Reducer) String() string {
	if r == Max {
		return "max"
	}
	return "sum"
}

// Ops of programs that several processes run together, each on its images of the batch. Package ir/shard adds them to a
// program for one process. Each collective op belongs to a message. Every process sends the messages in ascending
// order, and the members of one message together.
type (
	// AllReduce combines the args of all processes, element by element.
	AllReduce struct {
		F       Reducer
		Message int
		Member  int  // index in the message
		Late    bool // only the caller reads the result: the message must be complete at the end of the run
	}
	// AllGather concatenates args that each contain the images of one process into a value for the complete batch. In a
	// value of shape (Outer, Batch, rest), process r of Processes contributes the images from Batch*r/Processes to
	// Batch*(r+1)/Processes.
	AllGather struct {
		Message   int
		Outer     int
		Batch     int
		Processes int
	}
)

// String returns "all-reduce sum 2.0" for member 0 of message 2.
func (a AllReduce) String() string {
	late := ""
	if a.Late {
		late = " late"
	}
	return fmt.Sprintf("all-reduce %v %d.%d%s", a.F, a.Message, a.Member, late)
}

// String returns "all-gather 2".
func (a AllGather) String() string { return fmt.Sprintf("all-gather %d", a.Message) }

// MessageOf returns the message of a collective op; ok is false for other ops.
func MessageOf(o Op) (message int, ok bool) {
	switch o := o.(type) {
	case AllReduce:
		return o.Message, true
	case AllGather:
		return o.Message, true
	}
	return 0, false
}

// Collective reports whether the program has collective ops. Such a program must be run by several processes together.
func (m *Module) Collective() bool {
	for _, v := range m.Values() {
		if _, ok := MessageOf(v.Op); ok {
			return true
		}
	}
	return false
}

// fitsCollective checks a collective value.
func fitsCollective(v *Value) error {
	a := v.Args[0]
	switch o := v.Op.(type) {
	case AllReduce:
		return want(volume.Of(a.Shape) == volume.Of(v.Shape), "the arg has shape %v, another size", a.Shape)
	case AllGather:
		if o.Outer < 1 || o.Processes < 1 || o.Batch < o.Processes || volume.Of(v.Shape)%(o.Outer*o.Batch) != 0 {
			return fmt.Errorf("does not divide into %d times %d images of %d processes", o.Outer, o.Batch, o.Processes)
		}
		image := volume.Of(v.Shape) / o.Batch
		return want(image > 0 && volume.Of(a.Shape)%image == 0 && volume.Of(a.Shape) < volume.Of(v.Shape)+image,
			"the arg has shape %v, no whole number of images", a.Shape)
	}
	return nil
}

// inOrder returns an error if messages cannot be sent in ascending order, because a message depends on its own result
// or on that of a later message.
func (m *Module) inOrder() error {
	latest := map[*Value]int{} // latest message that a value depends on, plus 1
	for _, v := range m.Values() {
		for _, a := range v.Args {
			latest[v] = max(latest[v], latest[a])
		}
		if message, ok := MessageOf(v.Op); ok {
			if message < latest[v] {
				return errors.New("a message needs the result of a later one")
			}
			latest[v] = message + 1
		}
	}
	return nil
}

// Kernel is an op with its own implementation.
type Kernel interface {
	String() string
	// Hashcode distinguishes kernels. Two kernels with equal text and hash must compute the same function.
	Hashcode() uint32
	// Spec describes the computation: a struct whose type identifies the function and whose fields are the attributes.
	// Exporters recognise an op by its Spec.
	Spec() any
}

// Blocks is a kernel whose args and output all have the same shape. The output is computed in blocks of consecutive
// elements; each block depends only on the same block of the args. A block is one element of an elementwise function,
// or one row of a row-wise function. A back end may compute any whole number of blocks at a time, in any order, on any
// goroutine.
type Blocks interface {
	Kernel
	// Block returns the length of one block for args of the given shape.
	Block(shape []int) int
	// Float32 computes the elements of dst, a whole number of blocks, from equally long slices of the args. dst may be
	// one of the args.
	Float32(dst []float32, in [][]float32, block int)
	// Float64 is Float32 in double precision.
	Float64(dst []float64, in [][]float64, block int)
}

// Sparse is implemented by kernels whose output has many zeros. It is a hint: products check operands that are computed
// from such an output for zeros.
type Sparse interface {
	// MostlyZero reports whether almost all values of the output are 0.
	MostlyZero() bool
}

// ZeroKeeping is implemented by kernels whose output may be 0 wherever the last arg is.
type ZeroKeeping interface {
	// KeepsZeros reports whether the output is 0 wherever the last arg is 0, for all values of the other args.
	KeepsZeros() bool
}

// Selecting is implemented by kernels that may copy only a few elements of the last arg.
type Selecting interface {
	// Selection returns how the kernel selects elements, or nil if it computes them.
	Selection() *Selection
}

// Selection describes a kernel that copies some elements of its last arg and sets the others to 0. The other args
// determine which elements are copied; an only arg does so itself.
type Selection struct {
	// Most is the maximum number of copied elements per block, 0 if there is none: it may copy all.
	Most int
	// Float32 returns a function that lists the indices of the copied elements in one block, in ascending order. by has
	// the block of each of these args. The list is valid until the next call, and may end when it is longer than most. The function is
	// not safe for concurrent use.
	Float32 func(block, most int) func(by [][]float32) []int
	// Float64 is Float32 in double precision.
	Float64 func(block, most int) func(by [][]float64) []int
	// Like is the index of an arg whose own selection has the same elements, 0 if there is none.
	Like int
}

// Scattering is implemented by kernels of two args, indices and rows, whose output is a matrix (rows, Width): row i is the sum, in
// their order, of the rows of the second arg whose index is i. All other rows are 0. With a third arg, a weight for each index, equal numbers of
// indices in a row share a row of the second arg, multiplied by their weights; a weight of 0 leaves its index out.
type Scattering interface {
	// Width returns the number of values of a row, or 0 if the kernel computes something else.
	Width() int
}

// Joint is implemented by kernels of which one call for many units is faster than a call for every few of them.
type Joint interface {
	// Joint reports whether this is so.
	Joint() bool
}

// Units is a kernel whose output consists of units: slices of equal length, in row-major order, each computed
// independently from the args. A back end may compute any range of them, in any order, on any goroutine. A kernel is
// created for args of fixed shapes.
type Units interface {
	Kernel
	// Units returns the number of units of the output.
	Units() int
	// ByUnit reports whether arg i has as many units as the output, and unit j of the output reads only unit j of this
	// arg.
	ByUnit(i int) bool
	// Scratch returns the number of elements of workspace for one call.
	Scratch() int
	// Work returns the approximate number of additions and multiplications for the complete output.
	Work() float64
	// Float32 computes units [from, to) of dst and leaves the other units unchanged. dst is the complete output, in are
	// the complete args, and scratch has undefined contents.
	Float32(dst []float32, in [][]float32, scratch []float32, from, to int)
	// Float64 is Float32 in double precision.
	Float64(dst []float64, in [][]float64, scratch []float64, from, to int)
	// Prepared returns a kernel that converts the last arg to the form that Float32 and Float64 read, and the shape of
	// that form. It returns nil if they read the arg itself. The conversion runs once, before all units.
	Prepared() (Units, []int)
}

// Division determines how several processes compute an op together, each from its images of the batch.
type Division uint8

// The divisions.
const (
	Undivided Division = iota // every process computes the complete op, from the images of all processes
	ByUnits                   // a process computes its own units, from the same units of the ByUnit args and from the complete other args
	BySums                    // the output is a sum over the images: a process sums over its own images of every arg
	Linear                    // the op is linear in all args together: from args that are sums of terms it computes an output that is a sum of terms
)

// Divisible is implemented by [Units] that can be divided among processes. All other kernels are Undivided.
type Divisible interface {
	Units
	// Division returns how the op is divided among processes.
	Division() Division
	// Part returns the kernel for some of the units of an op with the division ByUnits. It has the given number of
	// units; its unit i is unit at(i) of the op.
	Part(units int, at func(unit int) int) Units
}

// Described is implemented by ops of a graph that correspond to an op of this package: a [Reshape] or a [Transpose].
type Described interface {
	// IR returns the corresponding op.
	IR() Op
}

// Implementation is the implementation of a [Foreign] op.
type Implementation interface {
	String() string
	// Do computes the result. It may change its args, which are copies.
	Do(in []Tensor) (Tensor, error)
}

// Tensor is an arg or a result of an [Implementation].
type Tensor struct {
	Shape []int
	// Data is []float32 or []float64 in row-major order, with one element for a scalar. For a boxed value it is the
	// result of the op that computed the value.
	Data any
}
