package classical

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/data"
	"tessera/internal/engine/ir"
	"tessera/internal/fit"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/internal/volume"
	"tessera/metrics"
)

var _ metrics.Density = (*em)(nil)

// em fits a model with hidden variables by expectation maximisation. Each iteration
//
//	E  computes, for every image, the distribution of its hidden variables for the current parameters, and adds the
//	   expected sufficient statistics and the log-likelihood,
//	M  replaces the parameters by the maximum-likelihood parameters for these statistics.
//
// The log-likelihood never falls. It is computed before the M step of the iteration.
//
// The mean of the images (origin) is subtracted from every image, in float64. Parameters are rounded to sums of two float32
// numbers after every iteration: the state of a run has float32 tensors, and a resumed fit has the same bits.
//
// Source: A. Dempster, N. Laird, D. Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39(1), 1977.
type em struct {
	Base
	hidden hidden
	least  float64 // rise of the mean log-likelihood per image, in nats, below which the fit ends

	origin []float64 // mean of each pixel
	n      int
	x      fit.Rows
	sums   [][]float64 // sufficient statistics of each lane
}

// hidden is a model with hidden variables. The rows that its methods read are images minus the origin.
type hidden interface {
	// start sets the initial parameters, which depend only on the seed of the method and the images.
	start(m *em, images Images) error
	// size returns the number of sufficient statistics.
	size() int
	// expect adds the expected statistics of n rows to sums, and returns the sum of their log densities.
	expect(sums, rows []float64, n int) float64
	// maximise sets the maximum-likelihood parameters for the statistics of n images.
	maximise(sums []float64, n int)
	// notes lists warnings about parameters that have reached a bound.
	notes() []string
	// prepare computes values that expect and infer need from the parameters. It returns an error if the parameters define no distribution.
	prepare() error
	// infer writes the expected hidden variables of n rows, n x units, and their log densities; either may be nil.
	infer(codes, densities, rows []float64, n int)
	// expression returns the expected hidden variables of rows x (batch, pixels), which are images minus the origin.
	expression(p *ir.Module, x *ir.Value) *ir.Value
	// parameters returns the values to save, by name. Their lengths are fixed.
	parameters() map[string][]float64
	// atoms returns the dictionary without the origin, units x pixels, and whether the origin is added to each atom (otherwise to the
	// decoded image).
	atoms() (values []float64, absolute bool)
	// freedom returns the number of free parameters.
	freedom() int
	// sampler returns a function that draws one row. Several goroutines may call it.
	sampler() func(row []float64, r *rand.Rand)
}

const originName = "origin" // pair of tensors of the origin

func (m *em) Start(images Images) (err error) {
	m.n = images.Len()
	if m.x, err = m.Base.rows(images); err != nil {
		return err
	}
	m.sums = make([][]float64, fit.Lanes(m.n))
	for i := range m.sums {
		m.sums[i] = make([]float64, m.hidden.size())
	}
	if m.atoms != nil { // restored
		return nil
	}
	m.origin = make([]float64, m.pixels)
	m.x.Each(0, m.n, func(_ int, row []float32) {
		for j, v := range row {
			m.origin[j] += float64(v)
		}
	})
	for j := range m.origin {
		m.origin[j] /= float64(m.n)
	}
	inPairs(m.origin)
	if err := m.tooLarge(); err != nil {
		return err
	}
	if err := m.hidden.start(m, images); err != nil {
		return err
	}
	m.objective = math.MaxFloat64
	return m.settle()
}

// tooLarge returns an error for values whose squares overflow: the fits that start a model compute in float32.
func (m *em) tooLarge() (err error) {
	most := math.Sqrt(math.MaxFloat32/float64(m.n)/float64(m.pixels)) / 2 // the distance from the mean is less than twice that
	m.x.Each(0, m.n, func(i int, row []float32) {
		for j, v := range row {
			if err == nil && !(math.Abs(float64(v)) < most) {
				err = &data.Error{Problem: fmt.Sprintf("sample %d, value %d: got %v, want less than %.3g", i, j, v, most),
					Hint: `write scale = "standardise" in the dataset table`}
			}
		}
	})
	return err
}

// settle rounds new parameters and computes the values that are derived from them.
func (m *em) settle() error {
	for _, values := range m.hidden.parameters() {
		inPairs(values)
	}
	if err := m.hidden.prepare(); err != nil {
		return err
	}
	values, absolute := m.hidden.atoms()
	m.atoms = make([]float32, len(values))
	for i, v := range values {
		if origin := m.origin[i%m.pixels]; absolute {
			if v += origin; math.Abs(v) < 1e-13*math.Abs(origin) { // rounding of pixels that are 0 in all images of a component
				v = 0
			}
		}
		m.atoms[i] = float32(v)
	}
	if !absolute {
		m.bias = vectors.Narrow(m.origin)
	}
	return nil
}

// rows writes images [from, to) of x minus the origin into dst, which grows if it is too short.
func (m *em) rows(dst []float64, x fit.Rows, from, to int) []float64 {
	dst = slices.Grow(dst[:0], (to-from)*m.pixels)[:(to-from)*m.pixels]
	x.Each(from, to, func(i int, image []float32) {
		row := dst[(i-from)*m.pixels:][:len(m.origin)]
		image = image[:len(m.origin)]
		for j, o := range m.origin {
			row[j] = float64(image[j]) - o
		}
	})
	return dst
}

