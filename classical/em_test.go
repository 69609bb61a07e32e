package classical

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/metrics"
)

// blobs draws n rows of d values from k normal distributions of different shapes.
func blobs(seed uint64, n, d, k int, spread float64) []float32 {
	r := random.Stream(seed, "blobs", 0)
	means, scales := make([]float64, k*d), make([]float64, k*d*d)
	for i := range means {
		means[i] = spread * r.NormFloat64()
	}
	for i := range scales {
		scales[i] = r.NormFloat64()
	}
	x := make([]float32, n*d)
	z := make([]float64, d)
	for i := range n {
		c := r.IntN(k)
		for j := range z {
			z[j] = r.NormFloat64()
		}
		for j := range d {
			v := means[c*d+j]
			for q := range d {
				v += scales[c*d*d+j*d+q] * z[q] / math.Sqrt(float64(d))
			}
			x[i*d+j] = float32(v)
		}
	}
	return x
}

// On many random data sets the log-likelihood never falls, even if the floor takes effect.
func TestTheBoundNeverFalls(t *testing.T) {
	t.Parallel()
	cases := 200
	if testing.Short() {
		cases = 20
	}
	heldSomewhere := false
	for c := range cases {
		r := random.Stream(uint64(c), "cases", 0)
		d, k := 1+r.IntN(6), 1+r.IntN(5)
		n := k + 2 + r.IntN(120)
		x := blobs(uint64(c), n, d, 1+r.IntN(4), 4*r.Float64())
		for i := 0; i < n/8; i++ { // equal rows: a component on them alone has no variance
			copy(x[i*d:(i+1)*d], x[:d])
		}
		floor := []float64{1e-6, 1e-2, 0.5}[c%3]
		for _, covariance := range []string{full, diagonal, spherical, tied} {
			m := newModel(t, &GMM{Components: k, Covariance: covariance, Init: []string{"kmeans", "random"}[c%2], Floor: floor, Iterations: 30, Restarts: 1}, []int{d}, uint64(c))
			heldSomewhere = rising(t, m, x, d, covariance, c) || heldSomewhere
		}
		for i := range x {
			x[i] = min(max(x[i]/8+0.5, 0), 1)
		}
		rising(t, newModel(t, &BMM{Components: k, Init: "kmeans", Floor: 1e-3, Iterations: 30, Restarts: 1}, []int{d}, uint64(c)), x, d, "bernoulli", c)
		if d > 1 && n > d {
			m := newModel(t, &FactorAnalysis{Components: 1 + r.IntN(d-1), Equal: c%2 == 0, Floor: floor, Iterations: 30}, []int{d}, uint64(c))
			heldSomewhere = rising(t, m, x, d, "factors", c) || heldSomewhere
		}
	}
	if !heldSomewhere {
		t.Error("no case reached the floor")
	}
}

// rising fits a model, checks that the log-likelihood never falls, and reports whether a parameter has reached a bound at the
// end.
func rising(t *testing.T, m Model, x []float32, d int, what string, c int) bool {
	t.Helper()
	objectives := fitAll(t, m, Matrix{x, d})
	for i := 1; i < len(objectives); i++ {
		if objectives[i] > objectives[i-1]+1e-9*(1+math.Abs(objectives[i-1])) {
			t.Errorf("case %d, %s, iteration %d: the log-likelihood fell: %.12g after %.12g", c, what, i+1, -objectives[i], -objectives[i-1])
		}
	}
	return len(Notes(m)) > 0
}

// The responsibilities and densities equal those of plain loops over the definition.
func TestResponsibilitiesAreTheDefinition(t *testing.T) {
	const n, d, k = 90, 3, 4
	x := blobs(3, n, d, k, 3)
	for _, covariance := range []string{full, diagonal, spherical, tied} {
		m := newModel(t, &GMM{Components: k, Covariance: covariance, Init: "kmeans", Floor: 1e-6, Iterations: 7, Restarts: 1}, []int{d}, 1).(*em)
		fitAll(t, m, Matrix{x, d})
		g := m.hidden.(*mixture).family.(*gaussian)
		weights := m.hidden.(*mixture).weights
		codes, err := m.Encode(x)
		fatal.If(t, err)
		likelihoods, err := m.LogLikelihood(x)
		fatal.If(t, err)
		for i := range n {
			p, sum := make([]float64, k), 0.0
			for c := range k {
				diff := lists.Of(d, func(j int) float64 { return float64(x[i*d+j]) - m.origin[j] - g.centres[c*d+j] })
				p[c] = weights[c] * plainNormal(diff, plainCovariance(g, c))
				sum += p[c]
			}
			expect.Near(t, math.Log(sum), likelihoods[i], 1e-8, covariance, "image", i, "log density")
			for c := range k {
				expect.Near(t, p[c]/sum, float64(codes[i*k+c]), 1e-6, covariance, "image", i, "component", c, codes[i*k+c])
			}
		}
	}
}

