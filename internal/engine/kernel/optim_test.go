package kernel

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"tessera/internal/expect"
)

// stepSets returns the optimizer steps of every back end, with the best first and the portable one last.
func stepSets() (list []*stepSet) {
	for _, b := range choice().backends {
		list = append(list, b.steps)
	}
	return list
}

// rule is an optimizer with settings. It has a step on a parameter with two values of state per element, and the
// formula for one element in float64 as in PyTorch's documentation.
type rule struct {
	name    string
	run     func(s *stepSet, w, g, x, y []float32, step int)
	formula func(w, g, x, y float64, step int) (w2, x2, y2 float64)
}

func adamParams(decay float64, step int) AdamParams {
	return AdamParams{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: decay,
		Correction1: 1 - math.Pow(0.9, float64(step)), Correction2: 1 - math.Pow(0.999, float64(step))}
}

func adamFormula(w, d, m, v float64, step int) (float64, float64, float64) {
	m = 0.9*m + 0.1*d
	v = 0.999*v + 0.001*d*d
	mHat, vHat := m/(1-math.Pow(0.9, float64(step))), v/(1-math.Pow(0.999, float64(step)))
	return w - 0.01*mHat/(math.Sqrt(vHat)+1e-8), m, v
}

var rules = []rule{
	{"sgd", func(s *stepSet, w, g, _, _ []float32, _ int) {
		s.runSGD(w, g, nil, SGDParams{LR: 0.1, WeightDecay: 0.01})
	},
		func(w, g, x, y float64, _ int) (float64, float64, float64) { return w - 0.1*(g+0.01*w), x, y }},
	{"sgd with momentum", func(s *stepSet, w, g, x, _ []float32, _ int) {
		s.runSGD(w, g, x, SGDParams{LR: 0.1, WeightDecay: 0.01, Momentum: 0.9})
	}, func(w, g, x, y float64, _ int) (float64, float64, float64) {
		x = 0.9*x + g + 0.01*w
		return w - 0.1*x, x, y
	}},
	{"sgd with nesterov", func(s *stepSet, w, g, x, _ []float32, _ int) {
		s.runSGD(w, g, x, SGDParams{LR: 0.1, WeightDecay: 0.01, Momentum: 0.9, Nesterov: true})
	}, func(w, g, x, y float64, _ int) (float64, float64, float64) {
		d := g + 0.01*w
		x = 0.9*x + d
		return w - 0.1*(d+0.9*x), x, y
	}},
	{"adam", func(s *stepSet, w, g, x, y []float32, step int) { s.runAdam(w, g, x, y, adamParams(0.01, step), false) },
		func(w, g, x, y float64, step int) (float64, float64, float64) {
			return adamFormula(w, g+0.01*w, x, y, step)
		}},
	{"adamw", func(s *stepSet, w, g, x, y []float32, step int) { s.runAdam(w, g, x, y, adamParams(0.01, step), true) },
		func(w, g, x, y float64, step int) (float64, float64, float64) {
			return adamFormula(w*(1-0.01*0.01), g, x, y, step)
		}},
	{"adadelta", func(s *stepSet, w, g, x, y []float32, _ int) {
		s.runAdadelta(w, g, x, y, AdadeltaParams{LR: 1, Rho: 0.95, Eps: 1e-7, WeightDecay: 0.01})
	}, func(w, g, x, y float64, _ int) (float64, float64, float64) {
		d := g + 0.01*w
		x = 0.95*x + 0.05*d*d
		u := d * math.Sqrt(y+1e-7) / math.Sqrt(x+1e-7)
		return w - u, x, 0.95*y + 0.05*u*u
	}},
	{"adagrad", func(s *stepSet, w, g, x, _ []float32, _ int) {
		s.runAdagrad(w, g, x, AdagradParams{LR: 0.1, Eps: 1e-10, WeightDecay: 0.01})
	}, func(w, g, x, y float64, _ int) (float64, float64, float64) {
		d := g + 0.01*w
		x += d * d
		return w - 0.1*d/(math.Sqrt(x)+1e-10), x, y
	}},
	{"rmsprop", func(s *stepSet, w, g, x, _ []float32, _ int) {
		s.runRMSProp(w, g, x, nil, RMSPropParams{LR: 0.01, Alpha: 0.99, Eps: 1e-8, WeightDecay: 0.01})
	}, func(w, g, x, y float64, _ int) (float64, float64, float64) {
		d := g + 0.01*w
		x = 0.99*x + 0.01*d*d
		return w - 0.01*d/(math.Sqrt(x)+1e-8), x, y
	}},
	{"rmsprop with momentum", func(s *stepSet, w, g, x, y []float32, _ int) {
		s.runRMSProp(w, g, x, y, RMSPropParams{LR: 0.01, Alpha: 0.99, Eps: 1e-8, WeightDecay: 0.01, Momentum: 0.9})
	}, func(w, g, x, y float64, _ int) (float64, float64, float64) {
		d := g + 0.01*w
		x = 0.99*x + 0.01*d*d
		y = 0.9*y + d/(math.Sqrt(x)+1e-8)
		return w - 0.01*y, x, y
	}},
}

