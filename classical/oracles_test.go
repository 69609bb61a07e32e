package classical

import (
	"math"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/vectors"

	"gonum.org/v1/gonum/mat"

	"tessera/internal/random"
)

// plain is a factorisation computed by plain loops in float64: x (n x p), h (n x k), w (k x p).
type plain struct {
	n, p, k int
	x, h, w []float64
}

// plainOf returns a plain copy of a model after Begin.
func plainOf(m *factorisation) *plain {
	return &plain{m.n, m.pixels, m.units, vectors.Wide(m.x), vectors.Wide(m.Codes()), vectors.Wide(m.atoms)}
}

func (f *plain) product(i, j int) float64 {
	var y float64
	for q := range f.k {
		y += f.h[i*f.k+q] * f.w[q*f.p+j]
	}
	return y
}

// coordinateCode and coordinateAtom set one entry to the value that minimises the squared error.
func (f *plain) coordinateCode(i, q int) {
	var a, g float64
	for j := range f.p {
		w := f.w[q*f.p+j]
		a += w * (f.x[i*f.p+j] - f.product(i, j))
		g += w * w
	}
	if g > 0 {
		f.h[i*f.k+q] = max(f.h[i*f.k+q]+a/g, 0)
	}
}

func (f *plain) coordinateAtom(q, j int) {
	var a, g float64
	for i := range f.n {
		h := f.h[i*f.k+q]
		a += h * (f.x[i*f.p+j] - f.product(i, j))
		g += h * h
	}
	if g > 0 {
		f.w[q*f.p+j] = max(f.w[q*f.p+j]+a/g, 0)
	}
}

func (f *plain) hals() {
	for range sweeps {
		for q := range f.k {
			for j := range f.p {
				f.coordinateAtom(q, j)
			}
		}
	}
	for range sweeps {
		for q := range f.k {
			for i := range f.n {
				f.coordinateCode(i, q)
			}
		}
	}
}

// multiply applies Lee and Seung's rules. All factors for one matrix are computed before its update.
func (f *plain) multiply(factor func(x, y float64) float64, denominator func(y float64) float64) {
	for _, codes := range []bool{false, true} {
		entries, other := f.w, f.h
		if codes {
			entries, other = f.h, f.w
		}
		up, down := make([]float64, len(entries)), make([]float64, len(entries))
		for i := range f.n {
			for j := range f.p {
				y := f.product(i, j)
				for q := range f.k {
					e, o := q*f.p+j, i*f.k+q
					if codes {
						e, o = o, e
					}
					up[e] += other[o] * factor(f.x[i*f.p+j], y)
					down[e] += other[o] * denominator(y)
				}
			}
		}
		for e := range entries {
			if down[e] > 0 {
				entries[e] *= up[e] / down[e]
			}
		}
	}
}

func TestRulesAgreeWithPlainLoops(t *testing.T) {
	const tiny = 1e-9
	for _, c := range []struct {
		name   string
		method *NMF
		plain  func(f *plain)
	}{
		{"hals", &NMF{Components: 11, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 10}, (*plain).hals},
		{"mu", &NMF{Components: 11, Solver: "mu", Loss: "euclidean", Init: "random", Iterations: 10}, func(f *plain) {
			f.multiply(func(x, _ float64) float64 { return x }, func(y float64) float64 { return y })
		}},
		{"kl", &NMF{Components: 11, Solver: "mu", Loss: "kl", Init: "random", Iterations: 10}, func(f *plain) {
			f.multiply(func(x, y float64) float64 { return x / (y + tiny) }, func(float64) float64 { return 1 })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newModel(t, c.method, mixedShape, 1).(*factorisation)
			fatal.If(t, m.Begin(t.Context(), mixed(150)))
			want := plainOf(m)
			for range 3 {
				fatal.If(t, expect.Err(m.Step(t.Context())))
				c.plain(want)
			}
			got := plainOf(m)
			for i := range got.n { // products: kl moves the atoms' scale to the codes
				for j := range got.p {
					if a, b := got.product(i, j), want.product(i, j); math.Abs(a-b) > 1e-4*max(1, b) {
						t.Fatalf("image %d, pixel %d: got %v, want %v", i, j, a, b)
					}
				}
			}
		})
	}
}

