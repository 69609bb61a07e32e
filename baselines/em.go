package baselines

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/metrics"
)

// em fits a model with hidden variables by expectation maximisation. Each iteration
//
//	E  computes, for every image, the distribution of its hidden variables under the present parameters, and adds the
//	   expected sufficient statistics and the log-likelihood,
//	M  replaces the parameters by those that these statistics make most likely.
//
// The log-likelihood never falls. It is the bound of the iteration, computed before its M step.
//
// Images enter less their mean (origin), in float64. Parameters are rounded to sums of two float32 numbers after every
// iteration: the state of a run has float32 tensors, and a resumed fit has the same bits.
//
// Source: A. Dempster, N. Laird, D. Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39(1), 1977.
type em struct {
	coder
	fitting
	name       string // of the method, for errors
	iterations int
	tolerance  float64 // nats per image
	hidden     hidden

	origin []float64 // per pixel
	n      int
	x      []float32
	sums   [][]float64 // per lane
	held   []string    // parameters that the last iteration held at a bound
}

// hidden is a model with hidden variables. Rows are images less the origin.
type hidden interface {
	// start sets the first parameters, which depend on the seed of the method and the images only.
	start(ctx context.Context, m *em, images Images) error
	// size is the number of sufficient statistics.
	size() int
	// expect adds the expected statistics of n rows to sums, and returns the sum of their log densities.
	expect(sums, rows []float64, n int) float64
	// maximise sets the most likely parameters for the statistics of n images. It returns the parameters that a bound holds.
	maximise(sums []float64, n int) (held []string)
	// prepare computes what expect and infer need of the parameters. An error is one of parameters that are no distribution.
	prepare() error
	// infer writes the expected hidden variables of n rows, n x units, and their log densities; either may be nil.
	infer(codes, densities, rows []float64, n int)
	// parameters are the values to keep, by name, of fixed lengths.
	parameters() map[string][]float64
	// atoms returns the dictionary without the origin, units x pixels, and whether the origin is added to each atom (else to the
	// decoded image).
	atoms() (values []float64, absolute bool)
	// freedom is the number of free parameters.
	freedom() int
}

// names of saved tensors. The value of a parameter is the sum of two tensors: NAME and NAME + lowSuffix.
const (
	originName = "origin"
	lowSuffix  = ".low"
)

// Begin implements [Model].
func (m *em) Begin(ctx context.Context, images Images) error {
	if err := m.begin(ctx, images); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return ctx.Err()
}

func (m *em) begin(ctx context.Context, images Images) error {
	if err := accept(images, m.pixels); err != nil {
		return err
	}
	m.n, m.x = images.Len(), load(images)
	if err := acceptFinite(m.x, m.pixels); err != nil {
		return err
	}
	m.sums = make([][]float64, laneCount(m.n))
	for i := range m.sums {
		m.sums[i] = make([]float64, m.hidden.size())
	}
	if m.atoms != nil { // restored
		return nil
	}
	m.origin = make([]float64, m.pixels)
	for i := range m.n {
		for j, v := range m.x[i*m.pixels : (i+1)*m.pixels] {
			m.origin[j] += float64(v)
		}
	}
	for j := range m.origin {
		m.origin[j] /= float64(m.n)
	}
	inPairs(m.origin)
	if err := m.hidden.start(ctx, m, images); err != nil {
		return err
	}
	m.objective = math.MaxFloat64
	return m.settle()
}

// settle rounds new parameters and derives from them what the steps need.
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
		if absolute {
			v += m.origin[i%m.pixels]
		}
		m.atoms[i] = float32(v)
	}
	if !absolute {
		m.bias = narrow(m.origin)
	}
	return nil
}

// rows writes images [from, to) of x less the origin into dst, grown where it is too short.
func (m *em) rows(dst []float64, x []float32, from, to int) []float64 {
	dst = slices.Grow(dst[:0], (to-from)*m.pixels)[:(to-from)*m.pixels]
	for i := range dst {
		dst[i] = float64(x[from*m.pixels+i]) - m.origin[i%m.pixels]
	}
	return dst
}

// eachBlock calls f with the rows of each block of images.
func (m *em) eachBlock(x []float32, n int, f func(lane, from, to int, rows []float64)) {
	buffers := make([][]float64, laneCount(n))
	forLanes(n, func(lane, from, to int) {
		buffers[lane] = m.rows(buffers[lane], x, from, to)
		f(lane, from, to, buffers[lane])
	})
}

