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

// Given is the split of images that belong to no data set.
const Given data.Split = "given"

// Sample is what a model is measured on.
type Sample struct {
	Split   data.Split // which images these are
	Name    string     // of their data set; "" for that of the model
	Images  *data.Images
	Rows    []float32 // their values, row-major; nil: they are made of Images
	Classes []string  // names of the labels; nil where they are not known
}

// Take returns the images of a set that belong to a split of a model; shape is that of the images which the model takes.
// Images of another shape, and a split that the model does not have, are a [*data.Error].
func Take(set *data.Set, m *config.Model, shape []int, split data.Split) (*Sample, error) {
	if set == nil || m == nil {
		return nil, errors.New("evaluation: no data set, or no model to measure on it")
	}
	images, split, err := set.Measured(m.Dataset.Selection, m.Train.Seed, split)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(set.Shape, shape) {
		return nil, &data.Error{Dataset: set.Name, Problem: fmt.Sprintf("its images do not have the shape of the training images (got %v, want %v)", set.Shape, shape)}
	}
	return &Sample{Split: split, Images: images, Classes: set.Classes}, nil
}

// Measure measures a trained model on a sample. The seed of the metrics is that of the model, as is the target of their KL
// measure. Labels that a chosen metric needs and the images lack are a [*data.Error]; the other errors are those of
// [metrics.Evaluate].
func Measure(ctx context.Context, m *config.Model, coder metrics.Coder, s *Sample, chosen metrics.Selection) (*metrics.Result, error) {
	if m == nil || s == nil || s.Images == nil {
		return nil, errors.New("evaluation: no model, or no images to measure it on")
	}
	rows := s.Rows
	if rows == nil {
		rows = s.Images.Float32()
	}
	sample := metrics.Sample{Images: rows, Labels: s.Images.Labels(), Seed: m.Train.Seed, Parts: s.Images.Parts}
	if target, _, ok := m.KL(); ok {
		sample.Known = map[string]float64{"kl.target": target}
	}
	r, err := metrics.Evaluate(ctx, coder, sample, chosen)
	var bad *data.Error
	if errors.As(err, &bad) { // metrics do not know whose images they measure
		named := *bad
		if named.Dataset = m.Dataset.Name; s.Name != "" {
			named.Dataset = s.Name
		}
		return nil, &named
	} else if err != nil {
		return nil, err
	}
	r.Model, r.Dataset, r.Split = m.Name, m.Dataset.Name, string(s.Split)
	if s.Name != "" {
		r.Dataset = s.Name
	}
	return r, nil
}
