package ops

import "math/rand/v2"

// Sampler draws the values of a noise input of a layer or a loss. r is the random stream of that input. A Sampler must be
// safe for concurrent use.
type Sampler interface {
	Sample(dst []float32, r *rand.Rand)
}
