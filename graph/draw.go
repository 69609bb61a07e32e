package graph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// drawnAtOnce is the number of images that are drawn together. The last ones are completed to this number, so that the bits
// of an image do not depend on the number of images.
const drawnAtOnce = 32

// Draw implements [metrics.Sampler] for models with a [layers.Generator], or with a head that computes images from drawn
// columns alone. For another model the error is [metrics.ErrNoSampler].
func (c *Coder) Draw(ctx context.Context, n int, seed uint64) ([]float32, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	path, generate, err := c.model.generator(c.given)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", c.model.Spec.Name, err)
	}
	return c.draw(ctx, n, seed, path, generate)
}

// draw returns n images of the generator at path.
func (c *Coder) draw(ctx context.Context, n int, seed uint64, path string, generate func(layers.Generation) ([]float32, error)) ([]float32, error) {
	if n < 0 {
		return nil, fmt.Errorf("model %q: got %d images to draw, want at least 0", c.model.Spec.Name, n)
	}
	pixels, batch := c.model.Pixels(), c.model.AtOnce(drawnAtOnce)
	images := []float32{}
	for from := 0; from < n; from += batch {
		g := &generation{coder: c, ctx: ctx, path: path, drawn: map[string][]float32{}}
		for i := range batch {
			g.streams = append(g.streams, random.Stream(seed, "draw", uint64(from+i)))
		}
		block, err := generate(g)
		if err == nil && len(block) != batch*pixels {
			err = fmt.Errorf("got %d values of %d images, want %d", len(block), batch, batch*pixels)
		}
		for _, column := range slices.Sorted(maps.Keys(c.given)) {
			if err == nil && g.drawn[column] == nil {
				err = fmt.Errorf("%w: the images do not depend on %q", metrics.ErrGiven, column)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("model %q: draw: %s: %w", c.model.Spec.Name, path, err)
		}
		images = append(images, block[:min(batch, n-from)*pixels]...)
	}
	return images, nil
}

func (c *Coder) Stepped(steps int, eta float64) (metrics.Sampler, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	path, _, err := c.model.generator(c.given)
	if err != nil && !errors.Is(err, metrics.ErrNoSampler) {
		return nil, err
	}
	for p := range c.model.Layout.Stacked() {
		if l, ok := p.Layer.(layers.Stepwise); ok && p.Path == path {
			g, err := l.Stepped(steps, eta)
			if err != nil {
				return nil, fmt.Errorf("model %q: %s: %w", c.model.Spec.Name, p.Path, err)
			}
			return stepped{c, p.Path, g}, nil
		}
	}
	return nil, fmt.Errorf("model %q: %w, as those of a layer diffuse are", c.model.Spec.Name, metrics.ErrNoSteps)
}

// Given implements [metrics.Conditional].
func (c *Coder) Given(columns map[string][]float32) (metrics.Sampler, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	m := c.model
	wanted := m.Spec.Wanted(m.Layout)
	for _, name := range slices.Sorted(maps.Keys(columns)) {
		column, ok := m.Layout.Column(name)
		if !ok {
			return nil, fmt.Errorf("model %q: %w: it reads no column %q", m.Spec.Name, metrics.ErrGiven, name)
		}
		if got, want := len(columns[name]), m.Layout.Size(name); got != want {
			return nil, fmt.Errorf("model %q: %w: got %d values of the column %q, want %d", m.Spec.Name, metrics.ErrGiven, got, name, want)
		}
		for i, v := range columns[name] {
			if finite := v-v == 0; !finite || column.Type == data.Whole && v != float32(math.Trunc(float64(v))) {
				return nil, fmt.Errorf("model %q: %w: value %d of the column %q: got %v, want a number, of type %s", m.Spec.Name, metrics.ErrGiven, i, name, v, column.Type)
			}
		}
		for _, w := range wanted {
			if w.Layer && w.Column == name {
				if err := w.Check(columns[name]); err != nil {
					return nil, fmt.Errorf("model %q: %w: %w", m.Spec.Name, metrics.ErrGiven, err)
				}
			}
		}
	}
	of := *c
	of.given = columns
	return &of, nil
}

// stepped is a [metrics.Sampler] with another number of steps.
type stepped struct {
	coder     *Coder
	path      string
	generator layers.Generator
}

func (s stepped) Draw(ctx context.Context, n int, seed uint64) ([]float32, error) {
	return s.coder.draw(ctx, n, seed, s.path, s.generator.Generate)
}

// generator returns the layer that draws the images of the model, by its path, and its function. In a stack of Boltzmann machines, a
// deep belief net, it is the last machine. given has the columns that need not be drawn.
func (m *Model) generator(given map[string][]float32) (path string, generate func(layers.Generation) ([]float32, error), err error) {
	var paths []string
	belief := false
	for p := range m.Layout.Stacked() {
		if l, ok := p.Layer.(layers.Generator); ok {
			below := belief
			if _, belief = p.Layer.(layers.Boltzmann); belief && below {
				paths = paths[:len(paths)-1]
			}
			paths, generate = append(paths, p.Path), l.Generate
			if belief && len(m.Layout.Decoder) == 0 && !ofImages(p) {
				return "", nil, fmt.Errorf("%w: the samples of %s are not images, and there is no decoder", metrics.ErrNoSampler, p.Path)
			}
		}
	}
	if len(paths) == 0 {
		for _, h := range m.Layout.Heads {
			if m.Layout.Size(h.Name) == m.Pixels() && m.drawnAlone(h.Name, given) {
				paths = append(paths, h.Name)
				generate = func(g layers.Generation) ([]float32, error) { return g.Value(h.Name, nil) }
			}
		}
	}
	switch len(paths) {
	case 0:
		return "", nil, m.almostDrawn(given)
	case 1:
		if p, _ := m.Layout.Of(paths[0]); p != nil && !m.Spec.OutputIsSample(m.Layout) {
			if _, ok := p.Layer.(layers.Variational); ok {
				return "", nil, fmt.Errorf("%w: %w", metrics.ErrNoSampler, m.Spec.Reconstructs())
			}
		}
		return paths[0], generate, nil
	}
	return "", nil, fmt.Errorf("several of its parts draw images: %q: %w", paths, metrics.ErrNoSampler)
}

// notGiven is the error for a value that cannot be drawn without a column.
func notGiven(value, column string) error {
	return fmt.Errorf("%w: %s is also computed from the column %q, which is not drawn and not given: give its value (`tessera sample RUN --column %[3]s=VALUE`)",
		metrics.ErrNoSampler, value, column)
}

// almostDrawn returns the error for a model that draws no images, with the column that a head of images lacks.
func (m *Model) almostDrawn(given map[string][]float32) error {
	for _, h := range m.Layout.Heads {
		sources := m.Layout.Sources(h.Name)
		drawn := slices.ContainsFunc(sources, func(column string) bool { return m.drawn(column) != nil })
		if !drawn || m.Layout.Size(h.Name) != m.Pixels() || slices.Contains(sources, losses.Images) {
			continue
		}
		for _, column := range sources {
			if m.drawn(column) == nil && given[column] == nil {
				return notGiven(h.Name, column)
			}
		}
	}
	return metrics.ErrNoSampler
}

// drawnAlone reports whether a value is computed from drawn and given columns only.
func (m *Model) drawnAlone(name string, given map[string][]float32) bool {
	sources := m.Layout.Sources(name)
	return len(sources) > 0 && !slices.ContainsFunc(sources, func(column string) bool { return m.drawn(column) == nil && given[column] == nil })
}

// drawn returns the declaration of a drawn column, nil if there is none.
func (m *Model) drawn(column string) *data.Drawn {
	if list := m.Spec.Dataset.Drawn; list != nil {
		for i := range *list {
			if (*list)[i].Name == column {
				return &(*list)[i]
			}
		}
	}
	return nil
}

// generation implements [layers.Generation].
type generation struct {
	coder   *Coder
	ctx     context.Context
	path    string
	streams []*rand.Rand
	drawn   map[string][]float32 // columns that have been drawn
}

func (g *generation) Path() string          { return g.path }
func (g *generation) Streams() []*rand.Rand { return g.streams }

func (g *generation) Parameter(name string) []float32 {
	p, err := g.coder.model.Parameter(g.path + "." + name)
	if err != nil {
		return nil
	}
	return slices.Clone(p.Data)
}

func (g *generation) Err() error           { return g.ctx.Err() }
func (g *generation) Size(name string) int { return g.coder.model.Layout.Size(name) }

func (g *generation) Value(name string, given map[string][]float32) ([]float32, error) {
	if err := g.ctx.Err(); err != nil {
		return nil, err
	}
	m := g.coder.model
	request, all := Request{Want: []string{name}}, maps.Clone(given)
	if all == nil {
		all = map[string][]float32{}
	}
	for _, value := range slices.Sorted(maps.Keys(given)) {
		if _, column := m.Layout.Column(value); !column && value != losses.Images {
			request.Given = append(request.Given, value)
		}
		if got, want := len(given[value]), len(g.streams)*m.Layout.Size(value); got != want || want == 0 {
			return nil, fmt.Errorf("%s: got %d values of %q, want %d", name, got, value, want)
		}
	}
	for _, column := range m.Layout.Sources(name, request.Given...) {
		if all[column] != nil {
			continue
		}
		d := m.drawn(column)
		if d == nil && g.coder.given[column] == nil {
			return nil, notGiven(name, column)
		}
		if fixed := g.coder.given[column]; fixed != nil {
			g.drawn[column] = slices.Repeat(fixed, len(g.streams))
		}
		if g.drawn[column] == nil {
			size := m.Layout.Size(column)
			g.drawn[column] = make([]float32, len(g.streams)*size)
			for i, r := range g.streams {
				err := d.DrawAlone(g.drawn[column][i*size:(i+1)*size], r)
				if errors.Is(err, data.ErrAlone) {
					err = fmt.Errorf("%w: %w", metrics.ErrNoSampler, err)
				}
				if err != nil {
					return nil, err
				}
			}
		}
		all[column] = g.drawn[column]
	}
	if len(all) == 0 {
		return nil, errors.New(name + " is computed from nothing: there is no number of images")
	}
	return g.coder.run(request, all)
}

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

func (c *Coder) Posterior(b *metrics.Batch, samples int, noise float64, seed uint64, first int) (*metrics.Posterior, error) {
	if err := c.lacks(); err != nil {
		return nil, err
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
