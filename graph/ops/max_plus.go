package ops

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"tessera/internal/engine/ir"
	vector "tessera/internal/engine/kernel"
	"tessera/internal/volume"
)

// MaxPlus returns the product of h (batch, units) and w (units, n) in the max-plus algebra:
//
//	y(b,i) = max over j of h(b,j) + w(j,i)
//
// The derivative is a subgradient: the gradient of an element goes to the first unit that attains the maximum.
func MaxPlus(h, w *gorgonia.Node) (*gorgonia.Node, error) {
	if len(h.Shape()) != 2 || len(w.Shape()) != 2 || h.Shape()[1] != w.Shape()[0] {
		return nil, fmt.Errorf("max plus: shapes %v and %v are not (batch, units) and (units, n)", h.Shape(), w.Shape())
	}
	m := maxPlus{batch: h.Shape()[0], units: h.Shape()[1], n: w.Shape()[1]}
	o := m.value(MaxPlusOp{})
	o.Derivative = func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		winner, err := m.winner(maxPlusWinnerOp{}, in[0], in[1], y)
		if err != nil {
			return nil, err
		}
		return both(m.codeGradient(winner, grad))(m.weightGradient(winner, grad))
	}
	return o.Apply(h, w)
}

// MaxTimes returns the product of h (batch, units) and w (units, n) with maxima in the place of sums:
//
//	y(b,i) = max over j of h(b,j) w(j,i)
//
// The derivative is a subgradient: that of the product of the first unit that attains the maximum.
func MaxTimes(h, w *gorgonia.Node) (*gorgonia.Node, error) {
	if len(h.Shape()) != 2 || len(w.Shape()) != 2 || h.Shape()[1] != w.Shape()[0] {
		return nil, fmt.Errorf("max times: shapes %v and %v are not (batch, units) and (units, n)", h.Shape(), w.Shape())
	}
	m := maxPlus{batch: h.Shape()[0], units: h.Shape()[1], n: w.Shape()[1], times: true}
	o := m.value(maxTimesOp{})
	o.Derivative = func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
		var c Chain
		winner := c.Do("winner", func() (*gorgonia.Node, error) { return m.winner(maxTimesWinnerOp{}, in[0], in[1], y) })
		ofCode := c.Mul(grad, c.Do("weight", func() (*gorgonia.Node, error) { return m.pickWeight(winner, in[1]) }))
		ofWeight := c.Mul(grad, c.Do("code", func() (*gorgonia.Node, error) { return m.pickCode(winner, in[0]) }))
		if err := c.Err(); err != nil {
			return nil, err
		}
		return both(m.codeGradient(winner, ofCode))(m.weightGradient(winner, ofWeight))
	}
	return o.Apply(h, w)
}

// value returns the op of the product, without its derivative.
func (m maxPlus) value(spec any) *Unitwise {
	return &Unitwise{
		Spec:     spec,
		Out:      tensor.Shape{m.batch, m.n},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, false},
		Scratch:  m.n,
		Work:     m.work(),
		Float32:  maxPlusValue(m, vector.Float32),
		Float64:  maxPlusValue(m, vector.Float64),
	}
}

// Specs of [MaxPlus], of [MaxTimes] and of their derivatives. maxPlusWinnerOp and maxTimesWinnerOp map h, w and y to the winner of each element of y: the first
// unit j that attains the maximum. maxPlusCodeOp and maxPlusWeightOp sum the gradient of y over the elements with the
// same winner, for h (batch, units) and for w (units, n). maxPlusPickCodeOp and maxPlusPickWeightOp are their
// transposes: they return the value of v at each winner.
type (
	MaxPlusOp           struct{}
	maxTimesOp          struct{}
	maxPlusWinnerOp     struct{}
	maxTimesWinnerOp    struct{}
	maxPlusCodeOp       struct{}
	maxPlusWeightOp     struct{}
	maxPlusPickCodeOp   struct{}
	maxPlusPickWeightOp struct{}
)

// maxPlus contains the shapes of a product, and whether its terms are products instead of sums.
type maxPlus struct {
	batch, units, n int
	times           bool
}

// terms sets dst to the terms of a unit with code h and weights w.
func terms[T Float](m maxPlus, k *vector.Set[T], dst, w []T, h T) {
	if m.times {
		k.MulScalar(dst, w, h)
	} else {
		k.AddScalar(dst, w, h)
	}
}

