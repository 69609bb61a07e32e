package gradcheck

import (
	"fmt"
	"hash"
	"hash/fnv"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/random"
	"tessera/layers"
	"tessera/losses"
	"tessera/morph"
)

func lossVariants(name string, l losses.Loss) map[string]losses.Loss {
	variants := map[string]losses.Loss{"default": l}
	switch name {
	case "asymmetric_decay":
		variants["l1"] = &losses.AsymmetricDecay{Norm: "l1"}
		variants["l1 alpha"] = &losses.AsymmetricDecay{Norm: "l1", Alpha: 0.3}
		variants["l2 alpha"] = &losses.AsymmetricDecay{Norm: "l2", Alpha: 0.3}
		variants["smooth"] = &losses.AsymmetricDecay{Norm: "smooth", Alpha1: 1, Alpha2: 1, Kappa: 0.4}
		variants["smooth only"] = &losses.AsymmetricDecay{Norm: "smooth", Alpha1: 2, Kappa: 0.7}
	case "kl":
		variants["target 0.01"] = &losses.KL{Target: 0.01}
		variants["target 0.9"] = &losses.KL{Target: 0.9}
	case "hoyer":
		variants["target 0"] = &losses.Hoyer{Target: 0}
		variants["target 1"] = &losses.Hoyer{Target: 1}
	case "max_approximation":
		for _, o := range morph.Dilation.Choices() {
			variants[o] = &losses.MaxApproximation{Operator: morph.Operator(o), Radius: 1}
		}
	}
	return variants
}

// domain is where l is defined.
func domain(l losses.Loss) layers.Interval {
	if _, ok := l.(losses.UnitInterval); ok {
		return layers.Interval{Low: 0, High: 1}
	}
	return layers.Everything
}

func TestGradientOfEveryLoss(t *testing.T) {
	for _, e := range losses.Registry.All() {
		for variant, l := range lossVariants(e.Name, e.New()) {
			for _, batch := range []int{1, 2, 5} {
				t.Run(fmt.Sprintf("%s/%s/%d", e.Name, variant, batch), func(t *testing.T) {
					const columns = 6
					x := Values[float64](batch*columns, domain(l), random.Stream(Seed, "x", 0))
					target := Values[float64](batch*columns, layers.Interval{Low: 0, High: 1}, random.Stream(Seed, "target", 0))
					if err := Check(Loss(l, x, target, batch, columns)); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// wrong is an op whose derivative is off by a factor.
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

// The failing control: a gate that lets a wrong gradient through is worth nothing.
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
	if err := Check(expression(1)); err != nil {
		t.Errorf("a right gradient is refused: %v", err)
	}
	for _, factor := range []float64{1 + 1e-5, 0, -1} {
		err := Check(expression(factor))
		if err == nil || !strings.Contains(err.Error(), "relative error") {
			t.Errorf("a gradient off by the factor %v: got %v, want a relative error", factor, err)
		}
	}
}

// greedy uses a parameter that it does not declare.
type greedy struct{ layers.Linear }

func (greedy) Apply(s layers.Scope, _ *gorgonia.Node) (*gorgonia.Node, error) {
	return s.Parameter("weight"), nil
}

func TestUndeclaredParameterIsCaught(t *testing.T) {
	_, err := Compile(Layer(greedy{}, []float64{1, 2}, 1, []int{2}, false), false)
	if err == nil || !strings.Contains(err.Error(), `"weight"`) {
		t.Errorf("got %v, want an error that names the parameter", err)
	}
}
