package laws_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/laws"
	"tessera/layers"
)

// wrongLayer is the identity with one fault.
type wrongLayer struct {
	layers.Linear
	shape      func(in []int) []int
	parameters func(in []int) []layers.Parameter
	apply      func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node
	within     layers.Interval // declared range of the outputs; the zero value declares none
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

// moving is a layer that says that it only rearranges values.
type moving struct{ wrongLayer }

func (moving) Rearranges() {}

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

// Ops of Gorgonia such as max pooling have a state that persists between the calls of one goroutine.
func TestProcessesOfALawDoNotShareAnOp(t *testing.T) {
	layer := wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
		return wrongly(c, x, meddling{name: "stateful", do: alone()})
	}}
	expect.NoError(t, laws.Layer.Test(func() layers.Layer { return layer })["gives on two processes what it gives on one"])
}

func TestWrongLayersBreakTheirLaw(t *testing.T) {
	calls := 0.0
	offset := layers.Parameter{Name: "offset", Shape: []int{1}, Init: &layers.Zeros{}, FanIn: 1, FanOut: 1}
	faulty := map[string]layers.Layer{
		"declares the shape of its output": wrongLayer{shape: func(in []int) []int { return append(slices.Clone(in), 1) }},
		"declares just the parameters it uses": wrongLayer{parameters: func([]int) []layers.Parameter {
			return []layers.Parameter{offset}
		}},
		"changes nothing but its state, and that in training only": wrongLayer{
			parameters: func([]int) []layers.Parameter { return []layers.Parameter{offset} },
			apply: func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
				return c.Add(x, c.Sum(wrongly(c, s.Parameter("offset"), meddling{name: "overwrite", do: overwrite})))
			},
		},
		"is deterministic, given its noise": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			calls++
			return c.Shift(x, calls)
		}},
		"treats every image by itself at inference": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return c.Sub(x, c.Mean(x))
		}},
		"draws no noise at inference": wrongLayer{apply: func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return c.Add(x, s.Noise(noisy, x.Shape()...))
		}},
		"says whether it is noisy": wrongLayer{apply: func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			if s.Training() {
				return c.Add(x, s.Noise(noisy, x.Shape()...))
			}
			return x
		}},
		"draws new noise for every image and run": wrongLayer{apply: func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			if s.Training() {
				return c.Add(x, s.Noise(steady, x.Shape()...))
			}
			return x
		}},
		"keeps its outputs in the range it declares": wrongLayer{within: layers.Interval{Low: 0, High: 1}},
		"gives values of its input, unchanged, if it rearranges them": moving{wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return c.Shift(x, 1)
		}}},
		"has the right gradients": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return wrongly(c, x, meddling{name: "steep", slope: doubled})
		}},
		"can be differentiated twice": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return wrongly(c, x, meddling{name: "bent", slope: bent})
		}},
		"has no memory of earlier runs": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return wrongly(c, x, meddling{name: "hoarding", do: afterOneRun(add)})
		}},
		"gives the same on both back ends": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return wrongKernel(c, x)
		}},
		"gives on two processes what it gives on one": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return lengthwise(c, x)
		}},
		"gives in float32 what it gives in float64, rounded": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return onlyIn(tensor.Float32, x, c.Shift(x, 0.01))
		}},
		"is finite for large inputs, gradients included": wrongLayer{apply: func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
			return c.Do("exp", func() (*gorgonia.Node, error) { return gorgonia.Exp(x) })
		}},
	}
	if broken := laws.Broken(laws.Layer, func() layers.Layer { return wrongLayer{} }); len(broken) > 0 {
		t.Fatalf("the identity breaks %q", broken)
	}
	parts := map[string]func() layers.Layer{}
	for law, l := range faulty {
		parts[law] = func() layers.Layer { return l }
	}
	mustBreak(t, laws.LayerOf([]int{6}), parts)
}

