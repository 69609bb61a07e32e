package ir

import "math"

// Function is what a [Pointwise] value applies: a [Primitive], or an [Elementwise] kernel.
type Function interface{ String() string }

// Elementwise is a function with its own kernel, whose blocks have one element.
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
	Ceil                        // the least integer >= x
	Floor                       // the greatest integer <= x
	Sin                         // sin x
	Cos                         // cos x
	Exp                         // e to the power of x
	Log                         // natural logarithm
	Log2                        // binary logarithm
	Neg                         // -x
	Square                      // x x
	Sqrt                        // square root
	Reciprocal                  // 1 / x
	InvSqrt                     // 1 / sqrt(x)
	Cube                        // x x x
	Tanh                        // hyperbolic tangent
	Sigmoid                     // 1 / (1 + exp(-x))
	Log1p                       // log(1 + x)
	Expm1                       // exp(x) - 1
	Softplus                    // log(1 + exp(x))
	Copy                        // x
	Primitives                  // how many there are
)

// primitives holds, per primitive: its text, the number of args, and its value in float64.
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

// String is the primitive's sign or name.
func (p Primitive) String() string { return primitives[p].text }

// Args is how many numbers it takes: 1 or 2.
func (p Primitive) Args() int { return primitives[p].args }

// Eval returns its value in double precision, for one number at x.
func (p Primitive) Eval(x, y float64) float64 { return primitives[p].eval(x, y) }

// Reducer combines elements.
type Reducer uint8

// The reducers.
const (
	Sum Reducer = iota
	Largest
)

// String is "sum" or "max".
func (r Reducer) String() string {
	if r == Largest {
		return "max"
	}
	return "sum"
}
