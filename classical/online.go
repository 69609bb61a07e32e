package classical

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/random"
)

// passes reads the images of a fit in mini-batches, in a random order that differs in each pass.
type passes struct {
	images   Images
	batch    int
	order    []int   // order of the current pass
	position int     // number of images of the current pass so far
	errors   float64 // sum of the objectives of these images
}

// shuffle draws the order of the next pass of a fit, which depends on the seed and the number of the pass.
func (p *passes) shuffle(b *Base) {
	r := random.Stream(b.seed, "shuffle", uint64(b.iteration))
	if s, ok := p.images.(interface{ Shuffle([]int, *rand.Rand) }); ok {
		p.order = slices.Grow(p.order[:0], p.images.Len())[:p.images.Len()]
		s.Shuffle(p.order, r)
		return
	}
	p.order = r.Perm(p.images.Len())
}

// run performs one pass and returns the mean objective per image and pixel. learn adds the objectives of a batch to errors. If
// ctx ends between two batches, the next call continues with the next batch.
func (p *passes) run(ctx context.Context, b *Base, learn func(x []float32) error) (float64, error) {
	if p.position == 0 {
		p.shuffle(b)
	}
	x := make([]float32, min(p.batch, len(p.order))*b.pixels)
	for p.position < len(p.order) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		indices := p.order[p.position:min(p.position+p.batch, len(p.order))]
		images := x[:len(indices)*b.pixels]
		p.images.Batch(images, indices)
		if err := b.accepts(images); err != nil {
			return 0, fmt.Errorf("in a batch: %w", err)
		}
		if err := learn(images); err != nil {
			return 0, err
		}
		p.position += len(indices)
	}
	objective := p.errors / float64(len(p.order)) / float64(b.pixels)
	p.position, p.errors = 0, 0
	return objective, nil
}

func (p *passes) keep(k *Kept) {
	k.Count("position", &p.position)
	k.Number("errors", &p.errors)
}

// online is a factorisation of images that are read in mini-batches. The codes of a batch are computed with fixed atoms. The
// sums H'H and H'X, from which the atoms are updated, accumulate over the batches; earlier batches lose weight by the factor
// forget_factor per pass over the images:
//
//	A <- r A + H'H,  B <- r B + H'X,  r = forget_factor^(batch / n),  then sweeps over the atoms.
//
// The reported objective is the mean over a pass; each batch is measured before it changes the atoms.
//
// Sources: J. Mairal, F. Bach, J. Ponce, G. Sapiro, Online learning for matrix factorization and sparse coding, JMLR 11,
// 2010; for the forgetting, A. Lefevre, F. Bach, C. Fevotte, Online algorithms for nonnegative matrix factorization with the
// Itakura-Saito divergence, WASPAA 2011.
type online struct {
	factors // factors of the current batch; codesGram and target contain A and B
	passes
	forget float64 // factor per pass for the weight of earlier batches
	method onlineMethod
}

// onlineMethod is the part of an online factorisation that differs between methods.
type onlineMethod interface {
	// first computes the initial atoms of f from a sample of n images.
	first(f *factors, sample []float32, n int) error
	// encode returns the codes of images for the atoms of f.
	encode(f *factors, images []float32, precision float64) []float32
	// penalty returns the regularisation term of the objective for images with the given codes.
	penalty(codes []float32) float64
	// improve updates the atoms from A and B.
	improve(f *factors)
}

// Names of the sums over batches.
const (
	codesGramName = "codes_gram" // tensor of A, k x k
	targetName    = "target"     // tensor of B, k x pixels
)

func newOnline(s Method, shape []int, seed uint64, batch int, forget float64, method onlineMethod) (Model, error) {
	return NewModel(s, shape, seed, func(b Base) Algorithm {
		return &online{factors: factors{Base: b}, passes: passes{batch: batch}, forget: forget, method: method}
	})
}

// sampleSize returns the number of images from which an online fit is initialised: a few batches.
func sampleSize(images, batch, components int) int {
	return min(images, max(batch, 10*min(components, images)))
}

func (m *online) Start(images Images) error {
	m.images = images
	m.shuffle(&m.Base)
	if m.atoms != nil {
		return nil
	}
	n := sampleSize(images.Len(), m.batch, m.units)
	sample := make([]float32, n*m.pixels)
	images.Batch(sample, m.order[:n])
	if err := m.accepts(sample); err != nil {
		return err
	}
	m.codesGram, m.target = make([]float32, m.units*m.units), make([]float32, m.units*m.pixels)
	m.objective = math.MaxFloat64
	_, m.fixed = m.method.(onlineDictionary) // its weight has the unit of the samples
	m.measure(sample)
	return m.method.first(&m.factors, multiplied(sample, float32(m.rest()*float64(m.power())), true), n)
}

// Improve implements [Algorithm]: one pass over the images.
func (m *online) Improve(ctx context.Context) (float64, error) {
	objective, err := m.run(ctx, &m.Base, m.learn)
	power := float64(m.power())
	return objective / (power * power), err
}

// learn improves the atoms by a batch of images.
func (m *online) learn(x []float32) error {
	k, p, n := m.units, m.pixels, len(x)/m.pixels
	x = multiplied(x, m.power(), true)
	codes := m.method.encode(&m.factors, x, 1e-3)
	decoded, err := decode(codes, m.atoms, nil, k, p)
	if err != nil {
		return err
	}
	ops := kernel.Float32()
	keep := float32(math.Pow(m.forget, float64(n)/float64(len(m.order))))
	ops.MulScalar(m.codesGram, m.codesGram, keep)
	ops.MulScalar(m.target, m.target, keep)
	sum := fit.NewLaneSums(n, k*k+k*p)
	errs := make([]float64, fit.Lanes(n))
	fit.ForLanes(n, func(lane, from, to int) {
		h, both := codes[from*k:], sum.Sums[lane]
		ops.Gemm(true, false, k, k, to-from, 1, h, k, h, k, 1, both, k)
		ops.Gemm(true, false, k, p, to-from, 1, h, k, x[from*p:], p, 1, both[k*k:], p)
		for i := from; i < to; i++ {
			errs[lane] += float64(ops.SquaredDistance(x[i*p:(i+1)*p], decoded[i*p:]))
		}
	})
	total := make([]float32, sum.Size)
	sum.Total(total)
	ops.Add(m.codesGram, m.codesGram, total[:k*k])
	ops.Add(m.target, m.target, total[k*k:])
	m.method.improve(&m.factors)
	m.errors += m.method.penalty(codes)
	for _, e := range errs {
		m.errors += e
	}
	return nil
}

func (m *online) Infer(images []float32) ([]float32, error) {
	power := m.power()
	codes := m.method.encode(&m.factors, multiplied(images, power, false), encodePrecision)
	return multiplied(codes, 1/power, true), nil
}

func (m *online) Keep(k *Kept) {
	m.Base.Keep(k)
	m.unit.keep(k)
	m.passes.keep(k)
	k.Tensor(codesGramName, &m.codesGram, m.units, m.units)
	k.Tensor(m.named(targetName), &m.target, m.units, m.pixels)
}
