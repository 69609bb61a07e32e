package data

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tessera/config/part"
	"tessera/internal/random"
)

func init() {
	Registry.Register("shapes", "generated images of discs, lines and rectangles at fixed places, each with its own brightness; the shapes are the true parts",
		func() Source {
			return &Shapes{Parts: 30, Height: 20, Width: 20, Size: 0.4, Count: 1000, Density: 0.2, Overlap: 0.7, Seed: 1}
		})
}

// Shapes is a generated data set whose images are sums of known parts. A part is a disc, a line or a rectangle of brightness 1
// at a fixed place. An image is the sum of the parts that are present in it, each times a brightness that is uniform in [0.3,
// 1]. A part is present with probability `density`. The parts 2k and 2k+1 are a pair: with probability `correlation` the
// second part is present if and only if the first one is, otherwise independently of it. `correlation` is thus the correlation
// of their presence. The first `always` parts are in every image.
//
// If `clipped`, the pixels of an image are min(1, sum); otherwise all images are divided by the largest pixel of the training
// images. Noise is added at the end, and pixels are clipped to [0,1] again. `overlap` bounds the cosine similarity of any two
// parts: with 0 they are disjoint. Each part is drawn until it satisfies this bound; 10,000 failed draws are an error.
//
// Equal keys give equal parts and images. `count`, `test`, `density`, `correlation`, `always`, `clipped` and `noise` do not
// affect the parts, and each image has its own random stream: before the division, a larger set begins with the images of a smaller one.
type Shapes struct {
	Parts       int     `toml:"parts" want:"in [1,1000]" doc:"number of true parts"`
	Height      int     `toml:"height" want:"in [4,512]" doc:"image height in pixels"`
	Width       int     `toml:"width" want:"in [4,512]" doc:"image width in pixels"`
	Size        float64 `toml:"size" want:"in (0,1]" doc:"largest extent of a part, as a fraction of the shorter side; the smallest is half of it"`
	Count       int     `toml:"count" want:"in [1,1000000]" doc:"number of training images"`
	Test        int     `toml:"test" want:"in [0,1000000]" doc:"number of test images; with 0 there is no test split"`
	Density     float64 `toml:"density" want:"in (0,1)" doc:"probability of a part to be present in an image"`
	Overlap     float64 `toml:"overlap" want:"in [0,1]" doc:"largest cosine similarity of two parts"`
	Correlation float64 `toml:"correlation" want:"in [0,1]" doc:"correlation of the presence of the two parts of a pair"`
	Always      int     `toml:"always" want:">= 0" doc:"number of parts, from the first, that are in every image"`
	Clipped     bool    `toml:"clipped" doc:"pixels are min(1, sum) instead of sums divided by the largest"`
	Noise       float64 `toml:"noise" want:">= 0" doc:"standard deviation of the Gaussian noise of every pixel"`
	Seed        uint64  `toml:"seed" doc:"seed of the parts and images; independent of the run's seed, so that all runs see the same images"`
}

// shapeDraws is the maximum number of draws for one part.
const shapeDraws = 10000

func (s *Shapes) Check() error {
	if s.Always > s.Parts {
		return part.KeyErrorf("always", "got %d, want at most parts = %d", s.Always, s.Parts)
	}
	return nil
}

func (s *Shapes) Shape(Dirs) ([]int, bool) { return []int{s.Height, s.Width}, true }
func (s *Shapes) HasTest() bool            { return s.Test > 0 }

func (s *Shapes) Load(context.Context, Dirs, Need) (*Set, error) {
	if _, err := generatedSize("shapes", max(s.Count, s.Test), s.Height, s.Width); err != nil {
		return nil, err
	}
	parts, kinds, err := s.draw()
	if err != nil {
		return nil, err
	}
	train := s.sums(parts, "shapes", s.Count)
	test := s.sums(parts, "shapes test", s.Test)
	divisor := float32(0)
	for _, v := range train {
		divisor = max(divisor, v)
	}
	if s.Clipped || divisor == 0 {
		divisor = 1
	}
	s.finish(train, divisor, "shapes noise")
	s.finish(test, divisor, "shapes test noise")
	shape := []int{s.Height, s.Width}
	set, err := known("shapes", shape, train, parts, kinds)
	if err != nil {
		return nil, err
	}
	set.HasTest = s.Test > 0
	if set.HasTest {
		if set.Test, err = NewFloats(shape, test, nil); err != nil {
			return nil, err
		}
		set.Test.Parts = parts
	}
	return set, nil
}

