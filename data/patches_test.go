package data

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// threePictures is a source of three images of 5x6 pixels with two channels, whose values are all different.
type threePictures struct{ floats bool }

func (threePictures) Shape(Dirs) ([]int, bool) { return []int{5, 6, 2}, true }

func (s threePictures) Load(context.Context, Dirs, Need) (*Set, error) {
	set := &Set{Name: "pictures", Shape: []int{5, 6, 2}}
	bytes, floats := make([]byte, 3*60), make([]float32, 3*60)
	for i := range bytes {
		bytes[i], floats[i] = byte(i), float32(byte(i))/255
	}
	var err error
	if set.Train, err = NewBytes(set.Shape, bytes, nil); s.floats {
		set.Train, err = NewFloats(set.Shape, floats, nil)
	}
	return set, err
}

func TestPatchesAreCutOutOfTheImages(t *testing.T) {
	p := &Patches{Of: &Inner{Source: threePictures{}}, Size: 3, Count: 500, Seed: 4}
	set := load(t, p)
	got := set.Train.Float32()
	seen := map[int]int{}
	for i := range 500 {
		patch := got[i*18 : (i+1)*18]
		first := int(math.Round(255 * float64(patch[0]))) // the value tells the place
		row, column := first%60/12, first%12/2
		if first%2 != 0 || row > 2 || column > 3 {
			t.Fatalf("patch %d begins with value %d of the images", i, first)
		}
		for y := range 3 {
			for x := range 6 {
				if want := float32(first+12*y+x) / 255; patch[6*y+x] != want {
					t.Fatalf("patch %d at %d, value %d of row %d: got %v, want %v", i, first, x, y, patch[6*y+x], want)
				}
			}
		}
		seen[first]++
	}
	expect.Equal(t, len(seen), 3*3*4, "500 patches are at", len(seen), "places, want all 36")
	p.Count = 20
	if few := load(t, p).Train.Float32(); !slices.Equal(few, got[:len(few)]) {
		t.Error("a smaller set is not the beginning of a larger one")
	}
	p.Of = &Inner{Source: threePictures{floats: true}}
	if floats := load(t, p).Train.Float32(); !slices.Equal(floats, got[:len(floats)]) {
		t.Error("patches of floats are not those of bytes")
	}
	p.Size = 6
	expect.Error(t, expect.Err(p.Load(background, nil, Both)), "no patches of 6x6", "images that are smaller than a patch")
}

func TestWhitenedSamplesAreUncorrelated(t *testing.T) {
	set := load(t, &Patches{Of: &Inner{Source: &Swimmer{}}, Size: 4, Count: 3000, Scale: Scale{&Whiten{}}})
	splits, err := set.Split(Selection{}, 1)
	fatal.If(t, err)
	plain, white := set.Train.Float32(), splits.Fit.Float32()
	// By plain loops: W (C + e I) W = I, where W is the matrix of the scaling and C the covariance of the patches.
	const n = 16
	var mean, c [n * n]float64
	for i, v := range plain {
		mean[i%n] += float64(v) / 3000
	}
	for i := range 3000 {
		for a := range n {
			for b := range n {
				c[a*n+b] += (float64(plain[i*n+a]) - mean[a]) * (float64(plain[i*n+b]) - mean[b]) / 3000
			}
		}
	}
	trace := 0.0
	for a := range n {
		trace += c[a*n+a]
	}
	for a := range n {
		c[a*n+a] += 0.01 * trace / n
	}
	w := splits.Scaling.Mix
	for a := range n {
		for b := range n {
			got, want := 0.0, 0.0
			for i := range n {
				for j := range n {
					got += float64(w[a*n+i]) * c[i*n+j] * float64(w[j*n+b])
				}
			}
			if a == b {
				want = 1
			}
			if math.Abs(got-want) > 1e-3 || w[a*n+b] != w[b*n+a] && math.Abs(float64(w[a*n+b]-w[b*n+a])) > 1e-4 {
				t.Errorf("(%d,%d): got %v, want %v", a, b, got, want)
			}
		}
	}
	for a := range n { // the first patch, by plain loops
		want := 0.0
		for i := range n {
			want += float64(w[a*n+i]) * (float64(plain[i]) - mean[i])
		}
		expect.Near(t, want, float64(white[a]), 1e-4, "value", a)
	}
	back := slices.Clone(white)
	splits.Scaling.Undo(back)
	for i, v := range back {
		if math.Abs(float64(v-plain[i])) > 1e-4 {
			t.Fatalf("value %d: got %v, want %v", i, v, plain[i])
		}
	}
}

func TestWhatCannotBeWhitenedIsAnError(t *testing.T) {
	for problem, values := range map[string][]float32{"at least 2": {1, 2}, "are equal": {1, 2, 1, 2}} {
		images, err := NewFloats([]int{2}, values, nil)
		fatal.If(t, err)
		if _, err = (Scale{&Whiten{}}).Fit(images); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v: got %v, want an error with %q", values, err, problem)
		}
	}
}

// holedPictures has images with a missing value.
type holedPictures struct{ threePictures }

func (s holedPictures) Load(ctx context.Context, dirs Dirs, need Need) (*Set, error) {
	set, err := threePictures{floats: true}.Load(ctx, dirs, need)
	if err == nil {
		set.Train.floats[7] = float32(math.NaN())
		set.Train = set.Train.WithMissing()
	}
	return set, err
}

func TestPatchesOfImagesWithMissingValuesAreRefused(t *testing.T) {
	p := &Patches{Of: &Inner{Source: holedPictures{}}, Size: 3, Count: 5}
	expect.Error(t, expect.Err(p.Load(background, nil, Both)), "missing values")
}
