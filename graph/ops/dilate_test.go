package ops_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/data/morph"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws/gradcheck"
)

// dilated returns the dilation y of images and the gradient dx of sum_p g(p) y(p) with respect to the images.
func dilated[T ops.Float](t *testing.T, images, g []T, shape []int, radius int) (y, dx []T) {
	t.Helper()
	pixels := tensor.Shape(shape).TotalSize()
	rows := []int{len(images) / pixels, pixels}
	value := func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		return ops.Dilate(b.Leaf("x", rows, images, false), shape, radius)
	}
	y, _, err := gradcheck.Evaluate(value)
	fatal.If(t, err)
	graph, err := gradcheck.Compile(func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		n, err := value(b)
		if err != nil {
			return nil, err
		}
		var c ops.Chain
		return c.Sum(c.Mul(n, b.Leaf("g", rows, g, true))), c.Err()
	}, true)
	fatal.If(t, err)
	defer graph.Close()
	fatal.If(t, graph.Run())
	return y, slices.Clone(graph.Leaf("x").Gradient())
}

// The oracle of the values is the algorithm of package morph. The oracle of the gradient is a loop over all pixels and
// neighbours.
func TestDilationAndItsGradientEqualPlainLoops(t *testing.T) {
	for _, shape := range [][]int{{5, 7}, {1, 4}, {4, 1}, {1, 1}, {3, 4, 2}, {28, 28}} {
		for radius := 1; radius <= min(3, max(shape[0], shape[1])); radius++ {
			t.Run(fmt.Sprintf("%v/%d", shape, radius), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				x := make([]float32, 3*tensor.Shape(shape).TotalSize())
				g := make([]float32, len(x))
				for i := range x { // few distinct values, so that ties, zeros and negative values occur
					x[i], g[i] = float32(r.IntN(8)-3)/4, float32(r.IntN(9)-4)
				}
				want, err := morph.Apply(morph.Dilation, morph.Disk, radius, x, shape)
				fatal.If(t, err)
				y, dx := dilated(t, x, g, shape, radius)
				expect.Slice(t, y, want)
				expect.Slice(t, dx, routed(x, g, shape, radius), "gradient")
				y64, dx64 := dilated(t, widen(x), widen(g), shape, radius)
				expect.Slice(t, y64, widen(y), "float64 differs from float32 on numbers that both hold")
				expect.Slice(t, dx64, widen(dx), "float64 differs from float32 on numbers that both hold")
			})
		}
	}
}

// routed returns the gradient with respect to x. The gradient g of every pixel goes to the neighbour that is its maximum:
// the nearest one, and of equally near ones the first in reading order.
func routed(x, g []float32, shape []int, radius int) []float32 {
	h, w, channels := shape[0], shape[1], 1
	if len(shape) == 3 {
		channels = shape[2]
	}
	dx := make([]float32, len(x))
	at := func(image, row, column, channel int) int { return ((image*h+row)*w+column)*channels + channel }
	for image := range len(x) / (h * w * channels) {
		for row := range h {
			for column := range w {
				for channel := range channels {
					best, distance := -1, 0
					for dr := -radius; dr <= radius; dr++ {
						for dc := -radius; dc <= radius; dc++ {
							d := dr*dr + dc*dc
							if d > radius*radius || row+dr < 0 || row+dr >= h || column+dc < 0 || column+dc >= w {
								continue
							}
							p := at(image, row+dr, column+dc, channel)
							if best < 0 || x[p] > x[best] || x[p] == x[best] && d < distance {
								best, distance = p, d
							}
						}
					}
					dx[best] += g[at(image, row, column, channel)]
				}
			}
		}
	}
	return dx
}

func widen(x []float32) []float64 {
	wide := lists.Map(x, func(v float32) float64 { return float64(v) })
	return wide
}

func TestDilationIsComputedInPartsAndInPlace(t *testing.T) {
	const images, pixels = 4, 12
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(images, pixels), gorgonia.WithName("x"))
	y, err := ops.Dilate(x, []int{3, 4}, 1)
	fatal.If(t, err)
	k := y.Op().(ops.Kernel)
	if block := k.Block(x.Shape()); block != pixels {
		t.Fatalf("blocks of %d, want whole images", block)
	}
	r := rand.New(rand.NewPCG(3, 4))
	values := lists.Of(images*pixels, func(int) float32 { return r.Float32() })
	whole := make([]float32, len(values))
	k.Float32(whole, [][]float32{values}, pixels)
	for _, part := range []int{3, 0, 2, 1} {
		v := values[part*pixels : (part+1)*pixels]
		k.Float32(v, [][]float32{v}, pixels)
	}
	expect.Slice(t, values, whole)
}

