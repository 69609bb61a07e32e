package engine

import (
	"errors"
	"hash"
	"testing"

	"github.com/chewxy/hm"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/internal/engine/ir"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
)

// number returns the constant f in the program's precision.
func (p *program) number(f float64) *G.Node {
	if p.Dtype == tensor.Float32 {
		return G.NewConstant(float32(f))
	}
	return G.NewConstant(f)
}

// anything lists programs with every kind of op that Gorgonia can put into a graph. Most of these ops are foreign to
// the engine.
var anything = map[string]func(p *program){
	"convolution, pooling": func(p *program) {
		x, w := p.input("x", 2, 3, 8, 8), p.parameter("w", 4, 3, 3, 3)
		y := must(G.Conv2d(x, w, tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1}))
		y = must(G.MaxPool2D(must(G.Tanh(y)), tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
		p.tap("pooled", y)
		p.loss(must(G.Mean(must(G.Square(y)))))
	},
	"softmax, log": func(p *program) {
		z := must(G.Mul(p.input("x", 5, 7), p.parameter("w", 7, 4)))
		s := must(G.SoftMax(z))
		p.tap("softmax", s)
		p.loss(must(G.Sum(must(G.HadamardProd(s, must(G.Log(must(G.Add(s, p.number(0.1))))))))))
	},
	"slices, concatenation": func(p *program) {
		z := must(G.Mul(p.input("x", 6, 5), p.parameter("w", 5, 4)))
		a, b := must(G.Slice(z, G.S(0, 3))), must(G.Slice(z, G.S(3, 6)))
		c := must(G.Concat(1, a, must(G.Exp(b))))
		p.tap("joined", c)
		p.loss(must(G.Mean(must(G.Cube(c)))))
	},
	"tensordot, transpose": func(p *program) {
		x, w := p.input("x", 4, 3, 5), p.parameter("w", 5, 3, 2)
		y := must(G.Tensordot([]int{1, 2}, []int{1, 0}, x, w))
		p.tap("dot", must(G.Transpose(y, 1, 0)))
		p.loss(must(G.Sum(must(G.Abs(y)))))
	},
	"maximum along an axis": func(p *program) {
		z := must(G.Mul(p.input("x", 6, 5), p.parameter("w", 5, 9)))
		p.tap("largest", must(G.Max(z, 1)))
		p.loss(must(G.Mean(must(G.Softplus(z)))))
	},
	"vectors": func(p *program) {
		x, w, v := p.input("x", 6, 5), p.parameter("w", 5), p.parameter("v", 6)
		y := must(G.Mul(x, w))
		p.tap("outer", must(G.OuterProd(v, w))) // Gorgonia's own gradient of the outer product has the wrong shape
		p.loss(must(G.Mul(must(G.Tanh(y)), v)))
	},
	"batched products": func(p *program) {
		x, w := p.input("x", 3, 4, 5), p.parameter("w", 3, 5, 2)
		p.loss(must(G.Sum(must(G.Sigmoid(must(G.BatchedMatMul(x, w)))))))
	},
	"comparisons to booleans": func(p *program) {
		x, w := p.input("x", 4, 5), p.parameter("w", 4, 5)
		y := must(G.HadamardProd(x, w))
		positive := must(G.Gt(y, p.number(0), true))
		p.tap("positive", positive)
		p.loss(must(G.Sum(must(G.HadamardProd(y, positive)))))
	},
	"powers, roots, inverses": func(p *program) {
		z := must(G.Add(must(G.Square(must(G.Mul(p.input("x", 4, 3), p.parameter("w", 3, 5))))), p.number(0.5)))
		y := must(G.Add(must(G.Pow(z, p.number(1.5))), must(G.Inverse(z))))
		y = must(G.Add(y, must(G.InverseSqrt(z))))
		y = must(G.Add(y, must(G.Log2(z))))
		y = must(G.Add(y, must(G.Sin(must(G.Cos(must(G.Expm1(must(G.Neg(z))))))))))
		p.tap("y", y)
		p.loss(must(G.Mean(must(G.Log1p(y)))))
	},
	"broadcasts of many kinds": func(p *program) {
		x, row, column := p.input("x", 40, 60), p.parameter("row", 60), p.parameter("column", 40)
		y := must(G.BroadcastHadamardProd(x, row, nil, []byte{0}))
		y = must(G.BroadcastAdd(y, must(G.Reshape(column, tensor.Shape{40, 1})), nil, []byte{1}))
		perRow := must(G.Reshape(must(G.Sum(must(G.Square(y)), 1)), tensor.Shape{40, 1}))
		y = must(G.BroadcastHadamardDiv(y, must(G.Sqrt(must(G.Add(perRow, p.number(1))))), nil, []byte{1}))
		p.tap("normalised", y)
		p.loss(must(G.Mean(must(G.Tanh(y)))))
	},
	"axes in the middle": func(p *program) {
		x, w := p.input("x", 6, 5, 20), p.parameter("w", 6, 5, 20)
		y := must(G.HadamardProd(x, w))
		s := must(G.Sum(must(G.Exp(y)), 0, 2))
		p.tap("per channel", s)
		p.loss(must(G.Sum(must(G.Square(s)))))
	},
	"a leaf that has a value": func(p *program) {
		x, w := p.input("x", 4, 5), p.parameter("w", 5, 3)
		fixed := G.NewMatrix(p.Graph, p.Dtype, G.WithShape(4, 3), G.WithName("fixed"),
			G.WithValue(tensor.New(tensor.WithShape(4, 3), tensor.WithBacking(tensor.Range(p.Dtype, 1, 13)))))
		p.loss(must(G.Sum(must(G.HadamardProd(must(G.Mul(x, w)), fixed)))))
	},
	"a mirrored sigmoid that is nearly 0": func(p *program) {
		z := must(G.Add(must(G.HadamardProd(p.input("x", 4, 5), p.parameter("w", 4, 5))), p.number(20)))
		y := must(G.Sigmoid(must(G.Neg(z))))
		p.tap("y", y)
		p.loss(must(G.Sum(z)))
	},
	"minima, maxima": func(p *program) {
		x, w := p.input("x", 9, 8), p.parameter("w", 9, 8)
		p.tap("smaller", must(G.MinBetween(x, w)))
		p.loss(must(G.Sum(must(G.HadamardProd(w, must(G.MaxBetween(x, w)))))))
	},
}

func TestWhateverGorgoniaExpressesRuns(t *testing.T) {
	for name, build := range anything {
		t.Run(name, func(t *testing.T) {
			plan := compare[float64](t, 2, 1e-12, build)
			compare[float32](t, 2, 2e-5, build)
			if t.Failed() {
				t.Log("\n" + plan.module.String() + plan.String())
			}
		})
	}
}

func TestAnOpThatFailsIsAnErrorNotAHang(t *testing.T) {
	p := newProgram(t, tensor.Float64)
	x := p.input("x", 64, 64)
	w := p.parameter("w", 64, 64)
	y := must(G.ApplyOp(failing{}, must(G.Mul(x, w))))
	p.tap("y", y)
	team := team.New(2)
	defer team.Close()
	plan, err := compileProgram[float64](p.Program, team)
	fatal.If(t, err)
	for range 3 {
		if err := plan.Run(); err == nil {
			t.Fatal("no error")
		}
	}
}

var _ ir.Backend = Backend{}

// failing is a user-defined op that alternately panics and fails.
type failing struct{}

var failures int

func (failing) Arity() int                                       { return 1 }
func (failing) Type() hm.Type                                    { return hm.NewFnType(hm.TypeVariable('a'), hm.TypeVariable('a')) }
func (failing) InferShape(s ...G.DimSizer) (tensor.Shape, error) { return s[0].(tensor.Shape), nil }
func (failing) ReturnsPtr() bool                                 { return false }
func (failing) CallsExtern() bool                                { return false }
func (failing) OverwritesInput() int                             { return -1 }
func (failing) WriteHash(h hash.Hash)                            { h.Write([]byte("failing")) }
func (failing) Hashcode() uint32                                 { return 7 }
func (failing) String() string                                   { return "failing" }
func (failing) Do(...G.Value) (G.Value, error) {
	if failures++; failures%2 == 0 {
		panic("on purpose")
	}
	return nil, errors.New("on purpose")
}
