package coder

import (
	"fmt"
	"math"
	"slices"

	"tessera/classical"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/vectors"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
)

// Scores of a sample say how well the model explains it, one number each. Samples that are unlike those of the training have a large error or
// a small likelihood.
const (
	SampleError      = "error"          // mean over its observed values of (x - y)², y the output, in the units in which the model reads samples
	SampleLikelihood = "log_likelihood" // log p(x) in nats
)

// Scores lists the scores that the run has: the error of a model whose output stands for its samples, and the likelihood of a density.
func (c *Coder) Scores() (names []string) {
	if slices.Contains(c.Values(), losses.Output) && c.Reconstructs() == nil {
		names = append(names, SampleError)
	}
	if _, ok := metrics.As[metrics.Density](c.inner); ok {
		names = append(names, SampleLikelihood)
	}
	return names
}

// Score returns a score of Scores for each sample; columns contains the values of the columns of the output, as for [Coder.ValueOf]. The error of a
// sample without an observed value is NaN.
func (c *Coder) Score(name string, columns map[string][]float32) (scores []float32, err error) {
	if known := c.Scores(); !slices.Contains(known, name) {
		return nil, fmt.Errorf("the run has no score %q: %s", name, table.Suggest(name, known))
	}
	err = c.Do(func(m metrics.Coder) error {
		if of, ok := m.(classical.Model); ok {
			m = plain{of}
		}
		given := c.scaled(m).given(columns, c.Columns(losses.Output))
		if name == SampleLikelihood {
			density, _ := metrics.As[metrics.Density](m) // as Scores says
			values, err := density.LogLikelihood(given[data.ImagesColumn])
			scores = vectors.Narrow(values)
			return err
		}
		outputs, err := m.(described).ValueOf(losses.Output, given)
		if err == nil {
			scores = errorsOf(columns[data.ImagesColumn], given[data.ImagesColumn], outputs, volume.Of(c.Shape()))
		}
		return err
	})
	return scores, err
}

// errorsOf returns the mean squared error of each row; where samples is NaN, a value is missing.
func errorsOf(samples, inputs, outputs []float32, width int) []float32 {
	means := make([]float32, len(inputs)/width)
	for i := range means {
		sum, n := 0.0, 0
		for j := i * width; j < (i+1)*width; j++ {
			if v := samples[j]; v == v {
				d := float64(inputs[j]) - float64(outputs[j])
				sum, n = sum+d*d, n+1
			}
		}
		if means[i] = float32(math.NaN()); n > 0 {
			means[i] = float32(sum / float64(n))
		}
	}
	return means
}
