package shard

import (
	"fmt"
	"hash/fnv"
	"slices"

	"tessera/internal/engine/ir"
	"tessera/internal/volume"
)

var (
	_ ir.Kernel = (*imagesOp)(nil)
	_ ir.Units  = (*imagesOp)(nil)
)

// decision describes how the processes compute a value together.
type decision struct {
	form     form
	args     []form // the forms in which the op reads its args
	op       ir.Op  // op in the program of the process
	maximum  bool   // the value is the maximum of the values of the processes; this is none of the forms
	fallback bool   // the pass does not support the op, and an arg has the form images
}

// decide sets the decision for v. The decisions for its args must be set.
func (s *sharder) decide(v *ir.Value) {
	d := s.choose(v)
	if d == nil {
		d = &decision{op: v.Op, args: make([]form, len(v.Args))}
		_, product := v.Op.(ir.Product)
		d.fallback = !product && slices.ContainsFunc(v.Args, func(a *ir.Value) bool { return s.formOf(a).kind == images })
	}
	s.decisions[v] = d
	s.talks[v] = d.maximum
	for i, a := range v.Args {
		if s.talks[a] || d.args[i].kind != s.formOf(a).kind && s.formOf(a).kind != whole {
			s.talks[v] = true
		}
	}
}

// formOf returns the form in which v is computed.
func (s *sharder) formOf(v *ir.Value) form { return s.decisions[v].form }

// choose returns the decision for an op that the pass supports, and nil for an op that needs whole args.
func (s *sharder) choose(v *ir.Value) *decision {
	switch o := v.Op.(type) {
	case ir.Leaf:
		if o.Kind == ir.InputLeaf {
			return &decision{op: o, form: s.ofInput(v.Shape)}
		}
	case ir.Reshape:
		if f := s.formOf(v.Args[0]); f.kind == images {
			_, ok := s.local(v.Shape, f)
			return s.when(ok, v, f, f)
		}
		return s.linear(v)
	case ir.Broadcast:
		return s.broadcast(v)
	case ir.Pointwise:
		return s.pointwise(v, o)
	case ir.Reduction:
		return s.reduction(v, o)
	case ir.Transpose:
		return s.transpose(v, o)
	case ir.Product:
		return s.product(v, o)
	case ir.Blockwise:
		return s.blocks(v, o)
	case ir.Unitwise:
		return s.units(v, o)
	}
	return nil
}

// when returns a decision with the given forms of the result and the args if ok is true, else nil.
func (s *sharder) when(ok bool, v *ir.Value, result form, args ...form) *decision {
	if !ok {
		return nil
	}
	return &decision{op: v.Op, form: result, args: args}
}

// linear returns the decision for a linear op of one arg. Terms remain terms if the arg has no other reader.
func (s *sharder) linear(v *ir.Value) *decision {
	a := v.Args[0]
	return s.when(s.staysTerms(a) && volume.Of(v.Shape) <= volume.Of(a.Shape), v, form{kind: terms}, form{kind: terms})
}

// staysTerms reports whether a has the form terms and its reader may use the terms. A second reader would need a second
// message, except for single numbers, which cost nothing.
func (s *sharder) staysTerms(a *ir.Value) bool {
	return s.formOf(a).kind == terms && (s.readers[a] == 1 || volume.Of(a.Shape) == 1 && s.late[a])
}

func (s *sharder) broadcast(v *ir.Value) *decision {
	f := s.formOf(v.Args[0])
	if f.kind != images {
		return nil
	}
	a, ok := s.locate(v.Args[0].Shape, f)
	return s.when(ok && v.Shape[a.index] == v.Args[0].Shape[a.index], v, at(v.Shape, a.index, a.outer), f)
}

func (s *sharder) pointwise(v *ir.Value, o ir.Pointwise) *decision {
	for _, a := range v.Args {
		if f := s.formOf(a); f.kind == images {
			return s.when(true, v, f, slices.Repeat([]form{f}, len(v.Args))...)
		}
	}
	if !passes(v) {
		return nil
	}
	args := make([]form, len(v.Args))
	count := 0
	for i, a := range v.Args {
		switch {
		case s.staysTerms(a):
			args[i].kind = terms
			count++
		case s.formOf(a).kind == terms || s.talks[a] && !s.late[v]:
			return nil
		}
	}
	one := count == 1 && (o.F == ir.Neg || o.F == ir.Mul || o.F == ir.Div && args[0].kind == terms)
	return s.when(count > 0 && (one || o.F == ir.Add || o.F == ir.Sub), v, form{kind: terms}, args...)
}

func (s *sharder) reduction(v *ir.Value, o ir.Reduction) *decision {
	arg := v.Args[0]
	f := s.formOf(arg)
	if f.kind != images {
		if o.F != ir.Sum {
			return nil
		}
		return s.linear(v)
	}
	a, ok := s.locate(arg.Shape, f)
	if !ok {
		return nil
	}
	axes := o.Axes.List()
	if !slices.Contains(axes, a.index) {
		before := 0
		for _, x := range axes {
			if x < a.index {
				before++
			}
		}
		return s.when(true, v, at(v.Shape, a.index-before, a.outer), f)
	}
	if o.F == ir.Sum {
		return s.when(true, v, form{kind: terms}, f)
	}
	return &decision{op: o, args: []form{f}, maximum: true}
}

