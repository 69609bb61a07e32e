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
	"tessera/internal/random"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// products returns the products of all pairs of n vectors, row by row, and a shift of their diagonal.
func products(n int) (a, d []float64) {
	w := gradcheck.Values[float64](n*n, layers.Everything, random.Stream(1, "inverse", 0))
	a, d = make([]float64, n*n), make([]float64, n)
	for i := range n {
		d[i] = 0.3 + 0.1*float64(i%3)
		for j := range n {
			for k := range n {
				a[i*n+j] += w[i*n+k] * w[j*n+k]
			}
		}
	}
	return a, d
}

func inverse[T ops.Float](n int) gradcheck.Expression[T] {
	return func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		leaf := func(name string, shape []int, values []float64) *gorgonia.Node {
			converted := lists.Map(values, func(v float64) T { return T(v) })
			return b.Leaf(name, shape, converted, false)
		}
		a, d := products(n)
		return ops.ShiftedInverse(leaf("a", []int{n, n}, a), leaf("d", []int{n}, d))
	}
}

func init() { parallels["shifted inverse"] = inverse[float64](5) }

// The product with the shifted matrix is the identity, for sizes that are inverted at once and by blocks.
func TestTheShiftedInverseInverts(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 33, 70} {
		a, d := products(n)
		for i, v := range d {
			a[i*n+i] += v
		}
		check := func(y func(i int) float64, tolerance float64) {
			for i := range n {
				for j := range n {
					sum := 0.0
					for k := range n {
						sum += a[i*n+k] * y(k*n+j)
					}
					if i == j {
						sum--
					}
					if !(math.Abs(sum) <= tolerance) {
						t.Fatalf("%d rows: element %d, %d of the product differs by %v from the identity", n, i, j, sum)
					}
				}
			}
		}
		double, _, err := gradcheck.Evaluate(inverse[float64](n))
		fatal.If(t, err)
		check(func(i int) float64 { return double[i] }, 1e-11)
		single, _, err := gradcheck.Evaluate(inverse[float32](n))
		fatal.If(t, err)
		check(func(i int) float64 { return float64(single[i]) }, 1e-3)
	}
}

func TestDerivativesOfTheShiftedInverseAreRightTwice(t *testing.T) {
	for _, n := range []int{1, 4, 17} {
		expect.NoError(t, gradcheck.Check(gradcheck.Scalar(inverse[float64](n))), n, "rows")
	}
	expect.NoError(t, gradcheck.Check(curved(func(x *gorgonia.Node) (*gorgonia.Node, error) {
		var c ops.Chain
		d := c.Shift(c.Square(c.Reshape(c.Columns(x, 0, 1), 3)), 1)
		return c.Do("inverse", func() (*gorgonia.Node, error) { return ops.ShiftedInverse(c.MatMul(x, c.Transpose(x)), d) }), c.Err()
	})))
}

func TestShiftedInverseRefusesShapesThatDoNotFit(t *testing.T) {
	for _, shapes := range [][2][]int{{{2, 3}, {2}}, {{2, 2}, {3}}, {{4}, {4}}, {{2, 2}, {2, 1}}} {
		g := gorgonia.NewGraph()
		leaf := func(i int) *gorgonia.Node {
			s := shapes[i]
			return gorgonia.NewTensor(g, tensor.Float32, len(s), gorgonia.WithShape(s...), gorgonia.WithName(fmt.Sprint("x", i)))
		}
		expect.AnyError(t, expect.Err(ops.ShiftedInverse(leaf(0), leaf(1))), "shapes", shapes, "are accepted")
	}
}
