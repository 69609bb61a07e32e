// Package posthoc fits what changes the answers of a trained classifier without training it again: calibrations of its probabilities, and thresholds
// by group for its decisions.
//
// A head has one logit for each class, z of (samples, classes), row-major. What is fitted is kept with the run and is applied wherever the
// head is computed.
package posthoc

import (
	"fmt"
	"math"
	"strings"
)

// Head is what was fitted for one head of a model.
type Head struct {
	Calibration *Calibration `json:"calibration,omitempty"`
	Thresholds  *Thresholds  `json:"thresholds,omitempty"` // of the calibrated probabilities
}

// Check returns an error for values that no fit gives, or that belong to a head of another number of classes.
func (h Head) Check(classes int) error {
	if h.Calibration != nil {
		if err := h.Calibration.check(classes); err != nil {
			return fmt.Errorf("calibration: %w", err)
		}
	}
	if h.Thresholds != nil {
		if err := h.Thresholds.check(classes); err != nil {
			return fmt.Errorf("thresholds: %w", err)
		}
	}
	return nil
}

// String describes what was fitted in a few words, as in "temperature 1.83".
func (h Head) String() string {
	var all []string
	if h.Calibration != nil {
		all = append(all, h.Calibration.String())
	}
	if h.Thresholds != nil {
		all = append(all, "thresholds for "+h.Thresholds.String())
	}
	return strings.Join(all, ", ")
}

// Softmax writes the probabilities of one sample.
func Softmax(p []float64, logits []float32) {
	most, sum := math.Inf(-1), 0.0
	for _, z := range logits {
		most = math.Max(most, float64(z))
	}
	for j, z := range logits {
		p[j] = math.Exp(float64(z) - most)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
}
