package layers_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/volume"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

func init() {
	settings["rbm"] = []map[string]any{
		{"units": 4}, {"units": 3, "steps": 3, "binarise": false}, {"units": 3, "chains": 7, "steps": 2}, {"units": 1, "chains": 1},
		{"units": 4, "visible": "gaussian", "deviation": 0.7}, {"units": 2, "visible": "gaussian", "chains": 3},
	}
}

// plainRBM computes a training step of the layer rbm by plain loops.
type plainRBM struct {
	*layers.RBM
	n                        int
	weight, bias, visible    []float64
	noises                   [][]float64 // in the order in which the layer draws
	gWeight, gBias, gVisible []float64   // gradients of the objective
}

// take returns the next noise.
func (p *plainRBM) take() []float64 {
	noise := p.noises[0]
	p.noises = p.noises[1:]
	return noise
}

// hidden returns b + v W, or b + v W / σ², for one row.
func (p *plainRBM) hidden(v []float64) []float64 {
	z := slices.Clone(p.bias)
	for j := range z {
		for i := range v {
			z[j] += v[i] * p.weight[i*p.Units+j] / (p.Deviation * p.Deviation)
		}
	}
	return z
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// energy returns F(v), and adds sign times the gradient of F to the gradients: dF/dW = -v P(h|v) (/ σ²), dF/db = -P(h|v), and
// dF/da = -v, or (a - v) / σ².
func (p *plainRBM) energy(v []float64, sign float64) (f float64) {
	s2 := p.Deviation * p.Deviation
	for i, x := range v {
		if p.Visible == "gaussian" {
			f += (x - p.visible[i]) * (x - p.visible[i]) / (2 * s2)
			p.gVisible[i] += sign * (p.visible[i] - x) / s2
		} else {
			f -= p.visible[i] * x
			p.gVisible[i] -= sign * x
		}
	}
	for j, z := range p.hidden(v) {
		f -= math.Log(1 + math.Exp(z))
		p.gBias[j] -= sign * logistic(z)
		for i, x := range v {
			p.gWeight[i*p.Units+j] -= sign * x * logistic(z) / s2
		}
	}
	return f
}

// step moves one row of visible units: hidden units from uniform numbers, then visible ones.
func (p *plainRBM) step(v, u, noise []float64) []float64 {
	next := slices.Clone(p.visible)
	for j, z := range p.hidden(v) {
		if u[j] < logistic(z) {
			for i := range next {
				next[i] += p.weight[i*p.Units+j]
			}
		}
	}
	for i, mean := range next {
		switch {
		case p.Visible == "gaussian":
			next[i] = mean + noise[i]
		case noise[i] < logistic(mean):
			next[i] = 1
		default:
			next[i] = 0
		}
	}
	return next
}

// The objective of contrastive divergence, with and without persistent chains, its gradient by automatic differentiation, and the
// state of the chains are those of plain loops.
func TestRBMFollowsContrastiveDivergence(t *testing.T) {
	const batch = 3
	in := []int{2, 2}
	for _, keys := range settings["rbm"] {
		t.Run(titled("rbm", keys), func(t *testing.T) {
			layer := fresh(t, "rbm", keys)().(*layers.RBM)
			n := volume.Of(in)
			x := make([]float64, batch*n)
			for i, v := range drawnNormal(batch*n, "x") {
				x[i] = logistic(v)
			}
			g, err := gradcheck.Compile(contrastiveDivergence(layer, x, batch, in), true)
			fatal.If(t, err)
			defer g.Close()
			plain := &plainRBM{RBM: layer, n: n}
			for _, name := range []string{"weight", "bias", "visible_bias"} {
				copy(g.Leaf(name).Values, drawnNormal(len(g.Leaf(name).Values), name))
			}
			plain.weight, plain.bias, plain.visible = g.Leaf("weight").Values, g.Leaf("bias").Values, g.Leaf("visible_bias").Values
			plain.gWeight, plain.gBias, plain.gVisible = make([]float64, n*layer.Units), make([]float64, layer.Units), make([]float64, n)
			for _, leaf := range g.Leaves {
				if leaf.Sampler != nil {
					plain.noises = append(plain.noises, slices.Clone(leaf.Values))
				}
			}
			rows := batch
			var chains []float64
			if layer.Chains > 0 {
				rows = layer.Chains
				chains = slices.Clone(g.Leaf("chain").Values)
			}
			fatal.If(t, g.Run())

			data := slices.Clone(x)
			if layer.Binarise && layer.Visible == "binary" {
				for i, u := range plain.take() {
					if data[i] = 0; u < x[i] {
						data[i] = 1
					}
				}
			}
			want := 0.0
			for v := range slices.Chunk(x, n) {
				for j, z := range plain.hidden(v) {
					p := logistic(z)
					want += p
					plain.gBias[j] += p * (1 - p)
					for i := range v {
						plain.gWeight[i*layer.Units+j] += p * (1 - p) * v[i] / (layer.Deviation * layer.Deviation)
					}
				}
			}
			for v := range slices.Chunk(data, n) {
				want += plain.energy(v, 1.0/batch) / batch
			}
			if chains == nil {
				chains = slices.Clone(data)
			}
			for range layer.Steps {
				u, noise := plain.take(), plain.take()
				for r := range rows {
					copy(chains[r*n:(r+1)*n], plain.step(chains[r*n:(r+1)*n], u[r*layer.Units:(r+1)*layer.Units], noise[r*n:(r+1)*n]))
				}
			}
			for v := range slices.Chunk(chains, n) {
				want -= plain.energy(v, -1/float64(rows)) / float64(rows)
			}
			wantNear(t, "objective", g.Output(), []float64{want}, 1e-12)
			for name, gradient := range map[string][]float64{"weight": plain.gWeight, "bias": plain.gBias, "visible_bias": plain.gVisible} {
				wantNear(t, "gradient of "+name, g.Leaf(name).Gradient(), gradient, 1e-12)
			}
			if layer.Chains > 0 {
				wantNear(t, "chains", g.Update("chain"), chains, 1e-12)
			}
		})
	}
}

// contrastiveDivergence is mean(energy) - mean(sample_energy) of a layer, plus the sum of its outputs.
func contrastiveDivergence(l *layers.RBM, x []float64, batch int, in []int) gradcheck.Expression[float64] {
	return func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		y, err := gradcheck.Layer(l, x, batch, in, true)(b)
		if err != nil {
			return nil, err
		}
		var c ops.Chain
		published := b.Published()
		return c.Add(c.Sum(y), c.Sub(c.Mean(published[0]), c.Mean(published[1]))), c.Err()
	}
}

