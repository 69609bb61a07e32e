package augment

import "math/rand/v2"

// Shift moves the image by whole pixels: down by dy and right by dx, each uniform over -Pixels, ..., Pixels:
//
//	y(i, j) = x(i - dy, j - dx)
//
// Pixels beyond the edge have the value Fill. Values are moved, not computed. Pixels = 0 changes nothing.
//
// Source: He, Zhang, Ren and Sun, Deep residual learning for image recognition, 2016, section 4.2 (4 pixels of padding,
// then a crop of the original size).
type Shift struct {
	Pixels int     `toml:"pixels" want:">= 0" doc:"largest distance, in every direction"`
	Fill   float64 `toml:"fill" want:"in [0,1]" doc:"the value beyond the edge"`
}

func init() {
	Registry.Register("shift", "a translation by a random whole number of pixels", func() Augmentation { return &Shift{Pixels: 2} })
}

func (m *Shift) Prepare(shape []int) (Change, error) {
	in, own := sizeOf(shape), *m
	return func(dst, src []float32, r *rand.Rand) { own.shift(dst, src, in, r) }, nil
}

func (m *Shift) shift(dst, src []float32, in size, r *rand.Rand) {
	down, right := steps(r, m.Pixels, in.height), steps(r, m.Pixels, in.width)
	for i := range dst {
		dst[i] = float32(m.Fill)
	}
	for y := max(down, 0); y < min(in.height+down, in.height); y++ {
		to, row := dst[y*in.stride():][:in.stride()], src[(y-down)*in.stride():][:in.stride()]
		if right >= 0 {
			copy(to[right*in.channels:], row)
		} else {
			copy(to, row[-right*in.channels:])
		}
	}
}

// steps draws a whole number uniformly from -most to most. The limit most is reduced to n, because a shift of n already
// moves an image of n pixels out of view.
func steps(r *rand.Rand, most, n int) int {
	most = min(most, 1<<30) // so that 2 most + 1 is an int on every machine
	return min(max(r.IntN(2*most+1)-most, -n), n)
}
