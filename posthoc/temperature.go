package posthoc

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Temperature is the name of [TemperatureScaling].
const Temperature = "temperature"

// TemperatureScaling divides the logits by one number, z / T. The order of the classes stays the same.
//
// Source: Guo et al., On calibration of modern neural networks, ICML 2017.
type TemperatureScaling struct {
	Temperature float64 `json:"temperature"` // T of the formula
}

var _ Linear = (*TemperatureScaling)(nil)

func init() {
	Registry.Register(Temperature, "all logits are divided by one number; keeps every prediction", func() Method { return &TemperatureScaling{} })
}

func (t *TemperatureScaling) Apply(logits []float32, classes int) { applyLinear(t, logits, classes) }

func (t *TemperatureScaling) Linear(classes int) (scales, biases []float64) {
	return slices.Repeat([]float64{1 / t.Temperature}, classes), make([]float64, classes)
}

func (t *TemperatureScaling) Check(int) error {
	if !(t.Temperature > 0) {
		return fmt.Errorf("temperature: got %g, want > 0", t.Temperature)
	}
	return checkFinite(t.Temperature)
}

// String returns the temperature, as in "temperature 1.83".
func (t *TemperatureScaling) String() string { return fmt.Sprintf("temperature %.4g", t.Temperature) }

// Fit implements [Method]. It minimises the mean of -log softmax(z / T)_c over the samples, where c is the class. As a function of s
// = 1/T this is convex: its derivative, the mean of sum_j p_j z_j - z_c, increases. The root of the derivative is found
// by bisection.
func (t *TemperatureScaling) Fit(logits []float32, labels []int, classes int) error {
	slope := func(s float64) float64 {
		sum, p := 0.0, make([]float64, classes)
		scaled := make([]float64, classes)
		for i, class := range labels {
			row, most := logits[i*classes:(i+1)*classes], math.Inf(-1)
			for j, z := range row {
				scaled[j] = s * float64(z)
				most = max(most, scaled[j])
			}
			total, expected := 0.0, 0.0
			for j := range p {
				p[j] = math.Exp(scaled[j] - most)
				total += p[j]
				expected += p[j] * float64(row[j])
			}
			sum += expected/total - float64(row[class])
		}
		return sum / float64(len(labels))
	}
	if slope(0) >= 0 {
		return errors.New("the logits say nothing about the classes of these samples: no temperature is better than an infinite one")
	}
	right := 0
	for i, class := range labels {
		if row := logits[i*classes : (i+1)*classes]; row[class] == slices.Max(row) {
			right++
		}
	}
	if right == len(labels) {
		return errors.New("every sample is predicted right: no temperature is small enough; calibrate on more samples")
	}
	low, high := 0.0, 1.0
	for slope(high) < 0 {
		low, high = high, 2*high
	}
	for range 200 {
		middle := (low + high) / 2
		if middle == low || middle == high {
			break
		}
		if slope(middle) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	t.Temperature = 1 / ((low + high) / 2)
	return nil
}
