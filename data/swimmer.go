package data

import (
	"context"
	"slices"
)

func init() {
	Registry.Register("swimmer", "256 generated 32x32 figures of a torso and four limbs in four positions each; 17 true parts",
		func() Source { return &Swimmer{} })
}

// Swimmer is the set of Donoho and Stodden, "When does non-negative matrix factorization give a correct decomposition
// into parts?" (2003), in this project's layout: 256 binary images of 32x32. Each is the torso, rows 10 to 21 of
// columns 15 and 16, and one of four positions of each of four limbs of 7 pixels; 4^4 images. The true parts are the
// torso and the 16 limbs, pairwise disjoint. Image number a + 4 b + 16 c + 64 d has the upper left limb in position a,
// the upper right one in b, the lower left one in c, the lower right one in d.
type Swimmer struct{}

const (
	swimmerSide   = 32
	swimmerPixels = swimmerSide * swimmerSide
	limbLength    = 7
)

// limbs say where the four limbs start and to which side they point: v is -1 upwards, h is -1 to the left.
var limbs = [4]struct{ row, column, v, h int }{
	{10, 14, -1, -1}, {10, 17, -1, +1}, {21, 14, +1, -1}, {21, 17, +1, +1},
}

// Shape implements [Source].
func (*Swimmer) Shape(Dirs) ([]int, bool) { return []int{swimmerSide, swimmerSide}, true }

// Load implements [Source].
func (*Swimmer) Load(context.Context, Dirs, Need) (*Set, error) {
	parts := swimmerParts()
	const images = 4 * 4 * 4 * 4
	pixels := make([]byte, images*swimmerPixels)
	for i := range images {
		image := pixels[i*swimmerPixels : (i+1)*swimmerPixels]
		paint(image, parts[0])
		for limb := range limbs {
			position := i >> (2 * limb) & 3
			paint(image, parts[1+4*limb+position])
		}
	}
	kinds := append([]string{"torso"}, slices.Repeat([]string{"limb"}, len(parts)-1)...)
	return generated("swimmer", []int{swimmerSide, swimmerSide}, pixels, parts, kinds)
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

// paint sets the pixels of a part in an image.
func paint(image []byte, part []float32) {
	for i, v := range part {
		if v > 0 {
			image[i] = 255
		}
	}
}

// generated returns a made set: all of its images are training images.
func generated(name string, shape []int, pixels []byte, parts [][]float32, kinds []string) (*Set, error) {
	images, err := NewBytes(shape, pixels, nil)
	if err != nil {
		return nil, err
	}
	images.Parts = parts
	return &Set{Name: name, Shape: shape, Train: images, Parts: parts, Kinds: kinds}, nil
}
