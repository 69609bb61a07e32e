package baselines

import (
	"math"
	"slices"

	"tessera/kernel"
	"tessera/parallel/team"
)

// sweeps is the number of sweeps of coordinate descent over the codes, and over the atoms, per product with the images. The
// products take most of the time, and the first sweeps achieve most of the improvement (Gillis and Glineur).
const sweeps = 4

// halsRule is hierarchical alternating least squares. A penalty adds to the diagonal of the Gram matrix, or is subtracted from
// the target.
type halsRule struct {
	f         *factors
	penalties penalties
}

func (r *halsRule) prepare() float64 {
	r.f.pass(nil)
	r.f.atomsGram()
	return r.f.squaredError() + 2*r.penalties.value(r.f)
}

func (r *halsRule) improve() float64 {
	f, w := r.f, r.penalties
	n, p := float64(f.n), float64(f.pixels)
	f.sweepAtoms(sweeps, ridge(f.codesGram, f.units, n*w.l2Atoms), lowered(f.target, n*w.l1Atoms))
	if w == none {
		f.unitAtoms()
	}
	f.atomsGram()
	gram := ridge(f.gram, f.units, p*w.l2Codes)
	f.pass(func(w *blockWork, from, to int) {
		f.correlate(w, from, to)
		a := lowered(w.a, p*r.penalties.l1Codes)
		for range sweeps {
			w.sweep.sweep(gram, f.units, a, to-from, f.codes[from:], f.n, to-from)
		}
	})
	return f.squaredError() + 2*w.value(f)
}

func (r *halsRule) encode(images []float32) []float32 {
	p := float64(r.f.pixels)
	return encodePenalised(images, r.f.atoms, r.f.units, r.f.pixels, p*r.penalties.l1Codes, p*r.penalties.l2Codes, encodePrecision)
}

// ridge returns the k x k matrix with that added to its diagonal; the matrix itself where that is 0.
func ridge(gram []float32, k int, by float64) []float32 {
	if by == 0 {
		return gram
	}
	gram = slices.Clone(gram)
	for j := range k {
		gram[j*k+j] += float32(by)
	}
	return gram
}

// lowered returns the values less that; the slice itself where that is 0.
func lowered(values []float32, by float64) []float32 {
	if by == 0 {
		return values
	}
	values = slices.Clone(values)
	kernel.Float32().AddScalar(values, values, float32(-by))
	return values
}

// tiny keeps the quotients of multiplicative rules finite.
const tiny = 1e-9

// multiplicativeRule is Lee and Seung's for the squared error:
//
//	W <- W * (H'X) / (H'HW + tiny),  H <- H * (XW') / (HWW' + tiny).
type multiplicativeRule struct{ f *factors }

func (r *multiplicativeRule) prepare() float64 { return (&halsRule{f: r.f}).prepare() }

func (r *multiplicativeRule) improve() float64 {
	f := r.f
	f.scaleAtoms()
	f.unitAtoms()
	f.atomsGram()
	f.pass(func(w *blockWork, from, to int) {
		f.correlate(w, from, to)
		scale(f.gram, f.units, w.a, to-from, f.codes[from:], f.n, to-from, w.b)
	})
	return f.squaredError()
}

func (r *multiplicativeRule) encode(images []float32) []float32 {
	return encodeSquared(images, r.f.atoms, r.f.units, r.f.pixels, encodePrecision)
}

// scaleAtoms is the multiplicative rule for the atoms.
func (f *factors) scaleAtoms() {
	const columns = 128
	team.For(f.pixels, columns, func(from, to int) {
		n := to - from
		scale(f.codesGram, f.units, f.target[from:], f.pixels, f.atoms[from:], f.pixels, n, make([]float32, f.units*n))
	})
}

// scale multiplies n columns of x (k x n) by a / (Gx + tiny); rows of x lie ldx apart, those of a lda.
func scale(gram []float32, k int, a []float32, lda int, x []float32, ldx, n int, scratch []float32) {
	ops := kernel.Float32()
	ops.Gemm(false, false, k, n, k, 1, gram, k, x, ldx, 0, scratch, n)
	for j := range k {
		row, divisor := x[j*ldx:j*ldx+n], scratch[j*n:(j+1)*n]
		ops.AddScalar(divisor, divisor, tiny)
		ops.Div(divisor, a[j*lda:j*lda+n], divisor)
		ops.Mul(row, row, divisor)
	}
}

// klRule is Lee and Seung's for the Kullback-Leibler divergence: with R = X / (HW + tiny),
//
//	W <- W * (H'R) / colsum(H)',  each atom scaled to sum 1 (the scale goes to its codes),  H <- H * (RW') / rowsum(W)'.
type klRule struct {
	f        *factors
	codeSums []float32 // per atom: the sum of its codes
	// codesRule improves codes; scaleKL where it is nil.
	codesRule func(quotient, atoms, atomSums []float32, p int, x []float32, ldx, n int, scratch []float32)
}

func (r *klRule) prepare() float64 { return r.pass(false) }

func (r *klRule) improve() float64 {
	r.scaleAtoms()
	return r.pass(true)
}

