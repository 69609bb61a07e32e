package classical

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
	"tessera/internal/lists"
)

// nearestCentre returns the nearest centre and its distance by plain search.
func nearestCentre(image, centres []float32) (best int, distance float64) {
	p := len(image)
	distance = math.Inf(1)
	for c := range len(centres) / p {
		if d := squaredDistance(image, centres[c*p:(c+1)*p]); d < distance {
			best, distance = c, d
		}
	}
	return best, distance
}

func TestConvergedCentresAreTheMeansOfTheirImages(t *testing.T) {
	const k, p = 6, 30
	images := mixed(500)
	m := newModel(t, &KMeans{Components: k, Iterations: 500}, mixedShape, 1)
	objectives := fitAll(t, m, images)
	if len(objectives) == 500 {
		t.Fatal("it did not converge")
	}
	codes, centres := encode(t, m, images.values), m.Atoms().Values
	means, counts := make([]float64, k*p), make([]float64, k)
	var total float64
	for i := range images.Len() {
		image := images.values[i*p : (i+1)*p]
		c, distance := nearestCentre(image, centres)
		total += distance
		counts[c]++
		for j, v := range image {
			means[c*p+j] += float64(v)
		}
		for q, v := range codes[i*k : (i+1)*k] {
			if want := map[bool]float32{true: 1}[q == c]; v != want {
				t.Fatalf("image %d: code %v, but centre %d is the nearest", i, codes[i*k:(i+1)*k], c)
			}
		}
	}
	for i, v := range means {
		if mean := v / counts[i/p]; math.Abs(mean-float64(centres[i])) > 1e-5 {
			t.Fatalf("centre %d, pixel %d: got %v, the mean is %v", i/p, i%p, centres[i], mean)
		}
	}
	if want := total / float64(images.Len()*p); math.Abs(objectives[len(objectives)-1]-want) > 1e-5*want {
		t.Errorf("objective %v, want %v", objectives[len(objectives)-1], want)
	}
}

func TestFirstCentresAreDrawnByTheirSquaredDistance(t *testing.T) {
	weights := []float32{0, 1, 0, 3, 4, 0}
	counts := make([]int, len(weights))
	const draws = 8000
	for i := range draws {
		counts[fit.Drawn(weights, (float64(i)+0.5)/draws)]++
	}
	for i, w := range weights {
		expect.Equal(t, counts[i], int(w*draws/8), "weight", w, "was drawn", counts[i], "times")
	}
	expect.Equal(t, fit.Drawn([]float32{0, 0, 0, 0}, 0.6), 2, "without weights")
	expect.Equal(t, fit.Drawn([]float32{1, 0}, math.Nextafter(1, 0)), 0, "a weight of 0 was drawn")
}

// A large offset common to all samples, as in pressures in Pa, must not hide their differences.
func TestKMeansOfValuesFarFromZero(t *testing.T) {
	for _, offset := range []float32{0, 1e5} {
		x := lists.Of(100, func(i int) float32 { return offset + float32(i%2)*10 + float32(i)/128 })
		m := newModel(t, &KMeans{Components: 2, Iterations: 100, Restarts: 3}, []int{1}, 1)
		fitAll(t, m, Matrix{x, 1})
		codes, err := m.Encode(x)
		fatal.If(t, err)
		output, err := m.Decode(codes)
		fatal.If(t, err)
		for i := range x {
			if d := math.Abs(float64(x[i] - output[i])); d > 1 {
				t.Fatalf("offset %v: the centre of sample %d (%v) is at %v", offset, i, x[i], output[i])
			}
		}
	}
}

func TestFirstCentresAreDifferentImages(t *testing.T) {
	images := mixed(40)
	m := newModel(t, &KMeans{Components: 38, Iterations: 1}, mixedShape, 1).(*kmeans)
	if err := m.Begin(t.Context(), images); err != nil { // 39 different images
		t.Fatal(err)
	}
	for a := range 38 {
		for b := range a {
			if squaredDistance(m.atoms[a*30:(a+1)*30], m.atoms[b*30:(b+1)*30]) == 0 {
				t.Errorf("centres %d and %d are equal", a, b)
			}
		}
	}
}

func TestACentreWithoutImagesMovesToTheFarthestOne(t *testing.T) {
	x := []float32{0, 0, 0, 1, 9, 0, 9, 1}
	m := newModel(t, &KMeans{Components: 2, Iterations: 10}, []int{2}, 1).(*kmeans)
	m.atoms = []float32{0, 0.5, 100, 100} // as if restored
	fatal.If(t, m.Start(Matrix{x, 2}))
	m.objective = m.meanDistance()
	for !m.Done() {
		fatal.If(t, expect.Err(m.Step(t.Context())))
	}
	expect.Near(t, m.meanDistance(), 0.125, 1e-6, "error", m.atoms)
}

