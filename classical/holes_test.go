package classical

import (
	"errors"
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/vectors"

	"gonum.org/v1/gonum/mat"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/random"
)

// The expected values come from plain loops: one iteration on images whose missing entries are filled with those of the
// previous factorisation.
func TestRulesWithHolesAgreeWithPlainLoops(t *testing.T) {
	for name, c := range map[string]struct {
		method *NMF
		plain  func(f *plain)
	}{
		"hals": {&NMF{Components: 11, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 10}, (*plain).hals},
		"mu": {&NMF{Components: 11, Solver: "mu", Loss: "euclidean", Init: "nndsvda", Iterations: 10}, func(f *plain) {
			f.multiply(func(x, _ float64) float64 { return x }, func(y float64) float64 { return y })
		}},
		"kl": {&NMF{Components: 11, Solver: "mu", Loss: "kl", Init: "random", Iterations: 10}, func(f *plain) {
			f.multiply(func(x, y float64) float64 { return x / (y + tiny) }, func(float64) float64 { return 1 })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, c.method, mixedShape, 1).(*factorisation)
			images := punched(mixed(150), 0.5)
			fatal.If(t, m.Begin(t.Context(), images))
			want := plainOf(m)
			for range 3 {
				fatal.If(t, expect.Err(m.Step(t.Context())))
				for i, v := range images.values {
					if v != v {
						want.x[i] = want.product(i/want.p, i%want.p)
					} else if want.x[i] != float64(v) {
						t.Fatalf("entry %d: the fit changed %v to %v", i, v, want.x[i])
					}
				}
				c.plain(want)
			}
			got := plainOf(m)
			for i := range got.n {
				for j := range got.p {
					if a, b := got.product(i, j), want.product(i, j); math.Abs(a-b) > 1e-4*max(1, b) {
						t.Fatalf("image %d, pixel %d: got %v, want %v", i, j, a, b)
					}
				}
			}
		})
	}
}

// lossGradient returns the gradient of the masked loss 1/2 |x - y|^2, or of the Kullback-Leibler divergence, with respect to
// y.
func lossGradient(kl bool, x, y float64) float64 {
	if kl {
		return 1 - x/max(y, 1e-12)
	}
	return y - x
}

// A converged fit satisfies the conditions of a minimum of the loss over the observed entries: for codes and atoms, the
// gradient is 0 where they are positive, and not negative where they are 0. The codes of images that were not fitted satisfy
// them too.
func TestFitsWithHolesMinimiseTheLossOfTheEntriesThatAreThere(t *testing.T) {
	for _, loss := range []string{"euclidean", "kl"} {
		s := &NMF{Components: 4, Solver: "mu", Loss: loss, Init: "random", Iterations: 1}
		steps := 8000
		if loss == "euclidean" {
			s.Solver, steps = "hals", 2000
		}
		m := newModel(t, s, mixedShape, 1).(*factorisation)
		images := punched(Matrix{mixed(80).values[10*30:], 30}, 0.5)
		fitAll(t, m, images)
		for range steps { // beyond its end
			fatal.If(t, expect.Err(m.Step(t.Context())))
		}
		check := func(what string, x, codes []float32, atoms bool, tolerance float64) {
			f := &plain{len(x) / 30, 30, 4, vectors.Wide(x), vectors.Wide(codes), vectors.Wide(m.atoms)}
			h, w := make([]float64, len(f.h)), make([]float64, len(f.w))
			for i := range f.n {
				for j := range f.p {
					if v := f.x[i*f.p+j]; !math.IsNaN(v) {
						g := lossGradient(loss == "kl", v, f.product(i, j))
						for q := range f.k {
							h[i*f.k+q] += g * f.w[q*f.p+j]
							w[q*f.p+j] += g * f.h[i*f.k+q]
						}
					}
				}
			}
			values, gradients := f.h, h
			if atoms {
				values, gradients = f.w, w
			}
			scale := 0.0
			for _, v := range f.x {
				if !math.IsNaN(v) {
					scale = max(scale, v)
				}
			}
			for i, g := range gradients {
				if g < -tolerance*scale || values[i] > 1e-2*slices.Max(values) && g > tolerance*scale {
					t.Fatalf("%s: %s: value %d is %v with the gradient %v", loss, what, i, values[i], g)
				}
			}
		}
		check("codes", images.values, m.Codes(), false, 2e-2)
		check("atoms", images.values, m.Codes(), true, 2e-2)
		others := punched(Matrix{mixed(300).values[200*30:], 30}, 0.4).values
		check("codes of others", others, encode(t, m, others), false, 8e-2) // multiplicative rules end when they are slow
	}
}

