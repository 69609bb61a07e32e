package ops

import (
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
	"tessera/internal/volume"
)

type reshapeOp struct{ Shape []int }

// Reshape returns x with another shape of equal size. Use it instead of Gorgonia's Reshape, whose result shares memory
// with x. Gorgonia's tape machine ignores the sharing, so an in-place computation on the result overwrites x, even if x
// is a batch of images or a weight.
func Reshape(x *gorgonia.Node, shape ...int) (*gorgonia.Node, error) {
	to := tensor.Shape(shape).Clone()
	if len(x.Shape()) == 0 || len(to) == 0 || volume.Of(x.Shape()) != volume.Of(to) {
		return nil, fmt.Errorf("reshape: got shape %v, want as many values as %v", x.Shape(), to)
	}
	return same(reshapeOp{to}, ir.Reshape{}, x, to, nil, func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return gradientOf(Reshape(grad, x.Shape()...))
	})
}

// same returns the values of x, perhaps under another shape.
func same(spec any, of ir.Op, x *gorgonia.Node, to tensor.Shape, fixed []bool, derivative Derivative) (*gorgonia.Node, error) {
	l := &layout{ir: of}
	var err error
	if l.op, err = newOp(spec, gorgonia.Nodes{x}, to, fixed, derivative); err != nil {
		return nil, err
	}
	l.alike = len(l.in[0]) == len(to)
	l.f32 = func(dst []float32, in [][]float32) { copy(dst, in[0]) }
	l.f64 = func(dst []float64, in [][]float64) { copy(dst, in[0]) }
	return gorgonia.ApplyOp(l, x)
}

type transposeOp struct{}

// Transpose returns the transpose (m, n) of x (n, m). The derivative is a transpose, too. Gorgonia's Transpose is not
// used: it reorders the elements of its input in place, even those of a weight.
func Transpose(x *gorgonia.Node) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 {
		return nil, fmt.Errorf("transpose: got shape %v, want a matrix", x.Shape())
	}
	n, m := x.Shape()[0], x.Shape()[1]
	l := &layout{ir: ir.Swapped}
	var err error
	l.op, err = newOp(transposeOp{}, gorgonia.Nodes{x}, tensor.Shape{m, n}, nil, func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		return gradientOf(Transpose(grad))
	})
	if err != nil {
		return nil, err
	}
	l.f32 = func(dst []float32, in [][]float32) { transpose(dst, in[0], n, m) }
	l.f64 = func(dst []float64, in [][]float64) { transpose(dst, in[0], n, m) }
	return gorgonia.ApplyOp(l, x)
}

// transpose writes the transpose of x (n, m) to dst.
func transpose[T Float](dst, x []T, n, m int) {
	for j := range m {
		for i, row := 0, dst[j*n:(j+1)*n]; i < n; i++ {
			row[i] = x[i*m+j]
		}
	}
}

// TileOp is the spec of [Tile], FoldOp of [Fold].
type (
	TileOp struct{ Times int }
	FoldOp struct{ Times int }
)

// Tile concatenates several copies of the vector x (n): the result is y (times*n) with y[t*n+i] = x[i]. It broadcasts
// one number per channel over an image whose channels come last. Its derivative is [Fold].
func Tile(x *gorgonia.Node, times int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 1 || times < 1 {
		return nil, fmt.Errorf("tile: got shape %v %d times, want a vector at least once", x.Shape(), times)
	}
	n := x.Shape()[0]
	o := &Unitwise{
		Spec:     TileOp{times},
		Out:      tensor.Shape{times * n},
		Units:    times,
		ByUnit:   []bool{false},
		Division: ir.Linear,
		Float32:  tile[float32](n),
		Float64:  tile[float64](n),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(Fold(grad, times))
		},
	}
	return o.Apply(x)
}

