package metrics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/internal/engine/kernel"
	"tessera/internal/vectors"
	"tessera/internal/volume"
)

func init() {
	Registry.Register("amortisation_gap", "error that the encoder adds to the best codes of the same atoms",
		func() Metric { return &AmortisationGap{Images: gapImages} })
}

const (
	gapImages     = 500  // maximum number of measured images
	gapMost       = 2048 // maximum number of units: every step multiplies a code by the Gram matrix of the atoms
	gapIterations = 300  // FISTA steps for each penalty
	gapDoublings  = 16   // penalties that are tried, each twice the one before, the last half of the largest of use
	gapLast       = 6    // penalties that are tried after these, each half as far from the largest
	gapHalvings   = 12   // bisections of the interval between two of them
)

// AmortisationGap compares the codes of the encoder with optimal codes. It is the mean squared error of the encoder's
// reconstructions minus the error of the best codes with the same atoms and the same sparsity, both as a difference and as a
// share of the encoder's error. The best codes z of an image x minimise
//
//	|x - b - sum_j z_j w_j/|w_j||² / 2 + p |z|_1,  z >= 0
//
// with one penalty p for all images. p is chosen such that the mean Hoyer sparsity of z equals that of the encoder's
// contributions h_j |w_j|. The solver is FISTA (Beck and Teboulle 2009) with 300 steps for each p, starting from the previous
// solution. p doubles until the codes are sparse enough (near the largest p of use it approaches that), and 12 bisections follow. If the codes without a penalty are already
// sparser than the encoder's, p is 0; if no p that is tried makes them as sparse, the metric is not applicable.
//
// A gap of 0 or less means that no better encoder is possible. The gap can be negative because an encoder may distribute
// sparsity over the images better than an l1 penalty does. A large share means that a deeper encoder, more training or fewer
// parameters would help. The metric requires non-negative codes and reconstructions that are sums of atoms and bias. The
// measured images are evenly spaced over the sample.
type AmortisationGap struct {
	Images int `toml:"images" want:"> 0" doc:"number of samples that are measured at most"`
}

func (*AmortisationGap) Describe() Description {
	return Description{
		Measures: []Measure{
			{Name: "amortisation_gap", Better: Lower, Doc: "mean squared error of the encoder's codes minus that of the best codes for the same atoms at equal " +
				"`hoyer_contribution`. Non-negative codes by FISTA, l1-penalised unless they are that sparse without a penalty, of up to 500 samples. Only of sums of atoms with non-negative codes"},
			{Name: "amortisation_share", Better: Lower, Doc: "`amortisation_gap` as a share of the encoder's error. 0.07 says that the best codes have 7 % less error"},
		},
		Reads: ReadsImages | ReadsCodes | ReadsOutputs | ReadsSums, ScaleFree: true, Ordered: true, Partial: true, OnRequest: true,
	}
}

func (m *AmortisationGap) Start(s *Subject) (Meter, error) {
	if s.Units > gapMost {
		return Fixed(NotApplicable(fmt.Sprintf("there are more than %d units", gapMost))), nil
	}
	pixels, most := volume.Of(s.Shape), cmp.Or(m.Images, gapImages)
	return &gapMeter{s.Atoms, newSpaced(s, pixels, most), newSpaced(s, s.Atoms.Count, most), newSpaced(s, pixels, most)}, nil
}

type gapMeter struct {
	atoms                  *Atoms
	images, codes, outputs spaced
}

func (m *gapMeter) Add(b *Batch) error {
	m.images.add(b.Images)
	m.codes.add(b.Codes)
	m.outputs.add(b.Outputs)
	return nil
}

func (m *gapMeter) Values(ctx context.Context) ([]Value, error) {
	if len(m.images.rows) == 0 {
		return nil, errors.New("amortisation_gap: there are no samples")
	}
	p := newL1Codes(m.atoms, m.images.rows, m.images.width)
	encoded := make([]float64, len(m.codes.rows)) // contributions
	for i, v := range m.codes.rows {
		if v < 0 {
			return []Value{NotApplicable("some codes are negative")}, nil
		}
		encoded[i] = float64(v) * p.scales[i%p.k]
	}
	if !p.reconstructs(encoded, m.outputs.rows) {
		return []Value{NotApplicable("the reconstructions are not sums of the atoms and the bias")}, nil
	}
	own := p.error(encoded)
	best, err := p.matched(ctx, p.sparsity(encoded))
	if err != nil {
		return nil, err
	}
	if best == nil {
		return []Value{NotApplicable("no penalty that was tried makes l1-penalised codes of these atoms as sparse as the encoder's")}, nil
	}
	gap := own - p.error(best)
	if own == 0 {
		return []Value{Number(gap), NotApplicable("the encoder has no error")}, nil
	}
	return []Value{Number(gap), Number(gap / own)}, nil
}

// l1Codes searches for non-negative codes of images with atoms of length 1. Matrices are row-major.
type l1Codes struct {
	n, k, pixels int
	scales       []float64 // lengths of the atoms before they were normalised
	atoms        []float64 // (k, pixels), each of length 1 or all zero
	targets      []float64 // (n, pixels): the images minus the bias
	gram         []float64 // (k, k)
	along        []float64 // (n, k): targets times the transposed atoms
	bias         []float32 // (pixels), nil without a bias
	row          float64   // largest row sum of |gram|, an upper bound of its largest eigenvalue
}

