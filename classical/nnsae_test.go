package classical

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/random"
	"tessera/internal/vectors"
)

// plainNNSAE computes the published rule by plain loops in float64, from the model's start.
func plainNNSAE(s *NNSAE, x, atoms []float32, p int, seed uint64) (w, a, b []float64, objectives []float64) {
	k, n := s.Components, len(x)/p
	w, a, b = make([]float64, k*p), make([]float64, k), make([]float64, k)
	for i, v := range atoms {
		w[i] = float64(v)
	}
	for j := range k {
		a[j], b[j] = 1, -3
	}
	for pass := range s.Iterations {
		sum := 0.0
		for _, i := range random.Stream(seed, "shuffle", uint64(pass)).Perm(n) {
			image := x[i*p : (i+1)*p]
			g, h, norm := make([]float64, k), make([]float64, k), 0.0
			for j := range k {
				for q := range p {
					g[j] += w[j*p+q] * float64(image[q])
				}
				h[j] = 1 / (1 + math.Exp(-a[j]*g[j]-b[j]))
				norm += h[j] * h[j]
			}
			e := make([]float64, p)
			for q := range p {
				e[q] = float64(image[q])
				for j := range k {
					e[q] -= h[j] * w[j*p+q]
				}
				sum += e[q] * e[q]
			}
			for j := range k {
				for q := range p {
					v := w[j*p+q] + s.LearningRate/(s.Regularisation+norm)*h[j]*e[q]
					if v > 0 {
						v -= s.DecayPositive * v
					} else {
						v -= s.DecayNegative * v
					}
					w[j*p+q] = v
				}
				d := s.PlasticityRate * (1 - (2+1/s.Mean)*h[j] + h[j]*h[j]/s.Mean)
				a[j] += s.PlasticityRate/a[j] + g[j]*d
				b[j] += d
			}
		}
		objectives = append(objectives, sum/float64(len(x)))
	}
	return w, a, b, objectives
}

// faint returns mixed images with a tenth of their brightness. With few units, bright images make the rule chaotic, so that
// results in two precisions diverge.
func faint(n int) Matrix {
	images := mixed(n)
	for i := range images.values {
		images.values[i] /= 10
	}
	return images
}

func TestNNSAEIsThePublishedRule(t *testing.T) {
	for _, s := range []*NNSAE{
		{Components: 6, Iterations: 3, LearningRate: 0.01, Regularisation: 2e-4, DecayNegative: 1, PlasticityRate: 0.001, Mean: 0.2},
		{Components: 6, Iterations: 3, LearningRate: 0.05, Regularisation: 1e-2, DecayNegative: 0.25, DecayPositive: 1e-4, PlasticityRate: 0.01, Mean: 0.1},
	} {
		images := faint(60)
		first := newModel(t, s, mixedShape, 4).(*nnsae)
		first.start()
		w, a, b, want := plainNNSAE(s, images.values, first.atoms, images.pixels, 4)
		m := newModel(t, s, mixedShape, 4).(*nnsae)
		got := fitAll(t, m, images)
		for i := range want {
			expect.Near(t, got[i], want[i], 1e-4*want[i], "pass", i+1, "error", got[i], "plain loops give")
		}
		for name, pair := range map[string][2][]float32{
			"atoms": {m.atoms, vectors.Narrow(w)}, "slopes": {m.slopes, vectors.Narrow(a)}, "offsets": {m.offsets, vectors.Narrow(b)},
		} {
			if d := worst(pair[0], pair[1]); d > 2e-4 {
				t.Errorf("%s differ by %v from plain loops", name, d)
			}
		}
		code := encode(t, m, images.values[:images.pixels])
		for j, h := range code {
			g := 0.0
			for q, v := range images.values[:images.pixels] {
				g += w[j*images.pixels+q] * float64(v)
			}
			expect.Near(t, float64(h), 1/(1+math.Exp(-a[j]*g-b[j])), 1e-3, "unit", j)
		}
	}
}

func TestTheFirstWeightsOfNNSAEAreThePublishedOnes(t *testing.T) {
	m := newModel(t, registered(t, "nnsae").(*NNSAE), []int{28, 28}, 1).(*nnsae)
	m.start()
	low, high := slices.Min(m.atoms), slices.Max(m.atoms)
	if low < 0.0125 || low > 0.01252 || high > 0.0625 || high < 0.06248 {
		t.Errorf("weights are in [%v, %v], want (0.0125, 0.0625)", low, high)
	}
}

// Plasticity brings the mean activations near the target mean.
func TestPlasticityReachesTheMean(t *testing.T) {
	const mean = 0.2
	s := registered(t, "nnsae").(*NNSAE)
	s.Components, s.Iterations, s.PlasticityRate, s.Mean = 5, 200, 0.01, mean
	m := newModel(t, s, mixedShape, 1)
	images := faint(500)
	objectives := fitAll(t, m, images)
	codes, sum := encode(t, m, images.values), 0.0
	for _, h := range codes {
		sum += float64(h) / float64(len(codes))
	}
	if math.Abs(sum-mean) > 0.05 || !(objectives[199] < 0.5*objectives[0]) {
		t.Errorf("mean activation %v, want about %v; error %v after %v", sum, mean, objectives[199], objectives[0])
	}
}
