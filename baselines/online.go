package baselines

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/internal/random"
	"tessera/kernel"
	"tessera/metrics"
)

// online is a factorisation of images that are read in mini-batches. The codes of a batch are found with the atoms
// fixed; the sums H'H and H'X that the atoms' rule needs are carried on from batch to batch, the past losing weight by
// forget_factor per pass over the images:
//
//	A <- r A + H'H,  B <- r B + H'X,  r = forget_factor^(batch / n),  then sweeps over the atoms.
//
// The objective reported is the mean over a pass, each batch taken before it has changed the atoms.
//
// Sources: J. Mairal, F. Bach, J. Ponce, G. Sapiro, Online learning for matrix factorization and sparse coding, JMLR 11,
// 2010; for the forgetting, A. Lefevre, F. Bach, C. Fevotte, Online algorithms for nonnegative matrix factorization with the
// Itakura-Saito divergence, WASPAA 2011.
type online struct {
	factors // of the present batch; its codesGram and target carry A and B
	fitting
	schedule
	method   onlineMethod
	seed     uint64
	images   Images
	position int     // images of the present pass done
	errors   float64 // the sum of their objectives
	order    []int   // of the present pass
}

// schedule is the course of an online fit.
type schedule struct {
	name       string // of the method
	batch      int
	forget     float64 // factor of the weight of earlier passes, per pass
	iterations int
	tolerance  float64
}

// onlineMethod is what one online factorisation does otherwise than another.
type onlineMethod interface {
	// sample is the number of images that the start reads, of all.
	sample(images int) int
	// first returns the first atoms, from a sample of n images.
	first(sample []float32, n int) ([]float32, error)
	// encode returns the codes of images for the atoms.
	encode(images, atoms []float32, precision float64) []float32
	// penalty is what the objective of images with those codes adds to their squared errors: the regularisation term.
	penalty(codes []float32) float64
	// improve improves the atoms by A and B.
	improve(f *factors)
}

// The names of what is carried from batch to batch.
const (
	codesGramName = "codes_gram" // A, k x k
	targetName    = "target"     // B, k x pixels
)

// Begin implements [Model].
func (m *online) Begin(ctx context.Context, images Images) error {
	if err := m.begin(images); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return ctx.Err()
}

func (m *online) begin(images Images) error {
	if err := accept(images, m.pixels); err != nil {
		return err
	}
	if err := m.fits(images.Len(), m.pixels); err != nil {
		return err
	}
	m.images = images
	m.shuffle()
	if m.atoms != nil {
		return nil
	}
	n := m.method.sample(images.Len())
	sample := make([]float32, n*m.pixels)
	images.Batch(sample, m.order[:n])
	if err := m.acceptImages(sample); err != nil {
		return err
	}
	k := m.units
	m.codesGram, m.target = make([]float32, k*k), make([]float32, k*m.pixels)
	var err error
	m.atoms, err = m.method.first(sample, n)
	m.objective = math.MaxFloat64
	return err
}

// shuffle makes the order of the present pass, which seed and iteration say.
func (m *online) shuffle() {
	m.order = random.Stream(m.seed, "shuffle", uint64(m.iteration)).Perm(m.images.Len())
}

// Step implements [Model]: one pass over the images. Ended by ctx it stands between two batches.
func (m *online) Step(ctx context.Context) (Progress, error) {
	for m.position < len(m.order) {
		if err := ctx.Err(); err != nil {
			return Progress{}, err
		}
		to := min(m.position+m.batch, len(m.order))
		if err := m.learn(m.order[m.position:to]); err != nil {
			return Progress{}, fmt.Errorf("%s: %w", m.name, err)
		}
		m.position = to
	}
	objective := m.errors / float64(len(m.order)) / float64(m.pixels)
	m.position, m.errors = 0, 0
	p, err := m.advance(objective, m.iterations, m.tolerance)
	m.shuffle()
	return p, err
}

// learn improves the atoms by the images of those indices.
func (m *online) learn(indices []int) error {
	k, p, n := m.units, m.pixels, len(indices)
	x := make([]float32, n*p)
	m.images.Batch(x, indices)
	if err := m.acceptImages(x); err != nil {
		return fmt.Errorf("in a batch: %w", err)
	}
	codes := m.method.encode(x, m.atoms, 1e-3)
	decoded, err := decode(codes, m.atoms, nil, k, p)
	if err != nil {
		return err
	}
	ops := kernel.Float32()
	keep := float32(math.Pow(m.forget, float64(n)/float64(len(m.order))))
	ops.MulScalar(m.codesGram, m.codesGram, keep)
	ops.MulScalar(m.target, m.target, keep)
	sum := newLaneSums(n, k*k+k*p)
	errs := make([]float64, laneCount(n))
	forLanes(n, func(lane, from, to int) {
		h, both := codes[from*k:], sum.sums[lane]
		ops.Gemm(true, false, k, k, to-from, 1, h, k, h, k, 1, both, k)
		ops.Gemm(true, false, k, p, to-from, 1, h, k, x[from*p:], p, 1, both[k*k:], p)
		for i := from; i < to; i++ {
			errs[lane] += float64(ops.SquaredDistance(x[i*p:(i+1)*p], decoded[i*p:]))
		}
	})
	total := make([]float32, sum.size)
	sum.total(total)
	ops.Add(m.codesGram, m.codesGram, total[:k*k])
	ops.Add(m.target, m.target, total[k*k:])
	m.method.improve(&m.factors)
	m.errors += m.method.penalty(codes)
	for _, e := range errs {
		m.errors += e
	}
	return nil
}

// Encode implements [metrics.Coder].
func (m *online) Encode(images []float32) ([]float32, error) {
	if _, err := m.imageCount(images); err != nil {
		return nil, err
	}
	return m.method.encode(images, m.atoms, encodePrecision), nil
}

// WithAtoms implements [metrics.Coder].
func (m *online) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) { return replaceAtoms(m, a) }

// State implements [Model].
func (m *online) State() State {
	s := State{m.coder.save(), m.fitting.save()}
	s.Tensors[codesGramName] = Tensor{[]int{m.units, m.units}, m.codesGram}
	s.Tensors[targetName] = Tensor{[]int{m.units, m.pixels}, m.target}
	s.Numbers["position"], s.Numbers["errors"] = float64(m.position), m.errors
	return s
}

// Restore implements [Model].
func (m *online) Restore(s State) error {
	gram, err1 := s.tensor(codesGramName, m.units, m.units)
	target, err2 := s.tensor(targetName, m.units, m.pixels)
	position, err3 := s.number("position")
	errs, err4 := s.number("errors")
	if err := errors.Join(err1, err2, err3, err4, m.fitting.restore(s), m.coder.restore(s)); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.codesGram, m.target = slices.Clone(gram.Values), slices.Clone(target.Values)
	m.position, m.errors = int(position), errs
	return nil
}