func (m maxPlus) work() float64 { return 2 * float64(m.batch*m.units*m.n) }

// winner returns, for every element of y, the index of the first unit that attains the maximum.
func (m maxPlus) winner(spec any, h, w, y *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     spec,
		Out:      tensor.Shape{m.batch, m.n},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, false, true},
		Scratch:  m.n,
		Work:     m.work(),
		Float32:  maxPlusWinner(m, vector.Float32),
		Float64:  maxPlusWinner(m, vector.Float64),
		Fixed:    []bool{true, true, true},
	}
	return o.Apply(h, w, y)
}

// codeGradient returns the derivative with respect to h.
func (m maxPlus) codeGradient(winner, grad *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     maxPlusCodeOp{},
		Out:      tensor.Shape{m.batch, m.units},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, true},
		Work:     float64(m.batch * m.n),
		Float32:  maxPlusCode[float32](m),
		Float64:  maxPlusCode[float64](m),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(m.pickCode(in[0], grad))
		},
	}
	return o.Apply(winner, grad)
}

// weightGradient returns the derivative with respect to w.
func (m maxPlus) weightGradient(winner, grad *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     maxPlusWeightOp{},
		Out:      tensor.Shape{m.units, m.n},
		Units:    m.units,
		ByUnit:   []bool{false, false},
		Division: ir.BySums,
		Work:     float64(m.batch * m.n),
		Float32:  maxPlusWeight[float32](m),
		Float64:  maxPlusWeight[float64](m),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(m.pickWeight(in[0], grad))
		},
	}
	return o.Apply(winner, grad)
}

// pickCode returns, for every element of y, the value of v (batch, units) at its winner. It is the transpose of
// codeGradient.
func (m maxPlus) pickCode(winner, v *gorgonia.Node) (*gorgonia.Node, error) {
	return m.pick(maxPlusPickCodeOp{}, true, m.units, 1, 0, m.codeGradient, winner, v)
}

// pickWeight returns, for every element of y, the value of v (units, n) at its winner. It is the transpose of
// weightGradient.
func (m maxPlus) pickWeight(winner, v *gorgonia.Node) (*gorgonia.Node, error) {
	return m.pick(maxPlusPickWeightOp{}, false, 0, m.n, 1, m.weightGradient, winner, v)
}

// pick returns, for element i of row b of y with the winner j, the element b row + j unit + i column of v. The rows of v are those
// of y if byUnit is true. transpose is the transpose of the op.
func (m maxPlus) pick(spec any, byUnit bool, row, unit, column int, transpose func(winner, grad *gorgonia.Node) (*gorgonia.Node, error),
	winner, v *gorgonia.Node) (*gorgonia.Node, error) {
	o := &Unitwise{
		Spec:     spec,
		Out:      tensor.Shape{m.batch, m.n},
		Units:    m.batch,
		Division: ir.ByUnits,
		ByUnit:   []bool{true, byUnit},
		Float32:  maxPlusPick[float32](m, row, unit, column),
		Float64:  maxPlusPick[float64](m, row, unit, column),
		Fixed:    []bool{true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return second(transpose(in[0], grad))
		},
	}
	return o.Apply(winner, v)
}

func maxPlusValue[T Float](m maxPlus, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, h, w := kernels(), in[0], in[1]
		sums := scratch[:m.n]
		for b := from; b < to; b++ {
			y := dst[b*m.n : (b+1)*m.n]
			k.Fill(y, T(math.Inf(-1)))
			for j := range m.units {
				terms(m, k, sums, w[j*m.n:(j+1)*m.n], h[b*m.units+j])
				k.Max(y, y, sums)
			}
		}
	}
}

func maxPlusWinner[T Float](m maxPlus, kernels func() *vector.Set[T]) units[T] {
	return func(dst []T, in [][]T, scratch []T, from, to int) {
		k, h, w, y := kernels(), in[0], in[1], in[2]
		sums := scratch[:m.n]
		for b := from; b < to; b++ {
			winner, best := dst[b*m.n:(b+1)*m.n], y[b*m.n:(b+1)*m.n]
			k.Fill(winner, T(m.units))
			for j := range m.units {
				terms(m, k, sums, w[j*m.n:(j+1)*m.n], h[b*m.units+j])
				k.Eq(sums, sums, best)
				k.AddScalar(sums, sums, -1) // 0 where unit j wins, -1 elsewhere
				k.MulScalar(sums, sums, T(-m.units))
				k.AddScalar(sums, sums, T(j)) // j where unit j wins, a number >= units elsewhere
				k.Min(winner, winner, sums)
			}
		}
	}
}

