package engine

import (
	"tessera/engine/ir"
	"tessera/internal/volume"
)

// sink is a reduction at the end of a chain.
type sink[T ir.Float] struct {
	slot[T]
	f       ir.Reducer
	across  bool        // folds over the slowest axis: every thread has its own accumulators
	vectors [][]T       // per thread, where the fastest axis is kept
	numbers [][]float64 // per thread, where the fastest axis is folded
	source  int         // what is folded: an index of the table
}

// take folds one tile of a row whose results start at off in the reduction's output; at is the tile's place in the row.
func (s *sink[T]) take(k *kernels[T], thread int, values []T, off, at int) {
	folded := s.axes[len(s.axes)-1].step == 0
	switch {
	case folded && s.across:
		s.numbers[thread][off] = s.foldNumber(k, s.numbers[thread][off], values)
	case folded:
		s.cell.data[off] = T(s.foldNumber(k, float64(s.cell.data[off]), values))
	default:
		into := s.cell.data
		if s.across {
			into = s.vectors[thread]
		}
		into = into[off+at : off+at+len(values)]
		if s.f == ir.Largest {
			k.set.Max(into, into, values)
		} else {
			k.set.Add(into, into, values)
		}
	}
}

func (s *sink[T]) foldNumber(k *kernels[T], acc float64, values []T) float64 {
	if s.f == ir.Largest {
		return max(acc, float64(k.set.Maximum(values)))
	}
	return acc + float64(k.set.Sum(values))
}

// reset prepares the accumulators that thread will fold into.
func (c *chain[T]) reset(thread, from, to int) {
	for i := range c.sinks {
		s := &c.sinks[i]
		start := startOf(s.f)
		switch {
		case s.across && s.numbers != nil:
			fill(s.numbers[thread], start)
		case s.across:
			fill(s.vectors[thread], T(start))
		default:
			per := len(s.cell.data) / c.units
			fill(s.cell.data[from*per:to*per], T(start))
		}
	}
}

func fill[T ir.Float](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// finish combines the accumulators of the threads that ran, always in their order.
func (c *chain[T]) finish(threads int) {
	for i := range c.sinks {
		s := &c.sinks[i]
		switch {
		case !s.across:
		case s.numbers != nil:
			s.finishNumbers(threads)
		default:
			s.finishVectors(c.kernels, threads)
		}
	}
}

func (s *sink[T]) finishNumbers(threads int) {
	for j := range s.cell.data {
		acc := s.numbers[0][j]
		for _, of := range s.numbers[1:threads] {
			if s.f == ir.Largest {
				acc = max(acc, of[j])
			} else {
				acc += of[j]
			}
		}
		s.cell.data[j] = T(acc)
	}
}

func (s *sink[T]) finishVectors(k *kernels[T], threads int) {
	into := s.cell.data
	copy(into, s.vectors[0])
	for _, of := range s.vectors[1:threads] {
		if s.f == ir.Largest {
			k.set.Max(into, into, of)
		} else {
			k.set.Add(into, into, of)
		}
	}
}

// allocate makes the accumulators of a reduction across threads.
func (s *sink[T]) allocate(threads int) {
	if !s.across {
		return
	}
	n := volume.Of(s.value.Shape)
	for range threads {
		if s.axes[len(s.axes)-1].step == 0 {
			s.numbers = append(s.numbers, apart[float64](n))
		} else {
			s.vectors = append(s.vectors, apart[T](n))
		}
	}
}
