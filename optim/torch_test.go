package optim_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws"
	"tessera/optim"
)

// fixture is the contents of testdata/torch_optimizers.json, which torch_optimizers.py in the same folder writes.
type fixture struct {
	Start     []float64   `json:"start"`
	Gradients [][]float64 `json:"gradients"`
	Cases     []struct {
		Name     string         `json:"name"`
		Kind     string         `json:"kind"`
		Settings map[string]any `json:"settings"` // values by their keys in models.toml
		Weights  [][]float64    `json:"weights"`  // weights after each step, in float64
	} `json:"cases"`
}

func readFixture(t *testing.T) fixture {
	t.Helper()
	text, err := os.ReadFile("testdata/torch_optimizers.json")
	fatal.If(t, err)
	var f fixture
	fatal.If(t, json.Unmarshal(text, &f))
	return f
}

// declared returns the optimizer of the given kind with the given settings.
func declared(t *testing.T, kind string, settings map[string]any) optim.Rule {
	t.Helper()
	e, ok := optim.Registry.Lookup(kind)
	if !ok {
		t.Fatalf("unknown optimizer %q", kind)
	}
	o := e.New().(optim.Rule)
	for key, value := range settings {
		fatal.If(t, laws.Set(o, key, value))
	}
	return o
}

func single(x []float64) []float32 {
	y := lists.Map(x, func(v float64) float32 { return float32(v) })
	return y
}

// Twenty steps in float32 differ from PyTorch's in float64 by at most 2e-6 * (1+|w|). Each step rounds w a few times,
// by at most 6e-8 of its size. Settings that a case omits have the same defaults on both sides.
func TestUpdateAgreesWithPyTorch(t *testing.T) {
	const tolerance = 2e-6
	f := readFixture(t)
	tried := map[string]bool{}
	for _, c := range f.Cases {
		tried[c.Kind] = true
		t.Run(c.Name, func(t *testing.T) {
			o := declared(t, c.Kind, c.Settings)
			w := single(f.Start)
			state := lists.Of(o.States(), func(int) []float32 { return make([]float32, len(w)) })
			for step, g := range f.Gradients {
				o.Update(w, single(g), state, o.LearningRate(), step+1)
				for i, want := range c.Weights[step] {
					expect.Near(t, float64(w[i]), want, tolerance*(1+math.Abs(want)), "step", step+1, "weight", i)
				}
			}
		})
	}
	for _, e := range optim.Registry.All() {
		_, whole := e.New().(optim.Whole) // whole rules have separate tests
		if _, rule := e.New().(optim.Rule); rule && !whole && !tried[e.Name] {
			t.Errorf("no case for %s", e.Name)
		}
	}
}

// The formulas of the doc comments, as plain loops in float64, agree with PyTorch to 1e-12.
func TestDocumentedFormulasAgreeWithPyTorch(t *testing.T) {
	f := readFixture(t)
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			o := declared(t, c.Kind, c.Settings)
			for i, w := range f.Start {
				var s, b float64
				for step := range f.Gradients {
					w, s, b = formula(t, o, w, f.Gradients[step][i], s, b, step+1)
					if want := c.Weights[step][i]; !(math.Abs(w-want) <= 1e-12*(1+math.Abs(want))) {
						t.Fatalf("step %d: weight %d is %v, PyTorch's %v", step+1, i, w, want)
					}
				}
			}
		})
	}
}

