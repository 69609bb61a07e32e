package gradcheck

import (
	"fmt"
	"hash"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/random"
	"tessera/layers"
)

// wrong is an op whose derivative has an incorrect factor.
type wrong struct {
	gorgonia.SDOp
	factor float64
}

func (w wrong) WriteHash(h hash.Hash) { fmt.Fprintf(h, "wrong(%v)", w.factor) }

func (w wrong) Hashcode() uint32 {
	h := fnv.New32a()
	w.WriteHash(h)
	return h.Sum32()
}

func (w wrong) SymDiff(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	grads, err := w.SDOp.SymDiff(in, y, grad)
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	return gorgonia.Nodes{c.Scale(grads[0], w.factor)}, c.Err()
}

// The check must return an error for an incorrect gradient.
func TestWrongGradientIsCaught(t *testing.T) {
	expression := func(factor float64) Expression[float64] {
		return Scalar(func(b *Builder[float64]) (*gorgonia.Node, error) {
			x := b.Leaf("input", []int{2, 3}, Values[float64](6, layers.Everything, random.Stream(Seed, "input", 0)), false)
			y, err := gorgonia.Tanh(x)
			if err != nil {
				return nil, err
			}
			return gorgonia.ApplyOp(wrong{y.Op().(gorgonia.SDOp), factor}, x)
		})
	}
	expect.NoError(t, Check(expression(1)), "a right gradient is refused")
	for _, factor := range []float64{1 + 1e-5, 0, -1} {
		err := Check(expression(factor))
		expect.Error(t, err, "relative error", "a gradient off by the factor", factor)
	}
}

// greedy is a layer that uses an undeclared parameter.
type greedy struct{ layers.Linear }

func (greedy) Apply(s layers.Scope, _ *gorgonia.Node) (*gorgonia.Node, error) {
	return s.Parameter("weight"), nil
}

func TestUndeclaredParameterIsCaught(t *testing.T) {
	_, err := Compile(Layer(greedy{}, []float64{1, 2}, 1, []int{2}, false), false)
	expect.Error(t, err, `"weight"`)
}

// spotted is an op whose derivative has an incorrect factor for each element.
type spotted struct {
	gorgonia.SDOp
	factors *gorgonia.Node
}

func (s spotted) WriteHash(h hash.Hash) { fmt.Fprint(h, "spotted") }

func (s spotted) Hashcode() uint32 {
	h := fnv.New32a()
	s.WriteHash(h)
	return h.Sum32()
}

func (s spotted) SymDiff(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	grads, err := s.SDOp.SymDiff(in, y, grad)
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	return gorgonia.Nodes{c.Mul(grads[0], s.factors)}, c.Err()
}

// In a large leaf, the check tests some elements individually and the others together.
func TestAWrongElementOfALargeLeafIsCaught(t *testing.T) {
	const n = 60
	order := random.Stream(Seed, "elements of input", 0).Perm(n)
	for message, where := range map[string]int{"run 1: input: element": order[0], "run 2: input: along": order[n-1]} {
		factors := slices.Repeat([]float64{1}, n)
		factors[where] = 0.5
		err := Check(Scalar(func(b *Builder[float64]) (*gorgonia.Node, error) {
			x := b.Leaf("input", []int{n}, Values[float64](n, layers.Everything, random.Stream(Seed, "input", 0)), false)
			mask := b.Leaf("factors", []int{n}, factors, true)
			y, err := gorgonia.Tanh(x)
			if err != nil {
				return nil, err
			}
			return gorgonia.ApplyOp(spotted{y.Op().(gorgonia.SDOp), mask}, x)
		}))
		if err == nil || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("element %d: got %v, want an error that begins with %q", where, err, message)
		}
	}
}
