// Package generate draws images from trained runs and decodes codes along paths: samples, traversals, interpolations, and the quality of
// drawn images.
package generate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera"
	"tessera/classical"
	"tessera/data"
	"tessera/internal/coder"
	"tessera/internal/indexprior"
	"tessera/internal/lists"
	"tessera/internal/random"
	"tessera/internal/train/evaluation"
	"tessera/internal/vectors"
	"tessera/losses"
	"tessera/metrics"
)

// Generator generates images with a run. It fits distributions of codes to the fitted images of the run, each once. Several goroutines may
// use it.
type Generator struct {
	run     *tessera.Run
	given   map[string][]float32 // columns of every image; see [Generator.Given]
	fitted  cached[[]float32]    // codes of fitted images
	density cached[*CodeDensity]
	prior   cached[metrics.Sampler]
}

// New returns a generator of images of a run, which the caller closes.
func New(run *tessera.Run) *Generator { return &Generator{run: run} }

// Given returns a generator of images whose columns have the given values, by the names of the columns: for models that compute images from
// columns too, such as labels, and are a distribution themselves. For others Draw returns an error, and so do [Generator.DrawFromCodes] and
// [Generator.DrawFromIndices]: [metrics.ErrGiven].
func (g *Generator) Given(columns map[string][]float32) *Generator {
	return &Generator{run: g.run, given: columns}
}

// sampled calls f with a capability of the model, for the given columns.
func sampled[T any](g *Generator, f func(T) ([]float32, error)) ([]float32, error) {
	if len(g.given) == 0 {
		return coder.Sampler(g.run.Coder, f)
	}
	return coder.Sampler(g.run.Coder, func(c metrics.Conditional) ([]float32, error) {
		s, err := c.Given(g.given)
		if err != nil {
			return nil, err
		}
		of, ok := s.(T)
		if !ok {
			return nil, metrics.ErrNoSampler
		}
		return f(of)
	})
}

// cached is a value that is computed once.
type cached[T any] struct {
	mu    coder.Turns
	value T
	known bool
}

// of returns the value and computes it first if no earlier call has; calls at the same time wait for it until ctx is done. After an
// error the next call computes again.
func (c *cached[T]) of(ctx context.Context, compute func() (T, error)) (none T, err error) {
	if ctx == nil {
		return none, errors.New("generate: no context: give context.Background()")
	}
	if err := c.mu.Within(ctx); err != nil {
		return none, err
	}
	defer c.mu.Unlock()
	if !c.known {
		value, err := compute()
		if err != nil {
			return none, err
		}
		c.value, c.known = value, true
	}
	return c.value, nil
}

// Draw returns n images drawn at random, in the units before scaling. Image i depends only on the seed and i. The images come from
//
//   - the distribution that the model has learned, for gmm, bmm, factor_analysis, and for models with a generative layer, such as
//     the layer gaussian, or with a head that computes images from drawn columns alone;
//   - decoded entries of a code book, for models whose encoder ends in a layer vq: see [Generator.IndexPrior];
//   - otherwise decoded codes. The codes are drawn from a mixture of normal distributions that is fitted to the codes of at most
//     10,000 evenly spaced fitted images: see [Generator.CodeDensity].
//
// The error is [metrics.ErrNoSampler] for a model that is no distribution and decodes no codes, and a [*data.Error] if the mixture needs
// images that are missing.
func (g *Generator) Draw(ctx context.Context, n int, seed uint64) ([]float32, error) {
	images, err := sampled(g, func(s metrics.Sampler) ([]float32, error) { return s.Draw(ctx, n, seed) })
	if !errors.Is(err, metrics.ErrNoSampler) {
		return images, err
	}
	if len(g.given) > 0 {
		return nil, fmt.Errorf("run %s: %w: %w", g.run.Path, metrics.ErrGiven, err)
	}
	if other := g.decodes(); other != nil {
		return nil, fmt.Errorf("run %s: %w, and no codes can be decoded: %w", g.run.Path, err, other)
	}
	if _, _, _, ok := g.run.CodeBook(); ok {
		if images, err = g.DrawFromIndices(ctx, n, seed); !errors.Is(err, metrics.ErrNoSampler) {
			return images, err
		}
	}
	return g.DrawFromCodes(ctx, n, seed)
}

