package graph

import (
	"slices"

	"tessera/config"
	"tessera/internal/boltzmann"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// Boltzmann implements [metrics.Boltzmann] for a model whose encoder is a [layers.Boltzmann] alone that reads the images alone.
func (c *Coder) Boltzmann() (*boltzmann.Machine, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	if len(c.model.Layout.Encoder) != 1 {
		return nil, metrics.ErrNoBoltzmann
	}
	machines, ok, err := c.machines()
	if !ok {
		return nil, metrics.ErrNoBoltzmann
	}
	if err != nil {
		return nil, err
	}
	return machines[0], nil
}

// DeepBelief implements [metrics.DeepBelief] for a model whose encoder is two or more [layers.Boltzmann], one on the other, of
// which the first reads the images alone and the others have binary visible units.
func (c *Coder) DeepBelief() ([]*boltzmann.Machine, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	machines, ok, err := c.machines()
	if !ok || len(machines) < 2 {
		return nil, metrics.ErrNoDeepBelief
	}
	return machines, err
}

// machines returns the layers of the encoder if they are Boltzmann machines, one on the other. ok is false if they are not.
func (c *Coder) machines() (all []*boltzmann.Machine, ok bool, err error) {
	if c.model.Spec.Holed() {
		return nil, false, nil
	}
	below := losses.Images
	for i := range c.model.Layout.Encoder {
		p := &c.model.Layout.Encoder[i]
		l, ok := p.Layer.(layers.Boltzmann)
		if !ok || !slices.Equal(p.From, []string{below}) {
			return nil, false, nil
		}
		machine := l.Machine(func(name string) []float32 {
			parameter, missing := c.model.Parameter(p.Path + "." + name)
			if missing != nil {
				err = missing
				return nil
			}
			return parameter.Data
		})
		if i > 0 && machine.Deviation > 0 {
			return nil, false, nil
		}
		all, below = append(all, machine), p.Path
	}
	return all, len(all) > 0, err
}

// ofImages reports whether the input of a layer is the images, without columns.
func ofImages(p *config.Placed) bool { return slices.Equal(p.From, []string{losses.Images}) }
