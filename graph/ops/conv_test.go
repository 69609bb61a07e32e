package ops_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/volume"
	"tessera/laws/gradcheck"
)

// convolutions covers every kind of geometry: even and odd kernels, padding on one side or wider than the filter,
// dilation, groups, and images with pixels that no filter reads.
var convolutions = []ops.Convolution{
	{In: [3]int{4, 5, 3}, Out: [3]int{4, 5, 2}, Kernel: 3, Stride: 1, Dilation: 1, Groups: 1, Top: 1, Left: 1},
	{In: [3]int{8, 8, 1}, Out: [3]int{4, 4, 4}, Kernel: 4, Stride: 2, Dilation: 1, Groups: 1, Top: 1, Left: 1},
	{In: [3]int{5, 6, 2}, Out: [3]int{2, 2, 3}, Kernel: 2, Stride: 3, Dilation: 1, Groups: 1},
	{In: [3]int{5, 6, 4}, Out: [3]int{7, 8, 6}, Kernel: 3, Stride: 1, Dilation: 1, Groups: 2, Top: 2, Left: 2},
	{In: [3]int{6, 7, 4}, Out: [3]int{2, 3, 4}, Kernel: 2, Stride: 2, Dilation: 3, Groups: 4, Left: 1},
	{In: [3]int{3, 3, 2}, Out: [3]int{1, 1, 2}, Kernel: 3, Stride: 1, Dilation: 1, Groups: 1},
	{In: [3]int{5, 6, 2}, Out: [3]int{3, 6, 2}, Kernel: 2, Stride: 2, Dilation: 1, Groups: 1, Top: 1, Left: 1, KernelWidth: 3, StrideWidth: 1},
	{In: [3]int{5, 7, 4}, Out: [3]int{5, 2, 4}, Kernel: 1, Stride: 1, Dilation: 2, Groups: 2, KernelWidth: 2, StrideWidth: 4},
	{In: [3]int{2, 2, 2}, Out: [3]int{1, 1, 3}, Kernel: 1, Stride: 5, Dilation: 1, Groups: 1, Top: 4, Left: 3},
}

// across returns the width of a filter and the stride along the width.
func across(g ops.Convolution) (width, stride int) {
	return cmp.Or(g.KernelWidth, g.Kernel), cmp.Or(g.StrideWidth, g.Stride)
}

// triples calls f for every product x*w in the sums y = sum x*w, with the indices of the factors and of the output.
func triples(g ops.Convolution, batch int, f func(x, w, y int)) {
	channels, filters := g.In[2]/g.Groups, g.Out[2]/g.Groups
	width, stride := across(g)
	for b := range batch {
		for i := range g.Out[0] {
			for j := range g.Out[1] {
				for n := range g.Out[2] {
					for u := range g.Kernel {
						for v := range width {
							r, s := i*g.Stride+u*g.Dilation-g.Top, j*stride+v*g.Dilation-g.Left
							if r < 0 || r >= g.In[0] || s < 0 || s >= g.In[1] {
								continue
							}
							for c := range channels {
								f(((b*g.In[0]+r)*g.In[1]+s)*g.In[2]+n/filters*channels+c, ((u*width+v)*channels+c)*g.Out[2]+n,
									((b*g.Out[0]+i)*g.Out[1]+j)*g.Out[2]+n)
							}
						}
					}
				}
			}
		}
	}
}

// convolved contains the tensors of one convolution: images x, filters w, outputs y.
type convolved struct{ x, w, y []float64 }

func newConvolved(g ops.Convolution, batch int) convolved {
	r := rand.New(rand.NewPCG(1, 2))
	random := func(n int) []float64 {
		v := lists.Of(n, func(int) float64 { return float64(float32(r.NormFloat64())) })
		return v
	}
	return convolved{random(batch * g.In[0] * g.In[1] * g.In[2]), random(volume.Of(g.Filters())),
		random(batch * g.Out[0] * g.Out[1] * g.Out[2])}
}

