package ops_test

import (
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
)

// Row i has the softmax of its first i + 1 elements, and exact zeros behind them.
func TestACausalSoftmaxIsTheSoftmaxOfWhatWasBefore(t *testing.T) {
	g := gorgonia.NewGraph()
	x := gorgonia.NewTensor(g, gorgonia.Float64, 3, gorgonia.WithShape(2, 3, 3), gorgonia.WithName("x"))
	y, err := ops.CausalSoftmax(x)
	fatal.If(t, err)
	in := []float64{1, 900, 3, 0, 1, 900, 2, 1, 2, 5, 6, 7, 1, 1, 1, 800, 800, 800}
	got := valueOf(t, y, map[*gorgonia.Node][]float64{x: in})
	for i, v := range got {
		row, j := i/3, i%3
		sum := 0.0
		for k := range row%3 + 1 {
			sum += math.Exp(in[3*row+k] - in[i])
		}
		want := 1 / sum
		if j > row%3 {
			want = 0
		}
		if math.Abs(v-want) > 1e-15 || want == 0 && v != 0 {
			t.Errorf("row %d, element %d is %v, want %v", row, j, v, want)
		}
	}
	if _, err := ops.CausalSoftmax(gorgonia.NewMatrix(g, gorgonia.Float64, gorgonia.WithShape(2, 3), gorgonia.WithName("z"))); err == nil {
		t.Error("rows of another number than their length are taken")
	}
}

// More tokens than a group whose products are computed together: values and derivatives are those of the whole products, whose later weights are 0.
func TestCausalAttentionIsWholeAttentionWithoutLaterTokens(t *testing.T) {
	whole := ops.Attention{Tokens: 67, Features: 2, Heads: 2}
	causal := whole
	causal.Causal = true
	d := newAttended(whole, 1)
	attention := func(a ops.Attention) gradcheck.Expression[float64] {
		return func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			x := b.Leaf("x", []int{1, a.Tokens, a.Features}, d.x, false)
			y := b.Leaf("y", []int{1, a.Tokens, a.Features}, d.y, false)
			var c ops.Chain
			scores := c.Do("scores", func() (*gorgonia.Node, error) { return a.Scores(x, y) })
			weights := c.Do("softmax", func() (*gorgonia.Node, error) { return ops.CausalSoftmax(scores) })
			return c.Do("mix", func() (*gorgonia.Node, error) { return a.Mix(weights, y) }), c.Err()
		}
	}
	want, _, err := gradcheck.Evaluate(attention(whole))
	fatal.If(t, err)
	testConvolution(t, "causal", attention(causal), want, 0)
	fatal.If(t, gradcheck.Check(gradcheck.Scalar(attention(causal))))
	if causal.Others = 3; causal.Check() == nil {
		t.Error("a causal attention to tokens of another number is taken")
	}
}
