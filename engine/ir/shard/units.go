package shard

import (
	"fmt"
	"hash/fnv"
	"slices"

	"tessera/engine/ir"
	"tessera/internal/volume"
)

// units decides an op in units by its declaration.
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

// byUnits gives every process the units of its images: every image has a whole number of units.
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

// bySums lets every process sum over its images, which are the first axis of every arg.
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

// imagesOp is the kernel that takes the process's images out of a whole value.
type imagesOp struct {
	Outer, Batch, From, Rows int
	Rest                     int // elements
}

// cut returns the process's images of a whole value.
func (s *sharder) cut(v *ir.Value, shape, part []int, f form) *ir.Value {
	return &ir.Value{Op: ir.Unitwise{Kernel: imagesOp{f.outer, s.batch, s.from, s.to - s.from, s.rest(shape, f)}}, Args: []*ir.Value{v}, Shape: part}
}

// String implements [ir.Kernel].
func (o imagesOp) String() string { return fmt.Sprintf("images %d to %d", o.From, o.From+o.Rows) }

// Hashcode implements [ir.Kernel].
func (o imagesOp) Hashcode() uint32 {
	h := fnv.New32a()
	fmt.Fprintf(h, "%+v", o)
	return h.Sum32()
}

// Spec implements [ir.Kernel].
func (o imagesOp) Spec() any { return o }

// Units implements [ir.Units].
func (o imagesOp) Units() int { return o.Outer * o.Rows }

// ByUnit implements [ir.Units].
func (o imagesOp) ByUnit(int) bool { return false }

// Scratch implements [ir.Units].
func (o imagesOp) Scratch() int { return 0 }

// Work implements [ir.Units].
func (o imagesOp) Work() float64 { return float64(o.Outer * o.Rows * o.Rest) }

// Prepared implements [ir.Units].
func (o imagesOp) Prepared() (ir.Units, []int) { return nil, nil }

// Float32 implements [ir.Units].
func (o imagesOp) Float32(dst []float32, in [][]float32, _ []float32, from, to int) {
	copyImages(o, dst, in[0], from, to)
}

// Float64 implements [ir.Units].
func (o imagesOp) Float64(dst []float64, in [][]float64, _ []float64, from, to int) {
	copyImages(o, dst, in[0], from, to)
}

func copyImages[T ir.Float](o imagesOp, dst, src []T, from, to int) {
	for i := from; i < to; i++ {
		image := i/o.Rows*o.Batch + o.From + i%o.Rows
		copy(dst[i*o.Rest:(i+1)*o.Rest], src[image*o.Rest:])
	}
}

// size is the number of elements of a value.
func size(v *ir.Value) int { return volume.Of(v.Shape) }
