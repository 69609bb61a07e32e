package baselines

import (
	"errors"
	"math"

	"tessera/kernel"
	"tessera/parallel/team"
)

// ErrDiverged means that an objective became NaN or infinite. Finite images of ordinary size cannot cause it.
var ErrDiverged = errors.New("baselines: the objective is not a finite number")

// factors is a factorisation X = H W with H >= 0, and mostly W >= 0, while it is fitted, and the products that its rules share.
// The codes are stored by atom, k x n: the activations of one atom are contiguous, and the rules for codes and for atoms are
// the same function.
type factors struct {
	coder
	n       int
	x       []float32 // n x p
	codes   []float32 // k x n: the transpose of H
	squares float64   // the sum of the squares of X
	stored  *stored
	fits    func(images, pixels int) error // of the settings
	signed  bool                           // images, and atoms, may have negative values
	floor   float32                        // smaller pixels count as this value

	gram      []float32 // W W', k x k
	codesGram []float32 // H' H, k x k
	target    []float32 // H' X, k x p
	grams     *laneSums
	targets   *laneSums
	work      []*blockWork // one per lane
}

// blockWork is a lane's scratch memory.
type blockWork struct {
	a     []float32 // k x block: W X'
	b     []float32 // k x block
	image []float32 // block x p; only for the rules that need it
	sweep *sweeper
}

// load takes the images of a fit.
func (f *factors) load(images Images) error {
	if err := accept(images, f.pixels); err != nil {
		return err
	}
	if err := f.fits(images.Len(), f.pixels); err != nil {
		return err
	}
	f.n, f.x = images.Len(), load(images)
	if err := f.acceptImages(f.x); err != nil {
		return err
	}
	f.stored = digestImages(f.x, f.pixels)
	f.x = raise(f.x, f.floor)
	f.squares = f.sumLanes(func(i int) float64 { return float64(kernel.Float32().SumSquares(f.image(i))) })
	f.allocate()
	return nil
}

func (f *factors) takesSigned() bool { return f.signed }

// acceptImages refuses images that the method cannot take.
func (f *factors) acceptImages(x []float32) error {
	if f.signed {
		return acceptFinite(x, f.pixels)
	}
	return acceptNonNegative(x, f.pixels)
}

// raise returns the values with all below floor raised to it; the slice itself where floor is 0.
func raise(values []float32, floor float32) []float32 {
	if floor == 0 {
		return values
	}
	raised := make([]float32, len(values))
	kernel.Float32().MaxScalar(raised, values, floor)
	return raised
}

func (f *factors) allocate() {
	k := f.units
	f.gram, f.codesGram, f.target = make([]float32, k*k), make([]float32, k*k), make([]float32, k*f.pixels)
	f.grams, f.targets = newLaneSums(f.n, k*k), newLaneSums(f.n, k*f.pixels)
	f.work = make([]*blockWork, laneCount(f.n))
	for i := range f.work {
		columns := min(blockSize, f.n)
		f.work[i] = &blockWork{a: make([]float32, k*columns), b: make([]float32, k*columns), sweep: newSweeper(columns)}
	}
}

// image returns the pixels of fitted image i.
func (f *factors) image(i int) []float32 { return f.x[i*f.pixels : (i+1)*f.pixels] }

// sumLanes sums a number of every fitted image.
func (f *factors) sumLanes(of func(i int) float64) float64 {
	sums := make([]float64, laneCount(f.n))
	forLanes(f.n, func(lane, from, to int) {
		for i := from; i < to; i++ {
			sums[lane] += of(i)
		}
	})
	return sum(sums)
}

// pass calls update, which may be nil, for every block and then computes the sums that the rule of the atoms needs: H'X and
// H'H. Both depend only on the codes, so a restored fit computes the same sums as an uninterrupted one.
func (f *factors) pass(update func(w *blockWork, from, to int)) {
	f.grams.reset()
	f.targets.reset()
	gemm := kernel.Float32().Gemm
	forLanes(f.n, func(lane, from, to int) {
		if update != nil {
			update(f.work[lane], from, to)
		}
		h := f.codes[from:]
		gemm(false, false, f.units, f.pixels, to-from, 1, h, f.n, f.x[from*f.pixels:], f.pixels, 1, f.targets.sums[lane], f.pixels)
		gemm(false, true, f.units, f.units, to-from, 1, h, f.n, h, f.n, 1, f.grams.sums[lane], f.units)
	})
	f.targets.total(f.target)
	f.grams.total(f.codesGram)
}

// correlate writes W X' of a block's images into w.a, k x (to-from).
func (f *factors) correlate(w *blockWork, from, to int) {
	b := to - from
	kernel.Float32().Gemm(false, true, f.units, b, f.pixels, 1, f.atoms, f.pixels, f.x[from*f.pixels:], f.pixels, 0, w.a, b)
}

