package coder

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"tessera/internal/volume"
	"tessera/losses"
)

// ErrNoOutput is the error for a model that does not reconstruct images.
var ErrNoOutput = errors.New("the model cannot complete anything")

// A model that was trained on complete samples fills missing entries repeatedly: until no scaled value changes by more than
// completeTolerance of the largest one, at most completePasses times.
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
// replaces it repeatedly until it no longer changes (at most 500 times). If the changes of a sample grow, because the model is no
// contraction, the sample keeps the answer that changed least.
func (c *Coder) Complete(columns map[string][]float32) ([]float32, error) {
	if err := c.Ready(); err != nil {
		return nil, err
	}
	if !slices.Contains(c.Values(), losses.Output) {
		return nil, fmt.Errorf("run %s: %w: it has no decoder", c.path, ErrNoOutput)
	}
	if !c.OutputIsSample() {
		return nil, fmt.Errorf("run %s: %w: %w", c.path, ErrNoOutput, c.Reconstructs())
	}
	if name := c.Scaling().Lossy(); name != "" {
		return nil, fmt.Errorf("run %s: its samples are scaled by %q, which cannot be undone: its output is not in the unit of the missing values", c.path, name)
	}
	images, given := columns[losses.Images], maps.Clone(columns)
	answer := func() ([]float32, error) { // images, with the output in place of missing entries
		values, err := c.ValueOf(losses.Output, given)
		if err != nil {
			return nil, err
		}
		filled := slices.Clone(images)
		for i, v := range images {
			if v != v {
				filled[i] = values[i]
			}
		}
		return filled, nil
	}
	if c.trained.Spec.Holed() || c.TakesHoles() {
		return answer()
	}
	filled := slices.Clone(images)
	c.begin(filled)
	width := volume.Of(c.Shape())
	best, least := slices.Clone(filled), slices.Repeat([]float64{math.Inf(1)}, len(images)/width)
	for range completePasses {
		given[losses.Images] = filled
		next, err := answer()
		if err != nil {
			return nil, err
		}
		was, is, changed, largest := c.Scaling().Applied(filled), c.Scaling().Applied(next), 0.0, 0.0
		for i := range least {
			from, to, change := i*width, (i+1)*width, 0.0
			for j := from; j < to; j++ {
				change = max(change, math.Abs(float64(is[j])-float64(was[j])))
				largest = max(largest, math.Abs(float64(was[j])))
			}
			changed = max(changed, change)
			if change < least[i] {
				least[i] = change
				copy(best[from:to], next[from:to])
			} else if !(change <= 2*least[i]) {
				copy(next[from:to], best[from:to])
			}
		}
		if changed <= completeTolerance*largest {
			break
		}
		filled = next
	}
	return best, nil
}

// begin sets missing values to the mean of the same value in the other samples, or to what the scaling makes 0, such as the mean of the
// fitted samples; without a scaling to the middle of their range.
func (c *Coder) begin(samples []float32) {
	width := volume.Of(c.Shape())
	start := slices.Repeat([]float32{(c.trained.Range[0] + c.trained.Range[1]) / 2}, width)
	if c.Scaling() != nil {
		clear(start)
		c.Scaling().Undo(start)
	}
	for k := range width {
		sum, count := 0.0, 0
		for i := k; i < len(samples); i += width {
			if v := samples[i]; v == v {
				sum += float64(v)
				count++
			}
		}
		if count > 0 {
			start[k] = float32(sum / float64(count))
		}
		for i := k; i < len(samples); i += width {
			if v := samples[i]; v != v {
				samples[i] = start[k]
			}
		}
	}
}
