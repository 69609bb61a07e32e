package augment

import (
	"math"
	"math/rand/v2"

	"tessera/part"
)

// checkRange reports a setting that is not [low, high] with low <= high.
func checkRange(key string, values []float64) error {
	if len(values) == 2 && values[0] <= values[1] {
		return nil
	}
	return part.KeyErrorf(key, "got %v, want two numbers [low, high] with low <= high", values)
}

// uniform draws from U[low, high], and draws once even if both are equal.
func uniform(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// happens draws an event of that probability.
func happens(r *rand.Rand, probability float64) bool { return r.Float64() < probability }

// clip returns v in [0,1].
func clip(v float32) float32 { return min(max(v, 0), 1) }

// box is a rectangle in an image, in pixels: the pixel in row y covers [y, y+1).
type box struct{ top, left, height, width float64 }

// drawBox draws a rectangle inside an image: its area as a fraction of the image is uniform over scale, its width over
// height log-uniform over those ratios at which a rectangle of that area fits into the image, its place uniform. If no
// ratio in the interval fits, the nearest fitting ratio is used: the area is always as drawn.
func drawBox(r *rand.Rand, scale, ratio []float64, in size) box {
	height, width := float64(in.height), float64(in.width)
	area := min(uniform(r, scale[0], scale[1]), 1)
	// Relative to the image's own ratio, a rectangle fits from area to 1/area.
	image := math.Log(width / height)
	fits := -math.Log(area)
	low := min(max(math.Log(ratio[0])-image, -fits), fits)
	high := min(max(math.Log(ratio[1])-image, -fits), fits)
	stretch := math.Exp(uniform(r, low, high))
	b := box{height: height * min(math.Sqrt(area/stretch), 1), width: width * min(math.Sqrt(area*stretch), 1)}
	b.top = (height - b.height) * r.Float64()
	b.left = (width - b.width) * r.Float64()
	return b
}
