package classical

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
)

// ErrDiverged reports that an objective became NaN or infinite. Finite images of ordinary size cannot cause it.
var ErrDiverged = errors.New("classical: the objective is not a finite number")

// factors contains a factorisation X = H W during its fit, with the products that several rules use. H >= 0, and for most
// methods W >= 0. The codes are stored by atom, k x n: the activations of one atom are contiguous, and the rules for codes and
// for atoms can use the same function.
type factors struct {
	Base
	unit
	n       int
	x       []float32 // X, n x p
	codes   []float32 // k x n: the transpose of H
	squares float64   // sum of the squares of X
	sparse  *sparse   // X in place of x if it is a sparse matrix; else nil
	dense   bool      // the rule needs x
	blocks  bool      // the rule reads a sparse matrix in blocks, with its zeros
	missing *missing  // missing entries of X, which are filled with those of H W; nil if there are none
	stored  *stored
	raises  bool    // small values are raised to the floor
	floor   float64 // 0: the default
	low     float64 // share of the positive values that were raised

	gram      []float32 // W W', k x k
	codesGram []float32 // H' H, k x k
	target    []float32 // H' X, k x p
	grams     *fit.LaneSums
	targets   *fit.LaneSums
	work      []*blockWork // scratch memory, one per lane
}

// blockWork is the scratch memory of a lane.
type blockWork struct {
	a     []float32 // k x block: W X'
	b     []float32 // scratch, k x block
	image []float32 // images, block x p; only for some rules
	rows  []float32 // rows of a sparse matrix with their zeros
	sweep *sweeper
}

func (f *factors) load(images Images) (err error) {
	f.n = images.Len()
	if f.sparse = sparseOf(images); f.sparse != nil {
		if !f.dense {
			return f.loadSparse()
		}
		f.sparse = nil
	}
	if f.x, err = f.Load(images); err != nil {
		return err
	}
	f.stored = digestImages(f.x, f.pixels)
	f.measure(f.x)
	if f.TakesHoles() {
		if f.missing, err = missingOf(f.x, f.pixels); err != nil {
			return err
		}
		if f.missing != nil {
			f.x = f.missing.filled(f.x, f.pixels)
		}
	}
	_, shared := images.(Matrix)
	f.x = multiplied(f.x, f.power(), !shared || f.missing != nil)
	raised := f.raise(f.x)
	f.low = lowShare(f.x, raised)
	f.x = raised
	f.sumSquares()
	f.allocate()
	return nil
}

func (f *factors) loadSparse() error {
	s := f.sparse
	f.stored = &stored{digests: make([]uint64, f.n)}
	fit.ForLanes(f.n, func(_, from, to int) {
		row, buf := make([]float32, f.pixels), make([]byte, 4*f.pixels)
		for i := from; i < to; i++ {
			s.rows(row, i, i+1)
			f.stored.digests[i] = digest(buf, row)
		}
	})
	if err := s.accepted(&f.Base); err != nil {
		return err
	}
	f.set(s.sum(math.Abs)/float64(f.n)/float64(f.pixels), s.most())
	s.by = f.power()
	f.squares = s.sum(func(v float64) float64 { return v * v })
	f.low = f.lowEntries()
	f.allocate()
	return nil
}

func (f *factors) mean() float64 {
	switch {
	case f.sparse != nil && f.raises:
		total := sumLanesOf(f.n, f.rows().Step(), func(_ *blocks, from, to int) (sum float64) {
			f.rows().Each(from, to, func(_ int, row []float32) { sum += float64(kernel.Float32().Sum(row)) })
			return sum
		})
		return total / float64(f.n) / float64(f.pixels)
	case f.sparse != nil:
		return f.sparse.sum(func(v float64) float64 { return v }) / float64(f.n) / float64(f.pixels)
	}
	return mean(f.x)
}

