package classical

import (
	"errors"
	"math"
	"slices"

	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
)

// NMF factorises non-negative images, X = H W with H, W >= 0. It minimises one of these losses L(X, HW), which are sums over
// images and pixels:
//
//	euclidean       1/2 |X - HW|^2                      reported objective: the mean squared error
//	kl              X log(X / HW) - X + HW              reported objective: its mean, as for the losses below
//	itakura_saito   X / HW - log(X / HW) - 1
//	beta            (X^b + (b-1) (HW)^b - b X (HW)^(b-1)) / (b (b-1)); 2, 1 and 0 are the limits above
//
// With penalties the fit minimises, for n images and p pixels,
//
//	L + p (l1_codes |H|_1 + l2_codes/2 |H|^2) + n (l1_atoms |W|_1 + l2_atoms/2 |W|^2)
//
// and reports this times 2/(n p) for the Euclidean loss, times 1/(n p) for the others. Without penalties, atoms are scaled to
// norm 1 for the Euclidean loss and to sum 1 for the others. With penalties the scale is determined by the objective.
// Penalties on codes or atoms alone are not allowed, because moving the scale to the other factor would avoid the penalty.
//
// Solver hals is hierarchical alternating least squares, a coordinate descent (euclidean only). One iteration takes two
// products with the images, four sweeps over the atoms and four over the codes. It corresponds to about four iterations of
// scikit-learn's coordinate descent, which does one sweep per product. Solver mu uses multiplicative rules, with one update of
// the atoms and one of the codes per iteration. Neither solver ever raises the objective. A fit ends when an iteration lowers
// it by less than the fraction tolerance, or after the given number of iterations.
//
// The scale of the images does not matter without penalties and a declared floor: see docs/models.md, "the unit of the data".
//
// With batch > 0 the images are read in shuffled mini-batches and are never all in memory; an iteration is one pass over them,
// and the codes of fitted images are not stored.
//
// Sources: D. D. Lee, H. S. Seung, Algorithms for non-negative matrix factorization, NIPS 2000; N. Gillis, F. Glineur,
// Accelerated multiplicative updates and hierarchical ALS algorithms for nonnegative matrix factorization, Neural Computation
// 24(4), 2012; for other exponents than 1 and 2, C. Fevotte, J. Idier, Algorithms for nonnegative matrix factorization with
// the beta-divergence, Neural Computation 23(9), 2011.
type NMF struct {
	Components   int     `toml:"components" want:"> 0" doc:"atoms"`
	Solver       string  `toml:"solver" oneof:"hals mu" doc:"hals: coordinate descent, four sweeps per iteration; mu: multiplicative rules"`
	Loss         string  `toml:"loss" oneof:"euclidean kl itakura_saito beta" doc:"objective that is minimised; all but euclidean need solver = \"mu\""`
	Beta         float64 `toml:"beta" doc:"with loss = \"beta\": the exponent of the divergence"`
	Floor        float64 `toml:"floor" want:"> 0" doc:"for exponents <= 0, such as itakura_saito: smaller values count as this value, because the divergence is infinite at 0; the default stands for 1/255 of the largest value, or 2/255 of the mean where that is less than 1/64 of it"`
	L1Codes      float64 `toml:"l1_codes" want:">= 0" doc:"weight of the L1 norm of the codes"`
	L2Codes      float64 `toml:"l2_codes" want:">= 0" doc:"weight of half the squared norm of the codes"`
	L1Atoms      float64 `toml:"l1_atoms" want:">= 0" doc:"weight of the L1 norm of the atoms"`
	L2Atoms      float64 `toml:"l2_atoms" want:">= 0" doc:"weight of half the squared norm of the atoms"`
	Init         string  `toml:"init" oneof:"nndsvda nndsvd random" doc:"initialisation: from singular vectors with zeros replaced by the mean (nndsvda) or kept (nndsvd), or random"`
	Iterations   int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations of each fit"`
	Tolerance    float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration lowers the objective by less than this fraction of it"`
	Restarts     int     `toml:"restarts" want:"> 0" doc:"with init = \"random\": fits from different starts, of which the best is kept"`
	Batch        int     `toml:"batch" want:">= 0" doc:"mini-batch size; 0 means the full batch"`
	ForgetFactor float64 `toml:"forget_factor" want:"in (0,1]" doc:"with batch > 0: decay of the weight of earlier passes, per pass"`
}

