package ops_test

import (
	"fmt"
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws/gradcheck"
)

// unary is an op of one input with its formula and derivative in plain Go.
type unary struct {
	apply func(*gorgonia.Node) (*gorgonia.Node, error)
	f, df func(x float64) float64
	slack float64 // absolute tolerance of the float32 derivative, for derivatives that are computed as a difference
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func ramp(above, below float64) unary {
	return unary{
		func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Ramp(x, above, below) },
		func(x float64) float64 { return above*max(x, 0) + below*min(x, 0) },
		func(x float64) float64 {
			if x > 0 {
				return above
			}
			return below
		},
		0,
	}
}

var unaries = map[string]unary{
	"relu":          ramp(1, 0),
	"leaky relu":    ramp(1, 0.1),
	"negative part": ramp(0, -1),
	"abs":           ramp(1, -1),
	"elu": {
		func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Elu(x, 1.5) },
		func(x float64) float64 { return max(x, 0) + 1.5*math.Expm1(min(x, 0)) },
		func(x float64) float64 {
			if x > 0 {
				return 1
			}
			return 1.5 * math.Exp(x)
		},
		1.2e-7,
	},
	"softplus": {ops.Softplus, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, sigmoid, 0},
	"normal cdf": {
		ops.NormalCDF, func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 },
		func(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }, 0,
	},
	"clip": {
		func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Clip(x, -0.5, 2) },
		func(x float64) float64 { return min(max(x, -0.5), 2) },
		func(x float64) float64 {
			if x >= -0.5 && x <= 2 {
				return 1
			}
			return 0
		},
		0,
	},
}

// points contains every kink, and values so large that a naive formula overflows.
var points = []float64{-1000, -100, -17, -1, -0.5, -0.25, 0, 1e-3, 0.5, 1, 2, 3, 16, 17, 100, 1000}

func testUnary[T ops.Float](t *testing.T, u unary, tolerance, slack float64) {
	x := lists.Map(points, func(p float64) T { return T(p) })
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		y, err := u.apply(b.Leaf("x", []int{len(x)}, x, false))
		if err != nil {
			return nil, err
		}
		return gorgonia.Sum(y)
	}, true)
	fatal.If(t, err)
	defer g.Close()
	values, err := gradcheck.Compile(func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		return u.apply(b.Leaf("x", []int{len(x)}, x, false))
	}, false)
	fatal.If(t, err)
	defer values.Close()
	for _, run := range []func() error{g.Run, values.Run} {
		fatal.If(t, run())
	}
	y, dx := values.Output(), g.Leaves[0].Gradient()
	for i, p := range points {
		if got, want := float64(y[i]), u.f(p); !near(got, want, tolerance) {
			t.Errorf("f(%v): got %v, want %v", p, got, want)
		}
		if got, want := float64(dx[i]), u.df(p); !near(got, want, tolerance) && math.Abs(got-want) > slack {
			t.Errorf("f'(%v): got %v, want %v", p, got, want)
		}
	}
}

// near reports whether two numbers are equal up to a relative tolerance, or up to an absolute one below 1e-30, the
// limit of float32.
func near(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Abs(want)+1e-30
}

func TestElementwiseOpsAtKinksAndExtremes(t *testing.T) {
	for name, u := range unaries {
		t.Run(name+"/float32", func(t *testing.T) { testUnary[float32](t, u, 4e-7, u.slack) })
		t.Run(name+"/float64", func(t *testing.T) { testUnary[float64](t, u, 1e-8, 0) })
	}
}

func TestSoftmaxIsStableAndSumsToOne(t *testing.T) {
	x := []float32{1000, 999, -1000, 0, 0, 0}
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[float32]) (*gorgonia.Node, error) {
		return ops.Softmax(b.Leaf("x", []int{2, 3}, x, false))
	}, false)
	fatal.If(t, err)
	defer g.Close()
	fatal.If(t, g.Run())
	e := math.E
	want := []float64{e / (1 + e), 1 / (1 + e), 0, 1. / 3, 1. / 3, 1. / 3}
	for i, y := range g.Output() {
		if !near(float64(y), want[i], 1e-6) {
			t.Errorf("element %d: got %v, want %v", i, y, want[i])
		}
	}
}

