package data

import (
	"context"
	"errors"
	"math"
	"slices"

	"tessera/internal/random"
	"tessera/part"
)

// UnknownLabel is the label of an image whose class is not known. Every negative label means the same.
const UnknownLabel = -1

// Classed is implemented by sources that know the number of classes without reading any pixels.
type Classed interface {
	// Classes returns the number of classes. ok is false if there are no labels, or if the number depends on files that are
	// missing.
	Classes(dirs Dirs) (n int, ok bool)
}

// Unlabelled is implemented by sources that know, without reading any pixels, that their images have no labels.
type Unlabelled interface{ Unlabelled() bool }

// IsUnlabelled reports whether a source with these keys is known to have no labels.
func IsUnlabelled(s Source) bool {
	u, ok := s.(Unlabelled)
	return ok && u.Unlabelled()
}

// Unlabelled implements [Unlabelled].
func (*Swimmer) Unlabelled() bool { return true }

// Unlabelled implements [Unlabelled].
func (*Bars) Unlabelled() bool { return true }

// Unlabelled implements [Unlabelled]: without a file of labels.
func (a *Arrays) Unlabelled() bool { return a.Labels == "" }

// Unlabelled implements [Unlabelled]: the images are in this process, and no label of the training images is known.
func (m *Memory) Unlabelled() bool {
	return m != nil && m.train != nil && classesOf(m.train.labels) == 0
}

// Classes returns the number n of classes of a source with these keys, without reading any pixels; labels are 0 to n-1. ok
// is false if the source has no labels or the number is not known yet.
func Classes(s Source, dirs Dirs) (n int, ok bool) {
	if c, is := s.(Classed); is {
		return c.Classes(dirs)
	}
	return 0, false
}

// WhyNoClasses says why the number of classes of a source is not known, although its files are there; "" for other sources and where
// the files are missing.
func WhyNoClasses(s Source, dirs Dirs) string {
	if !IsOwn(s) {
		return ""
	}
	set, err := s.Load(context.Background(), dirs, Need{Train: true, Test: HasTest(s)})
	var bad *Error
	if errors.As(err, &bad) && bad.Problem == NotFound {
		return ""
	}
	if err == nil {
		if _, ok := set.ClassCount(); ok {
			return ""
		}
		err = &Error{Dataset: set.Name, Problem: "its samples have no labels", Hint: "name them with the key labels, or put the images of each class into a folder"}
	}
	return "the number of classes is not known: " + err.Error()
}

// ClassCount returns the number of classes of a loaded set: the number of class names if they are known, otherwise the
// largest label plus one. ok is false if no label is known.
func (s *Set) ClassCount() (n int, ok bool) {
	if len(s.Classes) > 0 {
		return len(s.Classes), true
	}
	for _, images := range []*Images{s.Train, s.Test} {
		if images != nil {
			n = max(n, classesOf(images.Labels()))
		}
	}
	return n, n > 0
}

// classesOf returns the largest label plus one, 0 where none is known.
func classesOf(labels []int) int {
	if len(labels) == 0 {
		return 0
	}
	return max(min(slices.Max(labels), math.MaxInt-1)+1, 0)
}

// Classes implements [Classed].
func (p *published) Classes(Dirs) (int, bool) { return len(p.classes), true }

// Classes implements [Classed] by the files of labels: the largest label of both plus one.
func (a *Arrays) Classes(Dirs) (n int, ok bool) {
	for _, path := range []string{a.Labels, a.TestLabels} {
		if path == "" {
			continue
		}
		values, _, err := readArray(context.Background(), path)
		if err != nil {
			return 0, false
		}
		labels, err := values.labels()
		if err != nil {
			return 0, false
		}
		n = max(n, classesOf(labels))
	}
	return n, n > 0
}

// Classes implements [Classed] by the labels of the training samples and their names.
func (s *CSV) Classes(dirs Dirs) (int, bool) { return loadedClasses(s, dirs) }

// Classes implements [Classed] by the labels of all samples and their names.
func (s *NPZ) Classes(dirs Dirs) (int, bool) { return loadedClasses(s, dirs) }

// Classes implements [Classed] by the labels of all samples and their names.
func (s *Safetensors) Classes(dirs Dirs) (int, bool) { return loadedClasses(s, dirs) }

// loadedClasses counts the classes of a set that must be read for it.
func loadedClasses(s Source, dirs Dirs) (int, bool) {
	set, err := s.Load(context.Background(), dirs, Need{Train: true, Test: HasTest(s)})
	if err != nil {
		return 0, false
	}
	return set.ClassCount()
}

// Classes implements [Classed] by the labels of all images: the largest one plus one.
func (m *Memory) Classes(Dirs) (n int, ok bool) {
	if m == nil {
		return 0, false
	}
	for _, images := range []*Images{m.train, m.test} {
		if images != nil {
			n = max(n, classesOf(images.labels))
		}
	}
	return n, n > 0
}

// hideLabels keeps the labels of a fraction of the fitted images and sets the others to [UnknownLabel]. Each class keeps its
// share, rounded, and at least one image. The choice depends only on the seed.
func (s *Splits) hideLabels(fraction float64, seed uint64) error {
	labels := s.Fit.Labels()
	if classesOf(labels) == 0 {
		return part.KeyErrorf("labelled", "got %g, but the fitted images have no labels; leave it out", fraction)
	}
	left := map[int]int{} // how many images of each class may keep their label
	for _, label := range labels {
		left[label]++
	}
	for label, n := range left {
		left[label] = max(1, int(math.Round(fraction*float64(n))))
	}
	for _, i := range random.Stream(seed, "labelled", 0).Perm(len(labels)) {
		if label := labels[i]; label < 0 || left[label] == 0 {
			labels[i] = UnknownLabel
		} else {
			left[label]--
		}
	}
	s.Fit = s.Fit.withLabels(labels)
	return nil
}

// withLabels returns the same images with other labels, one per image.
func (m *Images) withLabels(labels []int) *Images {
	other := *m
	if m.rows == nil {
		other.labels = labels
		return &other
	}
	other.labels = slices.Repeat([]int{UnknownLabel}, len(m.labels))
	for i, label := range labels {
		other.labels[m.rows[i]] = label
	}
	return &other
}