func plainCovariance(g *gaussian, c int) []float64 {
	d := g.pixels
	s := make([]float64, d*d)
	for i := range d {
		switch g.covariance {
		case full:
			copy(s, g.variances[c*d*d:(c+1)*d*d])
		case tied:
			copy(s, g.variances)
		case diagonal:
			s[i*d+i] = g.variances[c*d+i]
		case spherical:
			s[i*d+i] = g.variances[c]
		}
	}
	return s
}

// plainNormal returns the density of a normal distribution, computed by elimination.
func plainNormal(x, s []float64) float64 {
	d := len(x)
	a, y := append([]float64{}, s...), append([]float64{}, x...)
	det := 1.0
	for i := range d {
		det *= a[i*d+i]
		for j := i + 1; j < d; j++ {
			f := a[j*d+i] / a[i*d+i]
			for q := i; q < d; q++ {
				a[j*d+q] -= f * a[i*d+q]
			}
			y[j] -= f * y[i]
		}
	}
	for i := d - 1; i >= 0; i-- {
		for q := i + 1; q < d; q++ {
			y[i] -= a[i*d+q] * y[q]
		}
		y[i] /= a[i*d+i]
	}
	square := 0.0
	for i := range x {
		square += x[i] * y[i]
	}
	return math.Exp(-square/2) / math.Sqrt(math.Pow(2*math.Pi, float64(d))*det)
}

// With a small common spherical covariance, EM equals k-means: from the same centres both perform the same steps.
func TestSmallVariancesAreKMeans(t *testing.T) {
	const n, d, k = 300, 4, 6
	x := blobs(9, n, d, k, 1)
	m := newModel(t, &GMM{Components: k, Covariance: spherical, Init: "random", Floor: 1e-6, Iterations: 40, Restarts: 1}, []int{d}, 5).(*em)
	fatal.If(t, m.Begin(t.Context(), Matrix{x, d}))
	h := m.hidden.(*mixture)
	g := h.family.(*gaussian)
	centres := make([]float64, k*d)
	for step := range 12 {
		copy(centres, g.centres)
		for c := range k { // the limit: equal weights, a variance that tends to 0
			h.weights[c], g.variances[c] = 1.0/k, 1e-7
		}
		fatal.If(t, m.settle())
		fatal.If(t, expect.Err(m.Step(t.Context())))
		want, counts := make([]float64, k*d), make([]float64, k)
		for i := range n {
			best, least := 0, math.Inf(1)
			for c := range k {
				distance := 0.0
				for j := range d {
					v := float64(x[i*d+j]) - m.origin[j] - centres[c*d+j]
					distance += v * v
				}
				if distance < least {
					best, least = c, distance
				}
			}
			counts[best]++
			for j := range d {
				want[best*d+j] += float64(x[i*d+j]) - m.origin[j]
			}
		}
		for c := range k {
			for j := range d {
				if got := g.centres[c*d+j]; counts[c] > 0 && math.Abs(got-want[c*d+j]/counts[c]) > 1e-6 {
					t.Fatalf("step %d, centre %d: got %v, want %v", step, c, got, want[c*d+j]/counts[c])
				}
			}
		}
	}
}

// Probabilistic PCA has a closed-form solution, at which EM starts and remains. The noise variance is the mean of the
// variances of the omitted components.
func TestEqualNoiseIsProbabilisticPCA(t *testing.T) {
	const n, d, k = 400, 6, 2
	x := blobs(11, n, d, 1, 1)
	m := newModel(t, &FactorAnalysis{Components: k, Equal: true, Floor: 1e-9, Iterations: 300, Tolerance: 0}, []int{d}, 1).(*em)
	fitAll(t, m, Matrix{x, d})
	gram := make([]float64, d*d)
	rows := m.rows(nil, fit.Dense(x, d), 0, n)
	for i := range n {
		for a := range d {
			for b := range d {
				gram[a*d+b] += rows[i*d+a] * rows[i*d+b] / n
			}
		}
	}
	values, vectors, err := eigen(gram, d)
	fatal.If(t, err)
	want := 0.0
	for _, v := range values[k:] {
		want += v / (d - k)
	}
	h := m.hidden.(*latent)
	expect.Near(t, h.noise[0], want, 1e-5*want, "noise")
	for q := range k { // the atoms have no part outside of the leading eigenvectors
		for _, e := range [][]float64{vectors[k*d : (k+1)*d], vectors[(d-1)*d:]} {
			along := 0.0
			for j := range d {
				along += h.loadings[q*d+j] * e[j]
			}
			if math.Abs(along) > 1e-4 {
				t.Errorf("factor %d has %v along a component that is left out", q, along)
			}
		}
	}
}

