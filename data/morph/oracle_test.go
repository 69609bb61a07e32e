package morph

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// The oracles: every definition as plain loops over float32 pixels, border pixels checked one by one.

// plainDilate returns the maximum (or, for sign -1, the minimum) over the neighbours for which reach(dx,dy) is true.
func plainDilate(image []float32, g grid, radius int, sign float32, reach func(dx, dy int) bool) []float32 {
	out := make([]float32, len(image))
	for y := range g.height {
		for x := range g.width {
			for c := range g.channels {
				best := float32(math.Inf(-1))
				for dy := -radius; dy <= radius; dy++ {
					for dx := -radius; dx <= radius; dx++ {
						if y+dy < 0 || y+dy >= g.height || x+dx < 0 || x+dx >= g.width || !reach(dx, dy) {
							continue
						}
						if v := sign * image[((y+dy)*g.width+x+dx)*g.channels+c]; v > best {
							best = v
						}
					}
				}
				out[(y*g.width+x)*g.channels+c] = sign * best
			}
		}
	}
	return out
}

func plainApply(op Operator, radius int, image []float32, g grid) []float32 {
	disk := func(dx, dy int) bool { return dx*dx+dy*dy <= radius*radius }
	dilate := func(v []float32) []float32 { return plainDilate(v, g, radius, 1, disk) }
	erode := func(v []float32) []float32 { return plainDilate(v, g, radius, -1, disk) }
	switch op {
	case Dilation:
		return dilate(image)
	case Erosion:
		return erode(image)
	case Opening:
		return dilate(erode(image))
	default:
		return erode(dilate(image))
	}
}

// plainReconstruct iterates geodesic steps by the 3x3 square until nothing changes; sign -1 reconstructs by erosion.
func plainReconstruct(marker, mask []float32, g grid, sign float32) []float32 {
	under := func(m []float32) []float32 {
		out := lists.Of(len(m), func(i int) float32 { return sign * min(sign*m[i], sign*mask[i]) })
		return out
	}
	now := under(marker)
	for {
		next := under(plainDilate(now, g, 1, sign, func(int, int) bool { return true }))
		if equal(next, now) {
			return now
		}
		now = next
	}
}

func equal(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// testShapes contains shapes of single rows, columns and pixels, and images smaller than the disks.
var testShapes = [][]int{{1, 1}, {1, 9}, {7, 1}, {2, 3}, {6, 5}, {13, 11}, {5, 6, 3}, {9, 8, 2}}

// randomImages returns images with smooth values, ties, negative values and both zeros.
func randomImages(r *rand.Rand, n int, shape []int) []float32 {
	for _, s := range shape {
		n *= s
	}
	v := make([]float32, n)
	for i := range v {
		switch r.IntN(3) {
		case 0:
			v[i] = float32(r.NormFloat64())
		case 1:
			v[i] = float32(r.IntN(5)) - 2
		default:
			v[i] = float32(math.Copysign(0, r.Float64()-0.5))
		}
	}
	return v
}

func mustApply(t *testing.T, op Operator, radius int, images []float32, shape []int) []float32 {
	t.Helper()
	out, err := Apply(op, Disk, radius, images, shape)
	fatal.If(t, err)
	return out
}
