package metrics

import (
	"math"
	"slices"
)

// HolesCoder is a [Coder] that may take NaN for the missing entries of images and encode the others. Other coders, auto-encoders among
// them, get 0 in place of missing entries, as in their training.
type HolesCoder interface {
	Coder
	TakesHoles() bool
}

// TakesHoles reports whether a coder takes NaN for missing entries.
func TakesHoles(c Coder) bool {
	h, ok := c.(HolesCoder)
	return ok && h.TakesHoles()
}

// SetNaN sets the values whose mask is 0 to NaN.
func SetNaN(values, observed []float32) {
	nan := float32(math.NaN())
	for i, there := range observed {
		if there == 0 {
			values[i] = nan
		}
	}
}

// given are the images of the batch as its coder takes them.
func (b *Batch) given() []float32 {
	observed := b.Observed()
	if observed == nil || !TakesHoles(b.coder) {
		return b.Images
	}
	if b.holed == nil {
		b.holed = slices.Clone(b.Images)
		SetNaN(b.holed, observed)
	}
	return b.holed
}