// DrawInSteps is [Generator.Draw] for a model with a layer diffuse, with another number of steps and another eta, in [0,1]: 0 draws
// images by DDIM, 1 by DDPM. 0 steps and a negative eta stand for the declared ones.
func (g *Generator) DrawInSteps(ctx context.Context, n int, seed uint64, steps int, eta float64) ([]float32, error) {
	stepwise := false
	images, err := sampled(g, func(s metrics.Stepwise) ([]float32, error) {
		stepwise = true
		in, err := s.Stepped(steps, eta)
		if err != nil {
			return nil, err
		}
		return in.Draw(ctx, n, seed)
	})
	if errors.Is(err, metrics.ErrNoSampler) && !stepwise {
		return nil, fmt.Errorf("run %s: %w", g.run.Path, metrics.ErrNoSteps)
	}
	return images, err
}

// drawDecoded decodes codes that are drawn from a distribution of codes, which fit returns.
func (g *Generator) drawDecoded(ctx context.Context, n int, seed uint64, fit func() (metrics.Sampler, error)) ([]float32, error) {
	if len(g.given) > 0 {
		return nil, fmt.Errorf("run %s: %w: codes of fitted samples are decoded", g.run.Path, metrics.ErrGiven)
	}
	if err := g.decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w: no codes can be decoded: %w", g.run.Path, metrics.ErrNoSampler, err)
	}
	codes, err := fit()
	if err != nil {
		return nil, err
	}
	drawn, err := codes.Draw(ctx, n, seed)
	if err != nil {
		return nil, err
	}
	return g.decodeEach(drawn)
}

// decodes returns an error if no samples can be decoded from codes.
func (g *Generator) decodes() error {
	if err := g.run.Decodes(); err != nil || g.run.OutputIsSample() {
		return err
	}
	return g.run.Reconstructs()
}

// fittedCodes returns the codes of at most 10,000 evenly spaced fitted images.
func (g *Generator) fittedCodes(ctx context.Context) ([]float32, error) {
	return g.fitted.of(ctx, func() ([]float32, error) {
		sample, err := g.run.Sample(ctx, data.TrainSplit)
		if err != nil {
			return nil, err
		}
		return g.run.Codes(ctx, evaluation.Spread(sample.Images, evaluation.MostFitted))
	})
}

// block is the number of codes that are decoded together.
const block = 256

// DrawFromCodes is [Generator.Draw] for any model that decodes codes, also for one with a prior or a code book: codes are drawn from the
// mixture of [Generator.CodeDensity], which knows which units are active together.
func (g *Generator) DrawFromCodes(ctx context.Context, n int, seed uint64) ([]float32, error) {
	return g.drawDecoded(ctx, n, seed, func() (metrics.Sampler, error) { return g.CodeDensity(ctx) })
}

// decodeEach decodes codes in blocks of equal size, so that the bits of an image do not depend on the number of codes.
func (g *Generator) decodeEach(codes []float32) (images []float32, err error) {
	units := g.run.Units()
	padded := make([]float32, block*units)
	for from := 0; from < len(codes); from += len(padded) {
		n := copy(padded, codes[from:])
		clear(padded[n:])
		decoded, err := g.run.Decode(padded)
		if err != nil {
			return nil, err
		}
		images = append(images, decoded[:n/units*len(decoded)/block]...)
	}
	return images, nil
}

// CodeDensity is a distribution of the codes of a run, see [Generator.CodeDensity].
type CodeDensity struct {
	mixture   metrics.Sampler
	low, high []float32 // range of each unit
}

// Settings of the mixture of codes.
const (
	codeComponents = 10
	fullUnits      = 256 // largest number of units with full covariances
)