func TestStepsFollowTheirFormulas(t *testing.T) {
	const steps = 8
	for _, s := range stepSets() {
		for _, rule := range rules {
			for n := range 70 {
				r := rand.New(rand.NewPCG(uint64(n), 9))
				var single [3][]float32
				var double [3][]float64
				for q := range single {
					single[q], double[q] = make([]float32, n), make([]float64, n)
				}
				sample(r, single[0], false)
				for i, v := range single[0] {
					double[0][i] = float64(v)
				}
				g := make([]float32, n)
				for step := 1; step <= steps; step++ {
					sample(r, g, false)
					rule.run(s, single[0], g, single[1], single[2], step)
					for i := range n {
						double[0][i], double[1][i], double[2][i] = rule.formula(double[0][i], float64(g[i]), double[1][i], double[2][i], step)
					}
				}
				for q := range single {
					for i, v := range single[q] {
						if d := math.Abs(float64(v) - double[q][i]); !(d <= 2e-5*(math.Abs(double[q][i])+0.2)) {
							t.Fatalf("%s %s, n=%d: array %d, element %d is %v after %d steps, want %v", s.name, rule.name, n, q, i, v, steps, double[q][i])
						}
					}
				}
			}
		}
	}
}

// A step that is split at any element gives the same bytes as one call.
func TestStepsMayBeSplitAnywhere(t *testing.T) {
	const n = 131
	for _, s := range stepSets() {
		for _, rule := range rules {
			for _, cut := range []int{1, 16, 64, 67, 130} {
				r := rand.New(rand.NewPCG(1, 2))
				var x [4][]float32
				for q := range x {
					x[q] = make([]float32, n)
					sample(r, x[q], false)
				}
				for i := range n {
					x[2][i], x[3][i] = x[2][i]*x[2][i], x[3][i]*x[3][i]
				}
				var y [4][]float32
				for q := range y {
					y[q] = append([]float32(nil), x[q]...)
				}
				rule.run(s, x[0], x[1], x[2], x[3], 3)
				rule.run(s, y[0][:cut], y[1][:cut], y[2][:cut], y[3][:cut], 3)
				rule.run(s, y[0][cut:], y[1][cut:], y[2][cut:], y[3][cut:], 3)
				for q := range x {
					for i := range n {
						if math.Float32bits(x[q][i]) != math.Float32bits(y[q][i]) {
							t.Fatalf("%s %s cut at %d: array %d, element %d is %v, whole %v", s.name, rule.name, cut, q, i, y[q][i], x[q][i])
						}
					}
				}
			}
		}
	}
}

