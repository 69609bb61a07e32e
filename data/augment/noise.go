package augment

import "math/rand/v2"

// Noise adds independent Gaussian noise to every value and clips the result to [0,1]:
//
//	y = clip(x + Std n),  n from N(0, 1)
//
// Std = 0 changes nothing.
//
// Source: Bishop, Training with noise is equivalent to Tikhonov regularization, 1995.
type Noise struct {
	Std float64 `toml:"std" want:">= 0" doc:"standard deviation"`
}

func init() {
	Registry.Register("noise", "Gaussian noise on every value: clip(x + std n)", func() Augmentation { return &Noise{Std: 0.1} })
}

func (*Noise) Clips() bool { return true }

func (n *Noise) Prepare(shape []int) (Change, error) {
	std := n.Std
	return func(dst, src []float32, r *rand.Rand) {
		for i, v := range src {
			dst[i] = clip(v + float32(std*r.NormFloat64()))
		}
	}, nil
}