// A warning names a component on equal rows, and the likelihood remains finite.
func TestACollapsingComponentIsNamed(t *testing.T) {
	x := blobs(1, 40, 2, 1, 1)
	for i := range 10 {
		x[2*i], x[2*i+1] = 30, 30
	}
	m := newModel(t, &GMM{Components: 2, Covariance: full, Init: "kmeans", Floor: 1e-6, Iterations: 20, Restarts: 1}, []int{2}, 1).(*em)
	fitAll(t, m, Matrix{x, 2})
	expect.Equal(t, len(Notes(m)), 1, "the notes")
}

// mixtureOracles is the contents of testdata/mixtures.json, written by testdata/mixtures.py.
type mixtureOracles struct {
	X, Y            []float32
	Dim, Components int
	Means, Weights  []float64
	Start, Bounds   map[string][]float64
	Images          [][]int
	Ends            map[string][]float64
	FactorAnalysis  float64
}

func readMixtures(t *testing.T) *mixtureOracles {
	t.Helper()
	text, err := os.ReadFile("testdata/mixtures.json")
	fatal.If(t, err)
	var o mixtureOracles
	fatal.If(t, json.Unmarshal(text, &o))
	return &o
}

// started returns a mixture at the given weights and means, minus the origin, and at the covariance of all images.
func (o *mixtureOracles) started(t *testing.T, covariance string, iterations int, means []float64) *em {
	t.Helper()
	m := newModel(t, &GMM{Components: o.Components, Covariance: covariance, Init: "random", Floor: 1e-12, Iterations: iterations, Tolerance: 1e-12, Restarts: 1}, []int{o.Dim}, 1).(*em)
	fatal.If(t, m.Begin(t.Context(), Matrix{o.X, o.Dim}))
	h := m.hidden.(*mixture)
	g := h.family.(*gaussian)
	copy(h.weights, o.Weights)
	copy(g.variances, o.Start[covariance])
	for i, v := range means {
		g.centres[i] = v - m.origin[i%o.Dim]
	}
	fatal.If(t, m.settle())
	return m
}

// From the same start, the log-likelihoods of 50 iterations equal those of scikit-learn.
func TestBoundsAgreeWithScikitLearn(t *testing.T) {
	o := readMixtures(t)
	for covariance, want := range o.Bounds {
		m := o.started(t, covariance, 50, o.Means)
		for i, bound := range want {
			p, err := m.Step(t.Context())
			fatal.If(t, err)
			expect.Near(t, -p.Objective*float64(o.Dim), bound, 1e-8*math.Abs(bound), covariance, "iteration", i+1, "bound")
		}
	}
}

// From each of ten starts, the final log-likelihood is at least that of scikit-learn.
func TestFinalLikelihoodsAgreeWithScikitLearn(t *testing.T) {
	o := readMixtures(t)
	for covariance, ends := range o.Ends {
		for start, want := range ends {
			var means []float64
			for _, i := range o.Images[start] {
				for _, v := range o.X[i*o.Dim : (i+1)*o.Dim] {
					means = append(means, float64(v))
				}
			}
			m := o.started(t, covariance, 5000, means)
			for done := false; !done; {
				p, err := m.Step(t.Context())
				fatal.If(t, err)
				done = p.Done
			}
			if got := meanLikelihood(t, m, o.X); got < want-1e-9*math.Abs(want) {
				t.Errorf("%s, start %d: final log-likelihood %.12g, want at least %.12g", covariance, start, got, want)
			}
		}
	}
}

// Tessera and scikit-learn reach the same maximum of the likelihood of factor analysis.
func TestFactorAnalysisAgreesWithScikitLearn(t *testing.T) {
	o := readMixtures(t)
	m := newModel(t, &FactorAnalysis{Components: 2, Floor: 1e-9, Iterations: 5000, Tolerance: 1e-11}, []int{6}, 1).(*em)
	fitAll(t, m, Matrix{o.Y, 6})
	expect.Near(t, meanLikelihood(t, m, o.Y), o.FactorAnalysis, 1e-6, "log-likelihood")
}