// formula returns the weight and the two state values after one step.
func formula(t *testing.T, o optim.Rule, w, g, s, b float64, step int) (float64, float64, float64) {
	t.Helper()
	lr := o.LearningRate()
	switch o := o.(type) {
	case *optim.SGD:
		d := g + o.WeightDecay*w
		b = o.Momentum*b + d
		if o.Nesterov {
			return w - lr*(d+o.Momentum*b), s, b
		}
		return w - lr*b, s, b
	case *optim.Adam:
		return adam(w, g+o.WeightDecay*w, b, s, lr, o.Beta1, o.Beta2, o.Epsilon, step)
	case *optim.AdamW:
		return adam(w-lr*o.WeightDecay*w, g, b, s, lr, o.Beta1, o.Beta2, o.Epsilon, step)
	case *optim.Adadelta:
		d := g + o.WeightDecay*w
		s = o.Rho*s + (1-o.Rho)*d*d
		u := d * math.Sqrt(b+o.Epsilon) / math.Sqrt(s+o.Epsilon)
		return w - lr*u, s, o.Rho*b + (1-o.Rho)*u*u
	case *optim.Adagrad:
		d := g + o.WeightDecay*w
		s += d * d
		return w - lr*d/(math.Sqrt(s)+o.Epsilon), s, b
	case *optim.RMSProp:
		d := g + o.WeightDecay*w
		s = o.Rho*s + (1-o.Rho)*d*d
		b = o.Momentum*b + d/(math.Sqrt(s)+o.Epsilon)
		return w - lr*b, s, b
	}
	switch o := o.(type) {
	case *optim.NAdam:
		return nadam(o, w, g+o.WeightDecay*w, b, s, step)
	case *optim.Lion:
		c := o.Beta1*b + (1-o.Beta1)*g
		if c != 0 {
			c = math.Copysign(1, c)
		}
		return w - lr*(c+o.WeightDecay*w), s, o.Beta2*b + (1-o.Beta2)*g
	}
	t.Fatalf("no formula for %T", o)
	return 0, 0, 0
}

func adam(w, d, m, v, lr, beta1, beta2, epsilon float64, step int) (float64, float64, float64) {
	m = beta1*m + (1-beta1)*d
	v = beta2*v + (1-beta2)*d*d
	correction1, correction2 := 1-math.Pow(beta1, float64(step)), 1-math.Pow(beta2, float64(step))
	return w - lr*(m/correction1)/(math.Sqrt(v/correction2)+epsilon), v, m
}

func nadam(o *optim.NAdam, w, d, m, v float64, step int) (float64, float64, float64) {
	mu := func(t int) float64 { return o.Beta1 * (1 - math.Pow(0.96, float64(t)*o.MomentumDecay)/2) }
	m = o.Beta1*m + (1-o.Beta1)*d
	v = o.Beta2*v + (1-o.Beta2)*d*d
	product := 1.0
	for t := 1; t <= step; t++ {
		product *= mu(t)
	}
	up := mu(step+1)*m/(1-product*mu(step+1)) + (1-mu(step))*d/(1-product)
	return w - o.Rate*up/(math.Sqrt(v/(1-math.Pow(o.Beta2, float64(step))))+o.Epsilon), v, m
}

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	for kind, want := range map[string]optim.Optimizer{
		"sgd":      &optim.SGD{Rate: 1e-3},
		"adam":     &optim.Adam{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8},
		"adamw":    &optim.AdamW{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, WeightDecay: 0.01},
		"adadelta": &optim.Adadelta{Rate: 1, Rho: 0.95, Epsilon: 1e-7},
		"adagrad":  &optim.Adagrad{Rate: 1e-2, Epsilon: 1e-10},
		"rmsprop":  &optim.RMSProp{Rate: 1e-2, Rho: 0.99, Epsilon: 1e-8},
		"nadam":    &optim.NAdam{Rate: 2e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, MomentumDecay: 0.004},
		"lion":     &optim.Lion{Rate: 3e-4, Beta1: 0.9, Beta2: 0.99},
	} {
		got, err := json.Marshal(declared(t, kind, nil))
		fatal.If(t, err)
		if text, _ := json.Marshal(want); string(got) != string(text) {
			t.Errorf("%s: defaults %s, want %s", kind, got, text)
		}
	}
}

func TestNesterovNeedsMomentum(t *testing.T) {
	expect.AnyError(t, (&optim.SGD{Nesterov: true}).Check(), "nesterov without momentum is taken")
	expect.NoError(t, (&optim.SGD{Nesterov: true, Momentum: 0.9}).Check())
	expect.NoError(t, (&optim.SGD{}).Check())
}