func maxPlusCode[T Float](m maxPlus) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*m.units : to*m.units])
		for b := from; b < to; b++ {
			winner, g := in[0][b*m.n:(b+1)*m.n], in[1][b*m.n:(b+1)*m.n]
			for i, j := range winner {
				if j < T(m.units) { // the index is units where y is NaN
					dst[b*m.units+int(j)] += g[i]
				}
			}
		}
	}
}

func maxPlusWeight[T Float](m maxPlus) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		clear(dst[from*m.n : to*m.n])
		for b := range len(in[0]) / m.n {
			winner, g := in[0][b*m.n:(b+1)*m.n], in[1][b*m.n:(b+1)*m.n]
			for i, j := range winner {
				if j >= T(from) && j < T(to) {
					dst[int(j)*m.n+i] += g[i]
				}
			}
		}
	}
}

func maxPlusPick[T Float](m maxPlus, row, unit, column int) units[T] {
	return func(dst []T, in [][]T, _ []T, from, to int) {
		for b := from; b < to; b++ {
			for i, j := range in[0][b*m.n : (b+1)*m.n] {
				dst[b*m.n+i] = 0
				if j < T(m.units) {
					dst[b*m.n+i] = in[1][b*row+int(j)*unit+i*column]
				}
			}
		}
	}
}

// dilateOp is the spec of [Dilate], dilateGradOp the spec of its derivative, with inputs x, y = dilate(x) and the gradient of
// y. dilatePickOp is the spec of the transpose of the derivative: it maps x, y and v to the value of v at the neighbour that
// attains each maximum.
type (
	dilateOp struct {
		Shape  []int    // shape of one image
		Radius int      // radius of the disk, in pixels
		Others [][2]int // offsets (dy, dx) of another structuring element; nil for the disk
	}
	dilateGradOp dilateOp
	dilatePickOp dilateOp
)

// Dilate returns the flat grey-level dilation of every row of x, which is an image of shape (height, width) or (height,
// width, channels). The structuring element is the disk d = {(dy,dx): dy*dy + dx*dx <= radius*radius}, radius in
// pixels:
//
//	y(p) = max of x(p+o) over the offsets o in d for which p+o lies in the image
//
// The derivative is a subgradient. The gradient of each pixel goes to one neighbour that attains the maximum: the
// nearest one, and of equally near ones the first in reading order.
func Dilate(x *gorgonia.Node, shape []int, radius int) (*gorgonia.Node, error) {
	g, err := newDisk(shape, radius)
	return dilateRows(x, shape, g, err)
}

// DilateBy is like [Dilate] with a structuring element given by offsets (dy, dx), which must contain (0, 0).
func DilateBy(x *gorgonia.Node, shape []int, offsets [][2]int) (*gorgonia.Node, error) {
	g, err := newElement(shape, offsets)
	return dilateRows(x, shape, g, err)
}

func dilateRows(x *gorgonia.Node, shape []int, g disk, err error) (*gorgonia.Node, error) {
	if err != nil {
		return nil, fmt.Errorf("dilate: %w", err)
	}
	if len(x.Shape()) != 2 || x.Shape()[1] != volume.Of(shape) {
		return nil, fmt.Errorf("dilate: got rows of shape %v, want images of shape %v", x.Shape(), shape)
	}
	return Blockwise{
		Spec:    g.spec,
		Rows:    true,
		Float32: dilate(g, vector.Float32),
		Float64: dilate(g, vector.Float64),
		Derivative: func(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			return gradientOf(g.gradient().Apply(in[0], y, grad))
		},
	}.Apply(x)
}