// CodeDensity fits a mixture of normal distributions to the codes of at most 10,000 evenly spaced fitted images: 10 components with
// full covariances (diagonal ones for more than 256 units), by 50 iterations of expectation maximisation from clusters of
// k-means. It depends only on the run and its images, and is fitted once. Source: P. Ghosh et al., From variational to
// deterministic autoencoders, 2020.
func (g *Generator) CodeDensity(ctx context.Context) (*CodeDensity, error) {
	return g.density.of(ctx, func() (*CodeDensity, error) {
		codes, err := g.fittedCodes(ctx)
		if err != nil {
			return nil, err
		}
		of := &CodeDensity{low: make([]float32, g.run.Units()), high: make([]float32, g.run.Units())}
		matrix, err := classical.NewMatrix(codes, g.run.Units())
		if err != nil {
			return nil, err
		}
		for j := range of.low {
			values := column(codes, g.run.Units(), j)
			of.low[j], of.high[j] = slices.Min(values), slices.Max(values)
		}
		method := &classical.GMM{Components: min(codeComponents, matrix.Len()), Covariance: "full", Init: "kmeans", Floor: 1e-4, Iterations: 50, Tolerance: 1e-3, Restarts: 1}
		if g.run.Units() > fullUnits {
			method.Covariance = "diagonal"
		}
		mixture, err := method.New([]int{g.run.Units()}, g.run.Model.Train.Seed)
		if err == nil {
			_, err = classical.Fit(ctx, mixture, matrix, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("run %s: mixture of its codes: %w", g.run.Path, err)
		}
		of.mixture, _ = metrics.As[metrics.Sampler](mixture)
		return of, nil
	})
}

// DrawFromIndices is [Generator.Draw] for a model whose encoder ends in a code book (layer vq): the indices of the tokens are drawn from
// [Generator.IndexPrior], and their entries are decoded. The error is [metrics.ErrNoSampler] for another model.
func (g *Generator) DrawFromIndices(ctx context.Context, n int, seed uint64) ([]float32, error) {
	return g.drawDecoded(ctx, n, seed, func() (metrics.Sampler, error) { return g.IndexPrior(ctx) })
}

// IndexPrior fits a distribution to the indices that the code book of the last layer of the encoder (vq) gives at most 10,000
// evenly spaced fitted images. Let k be the index of token t, l that of its left neighbour and u that of the token above. The
// tokens are drawn row by row, with
//
//	p(k | t, l, u)  proportional to  p_t(k) p(l | k) p(u | k)
//
// (naive Bayes), without the factors of neighbours that do not exist. p_t is the distribution at one place; those of neighbours are
// the same at all places. All are relative frequencies to which 1 is added for each entry (Laplace). Entries that no fitted image
// uses are never drawn. The tokens of a shape (height, width, values) have neighbours in both directions, those of (tokens, values)
// only left ones. The distribution knows nothing of pairs of tokens that are further apart. It depends only on the run and its
// images, and is fitted once. For T tokens and K used entries it has (T + 2 K) K float64: 17 MB for 1,024 entries, 1.1 GB for 8,192.
// The error is [metrics.ErrNoSampler] for a model whose encoder does not end in a code book.
func (g *Generator) IndexPrior(ctx context.Context) (metrics.Sampler, error) {
	return g.prior.of(ctx, func() (metrics.Sampler, error) {
		b, err := g.book(ctx)
		if err != nil {
			return nil, err
		}
		prior, err := indexprior.Fit(b.indices, b.codes, b.rows, b.columns)
		if err != nil {
			return nil, fmt.Errorf("run %s: %s: %w: %w", g.run.Path, b.name, metrics.ErrNoSampler, err)
		}
		return prior, nil
	})
}

// book contains the indices and codes of at most 10,000 evenly spaced fitted images, for a code book.
type book struct {
	name           string // value of the indices
	rows, columns  int    // of the tokens of an image
	indices, codes []float32
}

func (g *Generator) book(ctx context.Context) (b book, err error) {
	var ok bool
	if b.name, b.rows, b.columns, ok = g.run.CodeBook(); !ok {
		return b, fmt.Errorf("run %s: %w: its encoder does not end in a code book: add a layer vq", g.run.Path, metrics.ErrNoSampler)
	}
	if b.codes, err = g.fittedCodes(ctx); err != nil {
		return b, err
	}
	sample, err := g.run.Sample(ctx, data.TrainSplit)
	if err == nil {
		b.indices, err = g.run.ValuesOf(ctx, b.name, evaluation.Spread(sample.Images, evaluation.MostFitted).Scaled(nil))
	}
	return b, err
}

// DrawFromPrior is [Generator.DrawFromIndices] with indices that another run draws, each from those before it: a model of sequences with the loss
// next_token, whose samples are the indices of this run. The first index of an image is that of a random fitted image; indices that none of these has
// are not drawn.
func (g *Generator) DrawFromPrior(ctx context.Context, prior *tessera.Run, n int, seed uint64) ([]float32, error) {
	return g.drawDecoded(ctx, n, seed, func() (metrics.Sampler, error) {
		b, err := g.book(ctx)
		if shape, tokens := prior.Shape(), b.rows*b.columns; err == nil && (len(shape) != 1 || shape[0] != tokens) {
			err = fmt.Errorf("run %s: its samples have the shape %v, want [%d], the indices of run %s: dataset = { run = %q, value = %q }",
				prior.Path, shape, tokens, g.run.Path, g.run.Path, b.name)
		}
		return sequences{prior, b}, err
	})
}

// sequences draws codes by a model of the sequences of their indices.
type sequences struct {
	prior *tessera.Run
	book  book
}

func (s sequences) Draw(ctx context.Context, n int, seed uint64) (codes []float32, err error) {
	b, entries := s.book, map[int32][]float32{}
	values, tokens := len(b.codes)/len(b.indices), b.rows*b.columns
	for i, index := range b.indices {
		entries[int32(index)] = b.codes[i*values:][:values]
	}
	firsts := lists.Of(n, func(i int) int32 {
		image := random.Stream(seed, "first index", uint64(i)).IntN(len(b.indices) / tokens)
		return int32(b.indices[image*tokens])
	})
	drawn, err := s.prior.DrawNumbers(ctx, firsts, seed, func(k int32) bool { return entries[k] != nil })
	for _, k := range drawn {
		codes = append(codes, entries[k]...)
	}
	return codes, err
}

// column returns the values of column j of a matrix, row-major.
func column(matrix []float32, columns, j int) []float32 {
	values := make([]float32, 0, len(matrix)/columns)
	for ; j < len(matrix); j += columns {
		values = append(values, matrix[j])
	}
	return values
}

// Draw implements [metrics.Sampler], for codes. The value of a unit is limited to its range over the fitted codes, so that codes
// that are never negative remain so.
func (d *CodeDensity) Draw(ctx context.Context, n int, seed uint64) ([]float32, error) {
	codes, err := d.mixture.Draw(ctx, n, seed)
	for i, v := range codes {
		j := i % len(d.low)
		codes[i] = min(max(v, d.low[j]), d.high[j])
	}
	return codes, err
}

// Traversal describes which codes are decoded by [Generator.Traverse].
type Traversal struct {
	Base  []float32 // code that is changed, of as many values as there are units; nil means the mean code of the fitted images
	Units []int     // units that are changed, one at a time; nil means the Most units with the largest effect
	Most  int       // 0 means 10
	Steps int       // number of values of each unit; 0 means 9
}

// Traversed contains decoded images in which one unit at a time goes through its range.
type Traversed struct {
	Units  []int
	Ranges [][2]float32 // smallest and largest value of each unit
	Effect []float64    // root mean square difference of the images at the two ends, in the units before scaling
	Images []float32    // units x steps images, row-major

	base []float32
}

// Code returns the base code with the unit at index i of Units at a share of its range, from 0 to 1.
func (t *Traversed) Code(i int, share float32) []float32 {
	code, ends := slices.Clone(t.base), t.Ranges[i]
	code[t.Units[i]] = (1-share)*ends[0] + share*ends[1]
	return code
}

// Traverse decodes codes that differ from a base code in one unit, whose value goes through its range in equal steps. The range of
// a unit is that from its 1 % to its 99 % quantile over the codes of at most 10,000 evenly spaced fitted images. Without given
// units it chooses those with the largest effect, in descending order. It returns a [*data.Error] if images are missing, and
// an error for a model that does not decode codes.
func (g *Generator) Traverse(ctx context.Context, t Traversal) (*Traversed, error) {
	if err := g.run.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w", g.run.Path, err)
	}
	units := g.run.Units()
	if t.Most == 0 {
		t.Most = 10
	}
	if t.Steps == 0 {
		t.Steps = 9
	}
	switch {
	case t.Steps < 2 || t.Most < 1:
		return nil, fmt.Errorf("run %s: traverse: got %d steps of at most %d units, want at least 2 steps and 1 unit", g.run.Path, t.Steps, t.Most)
	case t.Base != nil && len(t.Base) != units:
		return nil, fmt.Errorf("run %s: traverse: got a code of %d values, want %d", g.run.Path, len(t.Base), units)
	}
	if i := slices.IndexFunc(t.Units, func(unit int) bool { return unit < 0 || unit >= units }); i >= 0 {
		return nil, fmt.Errorf("run %s: traverse: got the unit %d, want 0 to %d", g.run.Path, t.Units[i], units-1)
	}
	codes, err := g.fittedCodes(ctx)
	if err != nil {
		return nil, err
	}
	ranges, base := make([][2]float32, units), slices.Clone(t.Base)
	for j := range units {
		values := column(codes, units, j)
		slices.Sort(values)
		ranges[j] = [2]float32{float32(vectors.Quantile(values, 0.01)), float32(vectors.Quantile(values, 0.99))}
		if t.Base == nil {
			sum := 0.0
			for _, v := range values {
				sum += float64(v)
			}
			base = append(base, float32(sum/float64(len(values))))
		}
	}
	effects, err := g.effects(base, ranges)
	if err != nil {
		return nil, err
	}
	if t.Units == nil {
		for j := range units {
			t.Units = append(t.Units, j)
		}
		slices.SortStableFunc(t.Units, func(a, b int) int { return cmp.Compare(effects[b], effects[a]) })
		t.Units = t.Units[:min(t.Most, units)]
	}
	of := &Traversed{Units: t.Units, base: base}
	var changed []float32
	for _, j := range t.Units {
		of.Ranges, of.Effect = append(of.Ranges, ranges[j]), append(of.Effect, effects[j])
		for step := range t.Steps {
			changed = append(changed, base...)
			changed[len(changed)-units+j] = between(ranges[j][0], ranges[j][1], step, t.Steps)
		}
	}
	of.Images, err = g.decodeEach(changed)
	return of, err
}

