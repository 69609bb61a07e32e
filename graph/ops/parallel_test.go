package ops_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws/gradcheck"
)

func TestFoldAddsWhatTileRepeats(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		build func(x *gorgonia.Node) (*gorgonia.Node, error)
		want  []float64
	}{
		{func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Tile(x, 2) }, []float64{1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}},
		{func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Fold(x, 2) }, []float64{5, 7, 9}},
		{func(x *gorgonia.Node) (*gorgonia.Node, error) { return ops.Fold(x, 6) }, []float64{21}},
	} {
		expression := func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			return c.build(b.Leaf("x", []int{6}, x, false))
		}
		got, _, err := gradcheck.Evaluate(expression)
		fatal.If(t, err)
		expect.Slice(t, got, c.want)
		expect.NoError(t, gradcheck.Check(gradcheck.Scalar(expression)))
	}
}

func TestTransposeLeavesItsInputAlone(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6}
	expression := func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.Transpose(b.Leaf("x", []int{2, 3}, x, false))
	}
	g, err := gradcheck.Compile(expression, false)
	fatal.If(t, err)
	defer g.Close()
	fatal.If(t, g.Run())
	if got, want := g.Output(), []float64{1, 4, 2, 5, 3, 6}; !slices.Equal(got, want) || !slices.Equal(g.Leaf("x").Values, x) {
		t.Errorf("got %v of %v, want %v of %v", got, g.Leaf("x").Values, want, x)
	}
	expect.NoError(t, gradcheck.Check(gradcheck.Scalar(expression)))
}

// parallels lists ops that are computed in units, applied to leaves with fixed values.
var parallels = map[string]gradcheck.Expression[float64]{
	"tile": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.Tile(b.Leaf("x", []int{3}, []float64{1, 2, 3}, false), 4)
	},
	"max plus": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.MaxPlus(b.Leaf("h", []int{4, 2}, []float64{1, 2, 3, -4, 5, 6, 0, 0}, false),
			b.Leaf("w", []int{2, 3}, []float64{1, -2, 3, 4, -5, 6}, false))
	},
	"max times": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.MaxTimes(b.Leaf("h", []int{4, 2}, []float64{1, 2, 3, -4, 5, 6, 2, 0.5}, false),
			b.Leaf("w", []int{2, 3}, []float64{1, -2, 3, 4, -5, 7}, false))
	},
	"fold": func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		return ops.Fold(b.Leaf("x", []int{6}, []float64{1, 2, 3, 4, 5, 6}, false), 2)
	},
}

func init() {
	for _, g := range convolutions {
		for name, e := range expressions[float64](g, 4, newConvolved(g, 4)) {
			parallels[fmt.Sprintf("%s %+v", name, g)] = e
		}
	}
}

// children returns the inputs of a node, in order.
func children(n *gorgonia.Node) (list gorgonia.Nodes) {
	for it := n.Graph().From(n.ID()); it.Next(); {
		list = append(list, it.Node().(*gorgonia.Node))
	}
	return list
}

func TestUnitsAreComputedInAnyPartsAndOnTheirOwnInputs(t *testing.T) {
	for name, build := range parallels {
		var op ops.Parallel
		var values []gorgonia.Value // values of the inputs
		want, _, err := gradcheck.Evaluate(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
			n, err := build(b)
			if err == nil {
				op = n.Op().(ops.Parallel)
				values = make([]gorgonia.Value, op.Arity())
				for i, child := range children(n) {
					gorgonia.Read(child, &values[i])
				}
			}
			return n, err
		})
		fatal.If(t, err)
		in := lists.Map(values, func(v gorgonia.Value) []float64 { return v.Data().([]float64) })
		in = prepared(op, in)
		got, units := make([]float64, len(want)), op.Units()
		part := func(v []float64, u int) (from, to int) { return len(v) / units * u, len(v) / units * (u + 1) }
		for from, to := units, units; to > 0; to = from { // the last units first, in ranges of different sizes
			from = max(0, from-1-from%3)
			own := make([][]float64, len(in))
			for i := range in {
				own[i] = slices.Clone(in[i])
				if op.ByUnit(i) { // only the units of the range are passed
					first, _ := part(own[i], from)
					_, last := part(own[i], to-1)
					for j := range own[i] {
						if j < first || j >= last {
							own[i][j] = math.NaN()
						}
					}
				}
			}
			scratch := slices.Repeat([]float64{math.NaN()}, op.Scratch())
			before := slices.Clone(got)
			op.Float64(got, own, scratch, from, to)
			first, _ := part(got, from)
			_, last := part(got, to-1)
			expect.Slice(t, got[:first], before[:first], name, "units", from, to, "write beyond themselves")
			expect.Slice(t, got[last:], before[last:], name, "units", from, to, "write beyond themselves")
		}
		for i := range got {
			if d := math.Abs(got[i] - want[i]); !(d <= 1e-12*(1+math.Abs(want[i]))) {
				t.Errorf("%s: element %d: got %v in parts, %v at once", name, i, got[i], want[i])
			}
		}
	}
}
