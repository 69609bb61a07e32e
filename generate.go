package tessera

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/baselines"
	"tessera/data"
	"tessera/losses"
	"tessera/metrics"
	"tessera/train/evaluation"
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

// DrawFromCodes is [Run.Draw] for any model that decodes codes, also for one with a prior or a code book: codes are drawn from the mixture of
// [Run.CodeDensity], which knows which units are active together.
func (r *Run) DrawFromCodes(ctx context.Context, n int, seed uint64) ([]float32, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.Decodes(); err != nil {
		return nil, fmt.Errorf("run %s: %w: no codes can be decoded: %w", r.Path, ErrNoSampler, err)
	}
	density, err := r.CodeDensity(ctx)
	if err != nil {
		return nil, err
	}
	codes, err := density.Draw(ctx, n, seed)
	if err != nil {
		return nil, err
	}
	return r.decodeEach(codes)
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

// drawFrom draws n images from what of returns, in the units before scaling.
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
	codes, err := r.fittedCodes(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.codes.Within(ctx); err != nil {
		return nil, err
	}
	defer r.codes.Unlock()
	if r.codes.density != nil {
		return r.codes.density, nil
	}
	of := &CodeDensity{low: make([]float32, r.Units()), high: make([]float32, r.Units())}
	matrix, err := baselines.NewMatrix(codes, r.Units())
	if err != nil {
		return nil, err
	}
	for j := range of.low {
		values := column(codes, r.Units(), j)
		of.low[j], of.high[j] = slices.Min(values), slices.Max(values)
	}
	method := &baselines.GMM{Components: min(codeComponents, matrix.Len()), Covariance: "full", Init: "kmeans", Floor: 1e-4, Iterations: 50, Tolerance: 1e-3, Restarts: 1}
	if r.Units() > fullUnits {
		method.Covariance = "diagonal"
	}
	mixture, err := method.New([]int{r.Units()}, r.Model.Train.Seed)
	if err == nil {
		_, err = baselines.Fit(ctx, mixture, matrix, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: mixture of its codes: %w", r.Path, err)
	}
	of.mixture, _ = metrics.As[metrics.Sampler](mixture)
	r.codes.density = of
	return of, nil
}

// codeCache contains what is computed once from the fitted images of a run.
type codeCache struct {
	turns
	fitted  []float32    // codes of fitted images
	density *CodeDensity // nil until it has been fitted
	prior   *IndexPrior  // nil until it has been fitted
}

// fittedCodes returns the codes of at most 10,000 evenly spaced fitted images.
func (r *Run) fittedCodes(ctx context.Context) ([]float32, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := r.ready(); err != nil {
		return nil, err
	}
	if err := r.codes.Within(ctx); err != nil {
		return nil, err
	}
	defer r.codes.Unlock()
	if r.codes.fitted == nil {
		sample, err := r.Sample(ctx, data.TrainSplit)
		if err != nil {
			return nil, err
		}
		if r.codes.fitted, err = r.Codes(ctx, evaluation.Spread(sample.Images, evaluation.MostFitted)); err != nil {
			return nil, err
		}
	}
	return r.codes.fitted, nil
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
