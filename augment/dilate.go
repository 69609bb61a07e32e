package augment

import (
	"math/rand/v2"

	"tessera/morph"
)

// Dilate replaces every pixel, with that Probability for the whole image, by the largest in the disk of that Radius around
// it, channel by channel: the flat dilation of the image, which thickens bright shapes. Radius 1 is the cross of five
// pixels. A radius or a probability of 0 changes nothing.
//
// Source: Serra, Image analysis and mathematical morphology, 1982; see package morph.
type Dilate struct {
	Radius      int     `toml:"radius" want:">= 0" doc:"radius of the disk in pixels"`
	Probability float64 `toml:"probability" want:"in [0,1]" doc:"probability of dilating the image"`
}

func init() {
	Registry.Register("dilate", "the largest value in a disk around every pixel", func() Augmentation { return &Dilate{Radius: 1, Probability: 0.5} })
}

// Apply implements [Augmentation].
func (d *Dilate) Apply(dst, src []float32, shape []int, r *rand.Rand, s *Scratch) {
	if !happens(r, d.Probability) {
		copy(dst, src)
		return
	}
	s.filter(morph.Dilation, d.Radius, shape).Image(dst, src)
}
