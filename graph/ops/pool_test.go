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
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// poolings covers every kind of geometry: adjacent windows, overlapping windows, gaps, windows across the border, and
// windows larger than the image.
var poolings = []ops.Pooling{
	{In: [3]int{4, 6, 3}, Out: [3]int{2, 3, 3}, Kernel: 2, Stride: 2},
	{In: [3]int{5, 4, 2}, Out: [3]int{5, 4, 2}, Kernel: 3, Stride: 1, Top: 1, Left: 1, Mean: true},
	{In: [3]int{7, 5, 1}, Out: [3]int{4, 3, 1}, Kernel: 3, Stride: 2, Top: 1, Left: 1},
	{In: [3]int{5, 5, 2}, Out: [3]int{2, 2, 2}, Kernel: 2, Stride: 3, Mean: true},
	{In: [3]int{2, 3, 2}, Out: [3]int{1, 1, 2}, Kernel: 9, Stride: 9, Top: 3, Left: 3, Mean: true},
}

// views returns, for every output value of one image, the indices of the pixels in its window.
func views(g ops.Pooling) [][]int {
	var list [][]int
	for i := range g.Out[0] {
		for j := range g.Out[1] {
			for c := range g.In[2] {
				var seen []int
				for u := range g.Kernel {
					for v := range g.Kernel {
						y, x := i*g.Stride+u-g.Top, j*g.Stride+v-g.Left
						if y >= 0 && y < g.In[0] && x >= 0 && x < g.In[1] {
							seen = append(seen, (y*g.In[1]+x)*g.In[2]+c)
						}
					}
				}
				list = append(list, seen)
			}
		}
	}
	return list
}

const poolBatch = 3

func valuesOf(shape [3]int) int { return shape[0] * shape[1] * shape[2] }

func batchOf(shape [3]int) []int { return []int{poolBatch, shape[0], shape[1], shape[2]} }

// plainPool computes the expected results of the ops for images x and outputs y by plain loops.
func plainPool(g ops.Pooling, x, y []float64) map[string][]float64 {
	sum, largest, spread := make([]float64, len(y)), make([]float64, len(y)), make([]float64, len(x))
	for b := range poolBatch {
		image, first := x[b*valuesOf(g.In):], b*valuesOf(g.Out)
		for i, seen := range views(g) {
			share := 1.0
			if g.Mean {
				share /= float64(len(seen))
			}
			largest[first+i] = math.Inf(-1)
			for _, p := range seen {
				sum[first+i] += share * image[p]
				largest[first+i] = max(largest[first+i], image[p])
				spread[b*valuesOf(g.In)+p] += share * y[first+i]
			}
		}
	}
	return map[string][]float64{"sum": sum, "max": largest, "spread": spread}
}

func pools[T ops.Float](g ops.Pooling, fixed bool) (map[string]gradcheck.Expression[T], []T, []T) {
	r := random.Stream(1, "pool", 0)
	x := gradcheck.Values[T](poolBatch*valuesOf(g.In), layers.Everything, r)
	y := gradcheck.Values[T](poolBatch*valuesOf(g.Out), layers.Everything, r)
	image := func(b *gradcheck.Builder[T]) *gorgonia.Node { return b.Leaf("x", batchOf(g.In), x, fixed) }
	return map[string]gradcheck.Expression[T]{
		"sum": func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) { return g.Sum(image(b)) },
		"max": func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) { return g.Max(image(b)) },
		"spread": func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
			return g.Spread(b.Leaf("y", batchOf(g.Out), y, fixed))
		},
	}, x, y
}

func init() {
	for _, g := range poolings {
		list, _, _ := pools[float64](g, false)
		for name, e := range list {
			parallels[fmt.Sprintf("pool %s %+v", name, g)] = e
			parallels[fmt.Sprintf("backward of pool %s %+v", name, g)] = backward(e, 0)
		}
	}
}

func TestPoolingsEqualPlainLoops(t *testing.T) {
	for _, g := range poolings {
		double, x, y := pools[float64](g, false)
		single, _, _ := pools[float32](g, false)
		for name, want := range plainPool(g, x, y) {
			testConvolution(t, fmt.Sprintf("%s %+v", name, g), double[name], want, 1e-14)
			testConvolution(t, fmt.Sprintf("%s %+v", name, g), single[name], want, 1e-6)
		}
	}
}

