package augment

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
)

// Crop cuts a random rectangle out of the image and enlarges it bilinearly to the size of the image. For a rectangle at
// (top, left) of size (h, w) in an image of size (H, W),
//
//	y(i, j) = x(top + (i + 1/2) h/H - 1/2, left + (j + 1/2) w/W - 1/2)
//
// where x(u, v) between pixels is the bilinear interpolation of the four nearest pixels. Beyond the edge the nearest
// pixel is used. The area, as a fraction of the image's area, is uniform over Scale. The ratio of width to height in
// pixels is log-uniform over those values in Ratio for which the rectangle fits into the image. The position is
// uniform. Scale = [1, 1] changes nothing.
//
// Unlike in torchvision's RandomResizedCrop, the rectangle need not consist of whole pixels, and no draw is rejected,
// so that the area is always as drawn.
//
// Source: Szegedy et al., Going deeper with convolutions, 2015; in contrastive learning Chen et al., A simple framework
// for contrastive learning of visual representations, 2020.
type Crop struct {
	Scale []float64 `toml:"scale" want:"in (0,1]" doc:"[low, high]: the area of the rectangle as a fraction of the image"`
	Ratio []float64 `toml:"ratio" want:"> 0" doc:"[low, high]: width over height of the rectangle"`
}

func init() {
	Registry.Register("crop", "a random rectangle, enlarged to the size of the image",
		func() Augmentation { return &Crop{Scale: []float64{0.08, 1}, Ratio: []float64{3.0 / 4, 4.0 / 3}} })
}

func (c *Crop) Check() error {
	return errors.Join(checkRange("scale", c.Scale), checkRange("ratio", c.Ratio))
}

func (c *Crop) Prepare(shape []int) (Change, error) {
	in, scale, ratio := sizeOf(shape), slices.Clone(c.Scale), slices.Clone(c.Ratio)
	return func(dst, src []float32, r *rand.Rand) { enlarge(dst, src, in, drawBox(r, scale, ratio, in)) }, nil
}

// enlarge writes the rectangle b of src, enlarged to the size of src, to dst.
func enlarge(dst, src []float32, in size, b box) {
	down, right := b.height/float64(in.height), b.width/float64(in.width)
	for i := range in.height {
		y0, y1, fy := between(b.top+(float64(i)+0.5)*down-0.5, in.height)
		upper, lower := src[y0*in.stride():][:in.stride()], src[y1*in.stride():][:in.stride()]
		row := dst[i*in.stride():][:in.stride()]
		for j := range in.width {
			x0, x1, fx := between(b.left+(float64(j)+0.5)*right-0.5, in.width)
			for c := range in.channels {
				l, r := x0*in.channels+c, x1*in.channels+c
				row[j*in.channels+c] = float32(mix(mix(upper[l], upper[r], fx), mix(lower[l], lower[r], fx), fy))
			}
		}
	}
}

// between returns the two pixels of 0..n-1 between which a position lies, and its fraction of the way from the first to
// the second.
func between(at float64, n int) (first, second int, fraction float64) {
	at = min(max(at, 0), float64(n-1))
	floor := math.Floor(at)
	first = int(floor)
	return first, min(first+1, n-1), at - floor
}

// mix returns a + fraction (b - a). It computes in float64, so that the result, rounded to float32, lies between a and
// b.
func mix[T float32 | float64](a, b T, fraction float64) float64 {
	return float64(a) + fraction*(float64(b)-float64(a))
}