// between returns the value of a step from a to b; both ends are exact.
func between(a, b float32, step, steps int) float32 {
	w := float64(step) / float64(steps-1)
	return float32((1-w)*float64(a) + w*float64(b))
}

// effects returns, for every unit, the root mean square difference of the images that the ends of its range give.
func (g *Generator) effects(base []float32, ranges [][2]float32) ([]float64, error) {
	var codes []float32
	for j, ends := range ranges {
		for _, end := range ends {
			codes = append(codes, base...)
			codes[len(codes)-len(base)+j] = end
		}
	}
	images, err := g.decodeEach(codes)
	if err != nil {
		return nil, err
	}
	effects, pixels := make([]float64, len(ranges)), len(images)/(2*len(ranges))
	for j := range effects {
		for i, v := range images[2*j*pixels : (2*j+1)*pixels] {
			d := float64(v) - float64(images[(2*j+1)*pixels+i])
			effects[j] += d * d / float64(pixels)
		}
		effects[j] = math.Sqrt(effects[j])
	}
	return effects, nil
}

// Interpolate decodes codes in equal steps from the code of each sample to that of the next one: steps images for each pair, which
// begin and end with the reconstructions of the two. It returns an error for fewer than two samples or steps, and for a model that
// does not decode codes.
func (g *Generator) Interpolate(ctx context.Context, samples *data.Images, steps int) ([]float32, error) {
	if err := g.run.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w", g.run.Path, err)
	}
	if samples == nil || samples.Len() < 2 || steps < 2 {
		return nil, fmt.Errorf("run %s: interpolate: want at least 2 samples and 2 steps (got %d steps)", g.run.Path, steps)
	}
	codes, err := g.run.ValuesOf(ctx, losses.Code, samples.Scaled(nil))
	if err != nil {
		return nil, err
	}
	var path []float32
	units := g.run.Units()
	for at := units; at < len(codes); at += units {
		for step := range steps {
			for j := range units {
				path = append(path, between(codes[at-units+j], codes[at+j], step, steps))
			}
		}
	}
	return g.decodeEach(path)
}
