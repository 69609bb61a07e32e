package constraints

import (
	"math"
	"slices"
	"sync"

	"tessera/internal/engine/kernel"
	"tessera/internal/vectors"
)

// Orthogonal keeps the rows (atoms) of a parameter orthonormal: the projection argmin ||V-W|| over V V' = I. If there
// are more rows than values in a row, the columns are orthonormal instead. V is the orthogonal factor of the polar
// decomposition of W: for the singular value decomposition W = P S Q it is P Q. Zero vectors, and vectors that depend
// linearly on others, get new directions, because the nearest point is then not unique.
//
// After a training step W is nearly orthonormal. The Newton-Schulz iteration, W <- (3 W - W W' W)/2, then converges in
// a few rounds of 4 k² n operations, for k rows of n values. Otherwise rotations of pairs of rows make W orthogonal
// (the one-sided Jacobi method), the rows are scaled to norm 1, and the rotations are undone. This takes about a
// hundred times as long. All computations are in float64. Sources: Schönemann, A generalized solution of the orthogonal
// Procrustes problem, 1966; Björck and Bowie, An iterative algorithm for computing the best estimate of an orthogonal
// matrix, 1971; Hestenes, Inversion of matrices by biorthogonalization and related results, 1958.
type Orthogonal struct{}

func init() {
	Registry.Register("orthogonal", "orthonormal rows, or columns: w <- the orthogonal factor of its polar decomposition", func() Constraint { return &Orthogonal{} })
}

// frame contains the k vectors of length n of a parameter, in float64.
type frame struct {
	k, n    int
	byRow   bool
	vectors []float64 // k * n
	turns   []float64 // k * k, the product of all rotations
	gram    []float64 // k * k, the products of all pairs of vectors
	sum     []float64 // k * n
}

var frames = sync.Pool{New: func() any { return &frame{} }}

// load copies a parameter of the given shape into the frame.
func (f *frame) load(w []float32, shape []int) {
	rows := 1
	if len(shape) > 1 {
		rows = shape[0]
	}
	columns := len(w) / rows
	f.byRow = rows <= columns
	f.k, f.n = min(rows, columns), max(rows, columns)
	f.vectors = slices.Grow(f.vectors[:0], len(w))[:len(w)]
	for i, v := range w {
		f.vectors[f.place(i)] = float64(v)
	}
}

// place returns the index in vectors of element i of the parameter.
func (f *frame) place(i int) int {
	if f.byRow {
		return i
	}
	return i%f.k*f.n + i/f.k
}

func (f *frame) vector(i int) []float64 { return f.vectors[i*f.n:][:f.n] }

// violation returns the largest absolute difference between the Gram matrix of the vectors and the identity.
func (f *frame) violation() float64 {
	worst := 0.0
	for i := range f.k {
		for j := range i + 1 {
			d := vectors.FastDot(f.vector(i), f.vector(j))
			if i == j {
				d--
			}
			worst = max(worst, math.Abs(d))
		}
	}
	return worst
}

func (Orthogonal) Project(w []float32, shape []int) {
	if len(w) == 0 {
		return
	}
	f := frames.Get().(*frame)
	defer frames.Put(f)
	f.load(w, shape)
	switch worst, norm := f.distance(); {
	case !(worst > rounding):
		return // already orthonormal, or NaN
	case norm < 0.9: // the iteration converges if norm < 1
		f.iterate()
	default:
		f.orthogonalise()
		f.normalise()
		f.undo()
	}
	for i := range w {
		w[i] = float32(f.vectors[f.place(i)])
	}
}

// distance computes the Gram matrix. It returns the largest absolute element and the Euclidean norm of the difference
// between this matrix and the identity.
func (f *frame) distance() (worst, norm float64) {
	f.gram = slices.Grow(f.gram[:0], f.k*f.k)[:f.k*f.k]
	kernel.Float64().Gemm(false, true, f.k, f.k, f.n, 1, f.vectors, f.n, f.vectors, f.n, 0, f.gram, f.k)
	for i, d := range f.gram {
		if i%f.k == i/f.k {
			d--
		}
		worst = max(worst, math.Abs(d))
		norm += d * d
	}
	return worst, math.Sqrt(norm)
}