// dense is probabilistic PCA from its definition: the normal distribution of the entries of an image with its full covariance.
type dense struct {
	mean       []float64
	covariance *mat.SymDense
}

func denseOf(m *pca) *dense {
	p, noise := m.pixels, m.noiseVariance()
	d := &dense{vectors.Wide(m.bias), mat.NewSymDense(p, nil)}
	for i := range p {
		for j := i; j < p; j++ {
			v := 0.0
			for q := range m.units {
				v += max(float64(m.variances[q])-noise, 0) * float64(m.atoms[q*p+i]) * float64(m.atoms[q*p+j])
			}
			if i == j {
				v += noise
			}
			d.covariance.SetSym(i, j, v)
		}
	}
	return d
}

// known returns the indices of the observed entries, their covariance, and their difference from the mean.
func (d *dense) known(image []float32) (at []int, c mat.Cholesky, difference *mat.VecDense) {
	for j, v := range image {
		if v == v {
			at = append(at, j)
		}
	}
	s := mat.NewSymDense(len(at), nil)
	difference = mat.NewVecDense(len(at), nil)
	for a, i := range at {
		difference.SetVec(a, float64(image[i])-d.mean[i])
		for b := a; b < len(at); b++ {
			s.SetSym(a, b, d.covariance.At(i, at[b]))
		}
	}
	if !c.Factorize(s) {
		panic("not positive definite")
	}
	return at, c, difference
}

// likelihood returns the sum of the log densities of the observed entries.
func (d *dense) likelihood(x []float32) (total float64) {
	for p := len(d.mean); len(x) > 0; x = x[p:] {
		at, c, difference := d.known(x[:p])
		var solved mat.VecDense
		if err := c.SolveVecTo(&solved, difference); err != nil {
			panic(err)
		}
		total -= (float64(len(at))*math.Log(2*math.Pi) + c.LogDet() + mat.Dot(&solved, difference)) / 2
	}
	return total
}

func TestPCAWithHolesIsTheMaximumOfTheLikelihood(t *testing.T) {
	images := punched(Matrix{mixed(200).values[10*30:], 30}, 0.5)
	m := newModel(t, &PCA{Components: 3, Iterations: 400, Tolerance: 1e-12}, mixedShape, 1).(*pca)
	fatal.If(t, m.Begin(t.Context(), images))
	observed := float64(m.holed.missing.observed)
	last := math.Inf(1)
	for !m.Done() {
		before := math.NaN()
		if m.iteration > 0 && m.iteration < 4 {
			before = denseOf(m).likelihood(images.values)
		}
		p, err := m.Step(t.Context())
		fatal.If(t, err)
		if math.Abs(-p.Objective*observed-before) > 1e-6*math.Abs(before) { // never with NaN
			t.Errorf("iteration %d: the log-likelihood is %v, by its definition %v", p.Iteration, -p.Objective*observed, before)
		}
		if p.Objective > last+1e-7 {
			t.Errorf("iteration %d: %v after %v", p.Iteration, p.Objective, last)
		}
		last = p.Objective
	}
	best := denseOf(m).likelihood(images.values)
	rng := random.Stream(1, "moves", 0)
	for i := range 60 { // of the atoms, of the mean, of the noise
		other := *m
		other.atoms, other.bias, other.variances = slices.Clone(m.atoms), slices.Clone(m.bias), slices.Clone(m.variances)
		switch i % 3 {
		case 0:
			other.atoms[rng.IntN(len(other.atoms))] += float32(0.02 * rng.NormFloat64())
		case 1:
			other.bias[rng.IntN(30)] += float32(0.02 * rng.NormFloat64())
		case 2:
			by := 1 + 0.02*rng.NormFloat64()
			other.noise *= by
			for q := range other.variances {
				other.variances[q] += float32(other.noise - m.noise)
			}
		}
		if got := denseOf(&other).likelihood(images.values); got > best+1e-4 {
			t.Errorf("a small change makes the log-likelihood %v, of the fit it is %v", got, best)
		}
	}
	gram := make([]float32, 9)
	gramOf(gram, m.atoms, 3, 30)
	for i, v := range gram {
		expect.Near(t, float64(v), map[bool]float64{true: 1}[i%4 == 0], 1e-5, "the atoms are not orthonormal", gram)
	}
}