// meanLikelihood returns the mean log-likelihood of images.
func meanLikelihood(t *testing.T, m *em, images []float32) float64 {
	t.Helper()
	likelihoods, err := m.LogLikelihood(images)
	fatal.If(t, err)
	sum := 0.0
	for _, v := range likelihoods {
		sum += v
	}
	return sum / float64(len(likelihoods))
}

// For four well separated clusters, BIC and the likelihood of held-out images select four components.
func TestTheNumberOfComponentsIsFound(t *testing.T) {
	const n, d, groups = 400, 2, 4
	r := random.Stream(4, "groups", 0)
	x := make([]float32, n*d)
	for i := range n {
		x[i*d] = float32(10*(i%2)) + float32(r.NormFloat64())
		x[i*d+1] = float32(10*(i/2%2)) + float32(r.NormFloat64())
	}
	fits := 0
	list, err := Rank(t.Context(), &GMM{Covariance: spherical, Init: "kmeans", Floor: 1e-4, Iterations: 50, Tolerance: 1e-4, Restarts: 2},
		Matrix{x, d}, []int{2, 3, 4, 6}, 5, 1, func(int, int) { fits++ })
	fatal.If(t, err)
	likelihood, bic := list.Rows[0], list.Rows[0]
	for _, m := range list.Rows {
		if *m.Values[0] > *likelihood.Values[0] {
			likelihood = m
		}
		if *m.Values[1] < *bic.Values[1] {
			bic = m
		}
	}
	if bic.Components != groups || likelihood.Components != groups || fits != 24 {
		t.Errorf("%d components by BIC, %d by likelihood, want %d (%d fits): %v", bic.Components, likelihood.Components, groups, fits, list)
	}
}

func TestExponentialsAreThoseOfTheLibrary(t *testing.T) {
	for x := -750.0; x <= 0; x += 0.00617 {
		values := []float64{x + 3}
		sum, want := exps(values, 3), math.Exp(x+3-3)
		if x <= -708 {
			want = 0
		}
		if math.Abs(values[0]-want) > 1e-15*want || sum != values[0] {
			t.Fatalf("exp(%v): got %v, want %v", x, values[0], want)
		}
	}
	values := []float64{0, math.Inf(-1)}
	if sum := exps(values, 0); values[0] != 1 || values[1] != 0 || sum != 1 {
		t.Errorf("exp(0) and exp(-inf): got %v", values)
	}
	if sum := exps([]float64{0, math.NaN(), 0}, 0); !math.IsNaN(sum) {
		t.Errorf("the sum with NaN is %v", sum)
	}
}

// Drawn images have the mean and the covariance of the model, which plain loops compute from its parameters, and do not depend on their number.
func TestDrawnImagesHaveTheMomentsOfTheModel(t *testing.T) {
	t.Parallel()
	const n, d, draws = 200, 3, 20000
	x := blobs(3, n, d, 3, 2)
	for i := range n { // values that go together
		x[i*d+1] += x[i*d]
	}
	unit := slices.Clone(x)
	for i := range unit {
		unit[i] = min(max(unit[i]/8+0.5, 0), 1)
	}
	methods := []Method{&FactorAnalysis{Components: 1, Floor: 1e-3, Iterations: 30}, &BMM{Components: 3, Init: "kmeans", Floor: 1e-3, Iterations: 30, Restarts: 2}}
	for _, c := range []string{full, diagonal, spherical, tied} {
		methods = append(methods, &GMM{Components: 3, Covariance: c, Init: "kmeans", Floor: 1e-3, Iterations: 30, Restarts: 1})
	}
	for _, method := range methods {
		images, name := Matrix{x, d}, fmt.Sprintf("%T %+v", method, method)
		if _, ok := method.(*BMM); ok {
			images = Matrix{unit, d}
		}
		m := newModel(t, method, []int{d}, 1)
		if s, ok := metrics.As[metrics.Sampler](m); !ok {
			t.Fatalf("%s: nothing can be drawn", name)
		} else if _, err := s.Draw(t.Context(), 1, 1); err == nil {
			t.Errorf("%s: drawn before the fit", name)
		}
		fitAll(t, m, images)
		s, _ := metrics.As[metrics.Sampler](m)
		drawn, err := s.Draw(t.Context(), draws, 7)
		fatal.If(t, err)
		few, _ := s.Draw(t.Context(), 10, 7)
		other, _ := s.Draw(t.Context(), 10, 8)
		if !slices.Equal(few, drawn[:10*d]) || slices.Equal(few, other) {
			t.Errorf("%s: the first images depend on the number, or not on the seed", name)
		}
		mean, covariance := moments(t, m, d)
		for i := range d {
			got := 0.0
			for k := range draws {
				got += float64(drawn[k*d+i]) / draws
			}
			if off := math.Abs(got - mean[i]); off > 5*math.Sqrt(covariance[i*d+i]/draws) {
				t.Errorf("%s: mean %d: got %v, want %v", name, i, got, mean[i])
			}
			for j := range d {
				got := 0.0
				for k := range draws {
					got += (float64(drawn[k*d+i]) - mean[i]) * (float64(drawn[k*d+j]) - mean[j]) / draws
				}
				scale := math.Sqrt(covariance[i*d+i] * covariance[j*d+j])
				expect.Near(t, got, covariance[i*d+j], 0.05*scale, name, "covariance", i, j)
			}
		}
	}
	if _, err := newModel(t, &GMM{Components: 1, Covariance: full, Init: "kmeans", Floor: 1e-3, Iterations: 1, Restarts: 1}, []int{d}, 1).(*em).Draw(t.Context(), -1, 1); err == nil {
		t.Error("a negative number of images was drawn")
	}
}

