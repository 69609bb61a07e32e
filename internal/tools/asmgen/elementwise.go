package main

import (
	"fmt"
	"strings"
)

// elementwise is a kernel that maps arrays (named a, b, c) and scalars (s, t) to dst.
type elementwise struct {
	field   string // name of the field in kernel.Set
	arrays  int
	scalars int
	unroll  int
	body    func(a *asm, x []vec, s []vec) vec
}

func emitElementwise(m machine) {
	a := &asm{m}
	for _, list := range [][]elementwise{arithmetic, comparisons, functions, fused} {
		for _, k := range list {
			k.emit(a)
		}
	}
}

// kernelName returns the name of the function for a field of kernel.Set.
func (i isa) kernelName(field string) string {
	return strings.ToLower(field[:1]) + field[1:] + "_" + i.name
}

func (k elementwise) emit(a *asm) {
	operands, numbers := []string{"a", "b", "c"}[:k.arrays], []string{"s", "t"}[:k.scalars]
	signature := fmt.Sprintf("func(%s []float32", strings.Join(append([]string{"dst"}, operands...), ", "))
	if k.scalars > 0 {
		signature += ", " + strings.Join(numbers, ", ") + " float32"
	}
	a.function(a.kernelName(k.field), signature+")")
	var s []vec
	for _, n := range numbers {
		s = append(s, a.scalar(n))
	}
	arrays := []array{{name: "dst", write: true}}
	for _, o := range operands {
		arrays = append(arrays, array{name: o, read: true})
	}
	a.sweep(arrays, k.unroll, func(in []vec) []vec { return []vec{k.body(a, in, s)} })
	a.done()
}

var arithmetic = []elementwise{
	{"Add", 2, 0, 4, func(a *asm, x, _ []vec) vec { return a.add(x[0], x[1]) }},
	{"Sub", 2, 0, 4, func(a *asm, x, _ []vec) vec { return a.sub(x[0], x[1]) }},
	{"Mul", 2, 0, 4, func(a *asm, x, _ []vec) vec { return a.mul(x[0], x[1]) }},
	{"Div", 2, 0, 2, func(a *asm, x, _ []vec) vec { return a.div(x[0], x[1]) }},
	{"Max", 2, 0, 4, func(a *asm, x, _ []vec) vec { return a.nanOr(x[0], a.larger(x[0], x[1])) }},
	{"Min", 2, 0, 4, func(a *asm, x, _ []vec) vec { return a.nanOr(x[0], a.smaller(x[0], x[1])) }},
	{"AddScalar", 1, 1, 4, func(a *asm, x, s []vec) vec { return a.add(x[0], s[0]) }},
	{"ScalarSub", 1, 1, 4, func(a *asm, x, s []vec) vec { return a.sub(s[0], x[0]) }},
	{"MulScalar", 1, 1, 4, func(a *asm, x, s []vec) vec { return a.mul(x[0], s[0]) }},
	{"DivScalar", 1, 1, 2, func(a *asm, x, s []vec) vec { return a.div(x[0], s[0]) }},
	{"ScalarDiv", 1, 1, 2, func(a *asm, x, s []vec) vec { return a.div(s[0], x[0]) }},
	{"MaxScalar", 1, 1, 4, func(a *asm, x, s []vec) vec { return a.larger(s[0], x[0]) }},
	{"MinScalar", 1, 1, 4, func(a *asm, x, s []vec) vec { return a.smaller(s[0], x[0]) }},
	{"Fill", 0, 1, 4, func(_ *asm, _, s []vec) vec { return s[0] }},
	{"Neg", 1, 0, 4, func(a *asm, x, _ []vec) vec { return a.xor(x[0], a.word(1<<31)) }},
	{"Abs", 1, 0, 4, func(a *asm, x, _ []vec) vec { return a.abs(x[0]) }},
	{"Sign", 1, 0, 4, func(a *asm, x, _ []vec) vec {
		negative := a.choose(a.compare(lessThan, x[0], a.constant(0)), a.constant(-1), x[0])
		return a.choose(a.compare(moreThan, x[0], a.constant(0)), a.constant(1), negative)
	}},
	{"Square", 1, 0, 4, func(a *asm, x, _ []vec) vec { return a.mul(x[0], x[0]) }},
	{"Cube", 1, 0, 4, func(a *asm, x, _ []vec) vec { return a.mul(a.mul(x[0], x[0]), x[0]) }},
	{"Sqrt", 1, 0, 2, func(a *asm, x, _ []vec) vec { return a.sqrt(x[0]) }},
	{"Reciprocal", 1, 0, 2, func(a *asm, x, _ []vec) vec { return a.div(a.constant(1), x[0]) }},
	{"InvSqrt", 1, 0, 2, func(a *asm, x, _ []vec) vec { return a.div(a.constant(1), a.sqrt(x[0])) }},
}

// nanOr returns x where x is NaN, else y.
func (a *asm) nanOr(x, y vec) vec { return a.choose(a.compare(unordered, x, x), x, y) }

// comparisons contains two forms of each comparison: with an array and with a scalar.
var comparisons = func() (list []elementwise) {
	for _, c := range []struct {
		field     string
		predicate uint8
	}{{"Gt", moreThan}, {"Gte", atLeast}, {"Lt", lessThan}, {"Lte", atMost}, {"Eq", equal}, {"Ne", notEqual}} {
		list = append(list,
			elementwise{c.field, 2, 0, 4, func(a *asm, x, _ []vec) vec { return a.indicator(c.predicate, x[0], x[1]) }},
			elementwise{c.field + "Scalar", 1, 1, 4, func(a *asm, x, s []vec) vec { return a.indicator(c.predicate, x[0], s[0]) }})
	}
	return list
}()

var functions = []elementwise{
	{"Exp", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.exp(x[0]) }},
	{"Expm1", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.expm1(x[0]) }},
	{"Log", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.log(x[0]) }},
	{"Log1p", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.log1p(x[0]) }},
	{"Sigmoid", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.sigmoid(x[0]) }},
	{"Tanh", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.tanh(x[0]) }},
	{"Softplus", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.softplus(x[0]) }},
	{"ExpRounded", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.expRounded(x[0]) }},
	{"NormalCDF", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.normalCDF(x[0]) }},
	{"NormalPDF", 1, 0, 1, func(a *asm, x, _ []vec) vec { return a.normalPDF(x[0]) }},
}

var fused = []elementwise{
	{"AddScaled", 2, 1, 4, func(a *asm, x, s []vec) vec { return a.fma(x[1], s[0], x[0]) }},
	{"MulAdd", 3, 0, 4, func(a *asm, x, _ []vec) vec { return a.fma(x[0], x[1], x[2]) }},
	{"Clamp", 1, 2, 4, func(a *asm, x, s []vec) vec { return a.smaller(s[1], a.larger(s[0], x[0])) }},
	{"LeakyReLU", 1, 1, 4, func(a *asm, x, s []vec) vec { return a.leaky(x[0], x[0], s[0]) }},
	{"LeakyReLUGrad", 2, 1, 4, func(a *asm, x, s []vec) vec { return a.leaky(x[0], x[1], s[0]) }},
}

// leaky returns g where y > 0, else slope*g.
func (a *asm) leaky(g, y, slope vec) vec {
	return a.choose(a.compare(moreThan, y, a.constant(0)), g, a.mul(g, slope))
}

// indicator returns 1 where the comparison holds, else 0.
func (a *asm) indicator(predicate uint8, x, y vec) vec {
	return a.where(a.compare(predicate, x, y), a.constant(1))
}
