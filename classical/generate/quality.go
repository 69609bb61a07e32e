package generate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera"
	"tessera/data"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// Quality is the precision and recall of generated images, see [metrics.PrecisionRecall].
type Quality struct {
	Precision, Recall float64
	Real              int // number of real images
}

// QualityNeighbours is the number of neighbours of [Measure], that of Kynkäänniemi et al. More images than these are needed.
const QualityNeighbours = 3

// Measure compares images that were drawn from a run with as many evenly spaced images of the test split (of all, if the data
// set has no test split), in the space of a value of another run, such as its code. Only measurements with equal features and
// equal numbers of images can be compared. Source: Kynkäänniemi et al., Improved precision and recall metric for assessing
// generative models, 2019.
func Measure(ctx context.Context, r *tessera.Run, drawn []float32, features *tessera.Run, value string) (*Quality, error) {
	if features == nil {
		return nil, errors.New("generate: no run whose values are the features")
	}
	if err := features.Ready(); err != nil {
		return nil, fmt.Errorf("features: %w", err)
	}
	sample, err := r.Sample(ctx, data.TestSplit)
	if err != nil {
		return nil, err
	}
	pixels := sample.Images.Pixels()
	if len(drawn) == 0 || len(drawn)%pixels != 0 {
		return nil, fmt.Errorf("run %s: got %d values of drawn samples, want at least one sample of %d values", r.Path, len(drawn), pixels)
	}
	if !slices.Equal(features.Shape(), r.Shape()) {
		return nil, fmt.Errorf("run %s: its samples have the shape %v, those of the features %s have %v", r.Path, r.Shape(), features.Path, features.Shape())
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