// Fold returns the sum (n) of the rows of the vector x, viewed as a matrix (times, n): y[i] = sum over t of x[t*n+i].
// Its derivative is [Tile].
func Fold(x *gorgonia.Node, times int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 1 || times < 1 || x.Shape()[0]%times != 0 {
		return nil, fmt.Errorf("fold: shape %v does not divide into %d rows", x.Shape(), times)
	}
	n := x.Shape()[0] / times
	o := &Unitwise{
		Spec:     FoldOp{times},
		Out:      tensor.Shape{n},
		Units:    n,
		ByUnit:   []bool{false},
		Division: ir.Linear,
		Work:     float64(times * n),
		Float32:  fold(n, vector.Float32),
		Float64:  fold(n, vector.Float64),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(Tile(grad, times))
		},
	}
	return o.Apply(x)
}

func tile[T Float](n int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for t := from; t < to; t++ {
			copy(dst[t*n:(t+1)*n], in[0])
		}
	}
}

func fold[T Float](n int, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		x, y := in[0], dst[from:to]
		copy(y, x[from:to])
		for at := n; at < len(x); at += n {
			kernels().Add(y, y, x[at+from:at+to])
		}
	}
}

// JoinOp is the spec of [Join], ColumnsOp of [Columns], WidenOp of [Widen].
type (
	JoinOp    struct{}
	ColumnsOp struct{ From, Count int }
	WidenOp   struct{ From, Of int }
)

// Join returns the matrix (n, a+b) whose rows are the rows of x (n, a), each followed by the corresponding row of y (n, b).
func Join(x, y *gorgonia.Node) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 || len(y.Shape()) != 2 || x.Shape()[0] != y.Shape()[0] {
		return nil, fmt.Errorf("join: got shapes %v and %v, want matrices with equally many rows", x.Shape(), y.Shape())
	}
	n, a, b := x.Shape()[0], x.Shape()[1], y.Shape()[1]
	return Unitwise{
		Spec:     JoinOp{},
		Out:      tensor.Shape{n, a + b},
		Units:    n,
		ByUnit:   []bool{true, true},
		Division: ir.ByUnits,
		Float32:  join[float32](a, b),
		Float64:  join[float64](a, b),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			var c Chain
			left := c.Do("left", func() (*gorgonia.Node, error) { return Columns(grad, 0, a) })
			right := c.Do("right", func() (*gorgonia.Node, error) { return Columns(grad, a, b) })
			return gorgonia.Nodes{left, right}, c.Err()
		},
	}.Apply(x, y)
}

// Columns returns columns from, ..., from+count-1 of the matrix x.
func Columns(x *gorgonia.Node, from, count int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 || from < 0 || count < 1 || from+count > x.Shape()[1] {
		return nil, fmt.Errorf("columns: got columns %d to %d of shape %v", from, from+count, x.Shape())
	}
	n, of := x.Shape()[0], x.Shape()[1]
	return Unitwise{
		Spec:     ColumnsOp{from, count},
		Out:      tensor.Shape{n, count},
		Units:    n,
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Float32:  columns[float32](from, count, of),
		Float64:  columns[float64](from, count, of),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(Widen(grad, from, of))
		},
	}.Apply(x)
}

// Widen returns a matrix of zeros with `of` columns in which the matrix x (n, m) fills the columns from, from+1, ... It
// is the transpose and the derivative of [Columns].
func Widen(x *gorgonia.Node, from, of int) (*gorgonia.Node, error) {
	if len(x.Shape()) != 2 || from < 0 || from+x.Shape()[1] > of {
		return nil, fmt.Errorf("widen: got shape %v, which does not fit into columns %d to %d", x.Shape(), from, of)
	}
	n, count := x.Shape()[0], x.Shape()[1]
	return Unitwise{
		Spec:     WidenOp{from, of},
		Out:      tensor.Shape{n, of},
		Units:    n,
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Float32:  widened[float32](from, count, of),
		Float64:  widened[float64](from, count, of),
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(Columns(grad, from, count))
		},
	}.Apply(x)
}

func join[T Float](a, b int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			row := dst[i*(a+b):][:a+b]
			copy(row, in[0][i*a:][:a])
			copy(row[a:], in[1][i*b:][:b])
		}
	}
}

