package augment_test

import (
	"fmt"
	"math/rand/v2"

	"tessera/data/augment"
)

// invert is a user-defined augmentation that inverts images with a given probability.
type invert struct {
	Probability float64 `toml:"probability" want:"in [0,1]" doc:"of inverting the image"`
}

// Prepare implements [augment.Augmentation].
func (v *invert) Prepare(shape []int) (augment.Change, error) {
	return func(dst, src []float32, r *rand.Rand) {
		copy(dst, src)
		if r.Float64() < v.Probability {
			for i := range dst {
				dst[i] = 1 - src[i]
			}
		}
	}, nil
}

// A user-defined augmentation is a struct with settings and a method Prepare. A Chain accepts it directly.
// augment.Registry.Register makes it available in models.toml.
func Example_ownAugmentation() {
	steps := []augment.Augmentation{&invert{Probability: 1}, &augment.Flip{Horizontal: true, Probability: 1}}
	chain, err := augment.NewChain(steps, []int{1, 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	images := []float32{0, 0.25, 0.5, 1, 1, 1, 0, 0} // two images, each with one row
	views := make([]float32, len(images))
	if err := chain.Apply(views, images, rand.New(rand.NewPCG(1, 1))); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(views)
	// Output: [0 0.5 0.75 1 1 1 0 0]
}