func (s *Shapes) draw() (parts [][]float32, kinds []string, err error) {
	r := random.Stream(s.Seed, "shapes parts", 0)
	for range s.Parts {
		part, kind := s.room(parts, len(parts)%3, r)
		if part == nil {
			return nil, nil, &Error{Dataset: "shapes", Problem: fmt.Sprintf("found no room for part %d of %d with overlap <= %g in %d draws",
				len(parts)+1, s.Parts, s.Overlap, shapeDraws), Hint: "give fewer parts, a larger overlap or a smaller size"}
		}
		parts, kinds = append(parts, part), append(kinds, kind)
	}
	return parts, kinds, nil
}

// room draws parts of one kind until one does not overlap the others too much; it returns nil if there is none.
func (s *Shapes) room(others [][]float32, kind int, r *rand.Rand) (part []float32, name string) {
	for range shapeDraws {
		part, name = s.part(kind, r)
		fits := true
		for _, other := range others {
			fits = fits && overlapOf(part, other) <= s.Overlap
		}
		if fits {
			return part, name
		}
	}
	return nil, ""
}

// part draws one part inside the image: a disc, a line one pixel wide or a rectangle.
func (s *Shapes) part(kind int, r *rand.Rand) (pixels []float32, name string) {
	largest := s.Size * float64(min(s.Height, s.Width))
	extent := func() float64 { return max(2, largest*(0.5+0.5*r.Float64())) }
	pixels = make([]float32, s.Height*s.Width)
	set := func(row, column int) { pixels[row*s.Width+column] = 1 }
	switch kind {
	case 0:
		radius := extent() / 2
		y, x := radius+r.Float64()*(float64(s.Height)-2*radius), radius+r.Float64()*(float64(s.Width)-2*radius)
		for i := range pixels {
			dy, dx := float64(i/s.Width)+0.5-y, float64(i%s.Width)+0.5-x
			if dy*dy+dx*dx <= radius*radius {
				pixels[i] = 1
			}
		}
		return pixels, "disc"
	case 1:
		length, angle := extent(), math.Pi*r.Float64()
		dy, dx := length*math.Sin(angle), length*math.Cos(angle)
		y := r.Float64()*(float64(s.Height-1)-dy) + 0.5
		x := max(0, -dx) + r.Float64()*(float64(s.Width-1)-math.Abs(dx)) + 0.5
		steps := 4 * int(math.Ceil(length))
		for t := range steps + 1 {
			share := float64(t) / float64(steps)
			set(min(int(y+share*dy), s.Height-1), min(int(x+share*dx), s.Width-1))
		}
		return pixels, "line"
	}
	height, width := min(int(extent()+0.5), s.Height), min(int(extent()+0.5), s.Width)
	top, left := r.IntN(s.Height-height+1), r.IntN(s.Width-width+1)
	for row := range height {
		for column := range width {
			set(top+row, left+column)
		}
	}
	return pixels, "rectangle"
}

// overlapOf returns the cosine similarity of two non-zero images. Their pixels are 0 and 1, so the sums are exact.
func overlapOf(a, b []float32) float64 {
	var dot, aa, bb float64
	for i, v := range a {
		dot, aa, bb = dot+float64(v*b[i]), aa+float64(v*v), bb+float64(b[i]*b[i])
	}
	return dot / math.Sqrt(aa*bb)
}

const dimmest = 0.3

// sums returns n unscaled images. Every image draws the same number of values from its own stream.
func (s *Shapes) sums(parts [][]float32, stream string, n int) []float32 {
	width := s.Height * s.Width
	images := make([]float32, n*width)
	for i := range n {
		r := random.Stream(s.Seed, stream, uint64(i))
		image, first := images[i*width:(i+1)*width], false
		for p, part := range parts {
			present, copied, brightness := r.Float64() < s.Density, r.Float64() < s.Correlation, float32(dimmest+(1-dimmest)*r.Float64())
			if p%2 == 1 && copied {
				present = first
			}
			if first = present; !present && p >= s.Always {
				continue
			}
			for j, v := range part {
				image[j] += brightness * v
			}
		}
	}
	return images
}

// finish divides images and adds noise; the resulting pixels are in [0,1].
func (s *Shapes) finish(images []float32, divisor float32, stream string) {
	width := s.Height * s.Width
	for i := 0; i < len(images); i += width {
		r := random.Stream(s.Seed, stream, uint64(i/width))
		for j := i; j < i+width; j++ {
			v := images[j] / divisor
			if s.Noise > 0 {
				v += float32(s.Noise * r.NormFloat64())
			}
			images[j] = min(max(v, 0), 1)
		}
	}
}