// eachBlock calls f with the rows of each block of images.
func (m *em) eachBlock(x fit.Rows, f func(lane, from, to int, rows []float64)) {
	buffers := make([][]float64, fit.Lanes(x.N))
	fit.ForLanes(x.N, func(lane, from, end int) {
		for to := from; from < end; from = to {
			to = min(from+x.Step(), end)
			buffers[lane] = m.rows(buffers[lane], x, from, to)
			f(lane, from, to, buffers[lane])
		}
	})
}

// Step implements [Model]. The fit ends when an iteration raises the log-likelihood by less than a fixed number of nats; the
// tolerance of other baselines is relative.
func (m *em) Step(ctx context.Context) (Progress, error) {
	before := m.objective
	p, err := m.Base.Step(ctx)
	if err == nil && (before-p.Objective)*float64(m.pixels) < m.least {
		m.done, p.Done = true, true
	}
	return p, err
}

func (m *em) Improve(context.Context) (float64, error) {
	if m.n == 0 {
		return 0, errors.New("Step before Begin")
	}
	likelihoods := make([]float64, len(m.sums))
	for _, s := range m.sums {
		clear(s)
	}
	m.eachBlock(m.x, func(lane, from, to int, rows []float64) {
		likelihoods[lane] += m.hidden.expect(m.sums[lane], rows, to-from)
	})
	bound := 0.0
	for lane, s := range m.sums {
		bound += likelihoods[lane]
		if lane > 0 {
			for i, v := range s {
				m.sums[0][i] += v
			}
		}
	}
	m.hidden.maximise(m.sums[0], m.n)
	return -bound / float64(m.n) / float64(m.pixels), m.settle()
}

func (m *em) Infer(images []float32) ([]float32, error) {
	n := len(images) / m.pixels
	codes := make([]float32, n*m.units)
	m.eachBlock(fit.Dense(images, m.pixels), func(_, from, to int, rows []float64) {
		block := make([]float64, (to-from)*m.units)
		m.hidden.infer(block, nil, rows, to-from)
		for i, v := range block {
			codes[from*m.units+i] = float32(v)
		}
	})
	return codes, nil
}

func (m *em) expression(p *ir.Module, x *ir.Value) *ir.Value {
	return m.hidden.expression(p, ir.Point(ir.Sub, x.Shape, x, row(p, originName, vectors.Narrow(m.origin))))
}

func (m *em) LogLikelihood(images []float32) ([]float64, error) {
	if m.atoms == nil {
		return nil, errUnfitted
	}
	if len(images)%m.pixels != 0 {
		return nil, fmt.Errorf("classical: got %d values, want whole samples of shape %v", len(images), m.shape)
	}
	n := len(images) / m.pixels
	densities := make([]float64, n)
	m.eachBlock(fit.Dense(images, m.pixels), func(_, from, to int, rows []float64) { m.hidden.infer(nil, densities[from:to], rows, to-from) })
	return densities, nil
}

func (m *em) Draw(ctx context.Context, n int, seed uint64) ([]float32, error) {
	if m.atoms == nil {
		return nil, errUnfitted
	}
	size, ok := volume.Within([]int{n, m.pixels}, math.MaxInt32)
	if n < 0 || !ok {
		return nil, fmt.Errorf("classical: got %d samples to draw, want from 0 to %d", n, math.MaxInt32/m.pixels)
	}
	images, draw := make([]float32, size), m.hidden.sampler()
	const grain = 64
	team.For(n, grain, func(from, to int) {
		row := make([]float64, m.pixels)
		for i := from; i < to; i++ {
			draw(row, random.Stream(seed, "draw", uint64(i)))
			for j, v := range row {
				images[i*m.pixels+j] = float32(v + m.origin[j])
			}
		}
	})
	return images, ctx.Err()
}

func (m *em) Components() []metrics.Component {
	h, ok := m.hidden.(*mixture)
	if !ok || m.atoms == nil {
		return nil
	}
	means, _ := h.means()
	list := make([]metrics.Component, h.components)
	for k := range list {
		mean := slices.Clone(means[k*m.pixels : (k+1)*m.pixels])
		for j, o := range m.origin {
			mean[j] += o
		}
		list[k] = metrics.Component{Weight: h.weights[k], Mean: mean}
		if g, ok := h.family.(*gaussian); ok {
			list[k].Covariance = g.covarianceOf(k)
		}
	}
	return list
}

func (m *em) Freedom() int { return m.hidden.freedom() }

// Notes returns warnings about a fit that has ended, such as components of a mixture that have reached the minimum variance.
func Notes(m Model) []string {
	if n, ok := coderOf(m).(interface{ notes() []string }); ok {
		return n.notes()
	}
	return nil
}

func (m *em) notes() []string { return m.hidden.notes() }

func (m *em) Keep(k *Kept) {
	m.Base.Keep(k)
	if m.atoms == nil || k.failed() {
		return
	}
	k.pair(originName, &m.origin, m.pixels)
	for name, values := range m.hidden.parameters() {
		k.pair(name, &values, len(values))
	}
	if k.Restores && !k.failed() {
		k.Fail(m.settle())
	}
}

// inPairs rounds values to sums of two float32 numbers.
func inPairs(values []float64) {
	for i, v := range values {
		high := float64(float32(v))
		values[i] = high + float64(float32(v-high))
	}
}
