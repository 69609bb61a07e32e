package layers

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
)

// largest is a source of the largest number.
type largest struct{}

func (largest) Uint64() uint64 { return math.MaxUint64 }

// A unit is 1 if a draw is less than its probability: a draw of 1 would make a unit 0 that is certainly 1.
func TestUniformDrawsAreBelowOne(t *testing.T) {
	var draw [1]float32
	uniformSampler{}.Sample(draw[:], rand.New(largest{}))
	expect.Equal(t, draw[0], math.Nextafter32(1, 0), "the largest draw")
}