// product returns A X' (k x n) for a matrix A (k x p).
func (f *factors) product(a []float32) []float32 {
	switch {
	case f.sparse != nil && f.raises:
		return f.blockProduct(a, f.units)
	case f.sparse != nil:
		return f.sparse.product(a, f.units)
	}
	dst := make([]float32, f.units*f.n)
	multiply(false, true, f.units, f.n, f.pixels, a, f.x, dst)
	return dst
}

// mixture returns A X (k x p) for a matrix A (k x n).
func (f *factors) mixture(a []float32) []float32 {
	switch {
	case f.sparse != nil && f.raises:
		return f.blockMixture(a, f.units)
	case f.sparse != nil:
		return f.sparse.mixture(a, f.units)
	}
	dst := make([]float32, f.units*f.pixels)
	multiply(false, false, f.units, f.pixels, f.n, a, f.x, dst)
	return dst
}

// blockProduct returns A X' (k x n) for rows that are read, and raised.
func (f *factors) blockProduct(a []float32, k int) []float32 {
	rows, dst := f.rows(), make([]float32, k*f.n)
	team.For(f.n, rows.Step(), func(from, to int) {
		var space []float32
		kernel.Float32().Gemm(false, true, k, to-from, f.pixels, 1, a, f.pixels, rows.Block(&space, from, to), f.pixels, 0, dst[from:], f.n)
	})
	return dst
}

// blockMixture returns A X (k x p) for rows that are read, and raised.
func (f *factors) blockMixture(a []float32, k int) []float32 {
	rows, sums, dst := f.rows(), fit.NewLaneSums(f.n, k*f.pixels), make([]float32, k*f.pixels)
	fit.ForLanes(f.n, func(lane, from, end int) {
		var space []float32
		for step := rows.Step(); from < end; from += step {
			to := min(from+step, end)
			kernel.Float32().Gemm(false, false, k, f.pixels, to-from, 1, a[from:], f.n, rows.Block(&space, from, to), f.pixels, 1, sums.Sums[lane], f.pixels)
		}
	})
	sums.Total(dst)
	return dst
}

func (f *factors) sumSquares() {
	f.squares = sumLanes(f.n, func(i int) float64 { return float64(kernel.Float32().SumSquares(f.rows().Row(i))) })
}

// lowShare returns the share of the positive values that were raised.
func lowShare(values, raised []float32) float64 {
	low, positive := 0, 0
	for i, v := range values {
		if v > 0 {
			if positive++; raised[i] > v {
				low++
			}
		}
	}
	return float64(low) / float64(max(positive, 1))
}

// lowEntries is lowShare for the entries of a sparse matrix.
func (f *factors) lowEntries() float64 {
	low, positive := 0, 0
	for i := 0; i < f.n && f.raises; i++ {
		_, values := f.sparse.images.Entries(i)
		values = multiplied(values, f.sparse.by, false)
		for e, v := range f.raise(values) {
			if values[e] > 0 {
				positive++
				if v > values[e] {
					low++
				}
			}
		}
	}
	return float64(low) / float64(max(positive, 1))
}

// notes warns of a floor that was not declared and raises many values.
func (m *factorisation) notes() []string {
	const many = 0.01
	if !m.raises || m.floor > 0 || m.low < many {
		return nil
	}
	return []string{fmt.Sprintf("%.3g %% of the positive values are below the default floor and count as this value; declare floor", 100*m.low)}
}

// raise returns scaled values with those below the floor raised to it; the slice itself if there is none. The default floor
// is relative to the mean of values that are scaled.
func (f *factors) raise(values []float32) []float32 {
	if !f.raises {
		return values
	}
	floor := float32(f.floor * float64(f.power()))
	if f.floor == 0 {
		floor = float32(usualFloor / f.rest())
	}
	raised := make([]float32, len(values))
	kernel.Float32().MaxScalar(raised, values, floor)
	return raised
}