// scaleAtoms is the rule for the atoms, from H'R in f.target.
func (r *klRule) scaleAtoms() {
	f, ops := r.f, kernel.Float32()
	team.For(f.units, 1, func(j, _ int) {
		atom, target := f.atoms[j*f.pixels:(j+1)*f.pixels], f.target[j*f.pixels:(j+1)*f.pixels]
		if !(r.codeSums[j] > 0) {
			return
		}
		ops.MulScalar(target, target, 1/r.codeSums[j])
		ops.Mul(atom, atom, target)
		if total := ops.Sum(atom); total > 0 {
			ops.MulScalar(atom, atom, 1/total)
			codes := f.codes[j*f.n : (j+1)*f.n]
			ops.MulScalar(codes, codes, total)
		}
	})
}

// pass improves the codes if requested, computes H'R and the sums of the codes, and returns the objective.
func (r *klRule) pass(improve bool) float64 {
	f, scaleCodes := r.f, r.codesRule
	if scaleCodes == nil {
		scaleCodes = scaleKL
	}
	f.targets.reset()
	atomSums := rowSums(f.atoms, f.units, f.pixels)
	sums := make([]float64, laneCount(f.n))
	forLanes(f.n, func(lane, from, to int) {
		w, b := f.work[lane], to-from
		if improve {
			quotient := f.decodeBlock(w, from, to)
			divideImages(quotient, f.x[from*f.pixels:to*f.pixels])
			scaleCodes(quotient, f.atoms, atomSums, f.pixels, f.codes[from:], f.n, b, w.a)
		}
		quotient := f.decodeBlock(w, from, to)
		sums[lane] += divergence(quotient, f.x[from*f.pixels:to*f.pixels])
		kernel.Float32().Gemm(false, false, f.units, f.pixels, b, 1, f.codes[from:], f.n, quotient, f.pixels, 1, f.targets.sums[lane], f.pixels)
	})
	f.targets.total(f.target)
	r.codeSums = rowSums(f.codes, f.units, f.n)
	return sum(sums) / float64(f.n) / float64(f.pixels)
}

// scaleKL multiplies n columns of x (k x n, rows ldx apart) by (W R') / rowsum(W), R being n x p.
func scaleKL(quotient, atoms, atomSums []float32, p int, x []float32, ldx, n int, scratch []float32) {
	ops, k := kernel.Float32(), len(atomSums)
	ops.Gemm(false, true, k, n, p, 1, atoms, p, quotient, p, 0, scratch, n)
	for j := range k {
		if !(atomSums[j] > 0) {
			continue
		}
		row, factor := x[j*ldx:j*ldx+n], scratch[j*n:(j+1)*n]
		ops.MulScalar(factor, factor, 1/atomSums[j])
		ops.Mul(row, row, factor)
	}
}

// divideImages replaces y by x / (y + tiny).
func divideImages(y, x []float32) {
	ops := kernel.Float32()
	ops.AddScalar(y, y, tiny)
	ops.Div(y, x, y)
}

// divergence returns the sum of x log(x/y) - x + y and replaces y by x / (y + tiny).
func divergence(y, x []float32) float64 {
	const strip = 1024 // in the first cache
	ops := kernel.Float32()
	var logs [strip]float32
	var sum float64
	for from := 0; from < len(x); from += strip {
		to := min(from+strip, len(x))
		x, y, logs := x[from:to], y[from:to], logs[:to-from]
		sum += float64(ops.Sum(y)) - float64(ops.Sum(x))
		divideImages(y, x)
		ops.MaxScalar(logs, y, math.SmallestNonzeroFloat32*(1<<24)) // where x is 0 the term is 0
		ops.Log(logs, logs)
		sum += float64(ops.Dot(x, logs))
	}
	return sum
}

// rowSums returns the sum of each row.
func rowSums(a []float32, rows, columns int) []float32 {
	sums := make([]float32, rows)
	team.For(rows, 1, func(j, _ int) { sums[j] = kernel.Float32().Sum(a[j*columns : (j+1)*columns]) })
	return sums
}

// encode runs the codes' rule alone until it changes the codes of a block by less than 1e-3 of their norm. It starts from
// the codes of the least squared error, which are near; a hundredth of their mean is added, for the rule keeps zeros.
func (r *klRule) encode(images []float32) []float32 {
	const (
		precision = 1e-3
		rounds    = 200
	)
	ops, k, p := kernel.Float32(), r.f.units, r.f.pixels
	atoms, atomSums := r.f.atoms, rowSums(r.f.atoms, k, p)
	codes := encodeSquared(images, atoms, k, p, 1e-2)
	team.For(len(images)/p, encodeBlock, func(from, to int) {
		n, x := to-from, images[from*p:to*p]
		y, h := make([]float32, n*p), transpose(codes[from*k:to*k], n, k)
		before, scratch := make([]float32, k*n), make([]float32, k*n)
		ops.AddScalar(h, h, 0.01*ops.Sum(h)/float32(k*n)+tiny)
		for range rounds {
			copy(before, h)
			ops.Gemm(true, false, n, p, k, 1, h, n, atoms, p, 0, y, p)
			divideImages(y, x)
			scaleKL(y, atoms, atomSums, p, h, n, n, scratch)
			if ops.SquaredDistance(h, before) <= precision*precision*ops.SumSquares(h) {
				break
			}
		}
		copy(codes[from*k:to*k], transpose(h, k, n))
	})
	return codes
}
