package baselines

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
)

// stored recognises the fitted images, whose codes are kept, by 64 bits of the SHA-256 of their pixels. Of equal images
// the code of the first counts.
type stored struct {
	digests []uint64
	rows    map[uint64]int // made when it is first asked for
}

const (
	digestsName = "digests" // n x digestWords: 16 bits each, as numbers, for float32 holds no more than 24
	digestWords = 4
)

// digestImages returns the digests of all images.
func digestImages(x []float32, pixels int) *stored {
	digests := make([]uint64, len(x)/pixels)
	forLanes(len(digests), func(_, from, to int) {
		buf := make([]byte, 4*pixels)
		for i := from; i < to; i++ {
			digests[i] = digest(buf, x[i*pixels:(i+1)*pixels])
		}
	})
	return &stored{digests: digests}
}

func digest(buf []byte, image []float32) uint64 {
	for i, v := range image {
		binary.LittleEndian.PutUint32(buf[4*i:], math.Float32bits(v))
	}
	sum := sha256.Sum256(buf)
	return binary.LittleEndian.Uint64(sum[:])
}

// find returns for each image the row of the fitted image that equals it, or -1.
func (s *stored) find(images []float32, pixels int) []int {
	if s.rows == nil {
		s.rows = make(map[uint64]int, len(s.digests))
		for i := len(s.digests) - 1; i >= 0; i-- {
			s.rows[s.digests[i]] = i
		}
	}
	asked := digestImages(images, pixels).digests
	rows := make([]int, len(asked))
	for i, d := range asked {
		row, ok := s.rows[d]
		if !ok {
			row = -1
		}
		rows[i] = row
	}
	return rows
}

func (s *stored) equal(other *stored) bool { return slices.Equal(s.digests, other.digests) }

func (s *stored) save() Tensor {
	t := Tensor{[]int{len(s.digests), digestWords}, make([]float32, 0, len(s.digests)*digestWords)}
	for _, d := range s.digests {
		for range digestWords {
			t.Values = append(t.Values, float32(d&0xffff))
			d >>= 16
		}
	}
	return t
}

func restoreDigests(t Tensor) *stored {
	s := &stored{digests: make([]uint64, t.Shape[0])}
	for i := range s.digests {
		for w := digestWords - 1; w >= 0; w-- {
			s.digests[i] = s.digests[i]<<16 | uint64(t.Values[i*digestWords+w])
		}
	}
	return s
}