func (f *factors) allocate() {
	k := f.units
	f.gram, f.codesGram, f.target = make([]float32, k*k), make([]float32, k*k), make([]float32, k*f.pixels)
	f.grams = fit.NewLaneSums(f.n, k*k)
	if f.sparse == nil || f.blocks {
		f.targets = fit.NewLaneSums(f.n, k*f.pixels)
	}
	f.work = make([]*blockWork, fit.Lanes(f.n))
	for i := range f.work {
		columns := min(fit.BlockSize, f.n)
		f.work[i] = &blockWork{a: make([]float32, k*columns), b: make([]float32, k*columns), sweep: newSweeper(columns)}
	}
}

// rows returns X as rows. Those of a sparse matrix are raised as they are read.
func (f *factors) rows() fit.Rows {
	if f.sparse == nil {
		return fit.Dense(f.x, f.pixels)
	}
	return fit.Read(f.n, f.pixels, func(dst []float32, from, to int) {
		f.sparse.rows(dst, from, to)
		if f.raises {
			multiplied(dst, 1/f.sparse.rest, true)
			copy(dst, f.raise(dst))
			multiplied(dst, f.sparse.rest, true)
		}
	})
}

// pass calls update, which may be nil, for every block and then computes the sums that the update of the atoms needs: H'X and
// H'H. Both depend only on the codes, so a restored fit computes the same sums as an uninterrupted one.
func (f *factors) pass(update func(w *blockWork, from, to int)) {
	f.grams.Reset()
	if f.sparse == nil {
		f.targets.Reset()
	}
	gemm := kernel.Float32().Gemm
	fit.ForLanes(f.n, func(lane, from, to int) {
		if update != nil {
			update(f.work[lane], from, to)
		}
		h := f.codes[from:]
		if f.sparse == nil {
			gemm(false, false, f.units, f.pixels, to-from, 1, h, f.n, f.x[from*f.pixels:], f.pixels, 1, f.targets.Sums[lane], f.pixels)
		}
		gemm(false, true, f.units, f.units, to-from, 1, h, f.n, h, f.n, 1, f.grams.Sums[lane], f.units)
	})
	if f.sparse == nil {
		f.targets.Total(f.target)
	} else {
		f.target = f.sparse.mixture(f.codes, f.units)
	}
	f.grams.Total(f.codesGram)
}

// correlate writes W X' for the images of a block to w.a, k x (to-from).
func (f *factors) correlate(w *blockWork, from, to int) {
	b := to - from
	if f.sparse != nil {
		rows := make([]float32, b*f.units)
		timesRows(f.sparse, kernel.Float32().AddScaled, rows, f.sparse.atoms, f.units, from, to)
		copy(w.a, transpose(rows, b, f.units))
		return
	}
	kernel.Float32().Gemm(false, true, f.units, b, f.pixels, 1, f.atoms, f.pixels, f.x[from*f.pixels:], f.pixels, 0, w.a, b)
}

// decodeBlock returns H W for the images of a block, in the lane's scratch memory.
func (f *factors) decodeBlock(w *blockWork, from, to int) []float32 {
	if w.image == nil {
		w.image = make([]float32, min(f.rows().Step(), f.n)*f.pixels)
	}
	kernel.Float32().Gemm(true, false, to-from, f.pixels, f.units, 1, f.codes[from:], f.n, f.atoms, f.pixels, 0, w.image, f.pixels)
	return w.image[:(to-from)*f.pixels]
}

// unitAtoms scales every atom to norm 1 and its codes by the inverse factor, so that codes of different atoms can be
// compared. This changes neither the product nor the next steps of rules that update single atoms.
func (f *factors) unitAtoms() { scaleRows(f.atoms, f.pixels, f.codes, f.n, f.units, rowNorm) }

// scaleRows divides each of the k rows of a (k x n) by its size, and multiplies the corresponding row of b (k x m) by the
// size.
func scaleRows(a []float32, n int, b []float32, m, k int, size func(row []float32) float32) {
	ops := kernel.Float32()
	team.For(k, 1, func(j, _ int) {
		row, other := a[j*n:(j+1)*n], b[j*m:(j+1)*m]
		if by := size(row); by > 0 {
			ops.DivScalar(row, row, by)
			ops.MulScalar(other, other, by)
		}
	})
}

