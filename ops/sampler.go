package ops

import "math/rand/v2"

// Sampler draws the values of a noise input, as layers and losses ask for them. r is the stream of that input alone. Any
// number of goroutines may call it at once.
type Sampler interface {
	Sample(dst []float32, r *rand.Rand)
}