func init() {
	Registry.Register("nmf", "non-negative matrix factorisation, X = H W with H, W >= 0", func() Method {
		return &NMF{Components: 100, Solver: "hals", Loss: "euclidean", Beta: 1.5, Floor: usualFloor, Init: "nndsvda",
			Iterations: 200, Tolerance: 1e-4, Restarts: 1, ForgetFactor: 0.7}
	})
}

func (s *NMF) Describe() Fitting {
	return Fitting{Name: "nmf", Units: s.Components, Iterations: s.Iterations, Restarts: s.Restarts, Tolerance: s.Tolerance, Holed: s.Iterations,
		Absolute: s.penalties() != none || s.exponent() <= 0 && s.Floor != usualFloor,
		Complete: s.complete(),
		Sizes:    s.sizes}
}

func (s *NMF) sizes(images, pixels int) error {
	if s.Batch > 0 && images > 0 {
		images = sampleSize(images, s.Batch, s.Components)
	}
	return fitsFactors(s.Components, s.Init, images, pixels)
}

// Check returns an error for settings that exclude each other.
func (s *NMF) Check() error {
	losses := []string{"euclidean", "kl", "itakura_saito", "beta"}
	switch {
	case s.Solver != "hals" && s.Solver != "mu":
		return unknown("solver", s.Solver, "hals", "mu")
	case !slices.Contains(losses, s.Loss):
		return unknown("loss", s.Loss, losses...)
	case s.Loss != "euclidean" && s.Solver != "mu":
		return part.KeyErrorf("loss", `got %q, which solver = %q cannot minimise: want solver = "mu"`, s.Loss, s.Solver)
	case s.Loss == "beta" && !finite(s.Beta):
		return part.KeyErrorf("beta", "got %v, want a finite number", s.Beta)
	case s.exponent() <= 0 && !(s.Floor > 0):
		return part.KeyErrorf("floor", "got %v, want > 0", s.Floor)
	case s.Batch > 0 && s.Solver != "hals":
		return part.KeyErrorf("batch", `got %d, but mini-batches want solver = "hals"`, s.Batch)
	case s.Batch > 0 && s.Restarts > 1:
		return part.KeyErrorf("restarts", "got %d, but mini-batches are fitted once: want 1, or batch = 0", s.Restarts)
	}
	return errors.Join(s.checkPenalties(), checkInit(s.Init), checkRestarts(s.Restarts, s.Init))
}

// checkPenalties returns an error for penalties on only one factor, because moving the scale to the other factor would avoid
// them.
func (s *NMF) checkPenalties() error {
	codes, atoms := s.L1Codes+s.L2Codes, s.L1Atoms+s.L2Atoms
	switch {
	case codes > 0 && !(atoms > 0):
		return part.KeyError{Key: "l1_atoms", Problem: "got no penalty on the atoms, so that the scale of the codes would move to the atoms: want l1_atoms or l2_atoms > 0"}
	case atoms > 0 && !(codes > 0):
		return part.KeyError{Key: "l1_codes", Problem: "got no penalty on the codes, so that the scale of the atoms would move to the codes: want l1_codes or l2_codes > 0"}
	case atoms > 0 && s.Batch > 0:
		return part.KeyErrorf("batch", "got %d, but mini-batches have no penalties: want 0", s.Batch)
	}
	return nil
}

// exponent returns the exponent beta of the loss, which is a beta-divergence.
func (s *NMF) exponent() float64 {
	switch s.Loss {
	case "euclidean":
		return 2
	case "kl":
		return 1
	case "itakura_saito":
		return 0
	}
	return s.Beta
}

