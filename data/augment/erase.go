package augment

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// Erase replaces the pixels of a random rectangle, with probability Probability. The area, as a fraction of the image's
// area, is uniform over Scale. The ratio of width to height is log-uniform over those values in Ratio for which the
// rectangle fits. Both sides are rounded to whole pixels and are at least 1. The position is uniform. Fill selects the
// new values: "random" draws each value from U[0,1), "mean" is the mean of the image, "black" is 0, "white" is 1. A
// probability of 0 changes nothing.
//
// Source: Zhong, Zheng, Kang, Li and Yang, Random erasing data augmentation, 2020. The defaults are the paper's,
// rounded. "mean" is the mean of the image; the paper uses the mean of the data set.
type Erase struct {
	Probability float64   `toml:"probability" want:"in [0,1]" doc:"probability of erasing a rectangle"`
	Scale       []float64 `toml:"scale" want:"in (0,1]" doc:"[low, high]: the area of the rectangle as a fraction of the image"`
	Ratio       []float64 `toml:"ratio" want:"> 0" doc:"[low, high]: width over height of the rectangle"`
	Fill        string    `toml:"fill" oneof:"random mean black white" doc:"new values of the erased pixels"`
}

func init() {
	Registry.Register("erase", "the pixels of a random rectangle replaced (random erasing)", func() Augmentation {
		return &Erase{Probability: 0.5, Scale: []float64{0.02, 0.4}, Ratio: []float64{0.3, 3.3}, Fill: "random"}
	})
}

func (e *Erase) Check() error {
	return errors.Join(checkRange("scale", e.Scale), checkRange("ratio", e.Ratio))
}

func (e *Erase) Prepare(shape []int) (Change, error) {
	in, own := sizeOf(shape), *e
	own.Scale, own.Ratio = slices.Clone(e.Scale), slices.Clone(e.Ratio)
	return func(dst, src []float32, r *rand.Rand) { own.erase(dst, src, in, r) }, nil
}

func (e *Erase) erase(dst, src []float32, in size, r *rand.Rand) {
	copy(dst, src)
	if !happens(r, e.Probability) {
		return
	}
	b := drawBox(r, e.Scale, e.Ratio, in)
	height, width := wholePixels(b.height, in.height), wholePixels(b.width, in.width)
	top, left := r.IntN(in.height-height+1), r.IntN(in.width-width+1)
	var value float32
	switch e.Fill {
	case "mean":
		value = mean(src)
	case "white":
		value = 1
	}
	for y := top; y < top+height; y++ {
		row := dst[y*in.stride()+left*in.channels:][:width*in.channels]
		for i := range row {
			if row[i] = value; e.Fill == "random" {
				row[i] = r.Float32()
			}
		}
	}
}

func wholePixels(length float64, n int) int { return min(max(int(math.Round(length)), 1), n) }

func mean(image []float32) float32 {
	sum := 0.0
	for _, v := range image {
		sum += float64(v)
	}
	return float32(sum / float64(len(image)))
}
