package metrics

import (
	"math"
	"slices"
)

// HolesCoder is a [Coder] that may accept NaN as a missing entry of images. To other coders, including auto-encoders, missing
// entries are passed as 0, as in their training.
type HolesCoder interface {
	Coder
	TakesHoles() bool
}

// TakesHoles reports whether a coder accepts NaN for missing entries.
func TakesHoles(c Coder) bool {
	h, ok := As[HolesCoder](c)
	return ok && h.TakesHoles()
}

// SetNaN sets the values for which observed is 0 to NaN.
func SetNaN(values, observed []float32) {
	nan := float32(math.NaN())
	for i, there := range observed {
		if there == 0 {
			values[i] = nan
		}
	}
}

// given returns the images of the batch in the form that the coder accepts: missing entries are NaN or 0.
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