// plainDivergence returns the divergence, with 0 log 0 = 0, computed by plain loops.
func plainDivergence(x, codes, atoms []float32, k, p int) float64 {
	f := &plain{len(x) / p, p, k, vectors.Wide(x), vectors.Wide(codes), vectors.Wide(atoms)}
	var sum float64
	for i := range f.n {
		for j := range p {
			v, y := f.x[i*p+j], f.product(i, j)
			if v > 0 {
				sum += v * math.Log(v/y)
			}
			sum += y - v
		}
	}
	return sum / float64(len(x))
}

// The codes of unseen images satisfy the optimality conditions: the gradient is 0 where the code is positive, and not negative
// where it is 0.
func TestEncodingWithFixedAtomsIsOptimal(t *testing.T) {
	m := newModel(t, &NMF{Components: 9, Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 20}, mixedShape, 1).(*factorisation)
	images := mixed(400)
	fitAll(t, m, Matrix{images.values[:300*30], 30})
	others := images.values[300*30:]
	f := &plain{100, 30, 9, vectors.Wide(others), vectors.Wide(encode(t, m, others)), vectors.Wide(m.atoms)}
	for i := range f.n {
		for q := range f.k {
			var gradient, scale float64
			for j := range f.p {
				gradient += f.w[q*f.p+j] * (f.product(i, j) - f.x[i*f.p+j])
				scale += f.w[q*f.p+j] * (1 + f.x[i*f.p+j])
			}
			if h := f.h[i*f.k+q]; h > 0 && math.Abs(gradient) > 1e-3*scale || gradient < -1e-3*scale {
				t.Fatalf("image %d, atom %d: code %v, gradient %v", i, q, h, gradient)
			}
		}
	}
}

func TestEncodingFittedImagesAnewComesCloseToTheirCodes(t *testing.T) {
	m := newModel(t, &NMF{Components: 5, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 300}, mixedShape, 1).(*factorisation)
	images := mixed(400)
	fitAll(t, m, images)
	again, kept := m.rule.encode(images.values), m.Codes()
	if d := math.Sqrt(squaredDistance(again, kept) / squaredDistance(kept, make([]float32, len(kept)))); d > 0.01 {
		t.Errorf("the codes differ by %v of their norm", d)
	}
	a := meanSquares(images.values, again, m.atoms, nil, 5, 30)
	b := meanSquares(images.values, kept, m.atoms, nil, 5, 30)
	if a > b*(1+1e-6) {
		t.Errorf("the error of the new codes is %v, of the kept ones %v", a, b)
	}
}

func singularValues(t *testing.T, x []float64, n, p int) (u, v mat.Dense, s []float64) {
	t.Helper()
	var svd mat.SVD
	if !svd.Factorize(mat.NewDense(n, p, x), mat.SVDThin) {
		t.Fatal("no decomposition")
	}
	svd.UTo(&u)
	svd.VTo(&v)
	return u, v, svd.Values(nil)
}

