package graph

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/config"
	"tessera/internal/random"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
	"tessera/parallel/team"
)

// posterior describes the distributions of a variational model.
type posterior struct {
	placed     config.Placed
	layer      layers.Variational
	likelihood losses.Likelihood
	against    string  // column with which the output is compared
	variance   float64 // noise variance of the likelihood, if it has one
}

// posterior returns the distributions of the model; noise is the argument of [metrics.Latent].
func (m *Model) posterior(noise float64) (*posterior, error) {
	lacks := func(format string, values ...any) error {
		return fmt.Errorf("%w: %s", metrics.ErrNoPosterior, fmt.Sprintf(format, values...))
	}
	p := &posterior{}
	for placed := range m.Layout.Stacked() {
		if l, ok := placed.Layer.(layers.Variational); ok && m.Layout.DependsOn(losses.Output, placed.Path) {
			if p.layer != nil {
				return nil, lacks("the codes of two layers have a distribution: %s and %s", p.placed.Path, placed.Path)
			}
			p.placed, p.layer = *placed, l
		}
	}
	if p.layer == nil {
		return nil, metrics.ErrNoPosterior
	}
	var weight, divergence float64
	for _, l := range m.Spec.Losses {
		if _, ok := l.Loss.(losses.Divergence); ok && m.Layout.DependsOn(l.On, p.placed.Path) {
			divergence += l.Weight.At(math.Inf(1))
		}
		if of, ok := l.Loss.(losses.Likelihood); ok && p.likelihood == nil && l.On == losses.Output && l.Mask == "" && l.SampleWeight == "" {
			p.likelihood, p.against, weight = of, l.Against, l.Weight.At(math.Inf(1))
		}
	}
	if p.likelihood == nil {
		return nil, lacks("no term compares the output like a likelihood: bce and mse do")
	}
	if slices.Contains(m.Layout.Sources(losses.Output, p.placed.Path), p.against) {
		return nil, lacks("the output also reads the column %q, which it is compared with, past %s", p.against, p.placed.Path)
	}
	if m.Spec.Holed() {
		return nil, lacks("the images have missing or hidden entries, over which the likelihood is not defined")
	}
	if c, ok := m.Layout.Column(p.against); ok && c.Missing {
		return nil, lacks("the column %q has missing entries, over which the likelihood is not defined", p.against)
	}
	switch has, defined := p.likelihood.Noise(); {
	case !defined:
		return nil, lacks("a relative or censored error is not a likelihood of the images")
	case has && noise > 0:
		p.variance = noise * noise
	case has:
		if p.variance = divergence * float64(m.Pixels()) / (2 * weight); !(p.variance > 0) || math.IsInf(p.variance, 0) {
			return nil, lacks("the weights of the objective (%g and %g) imply no noise: give noise", weight, divergence)
		}
	}
	return p, nil
}

// Posterior implements [metrics.Latent].
func (c *Coder) Posterior(b *metrics.Batch, samples int, noise float64, seed uint64, first int) (*metrics.Posterior, error) {
	if c.model == nil {
		return nil, ErrNoModel
	}
	p, err := c.model.posterior(noise)
	if err != nil {
		return nil, err
	}
	fail := func(err error) (*metrics.Posterior, error) {
		return nil, fmt.Errorf("model %q: %s: %w", c.model.Spec.Name, p.placed.Path, err)
	}
	pixels := c.model.Pixels()
	n, columns := len(b.Images)/pixels, maps.Clone(b.Columns)
	if columns == nil {
		columns = map[string][]float32{}
	}
	columns[losses.Images] = b.Images
	at := p.placed.Path
	sources := append(c.model.Layout.Sources(losses.Output, at), p.against)
	for _, v := range p.placed.Published {
		sources = append(sources, c.model.Layout.Sources(at+"."+v.Name)...)
	}
	for _, column := range sources {
		if columns[column] == nil {
			return nil, fmt.Errorf("%w: the column %q is not given", metrics.ErrNoPosterior, column)
		}
	}
	rows := make([]map[string][]float32, n) // published values of each image
	for i := range rows {
		rows[i] = map[string][]float32{}
	}
	for _, v := range p.placed.Published {
		values, err := c.run(Request{Want: []string{at + "." + v.Name}}, columns)
		if err != nil {
			return fail(err)
		}
		for i := range rows {
			rows[i][v.Name] = values[i*len(values)/n : (i+1)*len(values)/n]
		}
	}
	of := &metrics.Posterior{Likelihood: make([]float64, n*samples), Ratio: make([]float64, n*samples), Divergence: make([]float64, n)}
	streams := make([]*rand.Rand, n)
	for i, values := range rows {
		streams[i], of.Divergence[i] = random.Stream(seed, "posterior", uint64(first+i)), p.layer.Divergence(values)
	}
	units := c.model.Layout.Size(at)
	codes, targets := make([]float32, n*units), columns[p.against]
	for k := range samples {
		for i, values := range rows {
			of.Ratio[i*samples+k] = p.layer.DrawFrom(codes[i*units:(i+1)*units], values, streams[i])
		}
		columns[at] = codes
		outputs, err := c.run(Request{Given: []string{at}, Want: []string{losses.Output}}, columns)
		if err != nil {
			return fail(err)
		}
		const grain = 16
		team.For(n, grain, func(from, to int) {
			for i := from; i < to; i++ {
				of.Likelihood[i*samples+k] = p.likelihood.LogLikelihood(outputs[i*len(outputs)/n:(i+1)*len(outputs)/n], targets[i*len(targets)/n:(i+1)*len(targets)/n], p.variance)
			}
		})
	}
	return of, nil
}