func (s *NMF) New(shape []int, seed uint64) (Model, error) {
	if s.Batch > 0 {
		return newOnline(s, shape, seed, s.Batch, s.ForgetFactor, onlineNMF{*s})
	}
	return newFactorisation(s, shape, seed, s.Init, s.build)
}

// build sets the rule of a single fit.
func (s *NMF) build(m *factorisation) {
	penalties := s.penalties()
	m.fixed, m.degree = penalties != none, s.exponent()-2
	switch {
	case s.Solver == "hals":
		m.rule = &halsRule{f: &m.factors, penalties: penalties}
	case s.exponent() == 2 && penalties == none:
		m.rule = &multiplicativeRule{&m.factors}
	case s.exponent() == 1 && penalties == none:
		m.rule = &klRule{f: &m.factors}
	default:
		m.rule = &betaRule{f: &m.factors, exponent: s.exponent(), penalties: penalties}
		m.blocks = true
		if s.exponent() <= 0 {
			if m.raises = true; s.Floor != usualFloor {
				m.floor = s.Floor
			}
		}
	}
}

// onlineNMF is the factorisation of mini-batches.
type onlineNMF struct{ settings NMF }

func (o onlineNMF) first(f *factors, sample []float32, n int) (err error) {
	from := &factors{Base: f.Base, n: n, x: sample}
	err = from.start(o.settings.Init)
	f.atoms = from.atoms
	return err
}

func (o onlineNMF) encode(f *factors, images []float32, precision float64) []float32 {
	return encodeSquared(images, f.atoms, f.units, f.pixels, precision)
}

func (o onlineNMF) penalty([]float32) float64 { return 0 }

// improve sweeps over the atoms and scales them to norm 1; the sums over codes are scaled accordingly.
func (o onlineNMF) improve(f *factors) {
	f.sweepAtoms(sweeps, f.codesGram, f.target)
	ops, k, p := kernel.Float32(), f.units, f.pixels
	for j := range k {
		atom, target, gram := f.atoms[j*p:(j+1)*p], f.target[j*p:(j+1)*p], f.codesGram[j*k:(j+1)*k]
		norm := float32(math.Sqrt(float64(ops.SumSquares(atom))))
		if !(norm > 0) {
			continue
		}
		ops.DivScalar(atom, atom, norm)
		ops.MulScalar(target, target, norm)
		ops.MulScalar(gram, gram, norm)
		for i := range k {
			f.codesGram[i*k+j] *= norm
		}
	}
}

// penalties are the weights of the norms of codes and atoms.
type penalties struct{ l1Codes, l2Codes, l1Atoms, l2Atoms float64 }

var none penalties

func (s *NMF) penalties() penalties { return penalties{s.L1Codes, s.L2Codes, s.L1Atoms, s.L2Atoms} }

