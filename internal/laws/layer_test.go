package laws_test

import (
	"hash"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/laws"
	"tessera/layers"
)

// wrongLayer is the identity with a mistake.
type wrongLayer struct {
	layers.Linear
	shape      func(in []int) []int
	parameters func(in []int) []layers.Parameter
	apply      func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node
	within     layers.Interval // zero: as it comes
}

func (w wrongLayer) OutputShape(in []int) ([]int, error) {
	if w.shape == nil {
		return in, nil
	}
	return w.shape(in), nil
}

func (w wrongLayer) Parameters(in []int) []layers.Parameter {
	if w.parameters == nil {
		return nil
	}
	return w.parameters(in)
}

func (w wrongLayer) Apply(s layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if w.apply == nil {
		return x, nil
	}
	var c ops.Chain
	return w.apply(&c, s, x), c.Err()
}

func (w wrongLayer) OutputRange(layers.Interval) layers.Interval {
	if w.within == (layers.Interval{}) {
		return layers.Everything
	}
	return w.within
}

type sampler func(dst []float32, r *rand.Rand)

func (s sampler) Sample(dst []float32, r *rand.Rand) { s(dst, r) }

var steady = sampler(func(dst []float32, _ *rand.Rand) {
	for i := range dst {
		dst[i] = 0.5
	}
})

var noisy = sampler(func(dst []float32, r *rand.Rand) {
	for i := range dst {
		dst[i] = r.Float32()
	}
})

// steep is an op whose derivative is twice what it should be.
type steep struct{ gorgonia.SDOp }

func (s steep) WriteHash(h hash.Hash) { h.Write([]byte("steep")) }

func (s steep) Hashcode() uint32 { return 1 }

func (s steep) SymDiff(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	var c ops.Chain
	return s.SDOp.SymDiff(in, y, c.Scale(grad, 2))
}

// wrongDerivative is tanh, differentiated wrongly.
func wrongDerivative(x *gorgonia.Node) (*gorgonia.Node, error) {
	y, err := gorgonia.Tanh(x)
	if err != nil {
		return nil, err
	}
	return gorgonia.ApplyOp(steep{y.Op().(gorgonia.SDOp)}, x)
}

// bent is an op whose derivative is right and has a wrong derivative itself.
type bent struct{ gorgonia.SDOp }

func (b bent) WriteHash(h hash.Hash) { h.Write([]byte("bent")) }

func (b bent) Hashcode() uint32 { return 2 }

func (b bent) SymDiff(in gorgonia.Nodes, y, grad *gorgonia.Node) (gorgonia.Nodes, error) {
	grads, err := b.SDOp.SymDiff(in, y, grad)
	if err != nil {
		return nil, err
	}
	n, err := wrongNegative(grads[0])
	if err != nil {
		return nil, err
	}
	grads[0], err = gorgonia.Neg(n)
	return grads, err
}

// wrongNegative is -x with a wrong derivative.
func wrongNegative(x *gorgonia.Node) (*gorgonia.Node, error) {
	y, err := gorgonia.Neg(x)
	if err != nil {
		return nil, err
	}
	return gorgonia.ApplyOp(steep{y.Op().(gorgonia.SDOp)}, x)
}

func TestWrongLayersBreakTheirLaw(t *testing.T) {
	calls := 0.0
	offset := layers.Parameter{Name: "offset", Shape: []int{1}, Init: &layers.Zeros{}, FanIn: 1, FanOut: 1}
	mistakes := map[string]layers.Layer{
		"declares the shape of its output": wrongLayer{shape: func(in []int) []int { return append(slices.Clone(in), 1) }},
		"declares just the parameters it uses": wrongLayer{parameters: func([]int) []layers.Parameter {
			return []layers.Parameter{offset}
		}},
		"is deterministic at inference": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			calls++
			return c.Shift(x, calls)
		}},
		"treats every image by itself at inference": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return c.Sub(x, c.Mean(x))
		}},
		"is the identity at inference if it is noisy": wrongLayer{apply: func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			if s.Training() {
				return c.Add(x, s.Noise(noisy, x.Shape()...))
			}
			return c.Scale(x, 0.5)
		}},
		"says whether it is noisy": wrongLayer{apply: func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			if s.Training() {
				return c.Add(x, s.Noise(noisy, x.Shape()...))
			}
			return x
		}},
		"draws new noise for every element": wrongLayer{apply: func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			if s.Training() {
				return c.Add(x, s.Noise(steady, x.Shape()...))
			}
			return x
		}},
		"keeps its outputs in the range it declares": wrongLayer{within: layers.Interval{Low: 0, High: 1}},
		"has the right gradients, in a later run too": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return c.Do("tanh", func() (*gorgonia.Node, error) { return wrongDerivative(x) })
		}},
		"can be differentiated twice": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return c.Do("tanh", func() (*gorgonia.Node, error) {
				y, err := gorgonia.Tanh(x)
				if err != nil {
					return nil, err
				}
				return gorgonia.ApplyOp(bent{y.Op().(gorgonia.SDOp)}, x)
			})
		}},
		"is finite for large inputs, gradients included": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return c.Do("exp", func() (*gorgonia.Node, error) { return gorgonia.Exp(x) })
		}},
	}
	if broken := laws.Broken(laws.Layer, func() layers.Layer { return wrongLayer{} }); len(broken) > 0 {
		t.Fatalf("the identity breaks %q", broken)
	}
	for _, law := range laws.Layer {
		l, ok := mistakes[law.Name]
		if !ok {
			t.Errorf("no layer breaks %q", law.Name)
			continue
		}
		if broken := laws.Broken(laws.Layer, func() layers.Layer { return l }); !slices.Contains(broken, law.Name) {
			t.Errorf("a wrong layer obeys %q; it breaks %q", law.Name, broken)
		}
	}
}
