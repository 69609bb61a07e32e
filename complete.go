package tessera

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"tessera/losses"
)

// ErrNoOutput is the error for a model that does not reconstruct images.
var ErrNoOutput = errors.New("the model has no decoder: it cannot complete anything")

// The missing entries of samples are filled repeatedly, if the model was trained on complete samples: until no entry changes
// by more than completeTolerance of the largest value, at most completePasses times.
const (
	completeTolerance = 1e-5
	completePasses    = 500
)

// Complete returns samples with every missing entry, NaN, replaced by the entry of the model's reconstruction, before
// scaling. Other values are unchanged. columns contains the images and the columns from which the output is computed, by
// name, see [Run.Columns].
//
// pca, nmf and sparse_nmf encode the observed entries only ([Run.TakesHoles]). Any other model whose data set has missing or
// hidden entries gets 0 for a missing entry, as in its training, and its output is used. Every other model was trained on
// complete samples: a missing entry starts as the mean of the same value in the other samples, and the output replaces it
// repeatedly until it no longer changes (at most 500 times).
func (r *Run) Complete(columns map[string][]float32) ([]float32, error) {
	if err := r.ready(); err != nil {
		return nil, err
	}
	if !slices.Contains(r.Values(), losses.Output) {
		return nil, fmt.Errorf("run %s: %w", r.Path, ErrNoOutput)
	}
	images := columns[losses.Images]
	filled := slices.Clone(images)
	given := maps.Clone(columns)
	passes := 1
	if !r.Model.Holed() && !r.TakesHoles() {
		passes = completePasses
		r.begin(filled)
		given[losses.Images] = filled
	}
	for range passes {
		values, err := r.ValueOf(losses.Output, given)
		if err != nil {
			return nil, err
		}
		change, largest := 0.0, 0.0
		for i, v := range images {
			if v != v {
				change = max(change, math.Abs(float64(values[i])-float64(filled[i])))
				filled[i] = values[i]
			}
			largest = max(largest, math.Abs(float64(filled[i])))
		}
		if change <= completeTolerance*largest {
			break
		}
	}
	return filled, nil
}

// begin sets missing values to the mean of the same value in the other samples, or to the middle of the range of the fitted
// samples.
func (r *Run) begin(samples []float32) {
	width := 1
	for _, d := range r.Shape() {
		width *= d
	}
	for k := range width {
		sum, count := 0.0, 0
		for i := k; i < len(samples); i += width {
			if v := samples[i]; v == v {
				sum += float64(v)
				count++
			}
		}
		mean := (r.span[0] + r.span[1]) / 2
		if count > 0 {
			mean = float32(sum / float64(count))
		}
		for i := k; i < len(samples); i += width {
			if v := samples[i]; v != v {
				samples[i] = mean
			}
		}
	}
}
