package constraints

import (
	"tessera/config/part"
	"tessera/internal/engine/kernel"
)

// Box keeps every weight in an interval: the projection argmin ||v-w|| over min <= v <= max, which is
// v = min(max(w, Min), Max). The bounds are rounded to float32. Equal bounds fix every weight at one value.
//
// The default, [0,1], is the range of grey-level images, such as the atoms of a max-plus decoder.
type Box struct {
	Min float64 `toml:"min" doc:"smallest value of a weight"`
	Max float64 `toml:"max" doc:"largest value of a weight; not below min"`
}

func init() {
	Registry.Register("box", "every weight in [min, max]: w <- min(max(w, min), max)",
		func() Constraint { return &Box{Min: 0, Max: 1} })
}

// Check returns an error if no value lies within the bounds.
func (b *Box) Check() error {
	if !(b.Min <= b.Max) {
		return part.KeyErrorf("min", "got %v, want at most max = %v", b.Min, b.Max)
	}
	return nil
}

func (*Box) Pointwise() {}

func (b *Box) Project(w []float32, _ []int) {
	kernel.Clamp(w, float32(b.Min), float32(b.Max))
}

// Violation implements [Constraint]. It is the largest distance of a weight from the interval.
func (b *Box) Violation(w []float32, _ []int) float64 {
	low, high := float32(b.Min), float32(b.Max)
	var worst float32
	for _, v := range w {
		worst = max(worst, low-v, v-high)
	}
	return float64(worst)
}
