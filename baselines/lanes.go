package baselines

import (
	"tessera/kernel"
	"tessera/parallel/team"
)

// Images are processed in lanes: runs of consecutive images, whose number depends on the number of images and not on the
// number of processors. Sums over images are computed per lane, in order, and then over the lanes, in order, so a result is
// the same on any number of processors. Within a lane, images are processed in blocks that fit into the cache.
const (
	mostLanes = 16
	laneLeast = 128 // images for which a lane is worth its while
	blockSize = 160 // images
)

// laneCount is the number of lanes of n images.
func laneCount(n int) int { return min(max(n/laneLeast, 1), mostLanes) }

// laneStart is the first image of a lane; that of lane laneCount(n) is n.
func laneStart(n, lane int) int { return n * lane / laneCount(n) }

// forLanes calls f for every block [from, to) of every lane: the blocks of one lane in order, lanes at the same time.
func forLanes(n int, f func(lane, from, to int)) {
	team.For(laneCount(n), 1, func(first, end int) {
		for lane := first; lane < end; lane++ {
			until := laneStart(n, lane+1)
			for from := laneStart(n, lane); from < until; from += blockSize {
				f(lane, from, min(from+blockSize, until))
			}
		}
	})
}

// laneSums is one accumulator of equal size per lane.
type laneSums struct {
	size int
	sums [][]float32
}

func newLaneSums(n, size int) *laneSums {
	s := &laneSums{size: size, sums: make([][]float32, laneCount(n))}
	for i := range s.sums {
		s.sums[i] = make([]float32, size)
	}
	return s
}

func (s *laneSums) reset() {
	for _, sum := range s.sums {
		clear(sum)
	}
}

// total writes the sum of all lanes into dst.
func (s *laneSums) total(dst []float32) {
	k := kernel.Float32()
	team.For(s.size, 1<<13, func(from, to int) {
		copy(dst[from:to], s.sums[0][from:to])
		for _, sum := range s.sums[1:] {
			k.Add(dst[from:to], dst[from:to], sum[from:to])
		}
	})
}

// multiply computes C = op(A) op(B) for A of m rows with the rows of C, or its columns, cut over the processors.
func multiply(transA, transB bool, m, n, depth int, a []float32, b []float32, c []float32) {
	const grain = 256
	gemm := kernel.Float32().Gemm
	lda, ldb := depth, n
	if transA {
		lda = m
	}
	if transB {
		ldb = depth
	}
	if m >= n {
		team.For(m, grain, func(from, to int) {
			rows := from * lda
			if transA {
				rows = from
			}
			gemm(transA, transB, to-from, n, depth, 1, a[rows:], lda, b, ldb, 0, c[from*n:], n)
		})
		return
	}
	team.For(n, grain, func(from, to int) {
		columns := from
		if transB {
			columns = from * ldb
		}
		gemm(transA, transB, m, to-from, depth, 1, a, lda, b[columns:], ldb, 0, c[from:], n)
	})
}