// A fault may occur only in one batch size, one mode, one run, one back end or one precision. The message names these.
func TestMistakesThatHideAreFound(t *testing.T) {
	type apply = func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node
	for law, hidden := range map[string]map[string]apply{
		"has the right gradients": {
			"3 of [6] at inference on the tape: run 1: the input: element": func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
				if x.Shape()[0] < 3 {
					return x
				}
				return wrongly(c, x, meddling{name: "steep", slope: doubled})
			},
			"1 of [6] at inference on the tape: run 1: the input: element": func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
				if s.Training() {
					return x
				}
				return wrongly(c, x, meddling{name: "steep", slope: doubled})
			},
			"1 of [6] at inference on the tape: run 2: the input: along": func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
				return wrongly(c, x, meddling{name: "stale slope", slope: stale})
			},
		},
		"has no memory of earlier runs": {
			"1 of [6] at inference on the tape: run 2, and the same run as the first: gradient of the input": func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
				return wrongly(c, x, meddling{name: "stale slope", slope: stale})
			},
		},
		"gives the same on both back ends": {
			"3 of [2 3] in training on the engine: run 1: gradient of the input: element 0 is": func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
				if !s.Training() || x.Shape()[0] < 2 || x.Dims() < 3 {
					return x
				}
				return wrongKernel(c, x)
			},
		},
		"draws no noise at inference": {
			"1 of [6] at inference on the tape: draws 1 noise inputs": func(c *ops.Chain, s layers.Scope, x *gorgonia.Node) *gorgonia.Node {
				return c.Add(x, s.Noise(noisy, x.Shape()...))
			},
		},
		"keeps its outputs in the range it declares": {
			"1 of [6] at inference on the tape: float32: run 1, of inputs in {0 1}: output 0 is": func(c *ops.Chain, _ layers.Scope, x *gorgonia.Node) *gorgonia.Node {
				y := c.Clip(x, 0, 1)
				return onlyIn(tensor.Float32, y, c.Shift(y, 2))
			},
		},
	} {
		for message, apply := range hidden {
			within := layers.Interval{Low: -1.2, High: 1.2}
			err := laws.LayerOf([]int{6}, []int{2, 3}).Test(func() layers.Layer { return wrongLayer{apply: apply, within: within} })[law]
			if err == nil || !strings.HasPrefix(err.Error(), message) {
				t.Errorf("%s: got %v, want %q", law, err, message)
			}
		}
	}
}

// drawn is a layer that draws from a normal distribution in training, and returns its mean, the first half of the input, at
// inference.
type drawn struct{}

func (drawn) Noisy() bool                         { return true }
func (drawn) Parameters([]int) []layers.Parameter { return nil }
func (drawn) OutputShape(in []int) ([]int, error) {
	if len(in) != 1 || in[0]%2 > 0 || in[0] == 6 {
		return nil, fmt.Errorf("got %v", in)
	}
	return []int{in[0] / 2}, nil
}

func (drawn) Apply(s layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	n := x.Shape()[1] / 2
	mean := c.Columns(x, 0, n)
	if !s.Training() {
		return mean, c.Err()
	}
	width := c.Softplus(c.Columns(x, n, n))
	return c.Add(mean, c.Mul(width, s.Noise(noisy, mean.Shape()...))), c.Err()
}

func TestTheLawsAcceptLayersOfOtherShapesThatAreNoIdentityAtInference(t *testing.T) {
	fresh := func() layers.Layer { return drawn{} }
	laws.Check(t, laws.LayerOf([]int{4}, []int{8}), fresh)
	expect.Equal(t, len(laws.Broken(laws.Layer, fresh)), len(laws.Layer.Names()), "a layer that takes none of the shapes breaks")
}

// shifted adds a parameter that is called like an argument.
type shifted struct{ wrongLayer }

func (shifted) Parameters([]int) []layers.Parameter {
	return []layers.Parameter{{Name: "input", Shape: []int{1}, Init: &layers.Zeros{}, FanIn: 1, FanOut: 1}}
}

func (shifted) Apply(s layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Add(x, c.Sum(s.Parameter("input"))), c.Err()
}

// added adds a value that it reads by name.
type added struct {
	wrongLayer
	of []int
}

func (a *added) Reads() []layers.Reading {
	return []layers.Reading{{Key: "other", Name: "hidden", Shape: a.of}}
}
func (a *added) Receive(shapes [][]int) { a.of = shapes[0] }

func (a *added) Apply(s layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return c.Add(x, s.Value("hidden")), c.Err()
}

// A parameter may be called "input", and a value that a layer reads has the shape of the input if the test gives no other.
func TestTheLawsTakeLayersOfAnyParameterAndReaders(t *testing.T) {
	laws.Check(t, laws.Layer, func() layers.Layer { return shifted{} })
	laws.Check(t, laws.Layer, func() layers.Layer { return &added{} })
	laws.Check(t, laws.Layer, func() layers.Layer { return &layers.Tied{Weight: "encoder.0.weight", Activation: "linear"} })
}
