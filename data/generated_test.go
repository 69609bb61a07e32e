package data

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func load(t *testing.T, s Source) *Set {
	t.Helper()
	set, err := s.Load(context.Background(), nil, Need{Test: true})
	fatal.If(t, err)
	shape, ok := s.Shape(nil)
	if !ok || !slices.Equal(shape, set.Shape) || !slices.Equal(shape, set.Train.Shape) {
		t.Fatalf("declared shape %v (%v), set %v, images %v", shape, ok, set.Shape, set.Train.Shape)
	}
	return set
}

// partsOf returns the parts that an image contains, and reports whether the image is exactly their union.
func partsOf(image []float32, parts [][]float32) (present []int, union bool) {
	rest := slices.Clone(image)
	for p, part := range parts {
		inside := true
		for j, v := range part {
			inside = inside && (v == 0 || image[j] == 1)
		}
		if !inside {
			continue
		}
		present = append(present, p)
		for j, v := range part {
			if v == 1 {
				rest[j] = 0
			}
		}
	}
	return present, !slices.ContainsFunc(rest, func(v float32) bool { return v != 0 })
}

func TestSwimmerImagesAreTheTorsoAndOnePositionOfEachLimb(t *testing.T) {
	set := load(t, &Swimmer{})
	if set.Train.Len() != 256 || set.Test != nil || set.HasTest || len(set.Parts) != 17 {
		t.Fatalf("%d images, test %v, %d parts; want 256, none, 17", set.Train.Len(), set.Test, len(set.Parts))
	}
	seen := map[string]bool{}
	image := make([]float32, 32*32)
	for i := range 256 {
		set.Train.Batch(image, []int{i})
		present, union := partsOf(image, set.Parts)
		if !union || len(present) != 5 || present[0] != 0 {
			t.Fatalf("image %d is made of parts %v (all of it: %v), want the torso and four limbs", i, present, union)
		}
		for limb := range 4 {
			expect.Equal(t, present[1+limb], 1+4*limb+i>>(2*limb)&3, "image", i, "limb", limb, "part")
		}
		lit := 0
		for _, v := range image {
			if v == 1 {
				lit++
			}
		}
		expect.Equal(t, lit, 24+4*7, "image", i, "has", lit, "pixels, want 52")
		seen[string(set.Train.Bytes(i))] = true
	}
	expect.Equal(t, len(seen), 256, "distinct images")
}

func TestSwimmerPartsAreDisjointAndLieWhereTheLayoutSays(t *testing.T) {
	set := load(t, &Swimmer{})
	owner := make([]int, 32*32)
	for p, part := range set.Parts {
		pixels := 0
		for j, v := range part {
			if v == 0 {
				continue
			}
			if pixels++; owner[j] != 0 {
				t.Errorf("pixel (%d,%d) belongs to parts %d and %d", j/32, j%32, owner[j]-1, p)
			}
			owner[j] = p + 1
		}
		expect.Equal(t, pixels, map[string]int{"torso": 24, "limb": 7}[set.Kinds[p]], "part", p, "a", set.Kinds[p], "has", pixels, "pixels")
	}
	// The ends of some parts, read off the layout by hand.
	for _, c := range []struct{ part, row, column int }{
		{0, 10, 15}, {0, 21, 16}, // torso
		{1, 10, 7}, {2, 3, 7}, {3, 3, 14}, {4, 17, 7}, // upper left limb: level, up and out, up, down and out
		{6, 3, 24}, {11, 28, 14}, {16, 14, 24}, // upper right up and out, lower left down, lower right up and out
	} {
		expect.Equal(t, set.Parts[c.part][c.row*32+c.column], 1, "part", c.part, "lacks its end", c.row, c.column)
	}
}

func TestBarsAreUnionsOfBarsPresentWithProbabilityOneEighth(t *testing.T) {
	const n = 20000
	set := load(t, &Bars{Count: n, Seed: 3})
	if set.Train.Len() != n || len(set.Parts) != 16 || set.HasTest {
		t.Fatalf("%d images, %d parts, test %v", set.Train.Len(), len(set.Parts), set.HasTest)
	}
	var count [16]int
	image := make([]float32, 64)
	for i := range n {
		set.Train.Batch(image, []int{i})
		present, union := partsOf(image, set.Parts)
		if !union {
			t.Fatalf("image %d is not a union of bars: %v", i, image)
		}
		if len(present) == 16 { // all rows lit: which columns were drawn is unknown
			continue
		}
		for _, p := range present {
			count[p]++
		}
	}
	if set.Kinds[0] != "row" || set.Kinds[8] != "column" || set.Parts[0][7] != 1 || set.Parts[8][56] != 1 {
		t.Error("the first part is not the top row, or the ninth not the left column")
	}
	deviation := math.Sqrt(n * 1.0 / 8 * 7 / 8)
	for p, c := range count {
		expect.Near(t, float64(c), n/8, 5*deviation, "bar", p, "is in", n, deviation)
	}
}