// gradient maps x, y = dilate(x) and the gradient of y to the gradient of x.
func (d disk) gradient() Blockwise {
	return Blockwise{
		Spec:    dilateGradOp(d.spec),
		Rows:    true,
		Float32: dilateGrad(d, vector.Float32),
		Float64: dilateGrad(d, vector.Float64),
		Fixed:   []bool{true, true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			n, err := d.pick().Apply(in[0], in[1], grad)
			return gorgonia.Nodes{nil, nil, n}, err
		},
	}
}

// pick maps x, y = dilate(x) and v to the value of v at the neighbour that attains each maximum. It is the transpose of
// gradient, which is linear in the gradient of y.
func (d disk) pick() Blockwise {
	return Blockwise{
		Spec:    dilatePickOp(d.spec),
		Rows:    true,
		Float32: dilatePick(d, vector.Float32),
		Float64: dilatePick(d, vector.Float64),
		Fixed:   []bool{true, true, false},
		Derivative: func(in gorgonia.Nodes, _, grad *gorgonia.Node) (gorgonia.Nodes, error) {
			n, err := d.gradient().Apply(in[0], in[1], grad)
			return gorgonia.Nodes{nil, nil, n}, err
		},
	}
}

// disk is a disk, or another structuring element, for padded images of one shape. In a padded image each offset of the
// element is the same distance for all pixels, so one call of a vector kernel processes an entire image. With reach the
// largest coordinate of the offsets, the padding consists of reach rows above and below the image, and of reach columns
// between the end of a row and the start of the next.
type disk struct {
	spec      dilateOp
	rows, row int   // rows of an image, and values in a row
	stride    int   // values in one padded row
	origin    int   // index of the first pixel in the padded image
	padded    int   // values in a padded image
	offsets   []int // distances in a padded image, starting with that of the centre
}

func newDisk(shape []int, radius int) (disk, error) {
	if len(shape) != 2 && len(shape) != 3 || slices.Min(shape) < 1 {
		return disk{}, fmt.Errorf("shape %v: want (height, width) or (height, width, channels)", shape)
	}
	if most := max(shape[0], shape[1]); radius < 1 || radius > most {
		return disk{}, fmt.Errorf("radius: got %d, want from 1 to %d, the images' longer side", radius, most)
	}
	var list [][2]int
	for dy := -radius; dy <= radius; dy++ {
		for dx := -radius; dx <= radius; dx++ {
			if dy*dy+dx*dx <= radius*radius {
				list = append(list, [2]int{dy, dx})
			}
		}
	}
	return padded(dilateOp{Shape: slices.Clone(shape), Radius: radius}, radius, list), nil
}

func newElement(shape []int, offsets [][2]int) (disk, error) {
	if len(shape) != 2 && len(shape) != 3 || slices.Min(shape) < 1 {
		return disk{}, fmt.Errorf("shape %v: want (height, width) or (height, width, channels)", shape)
	}
	if !slices.Contains(offsets, [2]int{}) {
		return disk{}, fmt.Errorf("offsets %v: want (0, 0) among them", offsets)
	}
	reach := 1
	for _, o := range offsets {
		reach = max(reach, o[0], -o[0], o[1], -o[1])
	}
	if most := max(shape[0], shape[1]); reach > most {
		return disk{}, fmt.Errorf("offsets: got a distance of %d, want at most %d, the images' longer side", reach, most)
	}
	return padded(dilateOp{Shape: slices.Clone(shape), Others: slices.Clone(offsets)}, reach, offsets), nil
}

// padded returns the structuring element with the layout of its padded images. reach is the largest coordinate of the
// offsets.
func padded(spec dilateOp, reach int, offsets [][2]int) disk {
	channels := 1
	if len(spec.Shape) == 3 {
		channels = spec.Shape[2]
	}
	d := disk{spec: spec, rows: spec.Shape[0], row: spec.Shape[1] * channels}
	margin := reach * channels
	d.stride = d.row + margin
	d.origin = reach*d.stride + margin
	d.padded = (d.rows+2*reach)*d.stride + margin
	list := slices.Clone(offsets)
	slices.SortStableFunc(list, func(a, b [2]int) int { return cmp.Compare(a[0]*a[0]+a[1]*a[1], b[0]*b[0]+b[1]*b[1]) })
	for _, o := range list {
		d.offsets = append(d.offsets, o[0]*d.stride+o[1]*channels)
	}
	return d
}

// span returns the number of values of a padded image from the first pixel to the last pixel.
func (d disk) span() int { return (d.rows-1)*d.stride + d.row }

