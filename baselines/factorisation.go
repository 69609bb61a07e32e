package baselines

import (
	"context"
	"errors"
	"fmt"

	"tessera/metrics"
)

// factorisation is the model of every factorisation of all images together.
type factorisation struct {
	factors
	fitting
	name       string // of the method
	iterations int
	tolerance  float64
	first      func() error // makes the first atoms and codes
	rule       rule
	recodes    bool // codes of the fit are the rule's alone: images get those of encode
}

// newFactorisation returns a model without its start and its rule.
func newFactorisation(name string, c coder, fits func(images, pixels int) error, iterations int, tolerance float64) *factorisation {
	return &factorisation{factors: factors{coder: c, fits: fits}, name: name, iterations: iterations, tolerance: tolerance}
}

// rule is one way of improving a factorisation.
type rule interface {
	// prepare computes, from codes and atoms alone, what improve needs, and the objective.
	prepare() (objective float64)
	// improve does one iteration and prepares the next one. Most rules update the atoms first, so the codes belong to the
	// current atoms; Hoyer's starts with the codes.
	improve() (objective float64)
	// encode returns the codes (n x k) of images that were not fitted.
	encode(images []float32) []float32
}

// stateful is a rule with state besides codes and atoms.
type stateful interface {
	save(s State)
	restore(s State) error
}

// Begin implements [Model].
func (m *factorisation) Begin(ctx context.Context, images Images) error {
	if err := m.begin(images); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return ctx.Err()
}

func (m *factorisation) begin(images Images) error {
	if m.codes != nil {
		if err := m.resume(images); err != nil {
			return err
		}
		m.rule.prepare()
		return nil
	}
	if err := m.load(images); err != nil {
		return err
	}
	if err := m.first(); err != nil {
		return err
	}
	m.objective = m.rule.prepare()
	return nil
}

// Step implements [Model].
func (m *factorisation) Step(ctx context.Context) (Progress, error) {
	if err := ctx.Err(); err != nil {
		return Progress{}, err
	}
	p, err := m.advance(m.rule.improve(), m.iterations, m.tolerance)
	if err != nil {
		err = fmt.Errorf("%s: %w", m.name, err)
	}
	return p, err
}

// Encode implements [metrics.Coder]: images that were fitted have the codes of the fit, others are encoded with the atoms
// fixed.
func (m *factorisation) Encode(images []float32) ([]float32, error) {
	n, err := m.imageCount(images)
	if err != nil {
		return nil, err
	}
	if err := m.acceptImages(images); err != nil {
		return nil, fmt.Errorf("%s: %w", m.name, err)
	}
	if m.recodes {
		return m.rule.encode(images), nil
	}
	var others []float32
	rows := m.stored.find(images, m.pixels)
	for i, row := range rows {
		if row < 0 {
			others = append(others, images[i*m.pixels:(i+1)*m.pixels]...)
		}
	}
	encoded := m.rule.encode(others)
	codes := make([]float32, n*m.units)
	for i, row := range rows {
		code := codes[i*m.units : (i+1)*m.units]
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

// Codes implements [Model].
func (m *factorisation) Codes() []float32 {
	if m.recodes {
		return nil
	}
	return m.factors.Codes()
}

// WithAtoms implements [metrics.Coder].
func (m *factorisation) WithAtoms(a *metrics.Atoms) (metrics.Coder, error) { return replaceAtoms(m, a) }

// State implements [Model].
func (m *factorisation) State() State {
	s := State{m.factors.save(), m.fitting.save()}
	if r, ok := m.rule.(stateful); ok {
		r.save(s)
	}
	return s
}

// Restore implements [Model].
func (m *factorisation) Restore(s State) error {
	err := errors.Join(m.fitting.restore(s), m.factors.restore(s))
	if r, ok := m.rule.(stateful); ok {
		err = errors.Join(err, r.restore(s))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}