func TestBarsOfAnotherSide(t *testing.T) {
	const n = 9000
	set := load(t, &Bars{Side: 3, Count: n, Seed: 3})
	if len(set.Parts) != 6 || !slices.Equal(set.Shape, []int{3, 3}) {
		t.Fatalf("%d parts of shape %v, want 6 of [3 3]", len(set.Parts), set.Shape)
	}
	dark, image := 0, make([]float32, 9)
	for i := range n {
		set.Train.Batch(image, []int{i})
		if _, union := partsOf(image, set.Parts); !union {
			t.Fatalf("image %d is not a union of bars: %v", i, image)
		}
		if slices.Max(image) == 0 {
			dark++
		}
	}
	want := n * math.Pow(2.0/3, 6) // no bar is there
	expect.Near(t, float64(dark), want, 5*math.Sqrt(want), n)
	expect.Slice(t, load(t, &Bars{Count: 5, Seed: 1}).Train.Float32(), load(t, &Bars{Side: 8, Count: 5, Seed: 1}).Train.Float32(), "bars without a side are not those of side 8")
}

func TestBarsOfOnePixelAreAnError(t *testing.T) {
	expect.Error(t, (&Bars{Side: 1, Count: 5}).Check(), "side: got 1, want 2 or more")
	for _, side := range []int{0, 2, 32} {
		expect.NoError(t, (&Bars{Side: side, Count: 5}).Check())
	}
}

func TestBarsDependOnTheirSeedAlone(t *testing.T) {
	first := load(t, &Bars{Count: 100, Seed: 1}).Train.Float32()
	expect.Slice(t, first, load(t, &Bars{Count: 100, Seed: 1}).Train.Float32(), "equal seeds gave different images")
	if slices.Equal(first, load(t, &Bars{Count: 100, Seed: 2}).Train.Float32()) {
		t.Error("different seeds gave the same images")
	}
	longer := load(t, &Bars{Count: 200, Seed: 1}).Train.First(100).Float32()
	expect.Slice(t, first, longer, "a larger count changed the first images")
}

// TestGeneratedSetsAreBounded declares sets within the ranges of the keys whose values would take far more than 4 GB.
func TestGeneratedSetsAreBounded(t *testing.T) {
	for name, s := range map[string]Source{
		"patches":       &Patches{Of: &Inner{Source: largePictures{}}, Size: 256, Count: 1_000_000},
		"notes":         &Notes{Notes: 2, Bins: 4096, Count: 1_000_000, Density: 0.1},
		"topics":        &Topics{Topics: 2, Words: 100_000, Count: 1_000_000, Length: 1, Mixture: 1, Sparsity: 1},
		"superposition": &Superposition{Features: 2, Values: 100_000, Count: 1_000_000, Active: 1, Group: 1, Seed: 1},
		"hierarchy":     &Hierarchy{Parents: 1, Children: 1, Values: 100_000, Count: 1_000_000, Active: 1, Seed: 1},
		"linear_rules":  &LinearRules{Examples: 10_000, Values: 10_000, Count: 1_000_000},
		"shapes":        &Shapes{Parts: 1, Height: 64, Width: 64, Count: 1_000_000},
	} {
		_, err := s.Load(background, nil, Both)
		if invalid := new(Error); !errors.As(err, &invalid) || invalid.Hint == "" || !strings.Contains(err.Error(), name+": got 1000000 samples") {
			t.Errorf("%s: got %v, want an error of the data with a hint", name, err)
		}
	}
}

// largePictures is a source of one image of 256x256 pixels.
type largePictures struct{}

func (largePictures) Shape(Dirs) ([]int, bool) { return []int{256, 256}, true }

func (largePictures) Load(context.Context, Dirs, Need) (set *Set, err error) {
	set = &Set{Name: "pictures", Shape: []int{256, 256}}
	set.Train, err = NewBytes(set.Shape, make([]byte, 256*256), nil)
	return set, err
}

func TestGeneratedNotesEndWithTheirContext(t *testing.T) {
	done, cancel := context.WithCancel(background)
	cancel()
	expect.Is(t, expect.Err((&Notes{Notes: 2, Bins: 64, Count: 10, Density: 0.5}).Load(done, nil, Both)), context.Canceled)
}