// expressions returns the expressions of the three ops applied to the tensors of c.
func expressions[T ops.Float](g ops.Convolution, batch int, c convolved) map[string]gradcheck.Expression[T] {
	of := func(v []float64) []T {
		converted := lists.Map(v, func(x float64) T { return T(x) })
		return converted
	}
	x := func(b *gradcheck.Builder[T]) *gorgonia.Node {
		return b.Leaf("x", []int{batch, g.In[0], g.In[1], g.In[2]}, of(c.x), false)
	}
	w := func(b *gradcheck.Builder[T]) *gorgonia.Node { return b.Leaf("w", g.Filters(), of(c.w), false) }
	y := func(b *gradcheck.Builder[T]) *gorgonia.Node {
		return b.Leaf("y", []int{batch, g.Out[0], g.Out[1], g.Out[2]}, of(c.y), false)
	}
	return map[string]gradcheck.Expression[T]{
		"convolve": func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) { return g.Convolve(x(b), w(b)) },
		"images":   func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) { return g.Images(y(b), w(b)) },
		"gradient": func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) { return g.Gradient(x(b), y(b)) },
	}
}

// plain computes the expected results of the three ops by plain loops.
func plain(g ops.Convolution, batch int, c convolved) map[string][]float64 {
	want := convolved{make([]float64, len(c.x)), make([]float64, len(c.w)), make([]float64, len(c.y))}
	triples(g, batch, func(x, w, y int) {
		want.y[y] += c.x[x] * c.w[w]
		want.x[x] += c.y[y] * c.w[w]
		want.w[w] += c.x[x] * c.y[y]
	})
	return map[string][]float64{"convolve": want.y, "images": want.x, "gradient": want.w}
}

func TestConvolutionsEqualPlainLoops(t *testing.T) {
	for _, g := range convolutions {
		for _, batch := range []int{1, 5} {
			c := newConvolved(g, batch)
			for name, want := range plain(g, batch, c) {
				testConvolution(t, fmt.Sprintf("%s %+v", name, g), expressions[float64](g, batch, c)[name], want, 1e-13)
				testConvolution(t, fmt.Sprintf("%s %+v", name, g), expressions[float32](g, batch, c)[name], want, 1e-5)
			}
		}
	}
}

// The batch needs several blocks of patches; the last block is smaller.
func TestConvolutionOfManyBlocksEqualsPlainLoops(t *testing.T) {
	g := ops.Convolution{In: [3]int{14, 14, 64}, Out: [3]int{7, 7, 3}, Kernel: 4, Stride: 2, Dilation: 1, Groups: 1, Top: 1, Left: 1}
	const batch = 23
	c := newConvolved(g, batch)
	for name, want := range plain(g, batch, c) {
		testConvolution(t, name, expressions[float64](g, batch, c)[name], want, 1e-11)
	}
}

// filtered lists convolutions that Winograd's algorithm computes in large batches: filters of 2 and 3 strides, tiles of
// every size, padding wider than the filter, and images with pixels that no filter reads.
var filtered = []ops.Convolution{
	{In: [3]int{5, 6, 16}, Out: [3]int{3, 4, 64}, Kernel: 4, Stride: 2, Dilation: 1, Groups: 1, Top: 1, Left: 1},
	{In: [3]int{14, 14, 32}, Out: [3]int{7, 7, 65}, Kernel: 4, Stride: 2, Dilation: 1, Groups: 1, Top: 1, Left: 1},
	{In: [3]int{4, 3, 64}, Out: [3]int{4, 3, 64}, Kernel: 3, Stride: 1, Dilation: 1, Groups: 1, Top: 1, Left: 1},
	{In: [3]int{9, 7, 16}, Out: [3]int{5, 2, 64}, Kernel: 6, Stride: 2, Dilation: 1, Groups: 1, Top: 4, Left: 1},
	{In: [3]int{3, 2, 64}, Out: [3]int{2, 5, 64}, Kernel: 2, Stride: 1, Dilation: 1, Groups: 1, Top: 0, Left: 2},
	{In: [3]int{4, 2, 64}, Out: [3]int{6, 2, 64}, Kernel: 2, Stride: 1, Dilation: 1, Groups: 1, Top: 2, Left: 5},
}

func TestFilteredConvolutionsEqualPlainLoops(t *testing.T) {
	for _, g := range filtered {
		const batch = 41
		c := newConvolved(g, batch)
		built, err := gradcheck.Build(expressions[float64](g, batch, c)["convolve"], false)
		fatal.If(t, err)
		if q, _ := built.Value.Op().(ops.Parallel).Prepared(); q == nil {
			t.Errorf("%+v is not computed by Winograd's algorithm", g)
		}
		for name, want := range plain(g, batch, c) {
			testConvolution(t, fmt.Sprintf("%s %+v", name, g), expressions[float64](g, batch, c)[name], want, 1e-12)
			testConvolution(t, fmt.Sprintf("%s %+v", name, g), expressions[float32](g, batch, c)[name], want, 1e-5)
		}
	}
}

