package layers_test

import (
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
)

// The gradient of the input is the straight-through estimate by its definition, the gradient of the output. As a control, it is
// not the derivative, which is 0: a small change of the input changes no output.
func TestVQPassesGradientsStraightThrough(t *testing.T) {
	x := []float64{0.3, -0.2, 0.9, 0.4, -0.7, 0.1, 0.5, 0.6}
	upstream := []float64{1, -2, 3, 0.5, -0.25, 4, 7, -1}
	var y gorgonia.Value
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		out, err := gradcheck.Layer(fresh(t, "vq", map[string]any{"entries": 3})(), x, 2, []int{2, 2}, true)(b)
		if err != nil {
			return nil, err
		}
		gorgonia.Read(out, &y)
		var c ops.Chain
		return c.Sum(c.Mul(out, b.Leaf("upstream", []int{2, 2, 2}, upstream, true))), c.Err()
	}, true)
	fatal.If(t, err)
	defer g.Close()
	outputs := func() []float64 {
		fatal.If(t, g.Run())
		return slices.Clone(y.Data().([]float64))
	}
	before := outputs()
	expect.Slice(t, g.Leaf(gradcheck.Input).Gradient(), upstream, "the gradient of the input")
	for i := range x {
		g.Leaf(gradcheck.Input).Values[i] += 1e-6
	}
	expect.Slice(t, outputs(), before, "outputs")
}

// The layer takes the nearest entry, and its state follows the formulas, by plain loops.
func TestVQFollowsItsTokens(t *testing.T) {
	const tokens, features, entries, decay = 6, 2, 3, 0.5
	x := []float64{0.3, -0.2, 0.9, 0.4, -0.7, 0.1, 0.5, 0.6, 0.35, -0.1, -0.2, -0.9}
	g, err := gradcheck.Compile(gradcheck.Layer(fresh(t, "vq", map[string]any{"entries": entries, "decay": decay, "revive": 0.0})(), x, 3, []int{2, features}, true), false)
	fatal.If(t, err)
	defer g.Close()
	book, usage := slices.Clone(g.Leaf("book").Values), []float64{0.4, 1, 1.6}
	copy(g.Leaf("usage").Values, usage)
	fatal.If(t, g.Run())
	n, sums := make([]float64, entries), make([]float64, entries*features)
	for i := range tokens {
		best, least := 0, -1.0
		for j := range entries {
			d := 0.0
			for f := range features {
				d += (x[i*features+f] - book[j*features+f]) * (x[i*features+f] - book[j*features+f])
			}
			if least < 0 || d < least {
				best, least = j, d
			}
		}
		n[best]++
		for f := range features {
			sums[best*features+f] += x[i*features+f]
			expect.Equal(t, g.Output()[i*features+f], book[best*features+f], "token", i, "value", f, best)
		}
	}
	wantBook, wantUsage := slices.Clone(book), slices.Clone(usage)
	for j := range entries {
		wantUsage[j] = decay*usage[j] + (1-decay)*n[j]*entries/tokens
		for f := range features {
			wantBook[j*features+f] = (decay*usage[j]*book[j*features+f] + (1-decay)*sums[j*features+f]*entries/tokens) / wantUsage[j]
		}
	}
	near := func(what string, got, want []float64) {
		for i := range want {
			if d := got[i] - want[i]; !(d < 1e-12 && d > -1e-12) {
				t.Errorf("%s becomes %v, want %v", what, got, want)
				return
			}
		}
	}
	near("usage", g.Update("usage"), wantUsage)
	near("book", g.Update("book"), wantBook)
}