func TestDilationRefusesWhatIsNoImage(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 12), gorgonia.WithName("x"))
	for _, wrong := range []struct {
		shape  []int
		radius int
	}{{[]int{12}, 1}, {[]int{3, 5}, 1}, {[]int{0, 4}, 1}, {[]int{3, 4}, 0}, {[]int{3, 4}, 5}, {[]int{3, 2, 2, 1}, 1}} {
		expect.AnyError(t, expect.Err(ops.Dilate(x, wrong.shape, wrong.radius)), "shape", wrong.shape, "radius", wrong.radius, "accepted")
	}
}

func TestDilationsThatDifferStayApart(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(2, 12), gorgonia.WithName("x"))
	seen := map[uint32]bool{}
	for _, shape := range [][]int{{3, 4}, {4, 3}, {2, 3, 2}} {
		for radius := 1; radius <= 2; radius++ {
			y, err := ops.Dilate(x, shape, radius)
			fatal.If(t, err)
			if h := y.Op().Hashcode(); seen[h] {
				t.Errorf("%v has the hash of another dilation", y.Op())
			} else {
				seen[h] = true
			}
		}
	}
}

func BenchmarkDilate(b *testing.B) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewMatrix(g, tensor.Float32, gorgonia.WithShape(100, 784), gorgonia.WithName("x"))
	y, err := ops.Dilate(x, []int{28, 28}, 1)
	fatal.If(b, err)
	s, err := gorgonia.Sum(y)
	fatal.If(b, err)
	grads, err := gorgonia.Grad(s, x)
	fatal.If(b, err)
	r := rand.New(rand.NewPCG(1, 2))
	in := lists.Of(100*784, func(int) float32 { return r.Float32() })
	out, dx := slices.Clone(in), slices.Clone(in)
	b.Run("value", func(b *testing.B) {
		k := y.Op().(ops.Kernel)
		for b.Loop() {
			k.Float32(out, [][]float32{in}, 784)
		}
	})
	b.Run("gradient", func(b *testing.B) {
		k := grads[0].Op().(ops.Kernel)
		for b.Loop() {
			k.Float32(dx, [][]float32{in, out, in}, 784)
		}
	})
}

// The structuring element is not symmetric: its dilation is the maximum over the reflected offsets.
func TestDilationByAnyOffsetsEqualsMorphs(t *testing.T) {
	const element = morph.Element("00100 01100 00100 00010 00000")
	list, err := element.Offsets(1)
	fatal.If(t, err)
	offsets := lists.Map(list, func(o morph.Offset) [2]int { return [2]int{-o.DY, -o.DX} })
	for _, shape := range [][]int{{5, 7}, {2, 3}, {3, 4, 2}} {
		r := rand.New(rand.NewPCG(3, 4))
		x := lists.Of(3*tensor.Shape(shape).TotalSize(), func(int) float32 { return float32(r.IntN(9)-4) / 4 })
		want, err := morph.Apply(morph.Dilation, element, 1, x, shape)
		fatal.If(t, err)
		got, _, err := gradcheck.Evaluate(func(b *gradcheck.Builder[float32]) (*gorgonia.Node, error) {
			return ops.DilateBy(b.Leaf("x", []int{3, len(x) / 3}, x, false), shape, offsets)
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v: got %v (%v), want %v", shape, got, err, want)
		}
	}
	for says, bad := range map[string][][2]int{"(0, 0)": {{0, 1}}, "a distance of 9": {{0, 0}, {-9, 0}}} {
		_, _, err := gradcheck.Evaluate(func(b *gradcheck.Builder[float32]) (*gorgonia.Node, error) {
			return ops.DilateBy(b.Leaf("x", []int{1, 35}, make([]float32, 35), false), []int{5, 7}, bad)
		})
		expect.Error(t, err, says, bad)
	}
}