// A fit to complete images also completes other images by the conditional mean.
func TestPCACompletesByTheConditionalMean(t *testing.T) {
	for name, images := range map[string]Matrix{"holes": punched(mixed(300), 0.3), "complete": mixed(300)} {
		m := newModel(t, &PCA{Components: 5}, mixedShape, 1).(*pca)
		fitAll(t, m, images)
		others := punched(Matrix{mixed(330).values[300*30:], 30}, 0.5).values
		output, err := m.Decode(encode(t, m, others))
		fatal.If(t, err)
		d := denseOf(m)
		for i := range len(others) / 30 {
			at, c, difference := d.known(others[i*30 : (i+1)*30])
			var solved mat.VecDense
			fatal.If(t, c.SolveVecTo(&solved, difference))
			for j := range 30 {
				if others[i*30+j] == others[i*30+j] {
					continue
				}
				want := d.mean[j]
				for a, l := range at {
					want += d.covariance.At(j, l) * solved.AtVec(a)
				}
				if got := float64(output[i*30+j]); math.Abs(got-want) > 1e-4*max(1, math.Abs(want)) {
					t.Fatalf("%s: image %d, pixel %d: got %v, want %v", name, i, j, got, want)
				}
			}
		}
	}
}

// With almost no missing entries, the fit is close to the PCA of the complete images. A planted matrix of low rank is
// recovered up to the noise.
func TestPCAWithHolesTendsToPCA(t *testing.T) {
	const n, p, k, noise = 400, 30, 3, 0.05
	rng := random.Stream(5, "planted", 0)
	normal := func(n int) []float32 {
		v := lists.Of(n, func(int) float32 { return float32(rng.NormFloat64()) })
		return v
	}
	truth, err := decode(normal(n*k), normal(k*p), normal(p), k, p)
	fatal.If(t, err)
	x := slices.Clone(truth)
	for i := range x {
		x[i] += float32(noise * rng.NormFloat64())
	}
	whole := newModel(t, &PCA{Components: k}, mixedShape, 1).(*pca)
	fitAll(t, whole, Matrix{slices.Clone(x), p})
	one := slices.Clone(x)
	one[77] = float32(math.NaN())
	few := newModel(t, &PCA{Components: k, Iterations: 1000, Tolerance: 1e-9}, mixedShape, 1).(*pca)
	fitAll(t, few, Matrix{one, p})
	if d := worst(few.atoms, whole.atoms); d > 1e-3 {
		t.Errorf("one missing entry moves the atoms by %v", d)
	}
	half := punched(Matrix{slices.Clone(x), p}, 0.5)
	m := newModel(t, &PCA{Components: k, Iterations: 1000, Tolerance: 1e-6}, mixedShape, 1).(*pca)
	fitAll(t, m, half)
	output, err := m.Decode(encode(t, m, half.values))
	fatal.If(t, err)
	var errs []float64
	for i, v := range half.values {
		if v != v {
			errs = append(errs, math.Abs(float64(output[i])-float64(truth[i])))
		}
	}
	slices.Sort(errs)
	if e := errs[len(errs)*9/10]; e > noise { // the others are of images of which little is known
		t.Errorf("a tenth of the hidden entries are wrong by more than %v, the noise is %v", e, noise)
	}
	expect.Near(t, math.Sqrt(m.noise), noise, 0.1*noise, "the noise is estimated as")
}