// Step implements [Model].
func (m *em) Step(ctx context.Context) (Progress, error) {
	if err := ctx.Err(); err != nil {
		return Progress{}, err
	}
	if m.n == 0 {
		return Progress{}, fmt.Errorf("%s: Step before Begin", m.name)
	}
	p, err := m.step()
	if err != nil {
		err = fmt.Errorf("%s: %w", m.name, err)
	}
	return p, err
}

func (m *em) step() (Progress, error) {
	likelihoods := make([]float64, len(m.sums))
	for _, s := range m.sums {
		clear(s)
	}
	m.eachBlock(m.x, m.n, func(lane, from, to int, rows []float64) {
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
	bound /= float64(m.n)
	if !finite(bound) {
		return Progress{}, fmt.Errorf("iteration %d: %w", m.iteration+1, ErrDiverged)
	}
	m.held = m.hidden.maximise(m.sums[0], m.n)
	if err := m.settle(); err != nil {
		return Progress{}, fmt.Errorf("iteration %d: %w", m.iteration+1, err)
	}
	before := m.objective
	p, err := m.advance(-bound/float64(m.pixels), m.iterations, 0)
	if risen := (before - p.Objective) * float64(m.pixels); err == nil && risen < m.tolerance {
		m.done, p.Done = true, true
	}
	return p, err
}

// Encode implements [metrics.Coder]: the expected hidden variables.
func (m *em) Encode(images []float32) ([]float32, error) {
	n, err := m.imageCount(images)
	if err != nil {
		return nil, err
	}
	codes := make([]float32, n*m.units)
	m.eachBlock(images, n, func(_, from, to int, rows []float64) {
		block := make([]float64, (to-from)*m.units)
		m.hidden.infer(block, nil, rows, to-from)
		for i, v := range block {
			codes[from*m.units+i] = float32(v)
		}
	})
	return codes, nil
}

// LogLikelihood implements [metrics.Density].
func (m *em) LogLikelihood(images []float32) ([]float64, error) {
	n, err := m.imageCount(images)
	if err != nil {
		return nil, err
	}
	densities := make([]float64, n)
	m.eachBlock(images, n, func(_, from, to int, rows []float64) { m.hidden.infer(nil, densities[from:to], rows, to-from) })
	return densities, nil
}

// Freedom implements [metrics.Density].
func (m *em) Freedom() int { return m.hidden.freedom() }

// Notes lists the parameters that a bound holds after the last iteration.
func (m *em) Notes() []string { return slices.Clone(m.held) }

// WithAtoms implements [metrics.Coder].
func (m *em) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) { return replaceAtoms(m, a) }

// Codes implements [Model]: Encode gives the same.
func (m *em) Codes() []float32 { return nil }

// State implements [Model].
func (m *em) State() State {
	s := State{m.coder.save(), m.fitting.save()}
	if m.atoms == nil {
		return s
	}
	put := func(name string, values []float64) {
		high, low := make([]float32, len(values)), make([]float32, len(values))
		for i, v := range values {
			high[i] = float32(v)
			low[i] = float32(v - float64(high[i]))
		}
		s.Tensors[name], s.Tensors[name+lowSuffix] = Tensor{[]int{len(values)}, high}, Tensor{[]int{len(values)}, low}
	}
	put(originName, m.origin)
	for name, values := range m.hidden.parameters() {
		put(name, values)
	}
	return s
}

// Restore implements [Model].
func (m *em) Restore(s State) error {
	if err := m.restore(s); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}

func (m *em) restore(s State) error {
	if err := errors.Join(m.fitting.restore(s), m.coder.restore(s)); err != nil {
		return err
	}
	take := func(name string, values []float64) error {
		high, err := s.tensor(name, len(values))
		if err != nil {
			return err
		}
		low, err := s.tensor(name+lowSuffix, len(values))
		for i := 0; err == nil && i < len(values); i++ {
			values[i] = float64(high.Values[i]) + float64(low.Values[i])
		}
		return err
	}
	m.origin = make([]float64, m.pixels)
	errs := []error{take(originName, m.origin)}
	for name, values := range m.hidden.parameters() {
		errs = append(errs, take(name, values))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return m.settle()
}

// inPairs rounds values to sums of two float32 numbers.
func inPairs(values []float64) {
	for i, v := range values {
		high := float64(float32(v))
		values[i] = high + float64(float32(v-high))
	}
}
