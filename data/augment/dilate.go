package augment

import (
	"math/rand/v2"

	"tessera/data/morph"
)

// Dilate replaces every pixel by the largest pixel in the disk of radius Radius around it, channel by channel. It does
// so for the whole image with probability Probability. The result is the flat dilation of the image, which thickens
// bright shapes. The disk of radius 1 is a cross of five pixels. A radius or a probability of 0 changes nothing.
//
// Source: Serra, Image analysis and mathematical morphology, 1982; see package morph.
type Dilate struct {
	Radius      int     `toml:"radius" want:">= 0" doc:"radius of the disk in pixels"`
	Probability float64 `toml:"probability" want:"in [0,1]" doc:"probability of dilating the image"`
}

func init() {
	Registry.Register("dilate", "the largest value in a disk around every pixel", func() Augmentation { return &Dilate{Radius: 1, Probability: 0.5} })
}

func (d *Dilate) Prepare(shape []int) (Change, error) {
	return filtered(morph.Dilation, d.Radius, d.Probability, shape)
}

func filtered(op morph.Operator, radius int, probability float64, shape []int) (Change, error) {
	f, err := morph.NewFilter(op, morph.Disk, radius, shape)
	if err != nil {
		return nil, err
	}
	return func(dst, src []float32, r *rand.Rand) {
		if !happens(r, probability) {
			copy(dst, src)
			return
		}
		f.Image(dst, src)
	}, nil
}
