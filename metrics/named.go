package metrics

import (
	"fmt"
	"slices"
)

// Named is one of the values that a model computes of an image.
type Named struct {
	Name   string // "code", "output", or that of a head
	Size   int    // values per image
	Logits bool   // a loss compares it with labels: one logit per class, the class being its index
}

// OutputName is the name of the decoder's value.
const OutputName = "output"

// NamedCoder is a [Coder] of a model that has heads, or no decoder.
type NamedCoder interface {
	Coder
	// Named lists the values that Values computes. A model without a decoder has no "output".
	Named() []Named
	// Values returns the value of that name of n = len(images)/pixels images, n x Size.
	Values(name string, images []float32) ([]float32, error)
}

// hasOutput reports whether the coder reconstructs images.
func hasOutput(c Coder) bool {
	n, ok := c.(NamedCoder)
	return !ok || slices.ContainsFunc(n.Named(), func(v Named) bool { return v.Name == OutputName })
}

// classHeads lists the heads of a coder that give logits of classes.
func classHeads(c Coder) []Named {
	n, ok := c.(NamedCoder)
	if !ok {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Named()), func(v Named) bool { return !v.Logits })
}

// headValues is coder.Values with its error and its answer's length checked.
func headValues(coder Coder, head Named, images []float32, n int) ([]float32, error) {
	values, err := coder.(NamedCoder).Values(head.Name, images)
	if err != nil {
		return nil, fmt.Errorf("metrics: %s: %w", head.Name, err)
	}
	if want := n * head.Size; len(values) != want {
		return nil, fmt.Errorf("metrics: %s: got %d values, want %d", head.Name, len(values), want)
	}
	return values, nil
}