func (s *sharder) transpose(v *ir.Value, o ir.Transpose) *decision {
	f := s.formOf(v.Args[0])
	if f.kind != images {
		return s.linear(v)
	}
	a, ok := s.locate(v.Args[0].Shape, f)
	return s.when(ok, v, at(v.Shape, slices.Index(o.Axes.List(), a.index), a.outer), f)
}

func (s *sharder) blocks(v *ir.Value, o ir.Blockwise) *decision {
	for _, a := range v.Args {
		f := s.formOf(a)
		if f.kind != images || s.rest(a.Shape, f)%o.Block != 0 {
			continue
		}
		_, ok := s.local(v.Shape, f)
		for _, b := range v.Args {
			_, fits := s.local(b.Shape, f)
			ok = ok && fits
		}
		return s.when(ok, v, f, slices.Repeat([]form{f}, len(v.Args))...)
	}
	return nil
}

// kind is the kind of a form.
type kind uint8

const (
	whole  kind = iota // every process computes the complete value
	images             // every process computes the part for its images
	terms              // the value is the sum of the processes' values
)

// form is the distribution of a value over the processes. In row-major order, a value in the form images has the shape
// (outer, batch, rest). Reshapes do not change outer. It is 1, or 2 for the two views of the images, or more if other
// axes precede the batch.
type form struct {
	kind  kind
	outer int // for the kind images
}

// axis is the axis of a shape that contains the batch. Its length is outer times the batch times inner.
type axis struct{ index, outer, inner int }

// locate finds the axis of a shape that contains the batch. ok is false if several axes do.
func (s *sharder) locate(shape []int, f form) (a axis, ok bool) {
	before := 1
	for i, d := range shape {
		if outer := f.outer / max(before, 1); before > 0 && f.outer%before == 0 && d > 0 && d%(outer*s.batch) == 0 {
			return axis{i, outer, d / (outer * s.batch)}, true
		}
		before *= d
	}
	return axis{}, false
}

// local returns the shape of one process's part of a value in the form images. ok is false if the batch is not in a
// single axis.
func (s *sharder) local(shape []int, f form) (part []int, ok bool) {
	a, ok := s.locate(shape, f)
	if !ok {
		return nil, false
	}
	part = slices.Clone(shape)
	part[a.index] = a.outer * (s.to - s.from) * a.inner
	return part, true
}

// rest returns the number of elements for each image and each of the outer parts of a value in the form images.
func (s *sharder) rest(shape []int, f form) int { return volume.Of(shape) / (f.outer * s.batch) }

// at returns the form images for a value of the given shape, whose axis index contains the batch. outer is the number
// of parts of that axis before the batch.
func at(shape []int, index, outer int) form {
	return form{images, volume.Of(shape[:index]) * outer}
}

// Views returns the number of views of the images in an input of the given shape, which follow one another along the
// first axis. It is 2 if the first axis is twice the batch, 1 if it is another multiple of the batch, 0 if the input
// does not contain images.
func Views(shape []int, batch int) int {
	switch {
	case len(shape) == 0 || shape[0]%batch != 0:
		return 0
	case shape[0] == 2*batch:
		return 2
	}
	return 1
}

func (s *sharder) ofInput(shape []int) form {
	if n := Views(shape, s.batch); n > 0 {
		return form{images, n}
	}
	return form{}
}

// role is the role of the batch axis of a factor in a product.
type role uint8

const (
	none  role = iota // the factor does not contain the batch
	lead              // a leading axis, which A, B and C have in common
	side              // an axis of the result: the rows of A, or the columns of B
	depth             // the axis that is summed over
)

// factor is one factor of a product.
type factor struct {
	shape []int
	form  form
	role  role
	at    axis
	depth int // axis that is summed over
}

func (s *sharder) factor(v *ir.Value, summed int) factor {
	f := factor{shape: v.Shape, form: s.formOf(v), depth: summed}
	if f.form.kind != images {
		return f
	}
	a, ok := s.locate(v.Shape, f.form)
	if !ok {
		return f
	}
	switch f.at = a; {
	case a.index < len(v.Shape)-2:
		f.role = lead
	case a.index == summed:
		f.role = depth
	default:
		f.role = side
	}
	return f
}