// cancelledChain is a [layers.Generation] whose caller cancels at the third question.
type cancelledChain struct {
	layers.Generation
	asked int
}

var errCancelled = errors.New("cancelled")

func (*cancelledChain) Streams() []*rand.Rand { return []*rand.Rand{rand.New(rand.NewPCG(1, 1))} }
func (*cancelledChain) Parameter(name string) []float32 {
	return map[string][]float32{"weight": {1, 2}, "bias": {1}, "visible_bias": {0, 0}}[name]
}
func (c *cancelledChain) Err() error {
	if c.asked++; c.asked == 3 {
		return errCancelled
	}
	return nil
}

func TestChainsOfRBMAreCancelledBetweenSteps(t *testing.T) {
	g, c := fresh(t, "rbm", map[string]any{"units": 1, "sample_steps": 10})().(*layers.RBM), &cancelledChain{}
	if _, err := g.Generate(c); err != errCancelled || c.asked != 3 {
		t.Errorf("%v after %d questions, want the error of the third", err, c.asked)
	}
}

func TestRBMRefusesADeviationOfBinaryUnits(t *testing.T) {
	l := fresh(t, "rbm", map[string]any{"units": 2, "deviation": 0.5})()
	expect.Error(t, expect.Err(l.OutputShape([]int{4})), `give visible = "gaussian"`)
	expect.AnyError(t, expect.Err(fresh(t, "rbm", map[string]any{"units": 2})().(*layers.RBM).Stepped(5, 0.5)), "eta")
	if g, err := fresh(t, "rbm", map[string]any{"units": 2})().(*layers.RBM).Stepped(5, -1); err != nil || g.(*layers.RBM).SampleSteps != 5 {
		t.Error(fmt.Sprint("5 steps give ", g, err))
	}
}