func TestPCAAgreesWithTheSingularValueDecomposition(t *testing.T) {
	for name, images := range map[string]Matrix{"more images than pixels": mixed(200), "fewer": {mixed(200).values[:20*30], 30}} {
		const k = 8
		m := newModel(t, &PCA{Components: k}, mixedShape, 1).(*pca)
		objective := fitAll(t, m, images)[0]
		n, p := images.Len(), 30
		centred := vectors.Wide(images.values)
		for j := range p {
			var mean float64
			for i := range n {
				mean += centred[i*p+j] / float64(n)
			}
			expect.Near(t, mean, float64(m.bias[j]), 1e-6, name, "pixel", j, "mean", m.bias[j])
			for i := range n {
				centred[i*p+j] -= mean
			}
		}
		_, v, s := singularValues(t, centred, n, p)
		var left float64
		for q, value := range s {
			if q >= k {
				left += value * value
				continue
			}
			if want := value * value / float64(n-1); math.Abs(float64(m.variances[q])-want) > 1e-6*want {
				t.Errorf("%s: component %d: variance %v, want %v", name, q, m.variances[q], want)
			}
			var cosine float64
			most := 0
			for j := range p {
				cosine += v.At(j, q) * float64(m.atoms[q*p+j])
				if math.Abs(v.At(j, q)) > math.Abs(v.At(most, q)) {
					most = j
				}
			}
			if math.Abs(math.Abs(cosine)-1) > 1e-5 || m.atoms[q*p+most] < 0 {
				t.Errorf("%s: component %d: cosine %v, largest entry %v", name, q, cosine, m.atoms[q*p+most])
			}
		}
		if want := left / float64(n*p); math.Abs(objective-want) > 1e-6*want {
			t.Errorf("%s: error %v, want %v", name, objective, want)
		}
	}
}

// The expected values come from the definition, with singular vectors from gonum: the dominant parts of u and v, scaled to
// norm sqrt(s m).
func TestNNDSVDKeepsTheDominantParts(t *testing.T) {
	for name, images := range map[string]Matrix{"more images than pixels": mixed(200), "fewer": {mixed(200).values[:20*30], 30}} {
		const k, p = 4, 30
		n := images.Len()
		f := &factors{Base: Base{pixels: p, units: k, seed: 1}, n: n, x: images.values}
		err := f.nndsvd()
		atoms, codes := f.atoms, f.codes
		fatal.If(t, err)
		u, v, s := singularValues(t, vectors.Wide(images.values), n, p)
		for q := range k {
			a, b := positive(mat.Col(nil, q, &u), mat.Col(nil, q, &v), 1)
			c, d := positive(mat.Col(nil, q, &u), mat.Col(nil, q, &v), -1)
			if norm(c)*norm(d) > norm(a)*norm(b) {
				a, b = c, d
			}
			root := math.Sqrt(s[q] * norm(a) * norm(b))
			for i := range n {
				if want := root * a[i] / norm(a); math.Abs(float64(codes[q*n+i])-want) > 1e-3*root {
					t.Fatalf("%s: code %d of image %d: got %v, want %v", name, q, i, codes[q*n+i], want)
				}
			}
			for j := range p {
				if want := root * b[j] / norm(b); math.Abs(float64(atoms[q*p+j])-want) > 1e-3*root {
					t.Fatalf("%s: atom %d at pixel %d: got %v, want %v", name, q, j, atoms[q*p+j], want)
				}
			}
		}
	}
}

func positive(u, v []float64, sign float64) (a, b []float64) {
	part := func(x []float64) []float64 {
		y := lists.Map(x, func(value float64) float64 { return max(sign*value, 0) })
		return y
	}
	return part(u), part(v)
}

func TestLeadingEigenvectorsComeCloseToAllOfThem(t *testing.T) {
	const n, count = 60, 5
	rng := random.Stream(1, "matrix", 0)
	x := lists.Of(n*n, func(i int) float64 { return rng.NormFloat64() * math.Exp(-float64(i/n)/10) })
	a := make([]float64, n*n)
	for i := range n {
		for j := range n {
			for l := range n {
				a[i*n+j] += x[l*n+i] * x[l*n+j]
			}
		}
	}
	all, _, err := eigen(append([]float64(nil), a...), n)
	fatal.If(t, err)
	values, v, err := leading(n, count, 1, func(y, q []float64, m int) { timesSymmetric(y, q, a, m, n) })
	fatal.If(t, err)
	for q, value := range values {
		expect.Near(t, value, all[q], 1e-3*all[q], "eigenvalue", q)
		for r := range q + 1 {
			var product, want float64
			if r == q {
				want = 1
			}
			for j := range n {
				product += v[q*n+j] * v[r*n+j]
			}
			expect.Near(t, product, want, 1e-6, "vectors", q, "and", r, "inner product")
		}
	}
}
