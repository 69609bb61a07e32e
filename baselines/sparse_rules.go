package baselines

import (
	"errors"
	"math"
	"slices"

	"tessera/internal/hoyer"
	"tessera/kernel"
	"tessera/parallel/team"
)

// sparseHALSRule gives each atom's activations, and each atom, the constrained values that fit best while all others are
// fixed. For codes h of norm 1 the error depends on <h, c> only, c being the target without the others' share, so that
// the best h is the projection of c. An atom's norm is free: its direction is the projection of c, its length <u, c> / |h|^2.
type sparseHALSRule struct {
	*sparsity
	correlations []float32 // k x n: W X'
	rest         []float32 // group x n, for codes and for atoms
	delta        []float32
}

func (r *sparseHALSRule) prepare() float64 {
	f := r.f
	columns := max(f.n, f.pixels)
	r.correlations, r.rest, r.delta = make([]float32, f.units*f.n), make([]float32, group*columns), make([]float32, columns)
	return (&halsRule{f: f}).prepare()
}

func (r *sparseHALSRule) improve() float64 {
	const sweeps = 2 // for one product with the images
	f := r.f
	r.improveAtoms(sweeps)
	f.atomsGram()
	multiply(false, true, f.units, f.n, f.pixels, f.atoms, f.x, r.correlations)
	if r.settings.CodeSparsity > 0 {
		l1 := hoyer.Norm(f.n, r.settings.CodeSparsity)
		for range sweeps {
			r.sweepRows(f.gram, r.correlations, f.codes, f.n, func(c []float32, _ float32) { hoyer.Project(c, l1, 1) })
		}
		f.pass(nil)
		return f.squaredError()
	}
	f.pass(func(w *blockWork, from, to int) {
		for range sweeps {
			w.sweep.sweep(f.gram, f.units, r.correlations[from:], f.n, f.codes[from:], f.n, to-from)
		}
	})
	return f.squaredError()
}

func (r *sparseHALSRule) improveAtoms(sweeps int) {
	f := r.f
	if r.settings.AtomSparsity == 0 {
		f.sweepAtoms(sweeps, f.codesGram, f.target)
		return
	}
	l1 := hoyer.Norm(f.pixels, r.settings.AtomSparsity)
	best := make([]float32, f.pixels)
	for range sweeps {
		r.sweepRows(f.codesGram, f.target, f.atoms, f.pixels, func(c []float32, squares float32) {
			copy(best, c)
			hoyer.Project(best, l1, 1)
			kernel.Float32().MulScalar(c, best, float32(max(dot(best, c), 0)/float64(squares)))
		})
	}
}

// sweepRows replaces one row x[j] of x (k x n) after the other by best(c) with c = a[j] - sum over l != j of G[j][l] x[l];
// best works in place and gets G[j][j]. Rows that do not matter, with G[j][j] = 0, stay.
func (r *sparseHALSRule) sweepRows(gram, a, x []float32, n int, best func(c []float32, diagonal float32)) {
	const columns = 1024
	ops, k := kernel.Float32(), r.f.units
	delta := r.delta[:n]
	for from := 0; from < k; from += group {
		to := min(from+group, k)
		rest := r.rest[:(to-from)*n]
		copy(rest, a[from*n:to*n])
		team.For(n, columns, func(begin, end int) {
			ops.Gemm(false, false, to-from, end-begin, k, -1, gram[from*k:], k, x[begin:], n, 1, rest[begin:], n)
		})
		for j := from; j < to; j++ {
			row, c, g := x[j*n:(j+1)*n], rest[(j-from)*n:(j-from+1)*n], gram[j*k:(j+1)*k]
			if !(g[j] > 0) {
				continue
			}
			ops.AddScaled(c, c, row, g[j])
			best(c, g[j])
			ops.Sub(delta, c, row)
			copy(row, c)
			for l := j + 1; l < to; l++ {
				other := rest[(l-from)*n : (l-from+1)*n]
				ops.AddScaled(other, other, delta, -g[l])
			}
		}
	}
}

// gradientRule is Hoyer's nmfsc, in his order: the codes, then the atoms. Constrained factors take one projected gradient
// step whose length adapts, the others one multiplicative update. Codes without a constraint get norm 1 per atom.
type gradientRule struct {
	*sparsity
	codesStep, atomsStep float64
}

func (r *gradientRule) prepare() float64 { return (&halsRule{f: r.f}).prepare() }

func (r *gradientRule) improve() float64 {
	f := r.f
	r.improveCodes()
	f.pass(nil)
	if r.settings.AtomSparsity > 0 {
		descend(f.codesGram, f.units, f.target, f.atoms, f.pixels, &r.atomsStep, r.projectAtoms)
	} else {
		f.scaleAtoms()
	}
	f.atomsGram()
	return f.squaredError()
}

