package augment

import "tessera/data/morph"

// Erode replaces every pixel by the smallest pixel in the disk of radius Radius around it, channel by channel. It does
// so for the whole image with probability Probability. The result is the flat erosion of the image, which thins bright
// shapes. The disk of radius 1 is a cross of five pixels. A radius or a probability of 0 changes nothing.
//
// Source: Serra, Image analysis and mathematical morphology, 1982; see package morph.
type Erode struct {
	Radius      int     `toml:"radius" want:">= 0" doc:"radius of the disk in pixels"`
	Probability float64 `toml:"probability" want:"in [0,1]" doc:"probability of eroding the image"`
}

func init() {
	Registry.Register("erode", "the smallest value in a disk around every pixel", func() Augmentation { return &Erode{Radius: 1, Probability: 0.5} })
}

func (e *Erode) Prepare(shape []int) (Change, error) {
	return filtered(morph.Erosion, e.Radius, e.Probability, shape)
}
