package fit

import (
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
)

// Lanes and blocks. Rows are processed in lanes: runs of consecutive rows, whose number depends on the number of rows and not on the
// number of processors. Sums over rows are computed per lane, in order, and then over the lanes, in order, so a result is the same on any
// number of processors. Within a lane, rows are processed in blocks that fit into the cache.
const (
	mostLanes = 16
	laneLeast = 128 // minimum number of rows per lane, if there are several lanes
	BlockSize = 160 // number of rows in a block
)

// Lanes returns the number of lanes for n rows.
func Lanes(n int) int { return min(max(n/laneLeast, 1), mostLanes) }

// laneStart returns the index of the first row of a lane; laneStart(n, Lanes(n)) is n.
func laneStart(n, lane int) int { return n * lane / Lanes(n) }

// ForLanes calls f for every block [from, to) of every lane: the blocks of one lane in order, different lanes concurrently.
func ForLanes(n int, f func(lane, from, to int)) {
	team.For(Lanes(n), 1, func(first, end int) {
		for lane := first; lane < end; lane++ {
			until := laneStart(n, lane+1)
			for from := laneStart(n, lane); from < until; from += BlockSize {
				f(lane, from, min(from+BlockSize, until))
			}
		}
	})
}

// LaneSums contains one accumulator per lane, all of equal size.
type LaneSums struct {
	Size int
	Sums [][]float32
}

// NewLaneSums returns accumulators for n rows.
func NewLaneSums(n, size int) *LaneSums {
	s := &LaneSums{Size: size, Sums: make([][]float32, Lanes(n))}
	for i := range s.Sums {
		s.Sums[i] = make([]float32, size)
	}
	return s
}

// Reset sets all sums to 0.
func (s *LaneSums) Reset() {
	for _, sum := range s.Sums {
		clear(sum)
	}
}

// Total writes the sum of all lanes into dst.
func (s *LaneSums) Total(dst []float32) {
	k := kernel.Float32()
	team.For(s.Size, 1<<13, func(from, to int) {
		copy(dst[from:to], s.Sums[0][from:to])
		for _, sum := range s.Sums[1:] {
			k.Add(dst[from:to], dst[from:to], sum[from:to])
		}
	})
}

// ColumnMeans returns the mean of n rows of p values.
func ColumnMeans(x []float32, n, p int) []float32 {
	mean := make([]float64, p)
	for i, v := range x {
		mean[i%p] += float64(v) / float64(n)
	}
	return vectors.Narrow(mean)
}

// SubtractRow returns x minus one row in all rows.
func SubtractRow(x, row []float32) []float32 {
	left, p := make([]float32, len(x)), len(row)
	for i := 0; i < len(x); i += p {
		kernel.Float32().Sub(left[i:i+p], x[i:i+p], row)
	}
	return left
}
