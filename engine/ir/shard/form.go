package shard

import (
	"slices"

	"tessera/internal/volume"
)

// kind is the kind of a form.
type kind uint8

const (
	whole  kind = iota // every process has the value
	images             // every process has the part of its images
	terms              // the value is the sum of what the processes have
)

// form is how the processes hold a value. A value in the form images, seen in row-major order, has the shape (outer, batch,
// rest): reshapes keep outer. It is 1, or 2 for the two views of the images, or more where other axes come before the
// batch.
type form struct {
	kind  kind
	outer int // of images
}

// axis is where the batch is in a shape: axis index, whose length is outer times the batch times inner.
type axis struct{ index, outer, inner int }

// locate finds the axis of a shape that contains the batch; ok is false if several axes do.
func (s *sharder) locate(shape []int, f form) (a axis, ok bool) {
	before := 1
	for i, d := range shape {
		if outer := f.outer / max(before, 1); before > 0 && f.outer%before == 0 && d > 0 && d%(outer*s.batch) == 0 {
			return axis{i, outer, d / (outer * s.batch)}, true
		}
		before *= d
	}
	return axis{}, false
}

// local is the shape of a process's part of a value in the form images.
func (s *sharder) local(shape []int, f form) (part []int, ok bool) {
	a, ok := s.locate(shape, f)
	if !ok {
		return nil, false
	}
	part = slices.Clone(shape)
	part[a.index] = a.outer * (s.to - s.from) * a.inner
	return part, true
}

// rest is the number of elements of an image in the form images, in each of the outer parts.
func (s *sharder) rest(shape []int, f form) int { return volume.Of(shape) / (f.outer * s.batch) }

// at is the form images of a value of that shape, whose axis index has the length outer times the batch times any.
func at(shape []int, index, outer int) form {
	return form{images, volume.Of(shape[:index]) * outer}
}

// Views is the number of views of the images that an input of that shape holds, one after the other: 2 if its first axis is
// twice the batch, 1 if it is another multiple of the batch, 0 for an input that does not hold images.
func Views(shape []int, batch int) int {
	switch {
	case len(shape) == 0 || shape[0]%batch != 0:
		return 0
	case shape[0] == 2*batch:
		return 2
	}
	return 1
}

// ofInput is the form of an input.
func (s *sharder) ofInput(shape []int) form {
	if n := Views(shape, s.batch); n > 0 {
		return form{images, n}
	}
	return form{}
}