func columns[T Float](first, count, of int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			copy(dst[i*count:][:count], in[0][i*of+first:])
		}
	}
}

func widened[T Float](first, count, of int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			row := dst[i*of:][:of]
			clear(row)
			copy(row[first:], in[0][i*count:][:count])
		}
	}
}

// withDiagonalOp is the spec of [WithDiagonal]. partnersOp is the spec of [Partners]. partnersGradOp is the spec of the
// derivative of Partners, which is its transpose.
type (
	withDiagonalOp struct{ Value float64 }
	partnersOp     struct{}
	partnersGradOp struct{}
)

// WithDiagonal returns the square matrix x with every diagonal element replaced by v. The derivative is 0 on the diagonal.
func WithDiagonal(x *gorgonia.Node, v float64) (*gorgonia.Node, error) {
	n, err := square("with diagonal", x)
	if err != nil {
		return nil, err
	}
	return Unitwise{Spec: withDiagonalOp{v}, Out: []int{n, n}, Units: n, ByUnit: []bool{true},
		Float32: withDiagonal[float32](n, v, itself), Float64: withDiagonal[float64](n, v, itself), Division: ir.ByUnits,
		At: func(at func(int) int) (units[float32], units[float64]) {
			return withDiagonal[float32](n, v, at), withDiagonal[float64](n, v, at)
		},
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(WithDiagonal(grad, 0))
		},
	}.Apply(x)
}

// Partners returns one element of each row of the matrix x (n, n), n even: from row i the element in column (i + n/2)
// mod n. The derivative puts the gradients at these elements.
func Partners(x *gorgonia.Node) (*gorgonia.Node, error) {
	n, err := square("partners", x)
	if err != nil {
		return nil, err
	}
	if n%2 != 0 {
		return nil, fmt.Errorf("partners: got shape %v, want an even number of rows", x.Shape())
	}
	return Unitwise{Spec: partnersOp{}, Out: []int{n}, Units: n, ByUnit: []bool{true},
		Float32: partners[float32](n, itself), Float64: partners[float64](n, itself), Division: ir.ByUnits,
		At: func(at func(int) int) (units[float32], units[float64]) {
			return partners[float32](n, at), partners[float64](n, at)
		},
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(unpartner(grad))
		},
	}.Apply(x)
}

// unpartner returns the transpose of [Partners].
func unpartner(x *gorgonia.Node) (*gorgonia.Node, error) {
	n := x.Shape()[0]
	return Unitwise{Spec: partnersGradOp{}, Out: []int{n, n}, Units: n, ByUnit: []bool{true},
		Float32: unpartners[float32](n, itself), Float64: unpartners[float64](n, itself), Division: ir.ByUnits,
		At: func(at func(int) int) (units[float32], units[float64]) {
			return unpartners[float32](n, at), unpartners[float64](n, at)
		},
		Derivative: func(_ gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(Partners(grad))
		},
	}.Apply(x)
}

// square returns the number of rows of the square matrix x, and an error for other shapes. The text what names the op
// in the error.
func square(what string, x *gorgonia.Node) (int, error) {
	shape := x.Shape()
	if len(shape) != 2 || shape[0] != shape[1] {
		return 0, fmt.Errorf("%s: got shape %v, want a square matrix", what, shape)
	}
	return shape[0], nil
}

// itself returns row. It is the index function of an op that computes all rows.
func itself(row int) int { return row }

func withDiagonal[T Float](n int, v float64, at func(row int) int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		copy(dst[from*n:to*n], in[0][from*n:to*n])
		for i := from; i < to; i++ {
			dst[i*n+at(i)] = T(v)
		}
	}
}

func partners[T Float](n int, at func(row int) int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for i := from; i < to; i++ {
			dst[i] = in[0][i*n+(at(i)+n/2)%n]
		}
	}
}

func unpartners[T Float](n int, at func(row int) int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*n : to*n])
		for i := from; i < to; i++ {
			dst[i*n+(at(i)+n/2)%n] = in[0][i]
		}
	}
}

