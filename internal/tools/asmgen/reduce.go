package main

import (
	"math"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// reduction reduces arrays to one number. Four accumulators take the vectors in turn; then the accumulators are combined
// pairwise, and then the halves of the result. The order depends only on the length.
type reduction struct {
	field  string // name of the field of kernel.Set
	arrays int
	start  float64                            // neutral element
	fold   func(a *asm, sum vec, x []vec) vec // adds a vector to an accumulator
	join   func(a *asm, x, y vec) vec         // combines two accumulators
	hide   bool                               // unselected elements must be set to start, because 0 is not neutral
}

const accumulators = 4

func plus(a *asm, x, y vec) vec { return a.add(x, y) }

var reductions = []reduction{
	{"Sum", 1, 0, func(a *asm, sum vec, x []vec) vec { return a.add(sum, x[0]) }, plus, false},
	{"SumAbs", 1, 0, func(a *asm, sum vec, x []vec) vec { return a.add(sum, a.abs(x[0])) }, plus, false},
	{"SumSquares", 1, 0, func(a *asm, sum vec, x []vec) vec { return a.fma(x[0], x[0], sum) }, plus, false},
	{"Dot", 2, 0, func(a *asm, sum vec, x []vec) vec { return a.fma(x[0], x[1], sum) }, plus, false},
	{"SquaredDistance", 2, 0, func(a *asm, sum vec, x []vec) vec {
		d := a.sub(x[0], x[1])
		return a.fma(d, d, sum)
	}, plus, false},
	{"Maximum", 1, math.Inf(-1), func(a *asm, most vec, x []vec) vec { return a.maximum(most, x[0]) }, func(a *asm, x, y vec) vec { return a.maximum(x, y) }, true},
}

func (a *x86) maximum(x, y vec) vec {
	most := a.larger(x, y)
	return a.choose(a.compare(unordered, x, x), x, most)
}

func emitReductions(a *x86) {
	for _, r := range reductions {
		r.emit(a)
	}
	emitFromBytes(a)
}

func (r reduction) emit(x *x86) {
	a := &asm{x}
	operands := []string{"a", "b"}[:r.arrays]
	name := a.kernelName(r.field)
	a.function(name, "func("+strings.Join(operands, ", ")+" []float32) float32")
	var sums [accumulators]reg.VecVirtual
	for i := range sums {
		sums[i] = x.copied(a.constant(r.start))
	}
	arrays := []array{}
	for _, o := range operands {
		arrays = append(arrays, array{name: o, read: true})
	}
	run := &sweep{x86: x, arrays: arrays, unroll: accumulators}
	run.body = func(in []vec, live mask, step int) []vec {
		if r.hide && live != nil {
			in[0] = a.choose(live, in[0], a.constant(r.start))
		}
		x.VMOVAPS(r.fold(a, sums[step], in), sums[step])
		return nil
	}
	run.emit()
	total := r.join(a, r.join(a, sums[0], sums[1]), r.join(a, sums[2], sums[3]))
	result := r.across(x, total)
	to, err := x.ReturnIndex(0).Resolve()
	if err != nil {
		panic(err) // the result that the signature has
	}
	x.VMOVSS(result, to.Addr)
	x.done()
}

// across combines the halves of a vector until one element remains.
func (r reduction) across(a *x86, x vec) reg.Register {
	f := &asm{a}
	if a.wide() {
		half := a.vector()
		a.VSHUFF64X2(operand.U8(0b01_00_11_10), x, x, half) // the upper half comes down
		x = r.join(f, x, half)
	}
	for _, order := range []struct{ lanes, within uint8 }{{0b10_11_00_01, 0}, {0, 0b01_00_11_10}, {0, 0b10_11_00_01}} {
		moved := a.vector()
		switch {
		case order.within != 0:
			a.VPERMILPS(operand.U8(order.within), x, moved)
		case a.wide():
			a.VSHUFF64X2(operand.U8(order.lanes), x, x, moved)
		default:
			a.VPERM2F128(operand.U8(1), x, x, moved)
		}
		x = r.join(f, x, moved)
	}
	return a.register(x).AsX()
}

// emitFromBytes writes the conversion of bytes to dst = b/255, correctly rounded without a division: q = b*(1/255) has a
// rounding error, which the remainder b - 255q corrects. FMA computes the remainder exactly.
func emitFromBytes(a *x86) {
	name := a.kernelName("FromBytes")
	a.function(name, "func(dst []float32, src []byte)")
	dst, src, n := a.GP64(), a.GP64(), a.GP64()
	length := a.GP64()
	a.Load(a.Param("dst").Base(), dst)
	a.Load(a.Param("src").Base(), src)
	a.Load(a.Param("dst").Len(), n)
	a.Load(a.Param("src").Len(), length)
	a.CMPQ(length, n)
	a.CMOVQLT(length, n)
	lanes := a.lanes(4)
	loop, rest, one, end := a.label("loop"), a.label("rest"), a.label("one"), a.label("end")
	a.Label(loop)
	a.CMPQ(n, operand.U32(lanes))
	a.JLT(operand.LabelRef(rest))
	whole := a.vector()
	a.VPMOVZXBD(operand.Mem{Base: src}, whole)
	a.VMOVUPS((&asm{a}).per255(a.toFloat(whole)), operand.Mem{Base: dst})
	a.ADDQ(operand.U32(lanes), src)
	a.ADDQ(operand.U32(4*lanes), dst)
	a.SUBQ(operand.U32(lanes), n)
	a.JMP(operand.LabelRef(loop))
	a.Label(rest)
	a.TESTQ(n, n)
	a.JEQ(operand.LabelRef(end))
	a.Label(one)
	single, b := a.vector(), a.GP32()
	a.MOVBLZX(operand.Mem{Base: src}, b)
	a.VMOVD(b, single.AsX())
	a.VMOVSS(a.register((&asm{a}).per255(a.toFloat(single))).AsX(), operand.Mem{Base: dst})
	a.INCQ(src)
	a.ADDQ(operand.U32(4), dst)
	a.DECQ(n)
	a.JNE(operand.LabelRef(one))
	a.Label(end)
	a.done()
}

func (a *asm) per255(b vec) vec {
	inverse, divisor := a.constant(1.0/255), a.constant(255)
	q := a.mul(b, inverse)
	return a.fma(a.fnma(q, divisor, b), inverse, q)
}
