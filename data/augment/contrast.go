package augment

import "math/rand/v2"

// Contrast multiplies the differences between all values of the image and their mean m by the same factor f, and clips
// the result to [0,1]:
//
//	y = clip(m + f (x - m)),  f from U[max(0, 1 - By), 1 + By]
//
// The mean is over all pixels and channels. By = 0 changes nothing.
//
// Source: torchvision's ColorJitter, whose mean of a colour image weights the channels; Chen et al., A simple framework
// for contrastive learning of visual representations, 2020, appendix A.
type Contrast struct {
	By float64 `toml:"by" want:"in [0,10]" doc:"largest distance of the factor from 1"`
}

func init() {
	Registry.Register("contrast", "the distance of all values to their mean times one factor: clip(m + f (x - m)), f within by of 1",
		func() Augmentation { return &Contrast{By: 0.4} })
}

func (*Contrast) Clips() bool { return true }

func (c *Contrast) Prepare(shape []int) (Change, error) {
	low, high := max(0, 1-c.By), 1+c.By
	return func(dst, src []float32, r *rand.Rand) {
		factor, m := uniform(r, low, high), float64(mean(src))
		for i, v := range src {
			// in the form f x + (1-f) m, a factor of 1 gives exactly x
			dst[i] = clip(float32(factor*float64(v) + (1-factor)*m))
		}
	}, nil
}