// decodeBlock returns H W of a block's images, in the lane's scratch memory.
func (f *factors) decodeBlock(w *blockWork, from, to int) []float32 {
	if w.image == nil {
		w.image = make([]float32, min(blockSize, f.n)*f.pixels)
	}
	kernel.Float32().Gemm(true, false, to-from, f.pixels, f.units, 1, f.codes[from:], f.n, f.atoms, f.pixels, 0, w.image, f.pixels)
	return w.image[:(to-from)*f.pixels]
}

// unitAtoms scales every atom to norm 1 and its codes by the inverse factor, so codes of different atoms can be compared.
// The product, and the next steps of a rule for single atoms, do not change.
func (f *factors) unitAtoms() { unitRows(f.atoms, f.pixels, f.codes, f.n, f.units) }

// unitRows scales each of the k rows of a (k x n) to norm 1, and the same row of b (k x m) by the inverse factor.
func unitRows(a []float32, n int, b []float32, m, k int) {
	ops := kernel.Float32()
	team.For(k, 1, func(j, _ int) {
		row, other := a[j*n:(j+1)*n], b[j*m:(j+1)*m]
		if norm := float32(l2Norm(row)); norm > 0 {
			ops.DivScalar(row, row, norm)
			ops.MulScalar(other, other, norm)
		}
	})
}

// atomsGram writes W W' into f.gram.
func (f *factors) atomsGram() { gramOf(f.gram, f.atoms, f.units, f.pixels) }

// gramOf writes A A' of a matrix of that many rows and columns into dst.
func gramOf(dst, a []float32, rows, columns int) {
	kernel.Float32().Gemm(false, true, rows, rows, columns, 1, a, columns, a, columns, 0, dst, rows)
}

// sweepAtoms improves the atoms by that many sweeps of coordinate descent, given H'H and H'X.
func (f *factors) sweepAtoms(times int, gram, target []float32) {
	const columns = 128
	team.For(f.pixels, columns, func(from, to int) {
		s := newSweeper(to - from)
		for range times {
			s.sweep(gram, f.units, target[from:], f.pixels, f.atoms[from:], f.pixels, to-from)
		}
	})
}

// squaredError is the mean of (X - HW)^2, from the sums of the last pass and the present gram: |X|^2 - 2 <H'X, W> + <H'H,
// WW'>. If the error is small compared with |X|^2, the difference has too few digits and the error is summed pixel by pixel.
func (f *factors) squaredError() float64 {
	const cancelled = 1e-2
	e := f.squares - 2*dot(f.target, f.atoms) + dot(f.codesGram, f.gram)
	if !(e > cancelled*f.squares) {
		e = f.residual()
	}
	return e / float64(f.n) / float64(f.pixels)
}

func (f *factors) residual() float64 {
	sums := make([]float64, laneCount(f.n))
	forLanes(f.n, func(lane, from, to int) {
		y := f.decodeBlock(f.work[lane], from, to)
		for i := from; i < to; i++ {
			sums[lane] += float64(kernel.Float32().SquaredDistance(f.image(i), y[(i-from)*f.pixels:(i-from+1)*f.pixels]))
		}
	})
	return sum(sums)
}

// Codes implements [Model].
func (f *factors) Codes() []float32 {
	if f.codes == nil {
		return nil
	}
	return transpose(f.codes, f.units, f.n)
}

// save adds atoms, codes and the digests of the fitted images to a state.
func (f *factors) save() map[string]Tensor {
	tensors := f.coder.save()
	if f.codes != nil {
		tensors[codesName] = Tensor{[]int{f.n, f.units}, f.Codes()}
		tensors[digestsName] = f.stored.save()
	}
	return tensors
}

// restore takes atoms, codes and digests from a state.
func (f *factors) restore(s State) error {
	codes, err := s.tensor(codesName, -1, f.units)
	if err != nil {
		return err
	}
	n := codes.Shape[0]
	digests, err := s.tensor(digestsName, n, digestWords)
	if err != nil {
		return err
	}
	if err := f.coder.restore(s); err != nil {
		return err
	}
	f.n, f.codes, f.stored = n, transpose(codes.Values, n, f.units), restoreDigests(digests)
	return nil
}

// resume loads the images of a restored fit, which must be the images of its codes.
func (f *factors) resume(images Images) error {
	before := f.stored
	if err := f.load(images); err != nil {
		return err
	}
	if !before.equal(f.stored) {
		return ErrOtherImages
	}
	return nil
}

// dot sums products in float64.
func dot(a, b []float32) float64 {
	var sum float64
	for i, v := range a {
		sum += float64(v) * float64(b[i])
	}
	return sum
}

func sum(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// transpose returns the transpose of a matrix of that many rows and columns.
func transpose(a []float32, rows, columns int) []float32 {
	const tile = 32
	t := make([]float32, rows*columns)
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