func rowNorm(row []float32) float32 { return float32(vectors.Norm(row)) }

// atomsGram writes W W' into f.gram.
func (f *factors) atomsGram() {
	gramOf(f.gram, f.atoms, f.units, f.pixels)
	if f.sparse != nil {
		f.sparse.atoms = transposeTo(f.sparse.atoms, f.atoms, f.units, f.pixels)
	}
}

// gramOf writes A A' into dst, for a matrix A with the given numbers of rows and columns.
func gramOf(dst, a []float32, rows, columns int) {
	kernel.Float32().Gemm(false, true, rows, rows, columns, 1, a, columns, a, columns, 0, dst, rows)
}

// sweepAtoms improves the atoms by the given number of sweeps of coordinate descent, from H'H and H'X.
func (f *factors) sweepAtoms(times int, gram, target []float32) {
	const columns = 128
	team.For(f.pixels, columns, func(from, to int) {
		s := newSweeper(to - from)
		for range times {
			s.sweep(gram, f.units, target[from:], f.pixels, f.atoms[from:], f.pixels, to-from)
		}
	})
}

// squaredError returns the mean of (X - HW)^2, from the sums of the last pass and the current Gram matrix: |X|^2 - 2 <H'X, W>
// + <H'H, WW'>. If the error is small compared with |X|^2, the difference has too few digits and the error is summed pixel by
// pixel.
func (f *factors) squaredError() float64 {
	const cancelled = 1e-2
	e := f.squares - 2*vectors.Dot(f.target, f.atoms) + vectors.Dot(f.codesGram, f.gram)
	if !(e > cancelled*f.squares) {
		e = f.residual()
	}
	return e / float64(f.n) / float64(f.pixels)
}

func (f *factors) residual() float64 {
	if f.sparse != nil {
		return f.sparse.squaredError(f.codes, f.atoms, f.units)
	}
	sums := make([]float64, fit.Lanes(f.n))
	fit.ForLanes(f.n, func(lane, from, to int) {
		y := f.decodeBlock(f.work[lane], from, to)
		for i := from; i < to; i++ {
			sums[lane] += float64(kernel.Float32().SquaredDistance(f.x[i*f.pixels:(i+1)*f.pixels], y[(i-from)*f.pixels:(i-from+1)*f.pixels]))
		}
	})
	return lists.Sum(sums)
}

func (f *factors) keep(k *Kept) {
	f.Base.Keep(k)
	f.unit.keep(k)
	k.transposed(codesName, &f.codes, f.units)
	f.n = len(f.codes) / f.units
	if f.stored == nil {
		f.stored = &stored{}
	}
	f.stored.keep(k, f.named(digestsName), f.n)
}

