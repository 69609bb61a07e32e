package data

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// labelledSet returns training images with the given labels, and three test images.
func labelledSet(t *testing.T, labels []int) *Set {
	t.Helper()
	train, err := NewFloats([]int{1, 1}, make([]float32, len(labels)), labels)
	fatal.If(t, err)
	test, err := NewFloats([]int{1, 1}, make([]float32, 3), []int{0, 1, 2})
	fatal.If(t, err)
	return &Set{Name: "three", Shape: []int{1, 1}, Train: train, Test: test, HasTest: true}
}

// threeClasses returns 100 labels 0, 60 labels 1, 3 labels 2 and 7 unknown labels, in mixed order.
func threeClasses() []int {
	labels := slices.Concat(make([]int, 100), slices.Repeat([]int{1}, 60), slices.Repeat([]int{2}, 3), slices.Repeat([]int{-5}, 7))
	mixed := make([]int, len(labels))
	for i, label := range labels {
		mixed[i*37%len(labels)] = label
	}
	return mixed
}

func count(labels []int) map[int]int {
	n := map[int]int{}
	for _, label := range labels {
		n[label]++
	}
	return n
}

func TestEachClassKeepsItsShareOfLabels(t *testing.T) {
	for _, validation := range []Validation{{}, {Test: true}, {Fraction: 0.2}} {
		set := labelledSet(t, threeClasses())
		plain, err := set.Split(Selection{Fit: "train", Validation: validation}, 4)
		fatal.If(t, err)
		splits, err := set.Split(Selection{Fit: "train", Validation: validation, Labelled: 0.1}, 4)
		fatal.If(t, err)
		was, is := plain.Fit.Labels(), splits.Fit.Labels()
		before, after := count(was), count(is)
		for class, n := range before {
			if want := max(1, (n+5)/10); class >= 0 && after[class] != want {
				t.Errorf("%+v: class %d: %d of %d labels are known, want %d", validation, class, after[class], n, want)
			}
		}
		for i := range is {
			if is[i] != was[i] && is[i] != UnknownLabel {
				t.Fatalf("%+v: label %d changes from %d to %d", validation, i, was[i], is[i])
			}
		}
		if validation != (Validation{}) && !slices.Equal(splits.Validation.Labels(), plain.Validation.Labels()) {
			t.Errorf("%+v: the images that validate lose their labels", validation)
		}
		expect.Slice(t, set.Train.Labels(), threeClasses(), validation, "the set itself is changed")
		expect.Slice(t, splits.Test.Labels(), []int{0, 1, 2}, validation, "the set itself is changed")
	}
}

func TestWhichLabelsAreKnownDependsOnTheSeedAlone(t *testing.T) {
	known := func(seed uint64) []int {
		splits, err := labelledSet(t, threeClasses()).Split(Selection{Labelled: 0.5}, seed)
		fatal.If(t, err)
		return splits.Fit.Labels()
	}
	if !slices.Equal(known(1), known(1)) || slices.Equal(known(1), known(2)) {
		t.Error("equal seeds differ, or different ones do not")
	}
}

func TestAllLabelsAreKnownByDefault(t *testing.T) {
	for _, fraction := range []float64{0, 1} {
		splits, err := labelledSet(t, threeClasses()).Split(Selection{Labelled: fraction}, 1)
		if err != nil || !slices.Equal(splits.Fit.Labels(), threeClasses()) {
			t.Errorf("labelled = %v: %v, %v", fraction, splits.Fit.Labels(), err)
		}
	}
}

func TestLabelsOfImagesWithoutAnyCannotBeHidden(t *testing.T) {
	for _, labels := range [][]int{nil, {-1, -1}} {
		images, err := NewFloats([]int{1, 1}, make([]float32, 2), labels)
		fatal.If(t, err)
		_, err = (&Set{Name: "plain", Shape: images.Shape, Train: images}).Split(Selection{Labelled: 0.1}, 1)
		if key, ok := errors.AsType[part.KeyError](err); !ok || key.Key != "labelled" {
			t.Errorf("labels %v: got %v", labels, err)
		}
	}
}

func TestTheNumberOfClassesIsKnownWithoutPixels(t *testing.T) {
	dir := t.TempDir()
	labels := write(t, dir, "labels.idx", []byte{0, 0, 8, 1, 0, 0, 0, 3, 2, 0, 1})
	more := write(t, dir, "more.idx", []byte{0, 0, 8, 1, 0, 0, 0, 2, 6, 0})
	for _, name := range []string{"png/bag/1.png", "png/shoe/1.png", "flat/1.png"} {
		write(t, dir, name, "of no matter here")
	}
	for _, c := range []struct {
		source Source
		want   int // expected number; 0 for unknown
	}{
		{FashionMNIST(), 10}, {MNIST(), 10}, {&Swimmer{}, 0}, {&Bars{}, 0},
		{&Files{Kind: "idx", Labels: labels}, 3}, {&Files{Kind: "npy", Labels: labels, TestLabels: more}, 7}, {&Files{Kind: "idx"}, 0},
		{&Files{Kind: "idx", Labels: filepath.Join(dir, "none")}, 0}, {&Files{Kind: "idx", Labels: filepath.Join(dir, "flat", "1.png")}, 0},
		{&Files{Kind: "png", Images: filepath.Join(dir, "png")}, 2}, {&Files{Kind: "png", Images: filepath.Join(dir, "flat")}, 0}, {&Files{Kind: "png", Images: filepath.Join(dir, "none")}, 0},
	} {
		if n, ok := Classes(c.source, nil); ok != (c.want > 0) || ok && n != c.want {
			t.Errorf("%T: %d classes, %v; want %d", c.source, n, ok, c.want)
		}
	}
}

func TestALoadedSetCountsItsClasses(t *testing.T) {
	set := labelledSet(t, []int{0, -1, 4})
	for _, c := range []struct {
		what string
		set  *Set
		want int
	}{
		{"both splits", set, 5},
		{"test images alone", &Set{Test: set.Test}, 3},
		{"names", &Set{Test: set.Test, Classes: make([]string, 6)}, 6},
		{"no labels", testSet(t, 0, 0), 0},
		{"nothing", &Set{}, 0},
	} {
		if n, ok := c.set.ClassCount(); ok != (c.want > 0) || n != c.want {
			t.Errorf("%s: %d classes, %v; want %d", c.what, n, ok, c.want)
		}
	}
}
