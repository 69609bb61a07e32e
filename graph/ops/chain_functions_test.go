package ops_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/laws/gradcheck"
)

// Values and gradients of every function that is also a method, for x = [[1 2 3] [4 5 6]].
func TestTheFunctionsAreMethodsOfAChain(t *testing.T) {
	type node = *gorgonia.Node
	l := func(x float64) float64 { return math.Log1p(math.Exp(x)) }
	e := math.Log(1 + math.Exp(-1) + math.Exp(-2))
	for name, c := range map[string]struct {
		of   func(c *ops.Chain, x node) node
		want []float64
	}{
		"columns":     {func(c *ops.Chain, x node) node { return c.Columns(x, 1, 2) }, []float64{2, 3, 5, 6}},
		"all columns": {func(c *ops.Chain, x node) node { return c.Columns(x, 0, 3) }, []float64{1, 2, 3, 4, 5, 6}},
		"rows":        {func(c *ops.Chain, x node) node { return c.Rows(x, 1, 1) }, []float64{4, 5, 6}},
		"all rows":    {func(c *ops.Chain, x node) node { return c.Rows(x, 0, 2) }, []float64{1, 2, 3, 4, 5, 6}},
		"join":        {func(c *ops.Chain, x node) node { return c.Join(x, c.Columns(x, 0, 1), x) }, []float64{1, 2, 3, 1, 1, 2, 3, 4, 5, 6, 4, 4, 5, 6}},
		"transpose":   {func(c *ops.Chain, x node) node { return c.Transpose(x) }, []float64{1, 4, 2, 5, 3, 6}},
		"softplus":    {func(c *ops.Chain, x node) node { return c.Softplus(x) }, []float64{l(1), l(2), l(3), l(4), l(5), l(6)}},
		"log-softmax": {func(c *ops.Chain, x node) node { return c.LogSoftmax(x) }, []float64{-2 - e, -1 - e, -e, -2 - e, -1 - e, -e}},
		"softmax":     {func(c *ops.Chain, x node) node { return c.Log(c.Softmax(x)) }, []float64{-2 - e, -1 - e, -e, -2 - e, -1 - e, -e}},
		"one-hot, gather": {func(c *ops.Chain, x node) node {
			indices := c.Columns(c.Shift(c.Stop(c.Rows(x, 0, 1)), -1), 0, 2)
			return c.Add(c.Reshape(c.Gather(x, indices), 2, 3), c.Reshape(c.OneHot(indices, 3), 2, 3))
		}, []float64{2, 2, 3, 4, 6, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			f := func(b *gradcheck.Builder[float64]) (node, error) {
				var chain ops.Chain
				return c.of(&chain, b.Leaf("x", []int{2, 3}, []float64{1, 2, 3, 4, 5, 6}, false)), chain.Err()
			}
			got, _, err := gradcheck.Evaluate(f)
			if err != nil || !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
				t.Fatalf("got %v, %v, want %v", got, err, c.want)
			}
			if name == "one-hot, gather" {
				return // the numerical derivative would change the indices
			}
			expect.NoError(t, gradcheck.Check(gradcheck.Scalar(f)))
		})
	}
}

func TestAChainRefusesRowsThatAreNotThere(t *testing.T) {
	x := gorgonia.NewMatrix(gorgonia.NewGraph(), gorgonia.Float32, gorgonia.WithShape(2, 3), gorgonia.WithName("x"))
	for _, r := range [][2]int{{-1, 1}, {1, 2}, {0, 0}} {
		var c ops.Chain
		if got := c.Rows(x, r[0], r[1]); got != nil || c.Err() == nil {
			t.Errorf("rows %v: got %v, %v", r, got, c.Err())
		}
	}
}