// value returns the contribution of the penalties to the objective, divided by the numbers of images and pixels.
func (w penalties) value(f *factors) float64 {
	if w == none {
		return 0
	}
	of := func(values []float32, l1, l2 float64) float64 {
		var sum, squares float64
		for _, v := range values {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		return l1*sum + l2/2*squares
	}
	return of(f.codes, w.l1Codes, w.l2Codes)/float64(f.n) + of(f.atoms, w.l1Atoms, w.l2Atoms)/float64(f.pixels)
}

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

func (*halsRule) keep(*Kept) {}

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

// ridge returns a copy of the k x k matrix with by added to its diagonal, or the matrix itself if by is 0.
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

// lowered returns a copy of the values minus by, or the slice itself if by is 0.
func lowered(values []float32, by float64) []float32 {
	if by == 0 {
		return values
	}
	values = slices.Clone(values)
	kernel.Float32().AddScalar(values, values, float32(-by))
	return values
}

// tiny keeps the quotients of multiplicative rules finite. It is relative to samples of ordinary size: see [unit].
const tiny = 1e-9

// usualFloor is the default of [NMF.Floor].
const usualFloor = 1.0 / 255

// multiplicativeRule is Lee and Seung's rule for the squared error:
//
//	W <- W * (H'X) / (H'HW + tiny),  H <- H * (XW') / (HWW' + tiny).
type multiplicativeRule struct{ f *factors }

func (r *multiplicativeRule) prepare() float64 { return (&halsRule{f: r.f}).prepare() }

func (*multiplicativeRule) keep(*Kept) {}

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

// scaleAtoms applies the multiplicative rule to the atoms.
func (f *factors) scaleAtoms() {
	const columns = 128
	team.For(f.pixels, columns, func(from, to int) {
		n := to - from
		scale(f.codesGram, f.units, f.target[from:], f.pixels, f.atoms[from:], f.pixels, n, make([]float32, f.units*n))
	})
}

// scale multiplies n columns of x (k x n) by a / (Gx + tiny); the row strides of x and a are ldx and lda.
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

// klRule is Lee and Seung's rule for the Kullback-Leibler divergence: with R = X / (HW + tiny),
//
//	W <- W * (H'R) / colsum(H)',  each atom scaled to sum 1 (the scale goes to its codes),  H <- H * (RW') / rowsum(W)'.
type klRule struct {
	f        *factors
	codeSums []float32 // sum of the codes of each atom
	columns  []float32 // f.target by columns, p x k, of a sparse matrix
	// updates the codes; nil means scaleKL
	codesRule func(products, atomSums, x []float32, ldx, n int)
}

func (r *klRule) prepare() float64 { return r.pass(false) }

func (*klRule) keep(*Kept) {}

func (r *klRule) improve() float64 {
	r.scaleAtoms()
	return r.pass(true)
}

// scaleAtoms applies the rule to the atoms, with H'R in f.target.
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

// pass improves the codes if improve is true, computes H'R and the sums of the codes, and returns the objective.
func (r *klRule) pass(improve bool) float64 {
	f, scaleCodes := r.f, r.codesRule
	if scaleCodes == nil {
		scaleCodes = scaleKL
	}
	if f.sparse != nil {
		return r.passSparse(improve, scaleCodes)
	}
	f.targets.Reset()
	atomSums := rowSums(f.atoms, f.units, f.pixels)
	sums := make([]float64, fit.Lanes(f.n))
	fit.ForLanes(f.n, func(lane, from, to int) {
		w, b := f.work[lane], to-from
		if improve {
			quotient := f.decodeBlock(w, from, to)
			divideImages(quotient, f.x[from*f.pixels:to*f.pixels])
			scaleCodes(quotientProducts(quotient, f.atoms, f.units, f.pixels, b, w.a), atomSums, f.codes[from:], f.n, b)
		}
		quotient := f.decodeBlock(w, from, to)
		sums[lane] += divergence(quotient, f.x[from*f.pixels:to*f.pixels])
		kernel.Float32().Gemm(false, false, f.units, f.pixels, b, 1, f.codes[from:], f.n, quotient, f.pixels, 1, f.targets.Sums[lane], f.pixels)
	})
	f.targets.Total(f.target)
	r.codeSums = rowSums(f.codes, f.units, f.n)
	return lists.Sum(sums) / float64(f.n) / float64(f.pixels)
}

// passSparse is pass for a sparse matrix, whose quotients are computed for entries alone: the other quotients are 0, and the
// sum of all values of HW is that of the products of the sums of codes and atoms.
func (r *klRule) passSparse(improve bool, scaleCodes func(products, atomSums, x []float32, ldx, n int)) float64 {
	f, s, k, add := r.f, r.f.sparse, r.f.units, kernel.Float32().AddScaled
	s.atoms = transposeTo(s.atoms, f.atoms, k, f.pixels)
	atomSums, codes := rowSums(f.atoms, k, f.pixels), transpose(f.codes, k, f.n)
	if improve {
		fit.ForLanes(f.n, func(_, from, to int) {
			products := make([]float32, (to-from)*k)
			for i := from; i < to; i++ {
				columns, values := s.images.Entries(i)
				row := products[(i-from)*k : (i-from+1)*k]
				s.quotients(i, columns, values, codes, k, false, func(j int32, q float32) { add(row, row, s.atoms[int(j)*k:int(j)*k+k], q) })
			}
			scaleCodes(transpose(products, to-from, k), atomSums, f.codes[from:], f.n, to-from)
		})
		codes = transpose(f.codes, k, f.n)
	}
	if r.columns == nil {
		r.columns = make([]float32, f.pixels*k)
	}
	target, sums := r.columns, make([]float64, columnGroups)
	clear(target)
	s.inColumns(func(group, i int, columns []int32, values []float32) {
		own := codes[i*k : i*k+k]
		sums[group] += s.quotients(i, columns, values, codes, k, true, func(j int32, q float32) {
			row := target[int(j)*k : int(j)*k+k]
			add(row, row, own, q)
		})
	})
	f.target = transposeTo(f.target, target, f.pixels, k)
	r.codeSums = rowSums(f.codes, k, f.n)
	return (lists.Sum(sums) + vectors.Dot(r.codeSums, atomSums)) / float64(f.n) / float64(f.pixels)
}

// quotientProducts returns W R' (k x n) in dst, where R is n x p.
func quotientProducts(quotient, atoms []float32, k, p, n int, dst []float32) []float32 {
	kernel.Float32().Gemm(false, true, k, n, p, 1, atoms, p, quotient, p, 0, dst, n)
	return dst
}

// scaleKL multiplies n columns of x (k x n, with row stride ldx) by (W R') / rowsum(W).
func scaleKL(products, atomSums, x []float32, ldx, n int) {
	ops := kernel.Float32()
	for j := range atomSums {
		if !(atomSums[j] > 0) {
			continue
		}
		row, factor := x[j*ldx:j*ldx+n], products[j*n:(j+1)*n]
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
	const strip = 1024 // number of values that fit into the first-level cache
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

func rowSums(a []float32, rows, columns int) []float32 {
	sums := make([]float32, rows)
	team.For(rows, 1, func(j, _ int) { sums[j] = kernel.Float32().Sum(a[j*columns : (j+1)*columns]) })
	return sums
}

func (r *klRule) encode(images []float32) []float32 {
	k, p := r.f.units, r.f.pixels
	atoms, atomSums := r.f.atoms, rowSums(r.f.atoms, k, p)
	codes := encodeSquared(images, atoms, k, p, 1e-2)
	return r.f.refine(codes, images, func(h, x, y []float32, n int, w *blockWork) {
		divideImages(y, x)
		scaleKL(quotientProducts(y, atoms, k, p, n, w.a), atomSums, h, n, n)
	})
}

// refine applies a rule for the codes until it changes the codes (k x n) of a block by less than 1e-3 of their norm. The rule
// gets the images x of the block and their products y with the codes. The initial codes should minimise the squared error; a
// hundredth of their mean is added to them, because multiplicative rules do not change zeros.
func (f *factors) refine(codes, images []float32, rule func(h, x, y []float32, n int, w *blockWork)) []float32 {
	const (
		precision = 1e-3
		rounds    = 200
	)
	ops, k, p := kernel.Float32(), f.units, f.pixels
	team.For(len(images)/p, encodeBlock, func(from, to int) {
		n, x := to-from, images[from*p:to*p]
		y, h, before := make([]float32, n*p), transpose(codes[from*k:to*k], n, k), make([]float32, k*n)
		w := &blockWork{a: make([]float32, k*n), b: make([]float32, k*n), image: make([]float32, n*p)}
		ops.AddScalar(h, h, 0.01*ops.Sum(h)/float32(k*n)+tiny)
		for range rounds {
			copy(before, h)
			ops.Gemm(true, false, n, p, k, 1, h, n, f.atoms, p, 0, y, p)
			rule(h, x, y, n, w)
			if ops.SquaredDistance(h, before) <= precision*precision*ops.SumSquares(h) {
				break
			}
		}
		copy(codes[from*k:to*k], transpose(h, k, n))
	})
	return codes
}

// betaRule is Fevotte and Idier's rule for a beta-divergence of any exponent b, which never raises the objective: with Y =
// max(HW, tiny),
//
//	W <- W * ((H'(X Y^(b-2)) / (H' Y^(b-1) + n (l1 + l2 W)))^g,   H likewise with W',
//	g = 1/(2-b) for b < 1,   1 for 1 <= b <= 2,   1/(b-1) for b > 2.
//
// Without penalties, atoms are scaled to sum 1, or to norm 1 for b = 2, for which the divergence is half the squared error.
type betaRule struct {
	f         *factors
	exponent  float64
	penalties penalties

	atomsDown []float32     // H' Y^(b-1), k x p; H'(X Y^(b-2)) is the factors' target
	downs     *fit.LaneSums // sums for atomsDown, per lane
	images    [][]float32   // scratch for a block of images, per lane
	ownPart   float64       // sum of the terms of the divergence that depend only on X
}

func (r *betaRule) prepare() float64 {
	f := r.f
	r.atomsDown, r.downs = make([]float32, f.units*f.pixels), fit.NewLaneSums(f.n, f.units*f.pixels)
	r.images = make([][]float32, fit.Lanes(f.n))
	for i := range r.images {
		r.images[i] = make([]float32, min(f.rows().Step(), f.n)*f.pixels)
	}
	r.ownPart = sumLanes(f.n, func(i int) float64 { return ownDivergence(f.rows().Row(i), r.exponent) })
	return r.pass(false)
}

func (*betaRule) keep(*Kept) {}

func (r *betaRule) improve() float64 {
	f, w := r.f, r.penalties
	n := float64(f.n)
	r.scale(f.atoms, f.target, r.atomsDown, n*w.l1Atoms, n*w.l2Atoms)
	switch {
	case w != none:
	case r.exponent == 2:
		f.unitAtoms()
	default:
		scaleRows(f.atoms, f.pixels, f.codes, f.n, f.units, kernel.Float32().Sum)
	}
	return r.pass(true)
}

// scale multiplies values by (up / (down + l1 + l2 values))^g.
func (r *betaRule) scale(values, up, down []float32, l1, l2 float64) {
	g := 1.0
	if r.exponent < 1 {
		g = 1 / (2 - r.exponent)
	} else if r.exponent > 2 {
		g = 1 / (r.exponent - 1)
	}
	team.For(len(values), 1<<12, func(from, to int) {
		for i := from; i < to; i++ {
			v := float64(values[i])
			d := float64(down[i]) + l1 + l2*v
			if !(v > 0 && d > 0) {
				continue
			}
			factor := float64(up[i]) / d
			if g != 1 {
				factor = math.Pow(factor, g)
			}
			values[i] = float32(v * factor)
		}
	})
}

// pass improves the codes if improve is true, computes the sums that the rule of the atoms needs, and returns the objective.
func (r *betaRule) pass(improve bool) float64 {
	f, gemm := r.f, kernel.Float32().Gemm
	f.targets.Reset()
	r.downs.Reset()
	sums := make([]float64, fit.Lanes(f.n))
	rows := f.rows()
	r.eachBlock(rows, func(lane, from, to int) {
		w, b, p := f.work[lane], to-from, f.pixels
		x, down := rows.Block(&w.rows, from, to), r.images[lane][:(to-from)*p]
		if improve {
			codes, up := gatherColumns(f.codes, f.n, f.units, from, to), f.decodeBlock(w, from, to)
			r.split(x, up, down)
			r.scaleCodes(codes, f.atoms, up, down, w.a, w.b, b)
			scatterColumns(f.codes, f.n, f.units, from, to, codes)
		}
		up := f.decodeBlock(w, from, to)
		sums[lane] += divergenceFrom(x, up, r.exponent)
		r.split(x, up, down)
		gemm(false, false, f.units, p, b, 1, f.codes[from:], f.n, up, p, 1, f.targets.Sums[lane], p)
		gemm(false, false, f.units, p, b, 1, f.codes[from:], f.n, down, p, 1, r.downs.Sums[lane], p)
	})
	f.targets.Total(f.target)
	r.downs.Total(r.atomsDown)
	mean := (lists.Sum(sums)+r.ownPart)/float64(f.n)/float64(f.pixels) + r.penalties.value(f)
	if r.exponent == 2 {
		mean *= 2
	}
	return mean
}

// eachBlock calls do for the blocks of every lane.
func (r *betaRule) eachBlock(rows fit.Rows, do func(lane, from, to int)) {
	fit.ForLanes(rows.N, func(lane, from, end int) {
		for step := rows.Step(); from < end; from += step {
			do(lane, from, min(from+step, end))
		}
	})
}

// scaleCodes updates codes (k x n) for images with X Y^(b-2) in up and Y^(b-1) in down.
func (r *betaRule) scaleCodes(codes, atoms, up, down, a, b []float32, n int) {
	gemm, k, p := kernel.Float32().Gemm, r.f.units, r.f.pixels
	gemm(false, true, k, n, p, 1, atoms, p, up, p, 0, a, n)
	gemm(false, true, k, n, p, 1, atoms, p, down, p, 0, b, n)
	r.scale(codes, a[:k*n], b[:k*n], float64(p)*r.penalties.l1Codes, float64(p)*r.penalties.l2Codes)
}

// split replaces y by x y^(b-2) and writes y^(b-1) into down.
func (r *betaRule) split(x, y, down []float32) {
	ops := kernel.Float32()
	ops.MaxScalar(y, y, tiny)
	switch r.exponent {
	case 2:
		copy(down, y)
		copy(y, x)
	case 1:
		ops.Div(y, x, y)
		for i := range down {
			down[i] = 1
		}
	default:
		for i, v := range y {
			power := math.Pow(float64(v), r.exponent-2)
			y[i], down[i] = float32(power*float64(x[i])), float32(power*float64(v))
		}
	}
}

// gatherColumns returns a copy of columns [from, to) of a (k x n).
func gatherColumns(a []float32, n, k, from, to int) []float32 {
	b := to - from
	columns := make([]float32, k*b)
	for j := range k {
		copy(columns[j*b:(j+1)*b], a[j*n+from:])
	}
	return columns
}

// scatterColumns is the inverse of gatherColumns.
func scatterColumns(a []float32, n, k, from, to int, columns []float32) {
	b := to - from
	for j := range k {
		copy(a[j*n+from:j*n+to], columns[j*b:(j+1)*b])
	}
}

// ownDivergence returns the sum of the terms of the beta-divergence that depend only on x. divergenceFrom computes the other
// terms.
func ownDivergence(x []float32, b float64) float64 {
	var sum float64
	for _, value := range x {
		switch v := float64(value); {
		case v == 0:
		case b == 1:
			sum += v*math.Log(v) - v
		case b == 0:
			sum += -math.Log(v) - 1
		default:
			sum += math.Pow(v, b) / (b * (b - 1))
		}
	}
	return sum
}

// divergenceFrom returns the sum of the terms of the beta-divergence that depend on y, and replaces y by max(y, tiny).
func divergenceFrom(x, y []float32, b float64) float64 {
	var sum float64
	for i, value := range y {
		v, u := max(float64(value), tiny), float64(x[i])
		switch b {
		case 2:
			sum += v * (v/2 - u)
		case 1:
			sum += v - u*math.Log(v)
		case 0:
			sum += u/v + math.Log(v)
		default:
			sum += math.Pow(v, b-1) * (v/b - u/(b-1))
		}
	}
	return sum
}

func (r *betaRule) encode(images []float32) []float32 {
	k, p, w := r.f.units, r.f.pixels, r.penalties
	images = r.f.raise(images)
	codes := encodePenalised(images, r.f.atoms, k, p, float64(p)*w.l1Codes, float64(p)*w.l2Codes, 1e-2)
	return r.f.refine(codes, images, func(h, x, y []float32, n int, w *blockWork) {
		r.split(x, y, w.image)
		r.scaleCodes(h, r.f.atoms, y, w.image, w.a, w.b, n)
	})
}
