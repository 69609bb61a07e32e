package classical

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/vectors"
)

// oracles is the contents of testdata/oracles.json, written by testdata/oracles.py.
type oracles struct {
	Images, Pixels, Components, Iterations int
	X, Signed, Codes, Atoms, Weights       []float32
	Products, Lassos                       map[string][]float64
	L1, Dictionary                         float64
}

func readOracles(t *testing.T) *oracles {
	t.Helper()
	text, err := os.ReadFile("testdata/oracles.json")
	fatal.If(t, err)
	var o oracles
	fatal.If(t, json.Unmarshal(text, &o))
	return &o
}

// methods returns the settings of each case of the oracles.
func (o *oracles) methods() map[string]Method {
	const random = "random"
	k, most := o.Components, o.Iterations
	nmf := func(loss string, beta, l1, l2 float64) *NMF {
		return &NMF{Components: k, Solver: "mu", Loss: loss, Beta: beta, Floor: 1e-6, Init: random, Iterations: most,
			L1Codes: l1, L2Codes: l2, L1Atoms: l1, L2Atoms: l2}
	}
	return map[string]Method{
		"orthogonal_atoms":        &OrthogonalNMF{Components: k, Orthogonal: "atoms", Init: random, Iterations: most},
		"orthogonal_codes":        &OrthogonalNMF{Components: k, Orthogonal: "codes", Init: random, Iterations: most},
		"local":                   &LocalNMF{Components: k, Init: random, Iterations: most},
		"semi":                    &SemiNMF{Components: k, Iterations: most},
		"convex":                  &ConvexNMF{Components: k, Iterations: most},
		"separable_pixels_false":  &SeparableNMF{Components: k, Anchors: "pixels"},
		"separable_pixels_true":   &SeparableNMF{Components: k, Anchors: "pixels", Normalised: true},
		"separable_images_false":  &SeparableNMF{Components: k, Anchors: "images"},
		"separable_images_true":   &SeparableNMF{Components: k, Anchors: "images", Normalised: true},
		"nmf_euclidean":           nmf("euclidean", 0, 0, 0),
		"nmf_kl":                  nmf("kl", 0, 0, 0),
		"nmf_itakura_saito":       nmf("itakura_saito", 0, 0, 0),
		"nmf_beta_0.5":            nmf("beta", 0.5, 0, 0),
		"nmf_beta_3":              nmf("beta", 3, 0, 0),
		"nmf_euclidean_penalised": nmf("euclidean", 0, 0.02, 0.01),
		"nmf_kl_penalised":        nmf("kl", 0, 0.02, 0.01),
	}
}

func TestFactorisationsAgreeWithPython(t *testing.T) {
	o := readOracles(t)
	methods := o.methods()
	expect.Equal(t, len(methods), len(o.Products), "methods", len(o.Products), "oracles")
	for name, want := range o.Products {
		t.Run(name, func(t *testing.T) {
			images := Matrix{o.X, o.Pixels}
			if name == "semi" {
				images.values = o.Signed
			}
			m := newModel(t, methods[name], []int{o.Pixels}, 1).(*factorisation)
			o.start(m)
			fitAll(t, m, images)
			f := &plain{m.n, m.pixels, m.units, vectors.Wide(m.x), vectors.Wide(transpose(m.codes, m.units, m.n)), vectors.Wide(m.atoms)}
			var scale float64
			for _, v := range want {
				scale = max(scale, math.Abs(v))
			}
			for i := range f.n {
				for j := range f.p {
					if got := f.product(i, j); math.Abs(got-want[i*f.p+j]) > 2e-5*scale {
						t.Fatalf("image %d, pixel %d: got %v, want %v", i, j, got, want[i*f.p+j])
					}
				}
			}
		})
	}
}

// start sets the initial factors of a model to those of the oracles. Separable factorisation has no initial factors.
func (o *oracles) start(m *factorisation) {
	m.fixed = true // the oracles do not scale samples
	if m.fit.Name == "separable_nmf" {
		return
	}
	m.first = func() error {
		m.codes, m.atoms = transpose(o.Codes, o.Images, o.Components), append([]float32(nil), o.Atoms...)
		if r, ok := m.rule.(*convexRule); ok {
			r.weights = append([]float32(nil), o.Weights...)
			r.mix()
		}
		return nil
	}
}