// resume loads the images of a restored fit and checks that the restored codes belong to them.
func (f *factors) resume(images Images) error {
	before := f.stored
	if err := f.load(images); err != nil {
		return err
	}
	if !slices.Equal(before.digests, f.stored.digests) {
		return ErrOtherImages
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// transpose returns the transpose of a matrix with the given numbers of rows and columns.
func transpose[T kernel.Float](a []T, rows, columns int) []T {
	return transposeTo(nil, a, rows, columns)
}

// transposeTo is transpose that writes to t if it is large enough.
func transposeTo[T kernel.Float](t, a []T, rows, columns int) []T {
	const tile = 32
	t = slices.Grow(t[:0], rows*columns)[:rows*columns]
	team.For(rows, tile, func(from, to int) {
		for c := 0; c < columns; c += tile {
			for i := from; i < to; i++ {
				for j := c; j < min(c+tile, columns); j++ {
					t[j*rows+i] = a[i*columns+j]
				}
			}
		}
	})
	return t
}

// factorisation is the model of every method that factorises all images together.
type factorisation struct {
	factors
	first   func() error // computes the initial atoms and codes
	rule    rule
	build   func(m *factorisation) // sets the rule
	recodes bool                   // only the rule uses the codes of the fit: encode also encodes fitted images
}

// newFactorisation returns the model of a method that improves a factorisation of all images, with restarts. build sets the
// rule of each fit, and its start if it differs from init.
func newFactorisation(s Method, shape []int, seed uint64, init string, build func(m *factorisation)) (Model, error) {
	return NewModel(s, shape, seed, func(b Base) Algorithm {
		m := &factorisation{factors: factors{Base: b}, build: build}
		m.first = func() error {
			return m.start(init)
		}
		build(m)
		return m
	})
}

// rule is an algorithm that improves a factorisation.
type rule interface {
	// prepare computes the values that improve needs, and the objective, from codes and atoms alone.
	prepare() (objective float64)
	// improve performs one iteration and prepares the next one. Most rules update the atoms first, so the codes belong to the
	// current atoms; Hoyer's rule starts with the codes.
	improve() (objective float64)
	// encode returns the codes (n x k) of images that were not fitted.
	encode(images []float32) []float32
	// keep keeps state other than codes and atoms.
	keep(k *Kept)
}

func (m *factorisation) Start(images Images) error {
	if m.codes != nil {
		if err := m.resume(images); err != nil {
			return err
		}
		m.inside(func() float64 {
			if m.missing != nil {
				m.fill()
			}
			return m.rule.prepare()
		})
		return nil
	}
	if err := m.load(images); err != nil {
		return err
	}
	if err := m.begin(); err != nil {
		return err
	}
	m.objective = m.inside(func() float64 {
		if m.missing != nil {
			return m.refill()
		}
		return m.rule.prepare()
	})
	return nil
}

func (m *factorisation) Improve(context.Context) (float64, error) {
	return m.inside(func() float64 {
		objective := m.rule.improve()
		if m.missing != nil {
			objective = m.refill()
		}
		return objective
	}), nil
}

// Infer implements [Algorithm]: fitted images have the codes of the fit; other images are encoded with the atoms fixed.
func (m *factorisation) Infer(images []float32) ([]float32, error) {
	if err := m.accepts(images); err != nil {
		return nil, err
	}
	if m.recodes {
		return m.encode(images), nil
	}
	var others, gaps []float32 // images that were not fitted: complete images, and images with missing entries
	rows := m.stored.find(images, m.pixels)
	for i, row := range rows {
		image := images[i*m.pixels : (i+1)*m.pixels]
		switch {
		case row >= 0:
		case hasNaN(image):
			rows[i] = withGaps
			gaps = append(gaps, image...)
		default:
			others = append(others, image...)
		}
	}
	encoded, holed := m.encode(others), m.encodeHoled(gaps)
	codes := make([]float32, len(rows)*m.units)
	for i, row := range rows {
		code := codes[i*m.units : (i+1)*m.units]
		if row == withGaps {
			holed = holed[copy(code, holed):]
			continue
		}
		if row < 0 {
			encoded = encoded[copy(code, encoded):]
			continue
		}
		for j := range code {
			code[j] = m.codes[j*m.n+row]
		}
	}
	return codes, nil
}

// withGaps takes the place of a row index for an image that was not fitted and has missing entries.
const withGaps = -2

func (m *factorisation) Codes() []float32 {
	if m.recodes || m.codes == nil {
		return nil
	}
	return transpose(m.codes, m.units, m.n)
}

func (m *factorisation) Keep(k *Kept) {
	m.factors.keep(k)
	m.rule.keep(k)
}

// stored recognises the fitted images, whose codes are stored, by 64 bits of the SHA-256 of their pixels. For equal images it
// returns the first.
type stored struct {
	digests []uint64
	rows    map[uint64]int // computed on first use
}

const (
	digestsName = "digests" // n x digestWords: 16 bits per value, as numbers, because float32 represents only 24 bits exactly
	digestWords = 4
)

func digestImages(x []float32, pixels int) *stored {
	digests := make([]uint64, len(x)/pixels)
	fit.ForLanes(len(digests), func(_, from, to int) {
		buf := make([]byte, 4*pixels)
		for i := from; i < to; i++ {
			digests[i] = digest(buf, x[i*pixels:(i+1)*pixels])
		}
	})
	return &stored{digests: digests}
}

func digest(buf []byte, image []float32) uint64 {
	for i, v := range image {
		bits := math.Float32bits(v)
		if v != v {
			bits = canonicalNaN
		}
		binary.LittleEndian.PutUint32(buf[4*i:], bits)
	}
	sum := sha256.Sum256(buf)
	return binary.LittleEndian.Uint64(sum[:])
}

// find returns for each image the row of the fitted image that equals it, or -1.
func (s *stored) find(images []float32, pixels int) []int {
	if s.rows == nil {
		s.rows = make(map[uint64]int, len(s.digests))
		for i := len(s.digests) - 1; i >= 0; i-- {
			s.rows[s.digests[i]] = i
		}
	}
	asked := digestImages(images, pixels).digests
	rows := make([]int, len(asked))
	for i, d := range asked {
		row, ok := s.rows[d]
		if !ok {
			row = -1
		}
		rows[i] = row
	}
	return rows
}

// keep keeps the digests of n images under a name.
func (s *stored) keep(k *Kept, name string, n int) {
	var words []float32
	for _, d := range s.digests {
		for range digestWords {
			words = append(words, float32(d&0xffff))
			d >>= 16
		}
	}
	if k.Tensor(name, &words, n, digestWords); !k.Restores || k.failed() {
		return
	}
	*s = stored{digests: make([]uint64, n)}
	for i := range s.digests {
		for w := digestWords - 1; w >= 0; w-- {
			s.digests[i] = s.digests[i]<<16 | uint64(words[i*digestWords+w])
		}
	}
}

// checkInit returns an error for an unknown initialisation in a struct literal in Go; for declared models package config
// checks it.
func checkInit(init string) error {
	if init != "random" && init != "nndsvd" && init != "nndsvda" {
		return unknown("init", init, "random", "nndsvd", "nndsvda")
	}
	return nil
}

func unknown(key, got string, want ...string) error {
	return part.KeyErrorf(key, "got %q, want one of %q", got, want)
}

// tooMany returns the error for too many components; what describes the quantity that is the maximum.
func tooMany(components, most int, what string) error {
	return part.KeyErrorf("components", "got %d, want at most %d, %s", components, most, what)
}

// atMostImages returns an error if there are more components than images (0 if their number is unknown).
func atMostImages(components, images int) error {
	if images > 0 && components > images {
		return tooMany(components, images, "the number of samples")
	}
	return nil
}

// fewerThanImagesAndPixels returns an error if there are more components than images (0 if their number is unknown) or pixels;
// when describes for which settings this holds.
func fewerThanImagesAndPixels(components, images, pixels int, when string) error {
	most, what := pixels, "the number of values"
	if images > 0 {
		most, what = min(images, pixels), "the lesser of samples and values"
	}
	if components > most {
		return tooMany(components, most, what+when)
	}
	return nil
}

// fitsFactors returns an error for a number of components for which atoms, codes or the products of codes of all lanes need
// too much memory.
func fitsFactors(components int, init string, images, pixels int) error {
	for _, err := range []error{Bounded(components, "atoms", pixels), Bounded(components, "codes", images),
		Bounded(components, "products of codes", components, fit.Lanes(images))} {
		if err != nil {
			return err
		}
	}
	if init == "random" {
		return nil
	}
	return fewerThanImagesAndPixels(components, images, pixels, fmt.Sprintf(`, for init = %q; or init = "random"`, init))
}

// start sets the first atoms (k x p) and codes (k x n) of a factorisation of non-negative images.
func (f *factors) start(init string) error {
	if init == "random" {
		f.randomFactors()
		return nil
	}
	if err := f.nndsvd(); err != nil {
		return err
	}
	if init == "nndsvda" {
		fill := float32(f.mean())
		fillZeros(f.atoms, fill)
		fillZeros(f.codes, fill)
	}
	return nil
}

// randomFactors draws |N(0,1)| entries, scaled such that the mean of their product is close to that of X.
func (f *factors) randomFactors() {
	scale := math.Sqrt(f.mean() / float64(f.units))
	draw := func(name string, length int) []float32 {
		rng := f.Random("init/" + name)
		values := make([]float32, length)
		for i := range values {
			values[i] = float32(scale * math.Abs(rng.NormFloat64()))
		}
		return values
	}
	f.atoms, f.codes = draw(atomsName, f.units*f.pixels), draw(codesName, f.units*f.n)
}

// nndsvd takes each of the first k singular pairs s u v' of X and keeps either the positive or the negative parts of u and v:
// those with the larger product m of norms. Both vectors are scaled to norm sqrt(s m). Zeros remain zero under multiplicative
// rules; "nndsvda" replaces them by the mean of X.
//
// Source: C. Boutsidis, E. Gallopoulos, SVD based initialization: a head start for nonnegative matrix factorization, Pattern
// Recognition 41(4), 2008.
func (f *factors) nndsvd() error {
	n, p, k := f.n, f.pixels, f.units
	values, singular, err := leading(min(n, p), k, f.seed, f.timesGram())
	if err != nil {
		return err
	}
	if side := vectors.Narrow(singular); n < p { // the singular vectors on the smaller side
		f.codes, f.atoms = side, f.mixture(side)
	} else {
		f.atoms, f.codes = side, f.product(side)
	}
	team.For(k, 1, func(j, _ int) {
		u, v := f.codes[j*n:(j+1)*n], f.atoms[j*p:(j+1)*p]
		split(u, v, math.Sqrt(values[j]))
	})
	return nil
}

// timesGram returns the product of rows with X X' if there are fewer samples than values, and else with X'X.
func (f *factors) timesGram() func(y, q []float64, m int) {
	switch {
	case f.sparse != nil && f.raises:
		return func(y, q []float64, m int) {
			first, second := f.blockProduct, f.blockMixture
			if f.n < f.pixels {
				first, second = second, first
			}
			copy(y, vectors.Wide(second(first(vectors.Narrow(q), m), m)))
		}
	case f.sparse != nil:
		return f.sparse.timesGram(nil)
	}
	n, p, size := f.n, f.pixels, min(f.n, f.pixels)
	gram := make([]float32, size*size)
	if n < p {
		addDualGram(kernel.Float32().Gemm, gram, f.x, n, p)
	} else {
		addGram(kernel.Float32().Gemm, gram, f.x, n, p)
	}
	wide := symmetric(gram, size)
	return func(y, q []float64, m int) { timesSymmetric(y, q, wide, m, size) }
}

// split replaces the singular vectors u and v by their dominant non-negative parts. One of u and v is multiplied by the
// singular value s.
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

// keepPart replaces v by its positive or its negative part, times scale.
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

// multiply computes C = op(A) op(B) for A with m rows. The rows of C, or its columns, are divided among the processors.
func multiply(transA, transB bool, m, n, depth int, a []float32, b []float32, c []float32) {
	const grain = 256
	gemm := kernel.Float32().Gemm
	lda, ldb := depth, n
	if transA {
		lda = m
	}
	if transB {
		ldb = depth
	}
	if m >= n {
		team.For(m, grain, func(from, to int) {
			rows := from * lda
			if transA {
				rows = from
			}
			gemm(transA, transB, to-from, n, depth, 1, a[rows:], lda, b, ldb, 0, c[from*n:], n)
		})
		return
	}
	team.For(n, grain, func(from, to int) {
		columns := from
		if transB {
			columns = from * ldb
		}
		gemm(transA, transB, m, to-from, depth, 1, a, lda, b[columns:], ldb, 0, c[from:], n)
	})
}