// spread copies the rows of an image to their places in dst, a padded image from its first pixel on.
func spread[T Float](d disk, dst, image []T) {
	for y := range d.rows {
		copy(dst[y*d.stride:], image[y*d.row:(y+1)*d.row])
	}
}

// gather copies the rows of a padded image back to image. It is the inverse of spread.
func gather[T Float](d disk, image, src []T) {
	for y := range d.rows {
		copy(image[y*d.row:(y+1)*d.row], src[y*d.stride:])
	}
}

// padding is the workspace of one goroutine for one image.
type padding[T Float] struct {
	x, dx                     []T // padded images; the padding of x is -inf
	y, rest, selected, picked []T // padded images from the first pixel to the last pixel
}

func pool[T Float](d disk) *sync.Pool {
	return &sync.Pool{New: func() any {
		p := &padding[T]{x: make([]T, d.padded), dx: make([]T, d.padded),
			y: make([]T, d.span()), rest: make([]T, d.span()), selected: make([]T, d.span()), picked: make([]T, d.span())}
		for i := range p.x {
			p.x[i] = T(math.Inf(-1))
		}
		return p
	}}
}

func dilate[T Float](d disk, kernels func() *vector.Set[T]) kernel[T] {
	paddings := pool[T](d)
	return func(dst []T, in [][]T, block int) {
		k, p := kernels(), paddings.Get().(*padding[T])
		defer paddings.Put(p)
		for at := 0; at < len(dst); at += block {
			spread(d, p.x[d.origin:], in[0][at:at+block])
			copy(p.y, p.x[d.origin:])
			for _, o := range d.offsets[1:] {
				k.Max(p.y, p.y, p.x[d.origin+o:])
			}
			gather(d, dst[at:at+block], p.y)
		}
	}
}

// dilateGrad maps x, y = dilate(x) and the gradient g of y to the gradient of x. It visits the offsets in order. Where
// x, shifted by the offset, equals y, it moves the remaining value of g to the gradient of that pixel of x. The columns
// between rows have no values of g.
func dilateGrad[T Float](d disk, kernels func() *vector.Set[T]) kernel[T] {
	paddings := pool[T](d)
	return func(dst []T, in [][]T, block int) {
		k, p := kernels(), paddings.Get().(*padding[T])
		defer paddings.Put(p)
		for at := 0; at < len(dst); at += block {
			spread(d, p.x[d.origin:], in[0][at:at+block])
			spread(d, p.y, in[1][at:at+block])
			spread(d, p.rest, in[2][at:at+block])
			clear(p.dx)
			for _, o := range d.offsets {
				dx := p.dx[d.origin+o:][:len(p.rest)]
				k.Eq(p.selected, p.y, p.x[d.origin+o:])
				k.Mul(p.selected, p.selected, p.rest)
				k.Add(dx, dx, p.selected)
				k.Sub(p.rest, p.rest, p.selected)
			}
			gather(d, dst[at:at+block], p.dx[d.origin:])
		}
	}
}

// dilatePick maps x, y = dilate(x) and v to the values of v at the neighbours that attain the maxima. It visits the
// offsets in the order of dilateGrad.
func dilatePick[T Float](d disk, kernels func() *vector.Set[T]) kernel[T] {
	paddings := pool[T](d)
	return func(dst []T, in [][]T, block int) {
		k, p := kernels(), paddings.Get().(*padding[T])
		defer paddings.Put(p)
		for at := 0; at < len(dst); at += block {
			spread(d, p.x[d.origin:], in[0][at:at+block])
			spread(d, p.y, in[1][at:at+block])
			clear(p.dx)
			spread(d, p.dx[d.origin:], in[2][at:at+block])
			clear(p.picked)
			k.Fill(p.rest, 1) // 1 where no neighbour has been picked yet
			for _, o := range d.offsets {
				k.Eq(p.selected, p.y, p.x[d.origin+o:])
				k.Mul(p.selected, p.selected, p.rest)
				k.Sub(p.rest, p.rest, p.selected)
				k.Mul(p.selected, p.selected, p.dx[d.origin+o:])
				k.Add(p.picked, p.picked, p.selected)
			}
			gather(d, dst[at:at+block], p.picked)
		}
	}
}
