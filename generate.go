package tessera

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/classical"
	"tessera/data"
	"tessera/internal/indexprior"
	"tessera/internal/train/evaluation"
	"tessera/losses"
	"tessera/metrics"
)

// ErrNoSampler is the error for a model of which no images can be drawn.
var ErrNoSampler = metrics.ErrNoSampler

// Draw returns n images drawn at random, in the units before scaling. Image i depends only on the seed and i. The images come from
//
//   - the distribution that the model has learned, for gmm, bmm, factor_analysis, and for models with a generative layer, such as
//     the layer gaussian, or with a head that computes images from drawn columns alone;
//   - decoded entries of a code book, for models whose encoder ends in a layer vq: see [Run.IndexPrior];
//   - otherwise decoded codes. The codes are drawn from a mixture of normal distributions that is fitted to the codes of at most
//     10,000 evenly spaced fitted images: see [Run.CodeDensity].
//
// The error is [ErrNoSampler] for a model that is no distribution and decodes no codes, and a [*data.Error] if the mixture needs
// images that are missing.
func (r *Run) Draw(ctx context.Context, n int, seed uint64) (images []float32, err error) {
	if ctx == nil {
		return nil, errNoContext
	}
	images, err = r.drawFrom(ctx, n, seed, func(c metrics.Coder) (metrics.Sampler, error) {
		if sampler, ok := metrics.As[metrics.Sampler](c); ok {
			return sampler, nil
		}
		return nil, ErrNoSampler
	})
	if !errors.Is(err, ErrNoSampler) {
		return images, err
	}
	if other := r.Decodes(); other != nil {
		return nil, fmt.Errorf("run %s: %w, and no codes can be decoded: %w", r.Path, err, other)
	}
	if _, _, _, ok := r.indexed(); ok {
		if images, err = r.DrawFromIndices(ctx, n, seed); !errors.Is(err, ErrNoSampler) {
			return images, err
		}
	}
	return r.DrawFromCodes(ctx, n, seed)
}

// DrawFromCodes is [Run.Draw] for any model that decodes codes, also for one with a prior or a code book: codes are drawn from the
// mixture of [Run.CodeDensity], which knows which units are active together.
func (r *Run) DrawFromCodes(ctx context.Context, n int, seed uint64) ([]float32, error) {
	return r.drawDecoded(ctx, n, seed, func() (metrics.Sampler, error) { return r.CodeDensity(ctx) })
}

// DrawInSteps is [Run.Draw] for a model with a layer diffuse, with another number of steps and another eta, in [0,1]: 0 draws
// images by DDIM, 1 by DDPM. 0 steps and a negative eta stand for the declared ones.
func (r *Run) DrawInSteps(ctx context.Context, n int, seed uint64, steps int, eta float64) ([]float32, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	return r.drawFrom(ctx, n, seed, func(c metrics.Coder) (metrics.Sampler, error) {
		if s, ok := metrics.As[metrics.Stepwise](c); ok {
			return s.Stepped(steps, eta)
		}
		return nil, fmt.Errorf("run %s: %w", r.Path, metrics.ErrNoSteps)
	})
}