// product returns the decision for a product C = A B. If one factor has the form images, the work is divided. If both
// have, and their batch axes do not correspond, one factor is gathered.
func (s *sharder) product(v *ir.Value, o ir.Product) *decision {
	n := len(v.Shape)
	pick := func(transposed bool, axis int) int {
		if transposed {
			return 2*n - 3 - axis // the other of the last two axes
		}
		return axis
	}
	a, b := s.factor(v.Args[0], pick(o.TransA, n-1)), s.factor(v.Args[1], pick(o.TransB, n-2))
	deep := func(outer int) *decision {
		return s.when(true, v, form{kind: terms}, at(a.shape, a.depth, outer), at(b.shape, b.depth, outer))
	}
	switch {
	case a.role == lead:
		return s.when(true, v, a.form, a.form, a.form)
	case b.role == lead:
		return s.when(true, v, b.form, b.form, b.form)
	case a.role == side && (b.role != side || volume.Of(b.shape) <= volume.Of(a.shape)):
		return s.when(true, v, at(v.Shape, n-2, a.at.outer), a.form, form{})
	case b.role == side:
		return s.when(true, v, at(v.Shape, n-1, b.at.outer), form{}, b.form)
	case a.role == depth:
		return deep(a.at.outer)
	case b.role == depth:
		return deep(b.at.outer)
	}
	return nil
}

// units returns the decision for a unitwise op, by its declared division.
func (s *sharder) units(v *ir.Value, o ir.Unitwise) *decision {
	k, ok := o.Kernel.(ir.Divisible)
	if !ok {
		return nil
	}
	switch k.Division() {
	case ir.ByUnits:
		return s.byUnits(v, k)
	case ir.BySums:
		return s.bySums(v)
	case ir.Linear:
		if len(v.Args) == 1 {
			return s.linear(v)
		}
	}
	return nil
}

// byUnits returns the decision for an op whose units are divided: every process computes the units of its images. Every
// image must have a whole number of units.
func (s *sharder) byUnits(v *ir.Value, k ir.Divisible) *decision {
	for i, a := range v.Args {
		f := s.formOf(a)
		if f.kind != images || !k.ByUnit(i) || k.Units()%(f.outer*s.batch) != 0 {
			continue
		}
		perImage := k.Units() / (f.outer * s.batch)
		args := make([]form, len(v.Args))
		_, ok := s.local(v.Shape, f)
		for j, b := range v.Args {
			if k.ByUnit(j) {
				args[j] = f
				_, fits := s.local(b.Shape, f)
				ok = ok && fits
			}
		}
		rows := s.to - s.from
		part := k.Part(f.outer*rows*perImage, func(unit int) int {
			outer, unit := unit/(rows*perImage), unit%(rows*perImage)
			return (outer*s.batch+s.from)*perImage + unit
		})
		d := s.when(ok, v, f, args...)
		if d != nil {
			d.op = ir.Unitwise{Kernel: part}
		}
		return d
	}
	return nil
}

// bySums returns the decision for an op that sums over the images: every process sums over its images, which are along
// the first axis of every arg.
func (s *sharder) bySums(v *ir.Value) *decision {
	for _, a := range v.Args {
		f := s.formOf(a)
		if f.kind != images {
			continue
		}
		ok := !slices.ContainsFunc(v.Args, func(b *ir.Value) bool {
			x, fits := s.locate(b.Shape, f)
			return !fits || x.index != 0
		})
		return s.when(ok, v, form{kind: terms}, slices.Repeat([]form{f}, len(v.Args))...)
	}
	return nil
}

// imagesOp is the kernel that copies the images of a process from a whole value.
type imagesOp struct {
	Outer, Batch, From, Rows int
	Rest                     int // in elements
}

// cut returns the images of the process from the whole value v.
func (s *sharder) cut(v *ir.Value, shape, part []int, f form) *ir.Value {
	return &ir.Value{Op: ir.Unitwise{Kernel: imagesOp{f.outer, s.batch, s.from, s.to - s.from, s.rest(shape, f)}}, Args: []*ir.Value{v}, Shape: part}
}

func (o imagesOp) String() string { return fmt.Sprintf("images %d to %d", o.From, o.From+o.Rows) }

func (o imagesOp) Hashcode() uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%+v", o)
	return h.Sum32()
}

func (o imagesOp) Spec() any                   { return o }
func (o imagesOp) Units() int                  { return o.Outer * o.Rows }
func (o imagesOp) ByUnit(int) bool             { return false }
func (o imagesOp) Scratch() int                { return 0 }
func (o imagesOp) Work() float64               { return float64(o.Outer * o.Rows * o.Rest) }
func (o imagesOp) Prepared() (ir.Units, []int) { return nil, nil }

func (o imagesOp) Float32(dst []float32, in [][]float32, _ []float32, from, to int) {
	copyImages(o, dst, in[0], from, to)
}

func (o imagesOp) Float64(dst []float64, in [][]float64, _ []float64, from, to int) {
	copyImages(o, dst, in[0], from, to)
}

func copyImages[T ir.Float](o imagesOp, dst, src []T, from, to int) {
	for i := from; i < to; i++ {
		image := i/o.Rows*o.Batch + o.From + i%o.Rows
		copy(dst[i*o.Rest:(i+1)*o.Rest], src[image*o.Rest:])
	}
}

// size returns the number of elements of a value.
func size(v *ir.Value) int { return volume.Of(v.Shape) }
