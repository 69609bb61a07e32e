package augment

import "math/rand/v2"

// Flip mirrors the image: left to right if Horizontal is true, and top to bottom if Vertical is true, each
// independently with probability Probability. Values are moved, not computed. A probability of 0 changes nothing.
//
// Source: for example Krizhevsky, Sutskever and Hinton, ImageNet classification with deep convolutional neural
// networks, 2012.
type Flip struct {
	Horizontal  bool    `toml:"horizontal" doc:"mirror left to right"`
	Vertical    bool    `toml:"vertical" doc:"mirror top to bottom"`
	Probability float64 `toml:"probability" want:"in [0,1]" doc:"probability of each of the two"`
}

func init() {
	Registry.Register("flip", "the mirror image", func() Augmentation { return &Flip{Horizontal: true, Probability: 0.5} })
}

func (f *Flip) Prepare(shape []int) (Change, error) {
	in, own := sizeOf(shape), *f
	return func(dst, src []float32, r *rand.Rand) { own.flip(dst, src, in, r) }, nil
}

func (f *Flip) flip(dst, src []float32, in size, r *rand.Rand) {
	horizontal, vertical := happens(r, f.Probability) && f.Horizontal, happens(r, f.Probability) && f.Vertical
	for y := range in.height {
		from := y
		if vertical {
			from = in.height - 1 - y
		}
		to, row := dst[y*in.stride():][:in.stride()], src[from*in.stride():][:in.stride()]
		if !horizontal {
			copy(to, row)
			continue
		}
		for x := range in.width {
			copy(to[x*in.channels:][:in.channels], row[(in.width-1-x)*in.channels:])
		}
	}
}