// newL1Codes prepares the search.
func newL1Codes(atoms *Atoms, images []float32, pixels int) *l1Codes {
	p := &l1Codes{n: len(images) / pixels, k: atoms.Count, pixels: pixels, scales: atoms.scales(), atoms: vectors.Wide(atoms.Values), targets: vectors.Wide(images), bias: atoms.Bias}
	for i := range p.atoms {
		if s := p.scales[i/pixels]; s > 0 {
			p.atoms[i] /= s
		}
	}
	if atoms.Bias != nil {
		for i := range p.targets {
			p.targets[i] -= float64(atoms.Bias[i%pixels])
		}
	}
	gemm := kernel.Float64().Gemm
	p.gram, p.along = make([]float64, p.k*p.k), make([]float64, p.n*p.k)
	gemm(false, true, p.k, p.k, pixels, 1, p.atoms, pixels, p.atoms, pixels, 0, p.gram, p.k)
	gemm(false, true, p.n, p.k, pixels, 1, p.targets, pixels, p.atoms, pixels, 0, p.along, p.k)
	for j := range p.k {
		sum := 0.0
		for _, v := range p.gram[j*p.k : (j+1)*p.k] {
			sum += math.Abs(v)
		}
		p.row = max(p.row, sum)
	}
	return p
}

// residuals returns the targets minus the sums of the atoms.
func (p *l1Codes) residuals(codes []float64) []float64 {
	r := append([]float64(nil), p.targets...)
	kernel.Float64().Gemm(false, false, p.n, p.pixels, p.k, -1, codes, p.k, p.atoms, p.pixels, 1, r, p.pixels)
	return r
}

// error returns the mean squared error of codes over images and pixels.
func (p *l1Codes) error(codes []float64) float64 {
	sum := 0.0
	for _, v := range p.residuals(codes) {
		sum += v * v
	}
	return sum / float64(max(1, p.n*p.pixels))
}

// reconstructs reports whether the outputs equal the sums of the atoms, up to rounding in float32.
func (p *l1Codes) reconstructs(codes []float64, outputs []float32) bool {
	difference, size := 0.0, 0.0
	for i, r := range p.residuals(codes) { // targets - sums, so that sums + bias = images - r
		d := p.targets[i] - r - float64(outputs[i])
		if p.bias != nil {
			d += float64(p.bias[i%p.pixels])
		}
		difference, size = difference+d*d, size+float64(outputs[i])*float64(outputs[i])
	}
	return difference <= 1e-8*size
}

// sparsity returns the mean over images of the Hoyer sparsity of the contributions.
func (p *l1Codes) sparsity(codes []float64) float64 {
	sum := 0.0
	for i := range p.n {
		sum += contributionSparsity(codes[i*p.k : (i+1)*p.k])
	}
	return sum / float64(max(1, p.n))
}

// matched returns the best codes whose mean sparsity is at least the given one, or nil if no penalty makes them as sparse.
// It tries penalties in ascending order, because the sparsity does not grow with the penalty throughout: with a large one the
// codes of dark images are 0 and count as dense.
func (p *l1Codes) matched(ctx context.Context, sparsity float64) ([]float64, error) {
	most := max(0, slices.Max(p.along))
	low, high := 0.0, 0.0
	codes := p.solve(make([]float64, p.n*p.k), 0)
	share := func(try int) float64 { // of the largest penalty of use: 2^-16, ..., 1/2, 3/4, 7/8, ...
		if try < gapDoublings {
			return math.Ldexp(1, try-gapDoublings)
		}
		return 1 - math.Ldexp(1, gapDoublings-2-try)
	}
	for try := 0; p.sparsity(codes) < sparsity; try++ {
		if try == gapDoublings+gapLast {
			return nil, ctx.Err()
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		low, high = high, most*share(try)
		codes = p.solve(codes, high)
	}
	if high == 0 {
		return codes, nil
	}
	best := codes
	for range gapHalvings {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		penalty := (low + high) / 2
		if codes = p.solve(codes, penalty); p.sparsity(codes) >= sparsity {
			high, best = penalty, codes
		} else {
			low = penalty
		}
	}
	return best, nil
}

// solve returns the codes after FISTA's steps, which start at the given codes.
func (p *l1Codes) solve(codes []float64, penalty float64) []float64 {
	if p.row == 0 {
		return codes
	}
	gemm := kernel.Float64().Gemm
	y, z := append([]float64(nil), codes...), append([]float64(nil), codes...)
	slope := make([]float64, len(codes))
	t := 1.0
	for range gapIterations {
		copy(slope, p.along)
		gemm(false, false, p.n, p.k, p.k, 1, z, p.k, p.gram, p.k, -1, slope, p.k)
		next := (1 + math.Sqrt(1+4*t*t)) / 2
		momentum := (t - 1) / next
		for i, s := range slope {
			moved := max(0, z[i]-(s+penalty)/p.row)
			z[i] = moved + momentum*(moved-y[i])
			y[i] = moved
		}
		t = next
	}
	return y
}
