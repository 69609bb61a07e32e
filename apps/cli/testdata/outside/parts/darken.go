package parts

import (
	"math/rand/v2"

	"tessera/data/augment"
)

// Darken multiplies the image by a random factor in [1-By, 1].
type Darken struct {
	By float64 `toml:"by" want:"in [0,1]" doc:"largest share of the brightness that is lost"`
}

func init() {
	augment.Registry.Register("darken", "a random factor below 1", func() augment.Augmentation { return &Darken{By: 0.5} })
}

// Prepare implements [augment.Augmentation].
func (d *Darken) Prepare(shape []int) (augment.Change, error) {
	by := float32(d.By)
	return func(dst, src []float32, r *rand.Rand) {
		factor := 1 - by*r.Float32()
		for i, v := range src {
			dst[i] = factor * v
		}
	}, nil
}
