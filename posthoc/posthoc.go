// Package posthoc adapts the answers of a trained classifier without training it again. It fits calibrations of the
// probabilities, and decision thresholds for each group of samples.
//
// A head has one logit for each class, z of (samples, classes), row-major. Calibrations and thresholds are stored with
// the run and applied wherever the head is computed.
package posthoc

import (
	"fmt"
	"maps"
	"slices"
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

// Describe describes what was fitted to the heads, by their names, for example "class: temperature 1.83"; "" for nothing.
func Describe(heads map[string]Head) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(heads)) {
		if text := heads[name].String(); text != "" {
			all = append(all, name+": "+text)
		}
	}
	return strings.Join(all, "; ")
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
