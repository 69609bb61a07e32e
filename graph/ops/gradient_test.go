package ops_test

import (
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// curved returns an expression whose gradient contains the derivatives of the backward op of op with respect to all
// inputs of that op: the squared norm of the gradient of <v, op(x)>, for a fixed v, plus a term that depends on x
// directly.
func curved(op func(x *gorgonia.Node) (*gorgonia.Node, error)) gradcheck.Expression[float64] {
	return func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		values := func(name string, n int) []float64 {
			return gradcheck.Values[float64](n, layers.Everything, random.Stream(gradcheck.Seed, name, 0))
		}
		x := b.Leaf("x", []int{3, 6}, values("x", 18), false)
		var c ops.Chain
		y := c.Do("op", func() (*gorgonia.Node, error) { return op(c.Mul(x, b.Leaf("w", []int{3, 6}, values("w", 18), false))) })
		if c.Err() != nil {
			return nil, c.Err()
		}
		v := b.Leaf("v", y.Shape().Clone(), values("v", y.Shape().TotalSize()), false)
		return c.Add(c.Sum(c.Square(c.Gradient(c.Sum(c.Mul(v, y)), x))), c.Sum(c.Square(y))), c.Err()
	}
}

func TestSecondDerivativesOfOps(t *testing.T) {
	geometry := ops.Convolution{In: [3]int{3, 2, 1}, Out: [3]int{3, 2, 2}, Kernel: 3, Stride: 1, Dilation: 1, Groups: 1, Top: 1, Left: 1}
	for name, op := range map[string]func(x *gorgonia.Node) (*gorgonia.Node, error){
		"ramp":        func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Ramp(x, 1, 0.1) },
		"negative":    func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Ramp(x, 0, -1) },
		"clip":        func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Clip(x, -0.2, 0.25) },
		"elu":         func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Elu(x, 1.5) },
		"softplus":    ops.Softplus,
		"softmax":     ops.Softmax,
		"log softmax": ops.LogSoftmax,
		"dilate":      func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Dilate(x, []int{2, 3}, 1) },
		"reshape": func(x *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			return c.Square(c.Reshape(x, 2, 9)), c.Err()
		},
		"tile, fold": func(x *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			return c.Square(c.Tile(c.Fold(c.Reshape(x, 18), 3), 2)), c.Err()
		},
		"convolve": func(x *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			filters := c.Square(c.Reshape(x, 3, 3, 1, 2))
			return c.Do("convolve", func() (*gorgonia.Node, error) { return geometry.Convolve(c.Reshape(x, 3, 3, 2, 1), filters) }), c.Err()
		},
		"attention": func(x *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			a := ops.Attention{Tokens: 3, Features: 2, Heads: 2}
			tokens := c.Reshape(x, 3, 3, 2)
			scores := c.Do("scores", func() (*gorgonia.Node, error) { return a.Scores(tokens, c.Square(tokens)) })
			weights := c.Do("softmax", func() (*gorgonia.Node, error) { return ops.Softmax(scores) })
			mixed := c.Do("mix", func() (*gorgonia.Node, error) { return a.Mix(weights, tokens) })
			return c.Do("mix back", func() (*gorgonia.Node, error) { return a.MixTransposed(weights, mixed) }), c.Err()
		},
		"patches, transpose": func(x *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			p := ops.Patching{Height: 3, Width: 6, Channels: 1, Size: 3}
			patches := c.Do("cut", func() (*gorgonia.Node, error) { return p.Cut(c.Reshape(x, 1, 3, 6)) })
			turned := c.Do("transpose", func() (*gorgonia.Node, error) { return ops.Transpose(c.Square(c.Reshape(patches, 2, 9))) })
			return c.Square(c.Do("join", func() (*gorgonia.Node, error) { return p.Join(c.Reshape(turned, 1, 2, 9)) })), c.Err()
		},
		"max plus": func(x *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			y := c.Do("max plus", func() (*gorgonia.Node, error) { return ops.MaxPlus(c.Reshape(x, 6, 3), c.Square(x)) })
			return c.Square(y), c.Err()
		},
		"max times": func(x *gorgonia.Node) (*gorgonia.Node, error) {
			var c ops.Chain
			y := c.Do("max times", func() (*gorgonia.Node, error) { return ops.MaxTimes(c.Reshape(x, 6, 3), c.Square(x)) })
			return c.Square(y), c.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			expect.NoError(t, gradcheck.Check(curved(op)))
		})
	}
}

// The result of gorgonia.Grad cannot be differentiated through the nodes that Grad has visited. This is why Gradient
// exists.
func TestGradientsAreOnlyDifferentiableByGradient(t *testing.T) {
	cubes := func(gradient func(y, x *gorgonia.Node) (*gorgonia.Node, error)) float64 {
		g := gorgonia.NewGraph()
		x := gorgonia.NewVector(g, tensor.Float64, gorgonia.WithShape(1), gorgonia.WithName("x"))
		var c ops.Chain
		slope := c.Do("gradient", func() (*gorgonia.Node, error) { return gradient(c.Sum(c.Mul(x, c.Square(x))), x) }) // 3 x²
		grads, err := gorgonia.Grad(c.Sum(slope), x)
		if c.Err() != nil || err != nil {
			return math.NaN()
		}
		var value gorgonia.Value
		gorgonia.Read(grads[0], &value)
		fatal.If(t, gorgonia.Let(x, tensor.New(tensor.WithShape(1), tensor.WithBacking([]float64{2}))))
		machine := gorgonia.NewTapeMachine(g)
		defer machine.Close()
		fatal.If(t, machine.RunAll())
		return value.Data().([]float64)[0]
	}
	if got := cubes(func(y, x *gorgonia.Node) (*gorgonia.Node, error) {
		grads, err := ops.Gradient(y, x)
		return grads[0], err
	}); math.Abs(got-12) > 1e-12 { // 6 x
		t.Errorf("second derivative of x³ at 2: got %v, want 12", got)
	}
	if got := cubes(func(y, x *gorgonia.Node) (*gorgonia.Node, error) {
		grads, err := gorgonia.Grad(y, x)
		return grads[0], err
	}); math.Abs(got-12) < 1e-12 {
		t.Error("gorgonia.Grad does it by itself now: Gradient can go")
	}
}
