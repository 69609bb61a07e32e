package data

import (
	"context"
	"slices"

	"tessera/data/morph"
	"tessera/internal/random"
)

func init() {
	Registry.Register("swimmer", "256 generated 32x32 figures of a torso and four limbs in four positions each; 17 true parts",
		func() Source { return &Swimmer{Seed: 1} })
}

// Swimmer is the set of Donoho and Stodden, "When does non-negative matrix factorization give a correct decomposition into
// parts?" (2003), in this project's layout: 256 binary images of 32x32. Each image contains the torso, rows 10 to 21 of
// columns 15 and 16, and four limbs of 7 pixels, each in one of four positions, which gives 4^4 images. The true parts are the
// torso and the 16 limbs, pairwise disjoint. Image a + 4 b + 16 c + 64 d has the upper left limb in position a, the upper
// right one in b, the lower left one in c, the lower right one in d.
//
// With `thicken` every part is dilated by a square with this radius: limbs then overlap the torso and each other. Overlapping
// pixels are 1, not 2. With `coloured` images have three channels: the torso is white, the limbs are red, green, blue and yellow,
// and where parts overlap their channels are united. With `noise` Gaussian noise is added to the images, and pixels are clipped to [0,1].
type Swimmer struct {
	Coloured bool    `toml:"coloured" doc:"images of three channels, with a white torso and a colour for each limb"`
	Thicken  int     `toml:"thicken" want:"in [0,8]" doc:"radius in pixels of the square that dilates every part; overlapping parts are clipped to 1"`
	Noise    float64 `toml:"noise" want:">= 0" doc:"standard deviation of the Gaussian noise of every pixel"`
	Seed     uint64  `toml:"seed" doc:"seed of the noise; independent of the run's seed, so that all runs see the same images"`
}

const (
	swimmerSide   = 32
	swimmerPixels = swimmerSide * swimmerSide
	limbLength    = 7
)

// limbs contains the start of the four limbs and their directions: v is -1 upwards, h is -1 to the left.
var limbs = [4]struct{ row, column, v, h int }{
	{10, 14, -1, -1}, {10, 17, -1, +1}, {21, 14, +1, -1}, {21, 17, +1, +1},
}

// colours contains red, green and blue of the torso and of the four limbs.
var colours = [5][3]float32{{1, 1, 1}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 0}}

func (s *Swimmer) shape() []int {
	if s.Coloured {
		return []int{swimmerSide, swimmerSide, 3}
	}
	return []int{swimmerSide, swimmerSide}
}

func (s *Swimmer) Shape(Dirs) ([]int, bool) { return s.shape(), true }

func (s *Swimmer) Load(context.Context, Dirs, Need) (*Set, error) {
	parts := swimmerParts()
	if s.Thicken > 0 {
		for i := range parts {
			thick, err := morph.Apply(morph.Dilation, morph.Square, s.Thicken, parts[i], []int{swimmerSide, swimmerSide})
			if err != nil {
				return nil, err
			}
			parts[i] = thick
		}
	}
	if s.Coloured {
		for i, part := range parts { // the torso, then four positions of each limb
			parts[i] = painted(part, colours[(i+3)/4])
		}
	}
	const images = 4 * 4 * 4 * 4
	size := len(parts[0])
	pixels := make([]byte, images*size)
	for i := range images {
		image := pixels[i*size : (i+1)*size]
		paint(image, parts[0])
		for limb := range limbs {
			position := i >> (2 * limb) & 3
			paint(image, parts[1+4*limb+position])
		}
	}
	kinds := append([]string{"torso"}, slices.Repeat([]string{"limb"}, len(parts)-1)...)
	set, err := generated("swimmer", s.shape(), pixels, parts, kinds)
	if err != nil || s.Noise == 0 {
		return set, err
	}
	return known("swimmer", s.shape(), noisy(set.Train, s.Noise, s.Seed), parts, kinds)
}

func painted(part []float32, colour [3]float32) []float32 {
	out := make([]float32, 0, 3*len(part))
	for _, v := range part {
		out = append(out, v*colour[0], v*colour[1], v*colour[2])
	}
	return out
}

// noisy returns images with Gaussian noise, clipped to [0,1]. Each image has its own random stream.
func noisy(images *Images, deviation float64, seed uint64) []float32 {
	values := images.Float32()
	for i := range images.Len() {
		r := random.Stream(seed, "swimmer noise", uint64(i))
		row := values[i*images.Pixels() : (i+1)*images.Pixels()]
		for j, v := range row {
			row[j] = min(max(v+float32(deviation*r.NormFloat64()), 0), 1)
		}
	}
	return values
}

// swimmerParts returns the torso and then, limb after limb, the four positions of each.
func swimmerParts() [][]float32 {
	torso := make([]float32, swimmerPixels)
	for row := 10; row <= 21; row++ {
		torso[row*swimmerSide+15], torso[row*swimmerSide+16] = 1, 1
	}
	parts := [][]float32{torso}
	for _, l := range limbs {
		for _, direction := range [4][2]int{{0, l.h}, {l.v, l.h}, {l.v, 0}, {-l.v, l.h}} {
			part := make([]float32, swimmerPixels)
			for t := 1; t <= limbLength; t++ {
				part[(l.row+t*direction[0])*swimmerSide+l.column+t*direction[1]] = 1
			}
			parts = append(parts, part)
		}
	}
	return parts
}

func paint(image []byte, part []float32) {
	for i, v := range part {
		if v > 0 {
			image[i] = 255
		}
	}
}

// generated returns a generated set: all of its images are training images.
func generated(name string, shape []int, pixels []byte, parts [][]float32, kinds []string) (*Set, error) {
	images, err := NewBytes(shape, pixels, nil)
	if err != nil {
		return nil, err
	}
	images.Parts = parts
	return &Set{Name: name, Shape: shape, Train: images, Parts: parts, Kinds: kinds}, nil
}

// known returns a generated set of samples that consist of known parts.
func known(name string, shape []int, values []float32, parts [][]float32, kinds []string) (*Set, error) {
	m, err := NewFloats(shape, values, nil)
	if err != nil {
		return nil, err
	}
	m.Parts = parts
	return &Set{Name: name, Shape: shape, Train: m, Parts: parts, Kinds: kinds}, nil
}
