package baselines

import (
	"fmt"
	"math"

	"tessera/config"
	"tessera/internal/random"
	"tessera/kernel"
	"tessera/parallel/team"
	"tessera/part"
)

// checkInit reports an unknown initialisation. Package config refuses it earlier, a Go literal does not.
func checkInit(init string) error {
	if init != "random" && init != "nndsvd" && init != "nndsvda" {
		return unknown("init", init, "random", "nndsvd", "nndsvda")
	}
	return nil
}

// unknown is the error of a key with an unknown value.
func unknown(key, got string, want ...string) error {
	return part.KeyErrorf(key, "got %q, want one of %q", got, want)
}

// tooMany is the error of too many components; what describes the maximum.
func tooMany(components, most int, what string) error {
	return part.KeyErrorf("components", "got %d, want at most %d, %s", components, most, what)
}

// fewerThanImagesAndPixels refuses more components than images (if their number is known, > 0) or pixels; when describes the
// condition.
func fewerThanImagesAndPixels(components, images, pixels int, when string) error {
	most, what := pixels, "the number of pixels"
	if images > 0 {
		most, what = min(images, pixels), "the lesser of images and pixels"
	}
	if components > most {
		return tooMany(components, most, what+when)
	}
	return nil
}

// fitsFactors refuses a number of components for which atoms, codes or the products of codes of all lanes take too much
// memory.
func fitsFactors(components int, init string, images, pixels int) error {
	for _, err := range []error{config.Bounded(components, "atoms", pixels), config.Bounded(components, "codes", images),
		config.Bounded(components, "products of codes", components, laneCount(images))} {
		if err != nil {
			return err
		}
	}
	if init == "random" {
		return nil
	}
	return fewerThanImagesAndPixels(components, images, pixels, fmt.Sprintf(`, for init = %q; or init = "random"`, init))
}

// start returns the first atoms (k x p) and codes (k x n) of a factorisation of non-negative images.
func start(init string, x []float32, n, p, k int, seed uint64) (atoms, codes []float32, err error) {
	if init == "random" {
		atoms, codes = randomFactors(x, n, p, k, seed)
		return atoms, codes, nil
	}
	if atoms, codes, err = nndsvd(x, n, p, k, seed); err != nil {
		return nil, nil, err
	}
	if init == "nndsvda" {
		fill := float32(mean(x))
		fillZeros(atoms, fill)
		fillZeros(codes, fill)
	}
	return atoms, codes, nil
}

// randomFactors draws |N(0,1)| entries, scaled so that a product of them has about the mean of X.
func randomFactors(x []float32, n, p, k int, seed uint64) (atoms, codes []float32) {
	scale := math.Sqrt(mean(x) / float64(k))
	draw := func(name string, length int) []float32 {
		rng := random.Stream(seed, "init/"+name, 0)
		values := make([]float32, length)
		for i := range values {
			values[i] = float32(scale * math.Abs(rng.NormFloat64()))
		}
		return values
	}
	return draw(atomsName, k*p), draw(codesName, k*n)
}

// nndsvd takes each of the first k singular pairs s u v' of X, keeps the positive or the negative part of u and v, the one
// with the larger product of norms m, and gives both vectors the norm sqrt(s m). Zeros stay zeros under multiplicative
// rules; "nndsvda" replaces them by the mean of X.
//
// Source: C. Boutsidis, E. Gallopoulos, SVD based initialization: a head start for nonnegative matrix factorization,
// Pattern Recognition 41(4), 2008.
func nndsvd(x []float32, n, p, k int, seed uint64) (atoms, codes []float32, err error) {
	size := min(n, p)
	gram := make([]float32, size*size)
	if n < p {
		addDualGram(kernel.Float32().Gemm, gram, x, n, p)
	} else {
		addGram(kernel.Float32().Gemm, gram, x, n, p)
	}
	values, vectors, err := leading(symmetric(gram, size), size, k, seed)
	if err != nil {
		return nil, nil, err
	}
	side := make([]float32, k*size) // the singular vectors on the smaller side
	for i, v := range vectors {
		side[i] = float32(v)
	}
	if n < p {
		codes, atoms = side, make([]float32, k*p)
		multiply(false, false, k, p, n, codes, x, atoms)
	} else {
		atoms, codes = side, make([]float32, k*n)
		multiply(false, true, k, n, p, atoms, x, codes)
	}
	team.For(k, 1, func(j, _ int) {
		u, v := codes[j*n:(j+1)*n], atoms[j*p:(j+1)*p]
		split(u, v, math.Sqrt(values[j]))
	})
	return atoms, codes, nil
}

// split replaces the singular vectors u, v, one of which carries the singular value s too, by their dominant
// non-negative parts.
func split(u, v []float32, s float64) {
	up, un := partNorms(u)
	vp, vn := partNorms(v)
	nu, nv := math.Hypot(up, un), math.Hypot(vp, vn)
	if nu == 0 || nv == 0 {
		clear(u)
		clear(v)
		return
	}
	sign, a, b := float32(1), up, vp
	if un*vn > up*vp {
		sign, a, b = -1, un, vn
	}
	m := a / nu * b / nv
	if m == 0 {
		clear(u)
		clear(v)
		return
	}
	keepPart(u, sign, math.Sqrt(s*m)/a)
	keepPart(v, sign, math.Sqrt(s*m)/b)
}

// partNorms returns the norms of the positive and of the negative part.
func partNorms(v []float32) (positive, negative float64) {
	for _, x := range v {
		if x > 0 {
			positive += float64(x) * float64(x)
		} else {
			negative += float64(x) * float64(x)
		}
	}
	return math.Sqrt(positive), math.Sqrt(negative)
}

// keepPart replaces v by its part of that sign, times scale.
func keepPart(v []float32, sign float32, scale float64) {
	for i, x := range v {
		v[i] = max(sign*x, 0) * float32(scale)
	}
}

func fillZeros(v []float32, by float32) {
	for i, x := range v {
		if x == 0 {
			v[i] = by
		}
	}
}

func mean(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v)
	}
	return sum / float64(max(len(x), 1))
}
