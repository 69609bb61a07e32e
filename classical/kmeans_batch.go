package classical

import (
	"context"
	"errors"
	"fmt"
	"math"

	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/parallel/team"
)

// kmeansBatch is k-means on mini-batches. Every centre is the mean of all images that were nearest to it when their batch was
// read:
//
//	v <- v + m,  c <- c + sum (x - c) / v    for the m images x of the batch whose nearest centre is c,
//
// This is Sculley's rule, with the assignments of a batch fixed before its first step. A centre without any image after the
// first pass moves to the image of a batch that is farthest from its own centre. The reported objective is the mean over a
// pass; each batch is measured before it moves the centres.
//
// Source: D. Sculley, Web-scale k-means clustering, WWW 2010.
type kmeansBatch struct {
	kmeans
	passes
	counts []float64 // v for each centre
}

const (
	countsName = "counts" // k x 2: v mod countBase and v / countBase, because float32 represents only 24 bits exactly
	countBase  = 1 << 20
)

func (m *kmeansBatch) Start(images Images) error {
	m.images = images
	m.shuffle(&m.Base)
	if m.atoms != nil {
		return nil
	}
	m.counts = make([]float64, m.units)
	n := sampleSize(images.Len(), m.batch, m.units)
	x := make([]float32, n*m.pixels)
	images.Batch(x, m.order[:n])
	if err := m.accepts(x); err != nil {
		return err
	}
	m.KMeans = fit.NewKMeans(fit.Dense(x, m.pixels), nil)
	m.seedCentres()
	m.objective = math.MaxFloat64
	return nil
}

// Improve implements [Algorithm]: one pass over the images.
func (m *kmeansBatch) Improve(ctx context.Context) (float64, error) {
	if m.images == nil {
		return 0, errors.New("Step before Begin")
	}
	return m.run(ctx, &m.Base, m.learn)
}

// learn moves the centres by a batch of images.
func (m *kmeansBatch) learn(x []float32) error {
	p, ops := m.pixels, kernel.Float32()
	m.KMeans = fit.NewKMeans(fit.Dense(x, p), m.atoms)
	m.Assign()
	for _, d := range m.Distances {
		m.errors += float64(d)
	}
	if m.iteration > 0 {
		m.refill()
	}
	of := make([][]int, m.units)
	for i, c := range m.Nearest {
		of[c] = append(of[c], i)
	}
	team.For(m.units, 1, func(c, _ int) {
		if len(of[c]) == 0 {
			return
		}
		centre, sum, difference := m.atom(c), make([]float32, p), make([]float32, p)
		for _, i := range of[c] {
			ops.Sub(difference, x[i*p:(i+1)*p], centre)
			ops.Add(sum, sum, difference)
		}
		m.counts[c] += float64(len(of[c]))
		ops.AddScaled(centre, centre, sum, float32(1/m.counts[c]))
	})
	return nil
}

// refill moves the centres that had no image so far.
func (m *kmeansBatch) refill() {
	for c, count := range m.counts {
		if far := m.Farthest(); count == 0 && m.Distances[far] > 0 {
			copy(m.atom(c), m.Row(far))
			m.Nearest[far], m.Distances[far] = int32(c), 0
		}
	}
}

func (m *kmeansBatch) Keep(k *Kept) {
	m.Base.Keep(k)
	m.passes.keep(k)
	var counts []float32
	for _, v := range m.counts {
		counts = append(counts, float32(math.Mod(v, countBase)), float32(math.Floor(v/countBase)))
	}
	if k.Tensor(countsName, &counts, m.units, 2); !k.Restores || k.failed() {
		return
	}
	m.counts = make([]float64, m.units)
	for c := range m.counts {
		if m.counts[c] = float64(counts[2*c]) + countBase*float64(counts[2*c+1]); !(m.counts[c] >= 0) {
			k.Fail(fmt.Errorf("tensor %q: centre %d has %v samples", countsName, c, m.counts[c]))
		}
	}
}
