package engine

import (
	"math"

	"tessera/ops"
)

// function is what a pointwise value applies: one of the primitives below, or an op of ours that brings its own
// element-wise kernel ([ops.Kernel] with blocks of one element).
type function interface{ String() string }

// primitive is a function that the kernels have.
type primitive uint8

const (
	add primitive = iota
	sub
	mul
	div
	pow
	lt // comparisons give 1 or 0
	gt
	lte
	gte
	eq
	ne
	maximum
	minimum
	abs
	sign
	ceil
	floor
	sin
	cos
	exp
	ln
	log2
	neg
	square
	sqrt
	inv
	invSqrt
	cube
	tanh
	sigmoid
	log1p
	expm1
	softplus
	copied
	primitives // how many
)

// primitiveInfo holds, per primitive: the text that Gorgonia prints for it, the number of args, and its value in
// float64 (the oracle of the kernels and what folds constants).
var primitiveInfo = [primitives]struct {
	text string
	args int
	eval func(x, y float64) float64
}{
	add:      {"+", 2, func(x, y float64) float64 { return x + y }},
	sub:      {"-", 2, func(x, y float64) float64 { return x - y }},
	mul:      {"⊙", 2, func(x, y float64) float64 { return x * y }},
	div:      {"÷", 2, func(x, y float64) float64 { return x / y }},
	pow:      {"^", 2, math.Pow},
	lt:       {"<", 2, func(x, y float64) float64 { return indicator(x < y) }},
	gt:       {">", 2, func(x, y float64) float64 { return indicator(x > y) }},
	lte:      {"<=", 2, func(x, y float64) float64 { return indicator(x <= y) }},
	gte:      {">=", 2, func(x, y float64) float64 { return indicator(x >= y) }},
	eq:       {"==", 2, func(x, y float64) float64 { return indicator(x == y) }},
	ne:       {"!=", 2, func(x, y float64) float64 { return indicator(x != y) }},
	maximum:  {"MaxBetween", 2, math.Max},
	minimum:  {"MinBetween", 2, math.Min},
	abs:      {"abs", 1, func(x, _ float64) float64 { return math.Abs(x) }},
	sign:     {"sign", 1, func(x, _ float64) float64 { return indicator(x > 0) - indicator(x < 0) }},
	ceil:     {"ceil", 1, func(x, _ float64) float64 { return math.Ceil(x) }},
	floor:    {"floor", 1, func(x, _ float64) float64 { return math.Floor(x) }},
	sin:      {"sin", 1, func(x, _ float64) float64 { return math.Sin(x) }},
	cos:      {"cos", 1, func(x, _ float64) float64 { return math.Cos(x) }},
	exp:      {"exp", 1, func(x, _ float64) float64 { return math.Exp(x) }},
	ln:       {"ln", 1, func(x, _ float64) float64 { return math.Log(x) }},
	log2:     {"log2", 1, func(x, _ float64) float64 { return math.Log2(x) }},
	neg:      {"neg", 1, func(x, _ float64) float64 { return -x }},
	square:   {"square", 1, func(x, _ float64) float64 { return x * x }},
	sqrt:     {"sqrt", 1, func(x, _ float64) float64 { return math.Sqrt(x) }},
	inv:      {"inv", 1, func(x, _ float64) float64 { return 1 / x }},
	invSqrt:  {"invSqrt", 1, func(x, _ float64) float64 { return 1 / math.Sqrt(x) }},
	cube:     {"cube", 1, func(x, _ float64) float64 { return x * x * x }},
	tanh:     {"tanh", 1, func(x, _ float64) float64 { return math.Tanh(x) }},
	sigmoid:  {"sigmoid", 1, func(x, _ float64) float64 { return 1 / (1 + math.Exp(-x)) }},
	log1p:    {"log1p", 1, func(x, _ float64) float64 { return math.Log1p(x) }},
	expm1:    {"expm1", 1, func(x, _ float64) float64 { return math.Expm1(x) }},
	copied:   {"copy", 1, func(x, _ float64) float64 { return x }},
	softplus: {"softplus", 1, func(x, _ float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }},
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (p primitive) String() string { return primitiveInfo[p].text }

// primitiveNamed finds a primitive by Gorgonia's text for it.
func primitiveNamed(text string) (primitive, bool) {
	for p := primitive(0); p < primitives; p++ {
		if primitiveInfo[p].text == text {
			return p, true
		}
	}
	return 0, false
}

// foreign is an op of ours with an element-wise kernel of its own.
type foreign struct{ ops.Kernel }

// reducer folds elements.
type reducer uint8

const (
	sum reducer = iota
	largest
)

func (r reducer) String() string {
	if r == largest {
		return "max"
	}
	return "sum"
}