func TestEachFirstCentreIsTheBestOfItsCandidates(t *testing.T) {
	const p = 30
	images := mixed(300)
	m := newModel(t, &KMeans{Components: 3, Iterations: 1}, mixedShape, 1).(*kmeans)
	fatal.If(t, m.Begin(t.Context(), images))
	m.atoms = append([]float32(nil), m.atoms[:2*p]...)
	before := func(i int) float64 { _, d := nearestCentre(m.Row(i), m.atoms); return d }
	for i := range m.Distances {
		m.Distances[i] = float32(before(i))
	}
	candidates := []int{10, 20, 30, 40, 50}
	want, least := -1, math.Inf(1)
	for _, c := range candidates {
		var sum float64
		for i := range m.Distances {
			sum += min(before(i), squaredDistance(m.Row(i), m.Row(c)))
		}
		if sum < least {
			want, least = c, sum
		}
	}
	expect.Equal(t, m.Best(candidates), want)
	var sum float64
	for _, d := range m.Distances {
		sum += float64(d)
	}
	expect.Near(t, sum, least, 1e-4*least, "the distances sum to")
}

// The errors of scikit-learn 1.2 with seeds 0 to 3 are 0.028833 to 0.028970.
func TestKMeansOfFashionIsAsGoodAsScikitLearn(t *testing.T) {
	all := fitAll(t, newModel(t, &KMeans{Components: 40, Iterations: 1000, Restarts: 3}, []int{28, 28}, 1), fashion(t, 2000))
	if e := all[len(all)-1]; e > 0.028833 {
		t.Errorf("mse %v", e)
	}
}

// The expected centres come from testdata/minibatch.py, which updates the same centres by the same batches with scikit-learn.
func TestMiniBatchesMoveCentresAsScikitLearnDoes(t *testing.T) {
	text, err := os.ReadFile("testdata/minibatch.json")
	fatal.If(t, err)
	var c struct {
		X                      []float32
		Dim, Components, Batch int
		Centres                [][]float32
	}
	fatal.If(t, json.Unmarshal(text, &c))
	m := newModel(t, &KMeans{Components: c.Components, Iterations: 1, Batch: c.Batch}, []int{c.Dim}, 1).(*kmeansBatch)
	m.atoms, m.counts = slices.Clone(c.X[:c.Components*c.Dim]), make([]float64, c.Components)
	for i, want := range c.Centres {
		fatal.If(t, m.learn(c.X[i*c.Batch*c.Dim:(i+1)*c.Batch*c.Dim]))
		if d := worst(m.atoms, want); d > 1e-5 {
			t.Fatalf("after batch %d: the centres differ by %v", i, d)
		}
	}
}

// With mini-batches the images are never all in memory, and the error is close to that of Lloyd's iterations.
func TestMiniBatchesStreamAndComeClose(t *testing.T) {
	images := &counted{Matrix: mixed(3000)}
	m := newModel(t, &KMeans{Components: 8, Iterations: 12, Batch: 200}, mixedShape, 1)
	fitAll(t, m, images)
	if images.most > 200 {
		t.Errorf("%d images were read at once", images.most)
	}
	whole := newModel(t, &KMeans{Components: 8, Iterations: 100, Restarts: 3}, mixedShape, 1)
	fitAll(t, whole, images.Matrix)
	of := func(m Model) float64 {
		return meanSquares(images.values, encode(t, m, images.values), m.Atoms().Values, nil, 8, 30)
	}
	if a, b := of(m), of(whole); a > 1.1*b {
		t.Errorf("the error is %v, with Lloyd's iterations %v", a, b)
	}
}

// counted records the largest number of images that were read at once.
type counted struct {
	Matrix
	most int
}

// Batch implements [Images].
func (c *counted) Batch(dst []float32, indices []int) {
	c.most = max(c.most, len(indices))
	c.Matrix.Batch(dst, indices)
}

// Soft codes equal the responsibilities of equal spherical normal distributions, computed from their definition.
func TestSoftAssignmentsAreProbabilities(t *testing.T) {
	const k, soft = 5, 0.4
	images := mixed(200)
	hard, m := newModel(t, &KMeans{Components: k, Iterations: 20}, mixedShape, 1), newModel(t, &KMeans{Components: k, Iterations: 20, Soft: soft}, mixedShape, 1)
	objectives := fitAll(t, hard, images)
	fitAll(t, m, images)
	expect.Equal(t, worst(hard.Atoms().Values, m.Atoms().Values), 0, "soft assignments change the centres")
	scale := soft * 30 * objectives[len(objectives)-1]
	codes, centres := encode(t, m, images.values), m.Atoms().Values
	for i := range images.Len() {
		var want [k]float64
		total := 0.0
		for c := range k {
			want[c] = math.Exp(-squaredDistance(images.values[i*30:(i+1)*30], centres[c*30:(c+1)*30]) / scale)
			total += want[c]
		}
		for c := range k {
			if got := float64(codes[i*k+c]); math.Abs(got-want[c]/total) > 1e-5 {
				t.Fatalf("image %d, centre %d: got %v, want %v", i, c, got, want[c]/total)
			}
		}
	}
}

// A centre without any image in the first pass moves to an image.
func TestCentresOfMiniBatchesWithoutImagesMove(t *testing.T) {
	images := mixed(400)
	m := newModel(t, &KMeans{Components: 4, Iterations: 3, Batch: 100}, mixedShape, 1).(*kmeansBatch)
	fatal.If(t, m.Begin(t.Context(), images))
	for j := range 30 {
		m.atoms[30+j] = 1e4
	}
	for range 2 {
		fatal.If(t, expect.Err(m.Step(t.Context())))
	}
	if m.counts[1] == 0 || m.atoms[30] > 100 {
		t.Errorf("the far centre is at %v with %v images", m.atoms[30:33], m.counts[1])
	}
}
