package data

import (
	"context"
	"slices"

	"tessera/internal/random"
)

func init() {
	Registry.Register("bars", "generated 8x8 images of overlapping bars, each of the 16 bars present with probability 1/8; 16 true parts",
		func() Source { return &Bars{Count: 500, Seed: 1} })
}

// Bars is the set of Földiák, "Forming sparse representations by local anti-Hebbian learning" (1990): binary 8x8
// images in which each of 16 bars, the 8 rows and the 8 columns, is present with probability 1/8, independently;
// a pixel where two bars cross is 1, not 2. The true parts are the 16 bars, rows first.
type Bars struct {
	Count int    `toml:"count" want:"in [1,1000000]" doc:"number of images"`
	Seed  uint64 `toml:"seed" doc:"seed of the generated images; independent of the run's seed, so that all runs see the same images"`
}

const (
	barsSide   = 8
	barsPixels = barsSide * barsSide
)

// Shape implements [Source].
func (*Bars) Shape(Dirs) ([]int, bool) { return []int{barsSide, barsSide}, true }

// Load implements [Source].
func (b *Bars) Load(context.Context, Dirs, Need) (*Set, error) {
	size, err := generatedSize("bars", b.Count, barsPixels)
	if err != nil {
		return nil, err
	}
	parts := make([][]float32, 2*barsSide)
	for i := range parts {
		parts[i] = make([]float32, barsPixels)
	}
	for i := range barsSide {
		for j := range barsSide {
			parts[i][i*barsSide+j] = 1
			parts[barsSide+j][i*barsSide+j] = 1
		}
	}
	pixels := make([]byte, size)
	r := random.Stream(b.Seed, "bars", 0)
	for i := range b.Count {
		for _, part := range parts {
			if r.IntN(barsSide) == 0 {
				paint(pixels[i*barsPixels:(i+1)*barsPixels], part)
			}
		}
	}
	kinds := append(slices.Repeat([]string{"row"}, barsSide), slices.Repeat([]string{"column"}, barsSide)...)
	return generated("bars", []int{barsSide, barsSide}, pixels, parts, kinds)
}
