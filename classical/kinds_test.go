package classical

import (
	"math"
	"slices"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/metrics"
)

// found returns the number of true parts that the atoms of a fit recover.
func found(t *testing.T, set *data.Set, method Method) (count int, m Model) {
	t.Helper()
	m = newModel(t, method, set.Shape, 1)
	fitAll(t, m, set.Train)
	parts, err := metrics.PartsRecovered(set.Parts, m.Atoms(), metrics.PartCosine)
	fatal.If(t, err)
	for _, p := range parts {
		if p.Found {
			count++
		}
	}
	return count, m
}

func TestOrthogonalAtomsAreTheDisjointLimbsOfSwimmer(t *testing.T) {
	count, m := found(t, generated(t, &data.Swimmer{}), &OrthogonalNMF{Components: 17, Orthogonal: "atoms", Init: "random", Iterations: 500, Tolerance: 1e-5})
	if count < 15 {
		t.Errorf("%d of 17 parts were found", count)
	}
	if c := coherence(m.Atoms().Values, 17); c > 0.02 {
		t.Errorf("the mean inner product of two atoms is %v", c)
	}
}

// coherence returns the mean inner product of pairs among k rows, scaled to norm 1.
func coherence(rows []float32, k int) (mean float64) {
	n := len(rows) / k
	for a := range k {
		for b := range a {
			x, y := rows[a*n:(a+1)*n], rows[b*n:(b+1)*n]
			mean += vectors.Dot(x, y) / (vectors.Norm(x) * vectors.Norm(y))
		}
	}
	return mean / float64(k*(k-1)/2)
}

func TestOrthogonalCodesOverlapLess(t *testing.T) {
	of := func(method Method) float64 {
		m := newModel(t, method, mixedShape, 1)
		fitAll(t, m, mixed(300))
		return coherence(transpose(m.Codes(), 300, 5), 5)
	}
	orthogonal := of(&OrthogonalNMF{Components: 5, Orthogonal: "codes", Init: "random", Iterations: 500})
	plain := of(&NMF{Components: 5, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 500})
	if orthogonal > plain/2 {
		t.Errorf("the mean inner product of two atoms' codes is %v, of plain factorisation %v", orthogonal, plain)
	}
}

// Each part has a pixel that no other part has. The factorisation is then exact, even if the parts overlap elsewhere.
func TestSeparableImagesAreFactorisedExactly(t *testing.T) {
	const n, p, k = 200, 30, 6
	rng := random.Stream(3, "separable", 0)
	h, w := make([]float32, n*k), make([]float32, k*p)
	for i := range h {
		h[i] = float32(max(rng.NormFloat64(), 0))
	}
	for i := range w {
		w[i] = float32(rng.Float64())
		if i%p < k && i%p != i/p {
			w[i] = 0
		}
	}
	images, err := decode(h, w, nil, k, p)
	fatal.If(t, err)
	expect.Slice(t, slices.Sorted(slices.Values(successiveProjection(transpose(images, n, p), p, n, k, true))), []int{0, 1, 2, 3, 4, 5}, "the anchors are the pixels")
	m := newModel(t, &SeparableNMF{Components: k, Anchors: "pixels", Normalised: true}, mixedShape, 1)
	if e := fitAll(t, m, Matrix{images, p}); e[0] > 1e-7 {
		t.Errorf("mse %v", e[0])
	}
}

func TestFewerAnchorsThanComponentsLeaveAtomsOfZeros(t *testing.T) {
	images := Matrix{make([]float32, 40*30), 30}
	for i := range 40 {
		images.values[i*30+i%3] = 1
	}
	for _, anchors := range []string{"pixels", "images"} {
		m := newModel(t, &SeparableNMF{Components: 5, Anchors: anchors}, mixedShape, 1)
		if e := fitAll(t, m, images); e[0] > 1e-12 {
			t.Errorf("%s: mse %v", anchors, e[0])
		}
	}
}

