package coder

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

// A model that was trained on complete samples fills missing entries repeatedly: until no entry changes by more than
// completeTolerance of the largest value, at most completePasses times.
const (
	completeTolerance = 1e-5
	completePasses    = 500
)

// Complete returns samples with every missing entry, NaN, replaced by the entry of the model's reconstruction, before scaling.
// Other values are unchanged. columns contains the images and the columns from which the output is computed, by name, see
// Columns.
//
// pca, nmf and sparse_nmf encode the observed entries only ([Coder.TakesHoles]), unless their samples are whitened. For any other model whose data set has missing
// or hidden entries, missing entries are 0 in the input, as in the training, and the output replaces them. All other models
// were trained on complete samples: a missing entry starts as the mean of the same value in the other samples, and the output
// replaces it repeatedly until it no longer changes (at most 500 times).
func (c *Coder) Complete(columns map[string][]float32) ([]float32, error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	if !slices.Contains(c.Values(), losses.Output) {
		return nil, fmt.Errorf("run %s: %w", c.path, ErrNoOutput)
	}
	if name := c.Scaling().Lossy(); name != "" {
		return nil, fmt.Errorf("run %s: its samples are scaled by %q, which cannot be undone: its output is not in the unit of the missing values", c.path, name)
	}
	images := columns[losses.Images]
	filled := slices.Clone(images)
	given := maps.Clone(columns)
	passes := 1
	if !c.trained.Spec.Holed() && !c.TakesHoles() {
		passes = completePasses
		c.begin(filled)
		given[losses.Images] = filled
	}
	for range passes {
		values, err := c.ValueOf(losses.Output, given)
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
func (c *Coder) begin(samples []float32) {
	width := 1
	for _, d := range c.Shape() {
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
		mean := (c.trained.Range[0] + c.trained.Range[1]) / 2
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
