package classical

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/vectors"
	"tessera/metrics"
)

func wantKey(t *testing.T, err error, key string) {
	t.Helper()
	if k, ok := errors.AsType[part.KeyError](err); !ok || k.Key != key {
		t.Errorf("got %v, want a problem of the key %s", err, key)
	}
}

func TestNMFFindsThePartsOfSwimmer(t *testing.T) {
	set := generated(t, &data.Swimmer{})
	m := newModel(t, &NMF{Components: 17, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 500}, set.Shape, 1)
	fitAll(t, m, set.Train)
	parts, err := metrics.PartsRecovered(set.Parts, m.Atoms(), metrics.PartCosine)
	fatal.If(t, err)
	found := 0
	for _, part := range parts {
		if part.Found {
			found++
		}
	}
	if found < 12 { // scikit-learn's finds the torso and 11 to 16 limbs
		t.Errorf("%d of 17 parts were found", found)
	}
	t.Logf("%d of 17 parts", found)
}

func TestNMFFindsThePartsOfBars(t *testing.T) {
	set := generated(t, &data.Bars{Count: 500, Seed: 1})
	for _, solver := range []string{"hals", "mu"} {
		m := newModel(t, &NMF{Components: 16, Solver: solver, Loss: "euclidean", Init: "random", Iterations: 1000}, set.Shape, 1)
		fitAll(t, m, set.Train)
		parts, err := metrics.PartsRecovered(set.Parts, m.Atoms(), metrics.PartCosine)
		fatal.If(t, err)
		for i, part := range parts {
			if !part.Found {
				t.Errorf("%s: part %d is not found: cosine %v", solver, i, part.Cosine)
			}
		}
	}
}

func TestMiniBatchesComeCloseToAllTogether(t *testing.T) {
	images := mixed(1500)
	s := NMF{Components: 5, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 40, ForgetFactor: 0.7}
	whole := newModel(t, &s, mixedShape, 1)
	fitAll(t, whole, images)
	s.Batch = 200
	batches := newModel(t, &s, mixedShape, 1)
	fitAll(t, batches, images)
	if batches.Codes() != nil {
		t.Error("mini-batches kept codes")
	}
	of := func(m Model) float64 {
		return meanSquares(images.values, encode(t, m, images.values), m.Atoms().Values, nil, 5, 30)
	}
	if a, b := of(whole), of(batches); b > 1.1*a {
		t.Errorf("the error is %v, all images together give %v", b, a)
	}
}

func TestTooManyComponentsAreRefused(t *testing.T) {
	const huge = 10_000_000
	for _, c := range []struct {
		s    Method
		want string // part of the error without images; "" for none
		then string // part of the error for 100 images
	}{
		{&NMF{Components: 31, Solver: "hals", Loss: "euclidean", Init: "nndsvd", Iterations: 1}, "number of values", ""},
		{&NMF{Components: 30, Solver: "hals", Loss: "euclidean", Init: "nndsvd", Iterations: 1}, "", ""},
		{&NMF{Components: 31, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 1}, "", ""},
		{&NMF{Components: 25000, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 1}, "products of codes take 2.5 GB", ""},
		{&NMF{Components: 4_000_000_000, Solver: "mu", Loss: "kl", Init: "random", Iterations: 1}, "atoms take 480 GB", ""},
		{&NMF{Components: huge, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 1, Batch: 10, ForgetFactor: 0.7}, "products of codes", ""},
		{&NMF{Components: math.MaxInt, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 1, Batch: 10, ForgetFactor: 0.7}, "atoms take", ""},
		{&SparseNMF{Components: huge, Solver: "hals", Per: "atom", CodeSparsity: 0.5, Init: "random", Iterations: 1}, "products of codes", ""},
		{&NNSAE{Components: 100_000_000}, "atoms take 12 GB", ""},
		{&PCA{Components: 31}, "want at most 30, the number of values", ""},
		{&KMeans{Components: 100_000_000, Iterations: 1}, "atoms take 12 GB", ""},
		{&KMeans{Components: 101, Iterations: 1}, "", "want at most 100, the number of samples"},
	} {
		m, err := c.s.New(mixedShape, 1)
		if !says(err, c.want) {
			t.Errorf("%+v: got %v, want %q", c.s, err, c.want)
		}
		if err != nil {
			continue
		}
		if err := m.Begin(t.Context(), mixed(100)); !says(err, c.then) {
			t.Errorf("%+v, with images: got %v, want %q", c.s, err, c.then)
		}
	}
	// What would take too long to begin.
	s := &NMF{Components: 10000, Init: "random"}
	if err := s.Describe().Sizes(60000, 784); !says(err, "codes take 2.4 GB") {
		t.Errorf("many images: got %v", err)
	}
}

// says reports whether an error contains the text. For an empty text it reports whether err is nil.
func says(err error, text string) bool {
	var of part.KeyError
	return text == "" && err == nil || text != "" && errors.As(err, &of) && strings.Contains(err.Error(), text)
}

func TestNMFOfFashionReachesTheErrorOfCoordinateDescent(t *testing.T) {
	e, _ := fitFashion(t, registered(t, "nmf"), 2000)
	if e > 0.009504 { // scikit-learn's has 0.009710 after 100 iterations, 0.009504 after 200
		t.Errorf("mse %v", e)
	}
}

func TestSparseNMFOfFashionReachesThePublishedErrorAndSparsity(t *testing.T) {
	s := registered(t, "sparse_nmf").(*SparseNMF)
	s.Iterations = 25 // after 200 the error is 0.01091, the study's is 0.01095
	e, m := fitFashion(t, s, 10000)
	code, err := metrics.MeanHoyer(m.Codes(), m.Units())
	fatal.If(t, err)
	if e > 0.0117 || math.Abs(code-0.65) > 0.02 {
		t.Errorf("mse %v, Hoyer %v", e, code)
	}
}

// fitFashion fits a method to the first test images, as in the study, and returns the mean squared error.
func fitFashion(t *testing.T, method Method, count int) (mse float64, m Model) {
	t.Helper()
	images, begin := fashion(t, count), time.Now()
	m = newModel(t, method, []int{28, 28}, 1)
	all := fitAll(t, m, images)
	mse = all[len(all)-1]
	t.Logf("%v, %d iterations, mse %.6f", time.Since(begin).Round(time.Millisecond), len(all), mse)
	return mse, m
}

// The expected errors are those of scikit-learn's full decomposition in float64.
func TestPCAOfFashionHasTheKnownErrors(t *testing.T) {
	images := fashion(t, 4000)
	fitted, held := Matrix{images.values[:2000*784], 784}, images.values[2000*784:]
	m := newModel(t, &PCA{Components: 100}, []int{28, 28}, 1)
	objective := fitAll(t, m, fitted)[0]
	decoded, err := m.Decode(encode(t, m, held))
	fatal.If(t, err)
	e := squaredDistance(decoded, held) / float64(len(decoded))
	expect.Near(t, objective, 0.00679655, 1e-7, "mse: fitted images")
	expect.Near(t, e, 0.00844740, 1e-7, "mse: held-out images")
}

// As with the full batch, atoms have norm 1, so that the scale is in the codes.
func TestAtomsOfBatchesHaveNormOne(t *testing.T) {
	m := newModel(t, &NMF{Components: 4, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 30, Batch: 20, ForgetFactor: 0.7}, mixedShape, 1)
	fitAll(t, m, mixed(60))
	atoms := m.Atoms()
	for j := range atoms.Count {
		expect.Near(t, vectors.Norm(atoms.Values[j*30:(j+1)*30]), 1, 1e-5, "atom", j, "has norm")
	}
}