// The kernel of a range of units writes all values of the range and no others. Outputs and workspace contain NaN before
// the call.
func TestConvolutionsWriteAllOfARangeAndNothingElse(t *testing.T) {
	for i, g := range slices.Concat(convolutions, filtered) {
		if testing.Short() && i%3 > 0 {
			continue
		}
		for _, batch := range []int{3, 41} { // 3 images use im2col, 41 images Winograd's algorithm where it applies
			c := newConvolved(g, batch)
			for name, want := range plain(g, batch, c) {
				built, err := gradcheck.Build(expressions[float64](g, batch, c)[name], false)
				fatal.If(t, err)
				o := built.Value.Op().(ops.Parallel)
				in := prepared(o, [][]float64{built.Leaves[0].Values, built.Leaves[1].Values})
				unit := len(want) / o.Units()
				from, to := o.Units()/3, o.Units()-o.Units()/4
				dst, scratch := filled(len(want), math.NaN()), filled(o.Scratch(), math.NaN())
				o.Float64(dst, in, scratch, from, to)
				for i, v := range dst {
					inside := i >= from*unit && i < to*unit
					if inside && !(math.Abs(v-want[i]) <= 1e-11) || !inside && !math.IsNaN(v) {
						t.Errorf("%s %+v of %d images, units %d to %d: value %d is %v, of %v", name, g, batch, from, to, i, v, want[i])
						break
					}
				}
			}
		}
	}
}

// prepared returns the inputs that the kernels of o read: the last one is transformed if o has a prepared op.
func prepared(o ops.Parallel, in [][]float64) [][]float64 {
	q, shape := o.Prepared()
	if q == nil {
		return in
	}
	last := len(in) - 1
	v := filled(volume.Of(shape), math.NaN())
	q.Float64(v, in[last:], filled(q.Scratch(), math.NaN()), q.Units()/2, q.Units())
	q.Float64(v, in[last:], filled(q.Scratch(), math.NaN()), 0, q.Units()/2)
	return append(slices.Clone(in[:last]), v)
}

func filled(n int, value float64) []float64 {
	v := lists.Of(n, func(int) float64 { return value })
	return v
}

func testConvolution[T ops.Float](t *testing.T, what string, e gradcheck.Expression[T], want []float64, tolerance float64) {
	t.Helper()
	got, _, err := gradcheck.Evaluate(e)
	fatal.If(t, err)
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tolerance*(10+math.Abs(want[i]))) {
			t.Errorf("%s: element %d: got %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// The derivatives of each op are the other two ops. If the first derivatives of all three are right, so are the
// derivatives of every order.
func TestDerivativesOfConvolutionsAreRight(t *testing.T) {
	for _, g := range convolutions {
		for name, e := range expressions[float64](g, 2, newConvolved(g, 2)) {
			expect.NoError(t, gradcheck.Check(gradcheck.Scalar(e)), name, g)
		}
	}
}

func TestConvolutionsOfOtherShapesAreRefused(t *testing.T) {
	g := convolutions[0]
	c := newConvolved(g, 2)
	for _, wrong := range []func(g *ops.Convolution){
		func(g *ops.Convolution) { g.In[2]++ },
		func(g *ops.Convolution) { g.Out[0]++ },
		func(g *ops.Convolution) { g.Kernel-- },
		func(g *ops.Convolution) { g.Groups = 2 },
		func(g *ops.Convolution) { g.Stride = 0 },
		func(g *ops.Convolution) { g.Top = -1 },
	} {
		other := g
		wrong(&other)
		refused := 0
		for name, leaves := range expressions[float64](g, 2, c) {
			_, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
				fatal.If(t, expect.Err(leaves(b)))
				switch name {
				case "convolve":
					return other.Convolve(b.Node(0), b.Node(1))
				case "images":
					return other.Images(b.Node(0), b.Node(1))
				}
				return other.Gradient(b.Node(0), b.Node(1))
			}, false)
			if err != nil {
				refused++
			}
		}
		if refused == 0 {
			t.Errorf("%+v is accepted for the shapes of %+v", other, g)
		}
	}
}