// Patching cuts images (Height, Width, Channels) into adjacent square patches of Size x Size pixels. The result is
// tokens (Height/Size * Width/Size, Size*Size*Channels). The order of the patches is row by row, and so is the order of
// the pixels in a patch; channels come last. [Patching.Cut] and [Patching.Join] only move values. Each is the inverse
// and also the derivative of the other.
type Patching struct {
	Height, Width, Channels int
	Size                    int
}

// CutPatchesOp is the spec of [Patching.Cut], JoinPatchesOp of [Patching.Join].
type (
	CutPatchesOp  Patching
	JoinPatchesOp Patching
)

// Check returns an error for an invalid geometry.
func (p Patching) Check() error {
	if p.Height < 1 || p.Width < 1 || p.Channels < 1 || p.Size < 1 {
		return fmt.Errorf("patches: %+v: every size must be > 0", p)
	}
	if p.Height%p.Size != 0 || p.Width%p.Size != 0 {
		return fmt.Errorf("patches of %d pixels do not divide images of %d x %d", p.Size, p.Height, p.Width)
	}
	return nil
}

// Tokens returns the number of patches of an image.
func (p Patching) Tokens() int { return (p.Height / p.Size) * (p.Width / p.Size) }

// Features returns the number of values of a patch.
func (p Patching) Features() int { return p.Size * p.Size * p.Channels }

// Cut returns the tokens (batch, tokens, features) of images x, which may have any shape with the batch as first axis.
func (p Patching) Cut(x *gorgonia.Node) (*gorgonia.Node, error) {
	return p.move(x, CutPatchesOp(p), tensor.Shape{p.Tokens(), p.Features()}, p.Join,
		movePatches[float32](p, false), movePatches[float64](p, false))
}

// Join returns the images (batch, Height, Width, Channels) of tokens x.
func (p Patching) Join(x *gorgonia.Node) (*gorgonia.Node, error) {
	return p.move(x, JoinPatchesOp(p), tensor.Shape{p.Height, p.Width, p.Channels}, p.Cut,
		movePatches[float32](p, true), movePatches[float64](p, true))
}

// move adds the op that turns x into images or tokens of shape out. back is the inverse op.
func (p Patching) move(x *gorgonia.Node, spec any, out tensor.Shape, back unary, f32 units[float32], f64 units[float64]) (*gorgonia.Node, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := x.Shape()
	if len(s) < 2 || s[1:].TotalSize() != out.TotalSize() {
		return nil, fmt.Errorf("patches: got shape %v, want (batch) and %d values", s, out.TotalSize())
	}
	o := &Unitwise{
		Spec:     spec,
		Out:      append(tensor.Shape{s[0]}, out...),
		Units:    s[0],
		ByUnit:   []bool{true},
		Division: ir.ByUnits,
		Float32:  f32,
		Float64:  f64,
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			g, err := back(grad)
			if err == nil && !slices.Equal(g.Shape(), s) {
				g, err = Reshape(g, s...)
			}
			return gorgonia.Nodes{g}, err
		},
	}
	return o.Apply(x)
}

// movePatches returns the kernel that copies images [from, to) to their tokens, or tokens to images if back is true.
func movePatches[T Float](p Patching, back bool) units[T] {
	line, run, image := p.Width*p.Channels, p.Size*p.Channels, p.Height*p.Width*p.Channels
	return func(dst []T, in [][]T, _ []T, from, to int) {
		tokens := from * image // offset in the tokens of the next run of a patch
		for b := from; b < to; b++ {
			for top := b * image; top < (b+1)*image; top += p.Size * line {
				for left := top; left < top+line; left += run {
					for row := range p.Size {
						pixels := left + row*line
						if back {
							copy(dst[pixels:pixels+run], in[0][tokens:])
						} else {
							copy(dst[tokens:tokens+run], in[0][pixels:])
						}
						tokens += run
					}
				}
			}
		}
	}
}
