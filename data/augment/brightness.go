package augment

import "math/rand/v2"

// Brightness multiplies all values of the image by the same factor f and clips them to [0,1]:
//
//	y = clip(f x),  f from U[max(0, 1 - By), 1 + By]
//
// Black stays black. By = 0 changes nothing.
//
// Source: torchvision's ColorJitter; Chen et al., A simple framework for contrastive learning of visual
// representations, 2020, appendix A.
type Brightness struct {
	By float64 `toml:"by" want:"in [0,10]" doc:"largest distance of the factor from 1"`
}

func init() {
	Registry.Register("brightness", "all values times one factor: clip(f x), f within by of 1", func() Augmentation { return &Brightness{By: 0.4} })
}

func (*Brightness) Clips() bool { return true }

func (b *Brightness) Prepare(shape []int) (Change, error) {
	low, high := max(0, 1-b.By), 1+b.By
	return func(dst, src []float32, r *rand.Rand) {
		factor := float32(uniform(r, low, high))
		for i, v := range src {
			dst[i] = clip(factor * v)
		}
	}, nil
}