func (r *gradientRule) improveCodes() {
	f := r.f
	if r.settings.CodeSparsity > 0 {
		correlations := make([]float32, f.units*f.n)
		multiply(false, true, f.units, f.n, f.pixels, f.atoms, f.x, correlations)
		descend(f.gram, f.units, correlations, f.codes, f.n, &r.codesStep, func(codes []float32) { r.projectCodes(codes, f.n) })
		return
	}
	forLanes(f.n, func(lane, from, to int) {
		w := f.work[lane]
		f.correlate(w, from, to)
		scale(f.gram, f.units, w.a, to-from, f.codes[from:], f.n, to-from, w.b)
	})
	unitRows(f.codes, f.n, f.atoms, f.pixels, f.units)
}

// save implements stateful.
func (r *gradientRule) save(s State) {
	s.Numbers["codes_step"], s.Numbers["atoms_step"] = r.codesStep, r.atomsStep
}

// restore implements stateful.
func (r *gradientRule) restore(s State) (err error) {
	var err1, err2 error
	r.codesStep, err1 = s.number("codes_step")
	r.atomsStep, err2 = s.number("atoms_step")
	return errors.Join(err1, err2)
}

// descend does one projected gradient step on 1/2 tr(x'Gx) - tr(a'x), x being k x n. The step is halved until the objective
// does not rise. A step that did not have to be halved is doubled while that lowers the objective further, and every step
// starts a fifth longer than the last one ended. Where no step helps x stays as it is. It returns the change of the objective.
func descend(gram []float32, k int, a, x []float32, n int, step *float64, project func([]float32)) float64 {
	const halvings = 60
	l := newLineSearch(gram, k, a, x, n, project)
	change := l.try(*step)
	if change <= 0 {
		change = l.lengthen(step, change)
	}
	for halved := 0; change > 0; halved++ {
		if halved == halvings {
			return 0
		}
		*step /= 2
		change = l.try(*step)
	}
	copy(x, l.candidate)
	*step *= 1.2
	return change
}

// lineSearch is what the steps along one gradient share.
type lineSearch struct {
	gram, x, gradient    []float32
	candidate, d, square []float32
	k, n                 int
	project              func([]float32)
}

func newLineSearch(gram []float32, k int, a, x []float32, n int, project func([]float32)) *lineSearch {
	const columns = 1024
	l := &lineSearch{gram: gram, x: x, gradient: slices.Clone(a), candidate: make([]float32, k*n), d: make([]float32, k*n),
		square: make([]float32, k*k), k: k, n: n, project: project}
	team.For(n, columns, func(from, to int) {
		kernel.Float32().Gemm(false, false, k, to-from, k, 1, gram, k, x[from:], n, -1, l.gradient[from:], n)
	})
	return l
}

// try writes the projected step of that length into candidate and returns the change of the objective. The change is computed
// from the difference d alone, <d, gradient> + 1/2 <dd', G>: the objective itself has too few digits near the end.
func (l *lineSearch) try(step float64) float64 {
	ops := kernel.Float32()
	ops.AddScaled(l.candidate, l.x, l.gradient, float32(-step))
	l.project(l.candidate)
	ops.Sub(l.d, l.candidate, l.x)
	gramOf(l.square, l.d, l.k, l.n)
	return dot(l.d, l.gradient) + dot(l.square, l.gram)/2
}

// lengthen doubles a step that brought that change while the objective falls further.
func (l *lineSearch) lengthen(step *float64, change float64) float64 {
	for {
		best := slices.Clone(l.candidate)
		further := l.try(2 * *step)
		if !(further < change) {
			copy(l.candidate, best)
			return change
		}
		change = further
		*step *= 2
	}
}

// encodeSparse takes codes (n x k) of images to the wanted sparsity and improves them there with the atoms fixed, until a
// step lowers the error of a block by less than 1e-5 of it.
func (s *sparsity) encodeSparse(images, codes []float32) []float32 {
	const (
		precision = 1e-5
		steps     = 500
	)
	k, p := s.f.units, s.f.pixels
	gram := make([]float32, k*k)
	gramOf(gram, s.f.atoms, k, p)
	sparse := make([]float32, len(codes))
	for from := 0; from < len(codes)/k; from += encodeBlock {
		to := min(from+encodeBlock, len(codes)/k)
		n, x := to-from, images[from*p:to*p]
		h, a := transpose(codes[from*k:to*k], n, k), make([]float32, k*n)
		multiply(false, true, k, n, p, s.f.atoms, x, a)
		project := func(codes []float32) { s.projectCodes(codes, n) }
		project(h)
		squares := make([]float32, k*k)
		gramOf(squares, h, k, n)
		e := float64(kernel.Float32().SumSquares(x)) + dot(squares, gram) - 2*dot(a, h)
		step := 1.0
		for range steps {
			change := 2 * descend(gram, k, a, h, n, &step, project)
			if e += change; -change <= precision*e {
				break
			}
		}
		copy(sparse[from*k:], transpose(h, k, n))
	}
	return sparse
}

func l2Norm(v []float32) float64 {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	return math.Sqrt(squares)
}
