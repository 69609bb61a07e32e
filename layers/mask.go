package layers

import "math/rand/v2"

// maskSampler draws 0 with probability drop and keep otherwise.
type maskSampler struct{ drop, keep float64 }

// Sample implements [ops.Sampler].
func (m maskSampler) Sample(dst []float32, r *rand.Rand) {
	keep := float32(m.keep)
	for i := range dst {
		dst[i] = keep
		if r.Float64() < m.drop {
			dst[i] = 0
		}
	}
}
