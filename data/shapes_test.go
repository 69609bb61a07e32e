package data

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
)

func shapes() *Shapes {
	return &Shapes{Parts: 12, Height: 16, Width: 18, Size: 0.4, Count: 50, Density: 0.3, Overlap: 0.6, Seed: 1}
}

func TestShapesAreSumsOfTheirParts(t *testing.T) {
	s := shapes()
	s.Density = 0.05 // many images of one part
	set := load(t, s)
	image, single := make([]float32, 16*18), 0
	for i := range set.Train.Len() {
		set.Train.Batch(image, []int{i})
		for p, part := range set.Parts {
			if overlapOf(image, part) > 1-1e-6 {
				single++
			}
			if p == 0 && slices.Max(image) > 1 {
				t.Fatalf("image %d has a pixel of %g", i, slices.Max(image))
			}
		}
	}
	if single < 5 {
		t.Errorf("%d images are one part, want at least 5", single)
	}
	expect.Slice(t, set.Kinds[:3], []string{"disc", "line", "rectangle"}, "kinds", set.Kinds)
}

func TestShapesOverlapNoMoreThanDeclared(t *testing.T) {
	for _, most := range []float64{0, 0.3, 0.9} {
		s := shapes()
		s.Overlap = most
		parts := load(t, s).Parts
		for a := range parts {
			for b := range a {
				if got := overlapOf(parts[a], parts[b]); got > most {
					t.Errorf("parts %d and %d have a cosine of %g, want <= %g", a, b, got, most)
				}
			}
		}
	}
}

func TestShapesWithoutRoomAreAnError(t *testing.T) {
	s := shapes()
	s.Parts, s.Overlap = 200, 0
	expect.Error(t, expect.Err(s.Load(context.Background(), nil, Need{})), "found no room for part")
}

// Least squares with the true parts recovers the brightness of each part in each image. The frequency of the parts, their mean
// brightness and the correlation of each pair equal the declared values.
func TestShapesHaveTheDeclaredDensityAndCorrelation(t *testing.T) {
	s := shapes()
	s.Count, s.Overlap, s.Correlation, s.Density = 4000, 0, 0.6, 0.25
	set := load(t, s)
	present := make([][]float64, s.Parts)
	image := make([]float32, 16*18)
	for i := range s.Count {
		set.Train.Batch(image, []int{i})
		for p, part := range set.Parts { // disjoint parts: the pixels of a part are its brightness
			is := 0.0
			if image[slices.Index(part, 1)] > 0 {
				is = 1
			}
			present[p] = append(present[p], is)
		}
	}
	mean := func(v []float64) (sum float64) {
		for _, x := range v {
			sum += x / float64(len(v))
		}
		return sum
	}
	correlation := func(a, b []float64) float64 {
		ma, mb, sum := mean(a), mean(b), 0.0
		for i, x := range a {
			sum += (x - ma) * (b[i] - mb) / float64(len(a))
		}
		return sum / math.Sqrt(ma*(1-ma)*mb*(1-mb))
	}
	for p := range present {
		expect.Near(t, mean(present[p]), s.Density, 0.04, "part", p, "is in")
	}
	for p := 0; p+2 < s.Parts; p += 2 {
		expect.Near(t, correlation(present[p], present[p+1]), s.Correlation, 0.08, "the pair of part", p, "has correlation")
		if got := correlation(present[p+1], present[p+2]); math.Abs(got) > 0.08 {
			t.Errorf("parts %d and %d have correlation %.3f, want 0", p+1, p+2, got)
		}
	}
}

func TestTheFirstPartsCanBeInEveryImage(t *testing.T) {
	s := shapes()
	s.Count, s.Overlap, s.Always = 200, 0, 2
	set, usual := load(t, s), load(t, func() *Shapes { u := shapes(); u.Count, u.Overlap = 200, 0; return u }())
	image := make([]float32, 16*18)
	for p, part := range set.Parts {
		if !slices.Equal(part, usual.Parts[p]) {
			t.Fatalf("part %d differs from that of the images without", p)
		}
		in := 0
		for i := range s.Count {
			if set.Train.Batch(image, []int{i}); image[slices.Index(part, 1)] > 0 {
				in++
			}
		}
		if p < 2 && in != s.Count || p >= 2 && in > s.Count/2 {
			t.Errorf("part %d is in %d of %d images", p, in, s.Count)
		}
	}
	expect.NoError(t, s.Check())
	if s.Always = s.Parts + 1; s.Check() == nil || !strings.Contains(s.Check().Error(), "got 13, want at most parts = 12") {
		t.Errorf("got %v", s.Check())
	}
}

func TestShapesKeepTheirPartsWhateverTheImages(t *testing.T) {
	first := load(t, shapes())
	other := shapes()
	other.Count, other.Test, other.Density, other.Clipped, other.Noise = 20, 7, 0.5, true, 0.1
	second := load(t, other)
	for p, part := range first.Parts {
		if !slices.Equal(part, second.Parts[p]) {
			t.Fatalf("part %d differs", p)
		}
	}
	if !second.HasTest || second.Test.Len() != 7 || len(second.Test.Parts) != 12 {
		t.Errorf("test split %v of %d images", second.HasTest, second.Test.Len())
	}
	if slices.Equal(second.Test.First(7).Float32(), second.Train.First(7).Float32()) {
		t.Error("test images are training images")
	}
	if low, high := second.Train.Range(); low < 0 || high > 1 {
		t.Errorf("noisy pixels in [%g,%g], want in [0,1]", low, high)
	}
	expect.Slice(t, first.Train.Float32(), load(t, shapes()).Train.Float32(), "equal keys gave different images")
}

func TestClippedShapesAreSaturatedSums(t *testing.T) {
	s := shapes()
	s.Clipped = true
	longer := shapes()
	longer.Clipped, longer.Count = true, 80
	first, second := load(t, s), load(t, longer)
	expect.Slice(t, first.Train.Float32(), second.Train.First(50).Float32(), "a larger count changed the first images")
	ones := 0
	for _, v := range first.Train.Float32() {
		if v == 1 {
			ones++
		}
	}
	if ones < 20 {
		t.Errorf("%d saturated pixels, want at least 20", ones)
	}
}

func TestThickAndNoisySwimmers(t *testing.T) {
	plain, thick := load(t, &Swimmer{}), load(t, &Swimmer{Thicken: 1})
	if overlapOf(plain.Parts[0], plain.Parts[1]) != 0 || overlapOf(thick.Parts[0], thick.Parts[1]) == 0 {
		t.Error("thick limbs must overlap the torso, thin ones must not")
	}
	if low, high := thick.Train.Range(); low != 0 || high != 1 {
		t.Errorf("pixels in [%g,%g], want [0,1]", low, high)
	}
	noisy := load(t, &Swimmer{Noise: 0.2, Seed: 1})
	expect.Slice(t, noisy.Parts[3], plain.Parts[3], "noise changed the parts")
	expect.Equal(t, len(noisy.Train.Parts), 17, "noise changed the parts")
	sum, n := 0.0, 0
	values := noisy.Train.Float32()
	for i, v := range plain.Train.Float32() {
		if v == 0 { // half of the noise is clipped: E max(0, e) = 0.2 / sqrt(2 pi)
			sum, n = sum+float64(values[i]), n+1
		}
	}
	expect.Near(t, sum/float64(n), 0.0798, 0.002, "mean of the noise on black pixels")
	if slices.Equal(values, load(t, &Swimmer{Noise: 0.2, Seed: 2}).Train.Float32()) {
		t.Error("different seeds gave the same noise")
	}
}