// backward returns the derivative of <v, op> with respect to one input of the op, for random values v, as an expression
// of the inputs and v.
func backward(e gradcheck.Expression[float64], input int) gradcheck.Expression[float64] {
	return func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		y, err := e(b)
		if err != nil {
			return nil, err
		}
		draw := gradcheck.Values[float64](y.Shape().TotalSize(), layers.Everything, random.Stream(1, "backward", 0))
		leaf := b.Leaf(fmt.Sprintf("draw %d", y.ID()), y.Shape().Clone(), draw, false)
		grads, err := y.Op().(gorgonia.SDOp).SymDiff(children(y), y, leaf)
		if err != nil {
			return nil, err
		}
		return grads[input], nil
	}
}

func TestDerivativesOfPoolingsAreRightTwice(t *testing.T) {
	for _, g := range poolings {
		list, _, _ := pools[float64](g, false)
		constant, _, _ := pools[float64](g, true) // the derivative does not depend on x
		for name, e := range list {
			expect.NoError(t, gradcheck.Check(gradcheck.Scalar(e)), name, g)
			expect.NoError(t, gradcheck.Check(gradcheck.Scalar(backward(constant[name], 0))), "backward of", name, g)
		}
	}
}

// The derivative of the derivative of the maximum picks the pixels at which the maximum is attained. Applied to the
// images themselves, it gives the maximum.
func TestWhereTheMaximumWasIsPickedAgain(t *testing.T) {
	for _, g := range poolings {
		list, x, y := pools[float64](g, false)
		again := func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			largest, err := list["max"](b)
			if err != nil {
				return nil, err
			}
			grads, err := largest.Op().(gorgonia.SDOp).SymDiff(children(largest), largest, b.Leaf("draw", batchOf(g.Out), y, true))
			if err != nil {
				return nil, err
			}
			put := grads[0]
			picked, err := put.Op().(gorgonia.SDOp).SymDiff(children(put), put, b.Node(0))
			if err != nil {
				return nil, err
			}
			return picked[1], nil
		}
		testConvolution(t, fmt.Sprintf("%+v", g), again, plainPool(g, x, y)["max"], 0)
		expect.NoError(t, gradcheck.Check(gradcheck.Scalar(again)), g)
	}
}

func TestEqualMaximaGiveTheGradientToTheFirst(t *testing.T) {
	g := ops.Pooling{In: [3]int{2, 2, 1}, Out: [3]int{1, 1, 1}, Kernel: 2, Stride: 2}
	graph, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		y, err := g.Max(b.Leaf("x", []int{1, 2, 2, 1}, []float64{0, 5, 5, 5}, false))
		if err != nil {
			return nil, err
		}
		var c ops.Chain
		return c.Sum(y), c.Err()
	}, true)
	fatal.If(t, err)
	defer graph.Close()
	fatal.If(t, graph.Run())
	expect.Slice(t, graph.Leaf("x").Gradient(), []float64{0, 1, 0, 0})
}

func TestPoolingsOfOtherShapesAreRefused(t *testing.T) {
	x := gorgonia.NewTensor(gorgonia.NewGraph(), tensor.Float64, 4, gorgonia.WithShape(1, 4, 6, 3), gorgonia.WithName("x"))
	for _, wrong := range []func(g *ops.Pooling){
		func(g *ops.Pooling) { g.In[0]++ },
		func(g *ops.Pooling) { g.Out[2]++ },
		func(g *ops.Pooling) { g.Out[0] += 9 },
		func(g *ops.Pooling) { g.Kernel = 0 },
		func(g *ops.Pooling) { g.Stride = 0 },
		func(g *ops.Pooling) { g.Top = -1 },
		func(g *ops.Pooling) { g.Left = 2 }, // the first window would lie before the image
		func(g *ops.Pooling) { g.In = [3]int{1 << 13, 1 << 12, 3} },
	} {
		g := poolings[0]
		wrong(&g)
		expect.AnyError(t, expect.Err(g.Max(x)), g, "is accepted for images of shape", x.Shape())
	}
	expect.NoError(t, expect.Err(poolings[0].Max(x)))
}
