// Package evaluation measures a trained model on the images of its data set, for `eval`, sweeps and Go programs.
package evaluation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/metrics"
)

// Images returns what a model of images of that shape is evaluated on: the test images of a set, all images where it has no
// test split. Images of another shape are a [*data.Error].
func Images(set *data.Set, shape []int) (*data.Images, error) {
	images, err := set.Evaluation()
	if err != nil {
		return nil, err
	}
	if !slices.Equal(set.Shape, shape) {
		return nil, &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("its images do not have the shape of the training images (got %v, want %v)", set.Shape, shape)}
	}
	return images, nil
}

// Measure measures a trained model on images, whose values are rows: several evaluations may share them. The seed of the
// metrics is that of the model, as is the target of their KL measure. What the images lack is a [*data.Error]; the other
// errors are those of [metrics.Evaluate].
func Measure(ctx context.Context, m *config.Model, coder metrics.Coder, images *data.Images, rows []float32, chosen metrics.Selection) (*metrics.Result, error) {
	if m == nil || images == nil {
		return nil, errors.New("evaluation: no model, or no images to measure it on")
	}
	sample := metrics.Sample{Images: rows, Labels: images.Labels(), Seed: m.Train.Seed}
	if target, _, ok := m.KL(); ok {
		sample.Known = map[string]float64{"kl.target": target}
	}
	r, err := metrics.Evaluate(ctx, coder, sample, chosen)
	var bad *data.Error
	if errors.As(err, &bad) { // metrics do not know whose images they measure
		named := *bad
		named.Dataset = m.Dataset.Name
		return nil, &named
	} else if err != nil {
		return nil, err
	}
	r.Model, r.Dataset = m.Name, m.Dataset.Name
	return r, nil
}