func TestAtomsOfConvexNMFAreWeightedMeansOfImages(t *testing.T) {
	images := mixed(200)
	m := newModel(t, &ConvexNMF{Components: 5, Iterations: 30}, mixedShape, 1)
	fitAll(t, m, images)
	weights := m.State().Tensors[weightsName].Values
	for j := range 5 {
		var total float64
		atom := make([]float64, 30)
		for i := range 200 {
			weight := float64(weights[i*5+j])
			if weight < 0 {
				t.Fatalf("image %d has the weight %v", i, weight)
			}
			total += weight
			for c := range atom {
				atom[c] += weight * float64(images.values[i*30+c])
			}
		}
		expect.Near(t, total, 1, 1e-5, "the weights of atom", j, "sum to")
		for c, want := range atom {
			if got := float64(m.Atoms().Values[j*30+c]); math.Abs(got-want) > 1e-5 {
				t.Fatalf("atom %d, pixel %d: got %v, want %v", j, c, got, want)
			}
		}
	}
}

// hoyerOfAtoms returns the mean sparsity of the atoms of a fit.
func hoyerOfAtoms(t *testing.T, method Method, set *data.Set) float64 {
	m := newModel(t, method, set.Shape, 1)
	fitAll(t, m, set.Train)
	mean, err := metrics.MeanHoyer(m.Atoms().Values, len(m.Atoms().Values)/m.Units())
	fatal.If(t, err)
	return mean
}

func TestLocalAtomsAreMoreLocalThanThoseOfTheDivergenceAlone(t *testing.T) {
	set := generated(t, &data.Bars{Count: 500, Seed: 1})
	local := hoyerOfAtoms(t, &LocalNMF{Components: 16, Init: "random", Iterations: 300}, set)
	plain := hoyerOfAtoms(t, &NMF{Components: 16, Solver: "mu", Loss: "kl", Init: "random", Iterations: 300}, set)
	if local <= plain {
		t.Errorf("Hoyer sparsity of the atoms %v, of Kullback-Leibler NMF %v", local, plain)
	}
}

func TestSettingsOfFactorisationsThatExcludeEachOtherAreReported(t *testing.T) {
	euclidean := func(s NMF) *NMF {
		s.Components, s.Solver, s.Loss, s.Init, s.Iterations = 2, "hals", "euclidean", "random", 1
		return &s
	}
	for _, c := range []struct {
		key    string
		method interface {
			Method
			Check() error
		}
	}{
		{"l1_atoms", euclidean(NMF{L1Codes: 1})},
		{"l1_codes", euclidean(NMF{L2Atoms: 1})},
		{"batch", euclidean(NMF{L2Atoms: 1, L1Codes: 1, Batch: 5})},
		{"restarts", euclidean(NMF{Restarts: 2, Batch: 5})},
		{"restarts", &NMF{Components: 2, Solver: "hals", Loss: "euclidean", Init: "nndsvd", Restarts: 2}},
		{"floor", &NMF{Components: 2, Solver: "mu", Loss: "itakura_saito", Init: "random"}},
		{"beta", &NMF{Components: 2, Solver: "mu", Loss: "beta", Beta: math.NaN(), Init: "random"}},
		{"loss", &NMF{Components: 2, Solver: "hals", Loss: "beta", Beta: 1, Init: "random"}},
		{"orthogonal", &OrthogonalNMF{Components: 2, Init: "random"}},
		{"init", &OrthogonalNMF{Components: 2, Orthogonal: "atoms"}},
		{"restarts", &OrthogonalNMF{Components: 2, Orthogonal: "atoms", Init: "nndsvda", Restarts: 2}},
		{"init", &LocalNMF{Components: 2}},
		{"anchors", &SeparableNMF{Components: 2}},
	} {
		wantKey(t, c.method.Check(), c.key)
		expect.AnyError(t, expect.Err(c.method.New([]int{2, 2}, 1)), c.key, "New accepts it")
	}
}