func TestStepsLeaveTheFloatingPointModes(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const denormal = 0x1p-140
	before := floatModes()
	for _, s := range stepSets() {
		for _, rule := range rules {
			w, g, x, y := []float32{1}, []float32{0}, []float32{denormal}, []float32{denormal}
			rule.run(s, w, g, x, y, 1000)
			if v := float64(w[0]); !(math.Abs(v-1) < 0.2) {
				t.Errorf("%s %s on denormal state: w = %v", s.name, rule.name, v)
			}
			if after := floatModes(); after&^0x3f != before&^0x3f {
				t.Fatalf("%s %s changes the floating-point modes from %#x to %#x", s.name, rule.name, before, after)
			}
		}
	}
}

// Reference: three steps of PyTorch 1.13 (torch.optim, float32) on w = 1 with these gradients.
func TestPublicStepsGiveTheNumbersOfPyTorch(t *testing.T) {
	for _, peer := range []struct {
		name string
		step func(w, g, x, y []float32, t int)
		want float32
	}{
		{"SGD(lr=.1, weight_decay=.01)", func(w, g, _, _ []float32, _ int) {
			SGD(w, g, nil, SGDParams{LR: 0.1, WeightDecay: 0.01})
		}, 0.872077942},
		{"SGD(lr=.1, momentum=.9, weight_decay=.01)", func(w, g, x, _ []float32, _ int) {
			SGD(w, g, x, SGDParams{LR: 0.1, WeightDecay: 0.01, Momentum: 0.9})
		}, 0.806559801},
		{"SGD(lr=.1, momentum=.9, nesterov=True, weight_decay=.01)", func(w, g, x, _ []float32, _ int) {
			SGD(w, g, x, SGDParams{LR: 0.1, WeightDecay: 0.01, Momentum: 0.9, Nesterov: true})
		}, 0.698189199},
		{"Adam(lr=.1, weight_decay=.01)", func(w, g, x, y []float32, t int) {
			p := adamParams(0.01, t)
			p.LR = 0.1
			Adam(w, g, x, y, p)
		}, 0.804614425},
		{"AdamW(lr=.1, weight_decay=.5)", func(w, g, x, y []float32, t int) {
			p := adamParams(0.5, t)
			p.LR = 0.1
			AdamW(w, g, x, y, p)
		}, 0.67601186},
		{"Adadelta(lr=1, rho=.95, eps=1e-7, weight_decay=.01)", func(w, g, x, y []float32, _ int) {
			Adadelta(w, g, x, y, AdadeltaParams{LR: 1, Rho: 0.95, Eps: 1e-7, WeightDecay: 0.01})
		}, 0.997550964},
		{"Adagrad(lr=.1, weight_decay=.01)", func(w, g, x, _ []float32, _ int) {
			Adagrad(w, g, x, AdagradParams{LR: 0.1, Eps: 1e-10, WeightDecay: 0.01})
		}, 0.855429828},
		{"RMSprop(lr=.01, weight_decay=.01)", func(w, g, x, _ []float32, _ int) {
			RMSProp(w, g, x, nil, RMSPropParams{LR: 0.01, Alpha: 0.99, Eps: 1e-8, WeightDecay: 0.01})
		}, 0.855417013},
		{"RMSprop(lr=.01, momentum=.9, weight_decay=.01)", func(w, g, x, y []float32, _ int) {
			RMSProp(w, g, x, y, RMSPropParams{LR: 0.01, Alpha: 0.99, Eps: 1e-8, WeightDecay: 0.01, Momentum: 0.9})
		}, 0.723045826},
	} {
		w, x, y := []float32{1}, []float32{0}, []float32{0}
		for i, g := range []float32{0.5, -0.25, 1} {
			peer.step(w, []float32{g}, x, y, i+1)
		}
		expect.Near(t, w[0], peer.want, 2e-7, peer.name, "w =", w[0], "PyTorch")
	}
}

func TestClampProjectsAndKeepsNaN(t *testing.T) {
	w := []float32{-1, 0.5, 2, float32(math.NaN())}
	Clamp(w, 0, 1)
	if w[0] != 0 || w[1] != 0.5 || w[2] != 1 || w[3] == w[3] {
		t.Errorf("Clamp gives %v", w)
	}
}
