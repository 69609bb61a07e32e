package augment

import "tessera/morph"

// Scratch is working memory that one goroutine reuses from image to image: augmentations do not allocate once it has grown.
// The zero value is ready for use. Returned memory is valid until the next Reset; its contents are undefined.
type Scratch struct {
	singles stack[float32]
	doubles stack[float64]
	filters map[filterKey]*morph.Filter
}

type filterKey struct {
	op     morph.Operator
	radius int
	size   size
}

// Reset invalidates all returned memory. A [Chain] calls it before every step.
func (s *Scratch) Reset() { s.singles.used, s.doubles.used = 0, 0 }

// Float32 returns n values.
func (s *Scratch) Float32(n int) []float32 { return s.singles.take(n) }

// Float64 returns n values.
func (s *Scratch) Float64(n int) []float64 { return s.doubles.take(n) }

// filter returns the morphological filter by the disk of that radius, for images of that shape.
func (s *Scratch) filter(op morph.Operator, radius int, shape []int) *morph.Filter {
	key := filterKey{op, radius, sizeOf(shape)}
	if f := s.filters[key]; f != nil {
		return f
	}
	f, err := morph.NewFilter(op, radius, shape)
	if err != nil {
		panic("augment: " + err.Error()) // both are checked before images are
	}
	if s.filters == nil {
		s.filters = map[filterKey]*morph.Filter{}
	}
	s.filters[key] = f
	return f
}

// stack hands out slices in order and reuses them after used is set back.
type stack[T any] struct {
	slices [][]T
	used   int
}

func (s *stack[T]) take(n int) []T {
	if s.used == len(s.slices) {
		s.slices = append(s.slices, nil)
	}
	if cap(s.slices[s.used]) < n {
		s.slices[s.used] = make([]T, n)
	}
	s.used++
	return s.slices[s.used-1][:n]
}
