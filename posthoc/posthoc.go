// Package posthoc adapts the answers of a trained classifier without training it again. It fits calibrations of the
// probabilities, and decision thresholds for each group of samples.
//
// A head has one logit for each class, z of (samples, classes), row-major. Calibrations and thresholds are stored with
// the run and applied wherever the head is computed.
package posthoc

import (
	"fmt"
	"math"
	"strings"
)

// Head contains the calibration and the thresholds that were fitted for one head of a model.
type Head struct {
	Calibration *Calibration `json:"calibration,omitempty"`
	Thresholds  *Thresholds  `json:"thresholds,omitempty"` // thresholds for the calibrated probabilities
}

// Check returns an error for values that no fit produces, or that do not match the number of classes of the head.
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

// String describes the calibration and the thresholds briefly, as in "temperature 1.83".
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

// Softmax writes the softmax of the logits of one sample to p.
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
