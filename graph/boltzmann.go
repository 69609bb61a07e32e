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
	if c.model == nil {
		return nil, ErrNoModel
	}
	encoder := c.model.Layout.Encoder
	if len(encoder) != 1 || c.model.Spec.Holed() {
		return nil, metrics.ErrNoBoltzmann
	}
	l, ok := encoder[0].Layer.(layers.Boltzmann)
	if !ok || !ofImages(&encoder[0]) {
		return nil, metrics.ErrNoBoltzmann
	}
	var missing error
	machine := l.Machine(func(name string) []float32 {
		p, err := c.model.Parameter(encoder[0].Path + "." + name)
		if err != nil {
			missing = err
			return nil
		}
		return p.Data
	})
	return machine, missing
}

// ofImages reports whether the input of a layer is the images, without columns.
func ofImages(p *config.Placed) bool { return slices.Equal(p.From, []string{losses.Images}) }