// The graph merges nodes with equal hashes. Ops that differ in one attribute must therefore have different hashes.
func TestOpsThatDifferStayApart(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("x"))
	var c ops.Chain
	nodes := []*gorgonia.Node{
		c.Ramp(x, 1, 0), c.Ramp(x, 0, 1), c.Ramp(x, 1, 0.1), c.Ramp(x, 1, 0.10000001), c.Clip(x, 0, 1), c.Clip(x, 0, 1.0000000001),
		c.Reshape(x, 3, 2), c.Reshape(x, 6), c.Reshape(x, 1, 6),
	}
	for _, f := range []func() (*gorgonia.Node, error){
		func() (*gorgonia.Node, error) { return ops.Elu(x, 1) },
		func() (*gorgonia.Node, error) { return ops.Elu(x, 2) },
		func() (*gorgonia.Node, error) { return ops.Softplus(x) },
		func() (*gorgonia.Node, error) { return ops.Softmax(x) },
	} {
		nodes = append(nodes, c.Do("op", f))
	}
	fatal.If(t, c.Err())
	seen := map[uint32]*gorgonia.Node{}
	for _, n := range nodes {
		h := n.Op().Hashcode()
		if other, ok := seen[h]; ok {
			t.Errorf("%v and %v have equal hashes", n.Op(), other.Op())
		}
		seen[h] = n
	}
	expect.Equal(t, c.Ramp(x, 1, 0), nodes[0], "equal expressions are two nodes")
}

func TestKernelsComputeAnyBlocksInPlace(t *testing.T) {
	x := []float32{1, -2, 3, -4, 5, -6}
	g := gorgonia.NewGraph()
	n := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("x"))
	for name, f := range map[string]func(*gorgonia.Node) (*gorgonia.Node, error){
		"softmax": ops.Softmax, "softplus": ops.Softplus, "ramp": unaries["leaky relu"].apply,
	} {
		y, err := f(n)
		fatal.If(t, err)
		k := y.Op().(ops.Kernel)
		block := k.Block(n.Shape())
		expect.Equal(t, block, map[string]int{"softmax": 3, "softplus": 1, "ramp": 1}[name], name)
		whole := make([]float32, 6)
		k.Float32(whole, [][]float32{x}, block)
		parts := append([]float32(nil), x...)
		for _, from := range []int{3, 0} { // in two parts, the last part first, each in place
			k.Float32(parts[from:from+3], [][]float32{parts[from : from+3]}, block)
		}
		expect.Equal(t, fmt.Sprint(whole), fmt.Sprint(parts), name, whole, "as a whole", parts, "in parts and in place")
	}
}

// Gorgonia's own reshape shares memory with its input, which later nodes then overwrite; the reshape of this package
// does not.
func TestReshapeLeavesItsInputAlone(t *testing.T) {
	x := []float64{1, 2, 3, 4}
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		var c ops.Chain
		flat := c.Reshape(b.Leaf("x", []int{2, 2}, x, false), 1, 4)
		return c.Sum(c.Mul(flat, b.Leaf("factor", []int{1, 4}, []float64{5, 6, 7, 8}, true))), c.Err()
	}, true)
	fatal.If(t, err)
	defer g.Close()
	for run := range 3 {
		fatal.If(t, g.Run())
		if got := g.Leaf("x").Values; fmt.Sprint(got) != fmt.Sprint(x) {
			t.Fatalf("run %d turned the input into %v", run, got)
		}
		if got := g.Output()[0]; got != 70 {
			t.Fatalf("run %d: got %v, want 70", run, got)
		}
	}
}

func TestOpsOnScalarValues(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewScalar(g, tensor.Float64, gorgonia.WithName("x"))
	y, err := ops.Clip(x, 0, 1)
	fatal.If(t, err)
	v, err := y.Op().Do(gorgonia.NewF64(3))
	fatal.If(t, err)
	expect.Equal(t, v.Data(), 1.0, "clip(3, 0, 1)")
}

func TestOpsRefuseWhatTheyCannotCompute(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("x"))
	expect.AnyError(t, expect.Err(ops.Clip(x, 1, 0)), "clip with low > high is accepted")
	expect.AnyError(t, expect.Err(ops.Elu(x, -1)), "elu with alpha < 0 is accepted")
	expect.AnyError(t, expect.Err(ops.Reshape(x, 5)), "reshape of 6 values into 5 is accepted")
	y, err := ops.Ramp(x, 1, 0)
	fatal.If(t, err)
	expect.AnyError(t, expect.Err(y.Op().Do(tensor.New(tensor.WithBacking([]int{1, 2})))), "integers are accepted")
	var c ops.Chain
	if n := c.Sum(c.Reshape(x, 5)); n != nil || c.Err() == nil {
		t.Errorf("a chain continues after an error: %v, %v", n, c.Err())
	}
}
