package ir

// Kernel is an op with its own implementation.
type Kernel interface {
	String() string
	// Hashcode distinguishes kernels: two kernels with equal text and hash compute the same.
	Hashcode() uint32
	// Spec describes the computation: a struct whose type is the function and whose fields are all of its attributes.
	// Exporters recognise an op by it.
	Spec() any
}

// Blocks is a kernel whose output has the shape of every arg and is computed in blocks of consecutive elements, each
// from the same block of the args alone: element-wise functions in blocks of one element, row-wise ones in blocks of one
// row. A back end may compute any whole number of blocks at a time, in any order, on any goroutine.
type Blocks interface {
	Kernel
	// Block is the length of one block for args of that shape.
	Block(shape []int) int
	// Float32 computes the elements of dst, a whole number of blocks, from equally long slices of the args. dst may be
	// one of the args.
	Float32(dst []float32, in [][]float32, block int)
	// Float64 is Float32 in the other precision.
	Float64(dst []float64, in [][]float64, block int)
}

// Units is a kernel whose output consists of units: equally long slices in row-major order, each computed independently from all
// args. A back end may compute any range of them, in any order, on any goroutine. It is made for args of fixed shapes.
type Units interface {
	Kernel
	// Units is the number of units of the output.
	Units() int
	// ByUnit reports whether arg i has as many units and a unit reads only the one at the same place.
	ByUnit(i int) bool
	// Scratch is the number of elements that one call needs as workspace.
	Scratch() int
	// Work is the approximate number of additions and multiplications of the whole output.
	Work() float64
	// Float32 computes units [from, to) of dst, which is the whole output, from the whole args, and leaves the other units
	// as they are. scratch holds anything.
	Float32(dst []float32, in [][]float32, scratch []float32, from, to int)
	// Float64 is Float32 in the other precision.
	Float64(dst []float64, in [][]float64, scratch []float64, from, to int)
	// Prepared returns a kernel that converts the last arg to the form that Float32 and Float64 read, and the shape of that
	// form; nil if they read the arg itself. It is computed once, before all units.
	Prepared() (Units, []int)
}

// Division is how several processes compute an op together, each from its images of the batch.
type Division uint8

// The divisions.
const (
	Undivided Division = iota // every process computes the whole op, from the images of all processes
	ByUnits                   // a process computes its units, from its units of the args that are ByUnit and the whole other args
	BySums                    // the output is a sum over the images: a process sums over its images of every arg
	Linear                    // the op is a linear function of all args together: the outputs for terms of a sum add up
)

// Divisible is implemented by [Units] that processes can share. Others are Undivided.
type Divisible interface {
	Units
	// Division tells how.
	Division() Division
	// Part returns the kernel for fewer units, of an op that is divided ByUnits: unit i is unit at(i) of the whole op.
	Part(units int, at func(unit int) int) Units
}

// Described is implemented by the ops of a graph that know which op of this package they are: a [Reshape] or a
// [Transpose].
type Described interface {
	// IR returns that op.
	IR() Op
}

// Implementation is the implementation of a [Foreign] op.
type Implementation interface {
	String() string
	// Do computes the result. It may change its args, which are copies.
	Do(in []Tensor) (Tensor, error)
}

// Tensor is a value at run time, as a [Implementation] takes and returns it.
type Tensor struct {
	Shape []int
	// Data is []float32 or []float64, row-major, one element for a scalar; of a boxed value whatever its op returned.
	Data any
}