// drawFrom draws n images from the sampler that of returns, in the units before scaling.
func (r *Run) drawFrom(ctx context.Context, n int, seed uint64, of func(metrics.Coder) (metrics.Sampler, error)) (images []float32, err error) {
	err = r.computing(func(c metrics.Coder) error {
		sampler, err := of(c)
		if err == nil {
			images, err = sampler.Draw(ctx, n, seed)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	r.scaling.Undo(images)
	return images, nil
}

// Quality is the precision and recall of generated images, see [metrics.PrecisionRecall].
type Quality struct {
	Precision, Recall float64
	Real              int // number of real images
}

// QualityNeighbours is the number of neighbours of [Run.Quality], that of Kynkäänniemi et al. More images than these are needed.
const QualityNeighbours = 3

// Quality compares images that were drawn from the run with as many evenly spaced images of the test split (of all, if the data
// set has no test split), in the space of a value of another run, such as its code. Only measurements with equal features and
// equal numbers of images can be compared. Source: Kynkäänniemi et al., Improved precision and recall metric for assessing
// generative models, 2019.
func (r *Run) Quality(ctx context.Context, drawn []float32, features *Run, value string) (*Quality, error) {
	if err := features.ready(); err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	sample, err := r.Sample(ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	pixels := sample.Images.Pixels()
	if len(drawn) == 0 || len(drawn)%pixels != 0 {
		return nil, fmt.Errorf("run %s: got %d values of drawn images, want at least one image of %d values", r.Path, len(drawn), pixels)
	}
	if !slices.Equal(features.Shape(), r.Shape()) {
		return nil, fmt.Errorf("run %s: its images have the shape %v, those of the features %s have %v", r.Path, r.Shape(), features.Path, features.Shape())
	}
	real := evaluation.Spread(sample.Images, len(drawn)/pixels).Scaled(nil)
	of := func(images []float32) (values []float32) {
		if err == nil {
			values, err = features.Value(value, images)
		}
		return values
	}
	realFeatures, drawnFeatures := of(real.Float32()), of(drawn)
	if err != nil {
		return nil, err
	}
	q := &Quality{Real: real.Len()}
	q.Precision, q.Recall, err = metrics.PrecisionRecall(realFeatures, drawnFeatures, len(realFeatures)/q.Real, QualityNeighbours)
	return q, err
}

// decodeEach decodes codes in blocks of equal size, so that the bits of an image do not depend on the number of codes.
func (r *Run) decodeEach(codes []float32) (images []float32, err error) {
	units := r.Units()
	padded := make([]float32, block*units)
	for from := 0; from < len(codes); from += len(padded) {
		n := copy(padded, codes[from:])
		clear(padded[n:])
		decoded, err := r.Decode(padded)
		if err != nil {
			return nil, err
		}
		images = append(images, decoded[:n/units*len(decoded)/block]...)
	}
	return images, nil
}

// CodeDensity is a distribution of the codes of a run, see [Run.CodeDensity].
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
func (r *Run) CodeDensity(ctx context.Context) (*CodeDensity, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	return r.codes.density.of(ctx, func() (*CodeDensity, error) {
		codes, err := r.fittedCodes(ctx)
		if err != nil {
			return nil, err
		}
		of := &CodeDensity{low: make([]float32, r.Units()), high: make([]float32, r.Units())}
		matrix, err := classical.NewMatrix(codes, r.Units())
		if err != nil {
			return nil, err
		}
		for j := range of.low {
			values := column(codes, r.Units(), j)
			of.low[j], of.high[j] = slices.Min(values), slices.Max(values)
		}
		method := &classical.GMM{Components: min(codeComponents, matrix.Len()), Covariance: "full", Init: "kmeans", Floor: 1e-4, Iterations: 50, Tolerance: 1e-3, Restarts: 1}
		if r.Units() > fullUnits {
			method.Covariance = "diagonal"
		}
		mixture, err := method.New([]int{r.Units()}, r.Model.Train.Seed)
		if err == nil {
			_, err = classical.Fit(ctx, mixture, matrix, nil)
		}
		if err != nil {
			return nil, fmt.Errorf("run %s: mixture of its codes: %w", r.Path, err)
		}
		of.mixture, _ = metrics.As[metrics.Sampler](mixture)
		return of, nil
	})
}

// codeCache contains what is computed once from the fitted images of a run.
type codeCache struct {
	fitted  cached[[]float32] // codes of fitted images
	density cached[*CodeDensity]
	prior   cached[metrics.Sampler]
}

// cached is a value that is computed once.
type cached[T any] struct {
	turns
	value T
	known bool
}

// of returns the value and computes it first if no earlier call has; calls at the same time wait for it until ctx is done. After an
// error the next call computes again.
func (c *cached[T]) of(ctx context.Context, compute func() (T, error)) (none T, err error) {
	if ctx == nil {
		return none, errNoContext
	}
	if err := c.Within(ctx); err != nil {
		return none, err
	}
	defer c.Unlock()
	if !c.known {
		value, err := compute()
		if err != nil {
			return none, err
		}
		c.value, c.known = value, true
	}
	return c.value, nil
}

// fittedCodes returns the codes of at most 10,000 evenly spaced fitted images.
func (r *Run) fittedCodes(ctx context.Context) ([]float32, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	return r.codes.fitted.of(ctx, func() ([]float32, error) {
		sample, err := r.Sample(ctx, data.TrainSplit)
		if err != nil {
			return nil, err
		}
		return r.Codes(ctx, evaluation.Spread(sample.Images, evaluation.MostFitted))
	})
}

// indexed returns the layer of a code that consists of entries of a code book: the last layer of the encoder; ok is false for
// another model. An image has rows x columns indices, those of a code without a grid one row.
func (r *Run) indexed() (index string, rows, columns int, ok bool) {
	if r.network == nil || len(r.network.Layout.Encoder) == 0 {
		return "", 0, 0, false
	}
	last := r.network.Layout.Encoder[len(r.network.Layout.Encoder)-1]
	for _, v := range last.Published {
		if v.Entries > 0 && len(v.Shape) == 1 {
			rows, columns = 1, v.Shape[0]
			if shape := last.Out; len(shape) == 3 && shape[0]*shape[1] == columns {
				rows, columns = shape[0], shape[1]
			}
			return last.Path + "." + v.Name, rows, columns, true
		}
	}
	return "", 0, 0, false
}

// DrawFromIndices is [Run.Draw] for a model whose encoder ends in a code book (layer vq): the indices of the tokens are drawn from
// [Run.IndexPrior], and their entries are decoded. The error is [ErrNoSampler] for another model.
func (r *Run) DrawFromIndices(ctx context.Context, n int, seed uint64) ([]float32, error) {
	return r.drawDecoded(ctx, n, seed, func() (metrics.Sampler, error) { return r.IndexPrior(ctx) })
}

// drawDecoded decodes codes that are drawn from a distribution of codes, which fit returns.
func (r *Run) drawDecoded(ctx context.Context, n int, seed uint64, fit func() (metrics.Sampler, error)) ([]float32, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w: no codes can be decoded: %w", r.Path, ErrNoSampler, err)
	}
	codes, err := fit()
	if err != nil {
		return nil, err
	}
	drawn, err := codes.Draw(ctx, n, seed)
	if err != nil {
		return nil, err
	}
	return r.decodeEach(drawn)
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
// The error is [ErrNoSampler] for a model whose encoder does not end in a code book.
func (r *Run) IndexPrior(ctx context.Context) (metrics.Sampler, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	name, rows, columns, ok := r.indexed()
	if !ok {
		return nil, fmt.Errorf("run %s: %w: its encoder does not end in a code book: add a layer vq", r.Path, ErrNoSampler)
	}
	return r.codes.prior.of(ctx, func() (metrics.Sampler, error) {
		codes, err := r.fittedCodes(ctx)
		if err != nil {
			return nil, err
		}
		sample, err := r.Sample(ctx, data.TrainSplit)
		if err != nil {
			return nil, err
		}
		indices, err := (&Answers{Value: name}).answered(ctx, r, evaluation.Spread(sample.Images, evaluation.MostFitted).Scaled(nil), nil)
		if err != nil {
			return nil, err
		}
		prior, err := indexprior.Fit(indices.Float32(), codes, rows, columns)
		if err != nil {
			return nil, fmt.Errorf("run %s: %s: %w: %w", r.Path, name, ErrNoSampler, err)
		}
		return prior, nil
	})
}

// Codes returns the codes of samples, row by row, computed from all columns that the code depends on. [Run.Encode] does the same for
// images alone.
func (r *Run) Codes(ctx context.Context, samples *data.Images) ([]float32, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if samples == nil {
		return nil, fmt.Errorf("run %s: codes: got no samples", r.Path)
	}
	codes, err := (&Answers{Value: losses.Code}).answered(ctx, r, samples.Scaled(nil), nil)
	if err != nil {
		return nil, err
	}
	return codes.Float32(), nil
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

// Traversal describes which codes are decoded by [Run.Traverse].
type Traversal struct {
	Base  []float32 // code that is changed, of [Run.Units] values; nil means the mean code of the fitted images
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
func (r *Run) Traverse(ctx context.Context, t Traversal) (*Traversed, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Path, err)
	}
	units := r.Units()
	if t.Most == 0 {
		t.Most = 10
	}
	if t.Steps == 0 {
		t.Steps = 9
	}
	switch {
	case t.Steps < 2 || t.Most < 1:
		return nil, fmt.Errorf("run %s: traverse: got %d steps of at most %d units, want at least 2 steps and 1 unit", r.Path, t.Steps, t.Most)
	case t.Base != nil && len(t.Base) != units:
		return nil, fmt.Errorf("run %s: traverse: got a code of %d values, want %d", r.Path, len(t.Base), units)
	}
	if i := slices.IndexFunc(t.Units, func(unit int) bool { return unit < 0 || unit >= units }); i >= 0 {
		return nil, fmt.Errorf("run %s: traverse: got the unit %d, want 0 to %d", r.Path, t.Units[i], units-1)
	}
	codes, err := r.fittedCodes(ctx)
	if err != nil {
		return nil, err
	}
	ranges, base := make([][2]float32, units), slices.Clone(t.Base)
	for j := range units {
		values := column(codes, units, j)
		slices.Sort(values)
		last := float64(len(values) - 1)
		ranges[j] = [2]float32{values[int(0.01*last)], values[int(math.Ceil(0.99*last))]}
		if t.Base == nil {
			sum := 0.0
			for _, v := range values {
				sum += float64(v)
			}
			base = append(base, float32(sum/float64(len(values))))
		}
	}
	effects, err := r.effects(base, ranges)
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
	of.Images, err = r.decodeEach(changed)
	return of, err
}

// between returns the value of a step from a to b; both ends are exact.
func between(a, b float32, step, steps int) float32 {
	w := float64(step) / float64(steps-1)
	return float32((1-w)*float64(a) + w*float64(b))
}

// effects returns, for every unit, the root mean square difference of the images that the ends of its range give.
func (r *Run) effects(base []float32, ranges [][2]float32) ([]float64, error) {
	var codes []float32
	for j, ends := range ranges {
		for _, end := range ends {
			codes = append(codes, base...)
			codes[len(codes)-len(base)+j] = end
		}
	}
	images, err := r.decodeEach(codes)
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
func (r *Run) Interpolate(ctx context.Context, samples *data.Images, steps int) ([]float32, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w", r.Path, err)
	}
	if samples == nil || samples.Len() < 2 || steps < 2 {
		return nil, fmt.Errorf("run %s: interpolate: want at least 2 samples and 2 steps (got %d steps)", r.Path, steps)
	}
	codes, err := r.Codes(ctx, samples)
	if err != nil {
		return nil, err
	}
	var path []float32
	units := r.Units()
	for at := units; at < len(codes); at += units {
		for step := range steps {
			for j := range units {
				path = append(path, between(codes[at-units+j], codes[at+j], step, steps))
			}
		}
	}
	return r.decodeEach(path)
}