// moments are the mean and the covariance of a density of d values.
func moments(t *testing.T, m Model, d int) (mean, covariance []float64) {
	t.Helper()
	if r, ok := m.(*restarted); ok {
		m = r.Model
	}
	e := m.(*em)
	mean, covariance = make([]float64, d), make([]float64, d*d)
	if f, ok := e.hidden.(*latent); ok {
		for i := range d {
			mean[i] = e.origin[i]
			for j := range d {
				for q := range f.k {
					covariance[i*d+j] += f.loadings[q*d+i] * f.loadings[q*d+j]
				}
			}
			covariance[i*d+i] += f.noise[i]
		}
		return mean, covariance
	}
	h := e.hidden.(*mixture)
	centre := func(k, i int) float64 { values, _ := h.means(); return values[k*d+i] + e.origin[i] }
	for k, w := range h.weights {
		for i := range d {
			mean[i] += w * centre(k, i)
		}
	}
	for k, w := range h.weights {
		for i := range d {
			for j := range d {
				within := 0.0
				switch f := h.family.(type) {
				case *bernoulli:
					if i == j {
						within = f.p[k*d+i] * (1 - f.p[k*d+i])
					}
				case *gaussian:
					switch {
					case f.covariance == full:
						within = f.variances[k*d*d+i*d+j]
					case f.covariance == tied:
						within = f.variances[i*d+j]
					case i == j && f.covariance == diagonal:
						within = f.variances[k*d+i]
					case i == j:
						within = f.variances[k]
					}
				}
				covariance[i*d+j] += w * (within + (centre(k, i)-mean[i])*(centre(k, j)-mean[j]))
			}
		}
	}
	return mean, covariance
}

// Values whose squares are no float32 numbers are an error that names the first of them, not a density of NaN.
func TestTooLargeValuesAreNamed(t *testing.T) {
	x := blobs(1, 20, 2, 1, 1)
	x[7] = 1e20
	for _, method := range []Method{&GMM{Components: 2, Covariance: full, Init: "kmeans", Floor: 1e-3, Iterations: 5, Restarts: 1}, &FactorAnalysis{Components: 1, Floor: 1e-3, Iterations: 5}} {
		err := newModel(t, method, []int{2}, 1).Begin(t.Context(), Matrix{x, 2})
		expect.Error(t, err, "sample 3, value 1: got 1e+20", method)
	}
}

// The components that a mixture reports have its moments.
func TestComponentsHaveTheMomentsOfTheMixture(t *testing.T) {
	const n, d = 60, 2
	x := blobs(5, n, d, 2, 2)
	for _, covariance := range []string{full, diagonal, spherical, tied} {
		m := newModel(t, &GMM{Components: 2, Covariance: covariance, Init: "kmeans", Floor: 1e-3, Iterations: 20, Restarts: 2}, []int{d}, 1)
		fitAll(t, m, Matrix{x, d})
		mixed, _ := metrics.As[metrics.Mixture](m)
		mean, want := moments(t, m, d)
		got, total := make([]float64, d*d), 0.0
		for _, c := range mixed.Components() {
			total += c.Weight
			for i := range d {
				for j := range d {
					got[i*d+j] += c.Weight * (c.Covariance[i*d+j] + (c.Mean[i]-mean[i])*(c.Mean[j]-mean[j]))
				}
			}
		}
		for i := range got {
			expect.Near(t, got[i], want[i], 1e-9, covariance, got, "and the weights")
			expect.Near(t, total, 1, 1e-9, covariance, got, "and the weights")
		}
	}
}
