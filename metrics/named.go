package metrics

import (
	"fmt"
	"slices"
)

// OutputName is the name of the decoder's value.
const OutputName = "output"

// ValueCoder is a [Coder] of a model of named values: one that has heads, or no decoder.
type ValueCoder interface {
	Coder
	// Values lists the values that the model computes: "code", "output" where it has a decoder, and its heads.
	Values() []string
	// Value returns the value of that name of n = len(images)/pixels images, row-major.
	Value(name string, images []float32) ([]float32, error)
	// ClassHeads lists the heads that a loss compares with labels: one logit per class, the class being its index.
	ClassHeads() []string
}

// hasOutput reports whether the coder reconstructs images.
func hasOutput(c Coder) bool {
	v, ok := c.(ValueCoder)
	return !ok || slices.Contains(v.Values(), OutputName)
}

// classHeads lists the heads of a coder that give logits of classes.
func classHeads(c Coder) []string {
	if v, ok := c.(ValueCoder); ok {
		return v.ClassHeads()
	}
	return nil
}

// headValue is coder.Value of n images with its error and its answer's length checked.
func headValue(coder Coder, head string, images []float32, n int) ([]float32, error) {
	logits, err := coder.(ValueCoder).Value(head, images)
	if err != nil {
		return nil, fmt.Errorf("metrics: %s: %w", head, err)
	}
	if len(logits) == 0 || len(logits)%n != 0 {
		return nil, fmt.Errorf("metrics: %s: got %d values of %d images, want as many of each", head, len(logits), n)
	}
	return logits, nil
}
