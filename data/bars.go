package data

import (
	"cmp"
	"context"
	"slices"

	"tessera/config/part"
	"tessera/internal/lists"
	"tessera/internal/random"
)

func init() {
	Registry.Register("bars", "generated 8x8 images of overlapping bars, each of the 16 bars present with probability 1/8; 16 true parts",
		func() Source { return &Bars{Side: 8, Count: 500, Seed: 1} })
}

// Bars is the set of Földiák, "Forming sparse representations by local anti-Hebbian learning" (1990): binary 8x8
// images in which each of 16 bars, the 8 rows and the 8 columns, is present with probability 1/8, independently;
// a pixel where two bars cross is 1, not 2. The true parts are the 16 bars, rows first. With another side n there are 2n bars, each
// present with probability 1/n.
type Bars struct {
	Side  int    `toml:"side" want:"in [0,32]" doc:"rows and columns of an image; 0 means 8"`
	Count int    `toml:"count" want:"in [1,1000000]" doc:"number of images"`
	Seed  uint64 `toml:"seed" doc:"seed of the generated images; independent of the run's seed, so that all runs see the same images"`
}

// Check returns an error for images of one pixel, which are all equal: its row and its column are one bar, which is always present.
func (b *Bars) Check() error {
	if b.Side == 1 {
		return part.KeyErrorf("side", "got 1, want 2 or more, or 0 for 8: with one pixel all images are equal")
	}
	return nil
}

func (b *Bars) Shape(Dirs) ([]int, bool) { return []int{b.side(), b.side()}, true }

func (b *Bars) side() int { return cmp.Or(b.Side, 8) }

func (b *Bars) Load(context.Context, Dirs, Need) (*Set, error) {
	side := b.side()
	perImage := side * side
	size, err := generatedSize("bars", b.Count, perImage)
	if err != nil {
		return nil, err
	}
	parts := lists.Of(2*side, func(int) []float32 { return make([]float32, perImage) })
	for i := range side {
		for j := range side {
			parts[i][i*side+j] = 1
			parts[side+j][i*side+j] = 1
		}
	}
	pixels := make([]byte, size)
	r := random.Stream(b.Seed, "bars", 0)
	for i := range b.Count {
		for _, part := range parts {
			if r.IntN(side) == 0 {
				paint(pixels[i*perImage:(i+1)*perImage], part)
			}
		}
	}
	kinds := append(slices.Repeat([]string{"row"}, side), slices.Repeat([]string{"column"}, side)...)
	return generated("bars", []int{side, side}, pixels, parts, kinds)
}