// iterate makes nearly orthonormal vectors orthonormal up to rounding.
func (f *frame) iterate() {
	const rounds, enough = 20, 1e-12
	f.sum = slices.Grow(f.sum[:0], f.k*f.n)[:f.k*f.n]
	for range rounds {
		if worst, _ := f.distance(); worst < enough {
			return
		}
		copy(f.sum, f.vectors)
		kernel.Float64().Gemm(false, false, f.k, f.n, f.k, -0.5, f.gram, f.k, f.sum, f.n, 1.5, f.vectors, f.n)
	}
}

// undo multiplies the vectors by the transpose of the rotations.
func (f *frame) undo() {
	f.sum = append(f.sum[:0], f.vectors...)
	kernel.Float64().Gemm(true, false, f.k, f.n, f.k, 1, f.turns, f.k, f.sum, f.n, 0, f.vectors, f.n)
}

// Violation implements [Constraint]. It is the largest absolute difference between V V' and the identity.
func (Orthogonal) Violation(w []float32, shape []int) float64 {
	if len(w) == 0 {
		return 0
	}
	f := frames.Get().(*frame)
	defer frames.Put(f)
	f.load(w, shape)
	return f.violation()
}

// orthogonalise rotates pairs of vectors until all vectors are orthogonal up to rounding.
func (f *frame) orthogonalise() {
	const rounds, tolerance = 60, 1e-15
	f.turns = slices.Grow(f.turns[:0], f.k*f.k)[:f.k*f.k]
	clear(f.turns)
	for i := range f.k {
		f.turns[i*f.k+i] = 1
	}
	for turned, round := true, 0; turned && round < rounds; round++ {
		turned = false
		for i := range f.k {
			for j := range i {
				a, b := f.vector(i), f.vector(j)
				p, q, r := vectors.FastDot(a, a), vectors.FastDot(b, b), vectors.FastDot(a, b)
				if !(math.Abs(r) > tolerance*math.Sqrt(p)*math.Sqrt(q)) {
					continue
				}
				turned = true
				z := (q - p) / (2 * r)
				t := math.Copysign(1, z) / (math.Abs(z) + math.Hypot(1, z))
				c := 1 / math.Hypot(1, t)
				turn(a, b, c, c*t)
				turn(f.turns[i*f.k:][:f.k], f.turns[j*f.k:][:f.k], c, c*t)
			}
		}
	}
}

// normalise scales all vectors to norm 1. Vectors whose norm is nearly 0 relative to the longest vector get new
// directions.
func (f *frame) normalise() {
	longest := 0.0
	for i := range f.k {
		longest = max(longest, vectors.FastDot(f.vector(i), f.vector(i)))
	}
	for i := range f.k {
		v := f.vector(i)
		if l := vectors.FastDot(v, v); l > 1e-28*longest && l > 0 {
			stretch(v, 1/math.Sqrt(l))
		} else {
			clear(v)
		}
	}
	next := 0
	for i := range f.k {
		for v := f.vector(i); vectors.FastDot(v, v) < 0.5; next++ {
			f.complete(i, next)
		}
	}
}

// complete replaces vector i by a unit vector along an axis, without its components along all other vectors, and scales
// it to norm 1. If almost nothing remains, vector i becomes 0.
func (f *frame) complete(i, axis int) {
	v := f.vector(i)
	clear(v)
	v[axis] = 1
	for range 2 {
		for j := range f.k {
			if j != i {
				u := f.vector(j)
				along := vectors.FastDot(u, v)
				for n := range v {
					v[n] -= along * u[n]
				}
			}
		}
	}
	if l := vectors.FastDot(v, v); l > 0.25/float64(f.n) { // the squared norms that remain of all axes add up to at least 1, so one axis exceeds this bound
		stretch(v, 1/math.Sqrt(l))
	} else {
		clear(v)
	}
}

// turn rotates the vectors a and b in their plane by an angle with cosine c and sine s.
func turn(a, b []float64, c, s float64) {
	for i, x := range a {
		y := b[i]
		a[i], b[i] = c*x-s*y, s*x+c*y
	}
}

func stretch(v []float64, factor float64) {
	for i := range v {
		v[i] *= factor
	}
}
