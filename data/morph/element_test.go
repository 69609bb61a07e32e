package morph

import (
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// elements contains symmetric elements and one asymmetric element, each with a function that selects its pixels for radius 2.
var elements = map[Element]func(dy, dx int) bool{
	Square:            func(dy, dx int) bool { return max(dy, -dy, dx, -dx) <= 2 },
	Row:               func(dy, dx int) bool { return dy == 0 && max(dx, -dx) <= 2 },
	Column:            func(dy, dx int) bool { return dx == 0 && max(dy, -dy) <= 2 },
	Disk:              func(dy, dx int) bool { return dy*dy+dx*dx <= 4 },
	"":                func(dy, dx int) bool { return dy*dy+dx*dx <= 4 },
	"001 010 000":     func(dy, dx int) bool { return dy == 0 && dx == 0 || dy == -1 && dx == 1 },
	"11011":           nil,
	"00100 11111":     nil,
	"010\n110\n000  ": func(dy, dx int) bool { return dy == 0 && dx == 0 || dy == -1 && dx == 0 || dy == 0 && dx == -1 },
}

// extreme returns sign times the maximum of sign x(p + side b) over the pixels b of an element, computed by plain loops.
func extreme(image []float32, g grid, has func(dy, dx int) bool, side int, sign float32) []float32 {
	out := make([]float32, len(image))
	for i := range out {
		y, x, c := i/(g.width*g.channels), i/g.channels%g.width, i%g.channels
		best := float32(math.Inf(-1))
		for dy := -2; dy <= 2; dy++ {
			for dx := -2; dx <= 2; dx++ {
				row, column := y+side*dy, x+side*dx
				if has(dy, dx) && row >= 0 && row < g.height && column >= 0 && column < g.width {
					best = max(best, sign*image[(row*g.width+column)*g.channels+c])
				}
			}
		}
		out[i] = sign * best
	}
	return out
}

func TestOperatorsByOtherElementsEqualPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for element, has := range elements {
		for _, shape := range testShapes {
			g, _ := newGrid(shape)
			x := randomImages(r, 1, shape)
			if has == nil {
				expect.Error(t, expect.Err(Apply(Dilation, element, 2, x, shape)), "with a 1 in the centre", element)
				continue
			}
			dilate := func(v []float32) []float32 { return extreme(v, g, has, -1, 1) }
			erode := func(v []float32) []float32 { return extreme(v, g, has, 1, -1) }
			for op, want := range map[Operator][]float32{Dilation: dilate(x), Erosion: erode(x), Opening: dilate(erode(x)), Closing: erode(dilate(x))} {
				if got, err := Apply(op, element, 2, x, shape); err != nil || !equal(got, want) {
					t.Errorf("%s by %q of %v: got %v (%v), want %v", op, element, shape, got, err, want)
				}
			}
		}
	}
}

// For any element, also an asymmetric one, an opening is never above the image, and a closing never below.
func TestOpeningsAndClosingsOfAnyElementBoundTheImage(t *testing.T) {
	shape := []int{9, 8, 2}
	x := randomImages(rand.New(rand.NewPCG(7, 8)), 3, shape)
	for element, has := range elements {
		if has == nil {
			continue
		}
		for op, sign := range map[Operator]float32{Opening: 1, Closing: -1} {
			y, err := Apply(op, element, 1, x, shape)
			fatal.If(t, err)
			again, err := Apply(op, element, 1, y, shape)
			if err != nil || !equal(again, y) {
				t.Errorf("%s by %q twice is not once (%v)", op, element, err)
			}
			for i := range x {
				if sign*y[i] > sign*x[i] {
					t.Fatalf("%s by %q: %v of %v", op, element, y[i], x[i])
				}
			}
		}
	}
}