// holedMethods returns all methods that fit images with missing entries.
func holedMethods() map[string]Method {
	return map[string]Method{
		"pca":        &PCA{Components: 3, Iterations: 20},
		"nmf":        &NMF{Components: 3, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 20},
		"nmf kl":     &NMF{Components: 3, Solver: "mu", Loss: "kl", Init: "random", Iterations: 20},
		"sparse_nmf": &SparseNMF{Components: 3, CodeSparsity: 0.3, Per: "atom", Solver: "hals", Init: "random", Iterations: 20},
	}
}

func TestImagesAndValuesOfWhichNothingIsKnownAreErrors(t *testing.T) {
	nan := float32(math.NaN())
	for name, method := range holedMethods() {
		for want, gone := range map[string]func(i int) bool{
			"nothing is known of sample 17: all of its values are missing; remove it":                 func(i int) bool { return i/30 == 17 },
			"value 4 is missing in all fitted samples: nothing can be learned about it; leave it out": func(i int) bool { return i%30 == 4 },
		} {
			images := mixed(50)
			for i := range images.values {
				if gone(i) {
					images.values[i] = nan
				}
			}
			_, err := Fit(t.Context(), newModel(t, method, mixedShape, 1), images, nil)
			expect.As[*data.Error](t, err, want, name)
		}
		m := newModel(t, method, mixedShape, 1)
		fitAll(t, m, punched(mixed(50), 0.3))
		unknown := lists.Of(30, func(int) float32 { return nan })
		for q, v := range encode(t, m, unknown) { // the mean of a pca
			if !(math.Abs(float64(v)) < 1e-6) {
				t.Errorf("%s: code %d of an image of which nothing is known is %v", name, q, v)
			}
		}
	}
}

func TestConstantValuesWithHolesDoNoHarm(t *testing.T) {
	for name, method := range holedMethods() {
		for _, value := range []float32{0, 7} {
			images := mixed(60)
			for i := range images.values {
				if i%30 < 12 {
					images.values[i] = value
				}
			}
			m := newModel(t, method, mixedShape, 1)
			images = punched(images, 0.4)
			fitAll(t, m, images)
			output, err := m.Decode(encode(t, m, images.values))
			fatal.If(t, err)
			for i, v := range output {
				if !finite(float64(v)) || name == "pca" && i%30 < 12 && math.Abs(float64(v-value)) > 0.1 {
					t.Fatalf("%s: entry %d of a value that is always %v is %v", name, i, value, v)
				}
			}
		}
	}
}

// Missing and hidden entries of a data set are fitted like NaN in values.
func TestMissingEntriesOfADataSetAreFitted(t *testing.T) {
	images := punched(mixed(60), 0.4)
	own, err := data.NewFloats(mixedShape, slices.Clone(images.values), nil)
	fatal.If(t, err)
	for name, method := range holedMethods() {
		a, b := newModel(t, method, mixedShape, 1), newModel(t, method, mixedShape, 1)
		fitAll(t, a, own.WithMissing())
		fitAll(t, b, images)
		expect.Equal(t, worst(a.Atoms().Values, b.Atoms().Values), 0, name, "the fits")
	}
	expect.Error(t, expect.Err(Fit(t.Context(), newModel(t, &KMeans{Components: 3, Iterations: 5}, mixedShape, 1), own.WithMissing(), nil)), "got NaN", "kmeans of images with missing entries")
	_, err = Rank(t.Context(), &PCA{Components: 3}, own.WithMissing(), []int{2}, 2, 1, nil)
	expect.Error(t, err, "missing or hidden", "ranks of images with missing entries")
}

func TestSettingsThatTakeNoHolesAreRefused(t *testing.T) {
	for key, method := range map[string]Method{
		"batch": &NMF{Components: 3, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 5, Batch: 10, ForgetFactor: 0.7},
		"loss":  &NMF{Components: 3, Solver: "mu", Loss: "itakura_saito", Floor: 0.1, Init: "random", Iterations: 5},
	} {
		var bad part.KeyError
		if err := method.Describe().Complete; !errors.As(err, &bad) || bad.Key != key {
			t.Errorf("%s: got %v", key, err)
		}
		expect.AnyError(t, expect.Err(Fit(t.Context(), newModel(t, method, mixedShape, 1), punched(mixed(60), 0.3), nil)), key, "images with missing entries were fitted")
	}
}
