package morph

import (
	"fmt"

	"tessera/parallel/team"
)

// ReconstructByDilation grows each marker under its mask: the limit of m <- min(dilate(m), mask), where the dilation is
// by the 3x3 square (8-connectivity) and the marker starts as min(marker, mask). Peaks of the mask that the marker
// touches come back whole, the others vanish. Both slices hold the same number of images of that shape.
//
// Source: L. Vincent, Morphological grayscale reconstruction in image analysis, IEEE Trans. Image Processing 2(2), 1993:
// the hybrid algorithm, two raster scans and a queue.
func ReconstructByDilation(marker, mask []float32, shape []int) ([]float32, error) {
	return reconstruct(marker, mask, shape, 0)
}

// ReconstructByErosion shrinks each marker above its mask, the dual of [ReconstructByDilation]: the limit of
// m <- max(erode(m), mask), where the marker starts as max(marker, mask).
func ReconstructByErosion(marker, mask []float32, shape []int) ([]float32, error) {
	return reconstruct(marker, mask, shape, flip)
}

func reconstruct(marker, mask []float32, shape []int, flipped int32) ([]float32, error) {
	g, n, err := gridOf(mask, shape)
	if err != nil {
		return nil, err
	}
	if len(marker) != len(mask) {
		return nil, fmt.Errorf("morph: the marker has %d values, its mask %d", len(marker), len(mask))
	}
	out := make([]float32, len(mask))
	pixels := g.pixels()
	team.For(n, grain, func(from, to int) {
		r := newReconstructor(g)
		for i := from; i < to; i++ {
			at, end := i*pixels, (i+1)*pixels
			r.image(out[at:end], marker[at:end], mask[at:end], flipped)
		}
	})
	return out, nil
}

// reconstructor holds one channel of a marker and a mask as keys, with a frame of outside pixels around them, so that
// every pixel has eight neighbours. A frame pixel equals its mask and is below all others: it never moves, nor is it
// ever queued.
type reconstructor struct {
	grid         grid
	stride       int // of a framed row
	marker, mask []int32
	queue        []int
}

func newReconstructor(g grid) *reconstructor {
	r := &reconstructor{grid: g, stride: g.width + 2}
	r.marker = make([]int32, r.stride*(g.height+2))
	r.mask = make([]int32, len(r.marker))
	for i := range r.mask {
		r.marker[i], r.mask[i] = outside, outside
	}
	return r
}

// image reconstructs every channel of one image; dst may be marker or mask.
func (r *reconstructor) image(dst, marker, mask []float32, flipped int32) {
	for c := range r.grid.channels {
		r.load(marker, mask, c, flipped)
		r.scanForward()
		r.scanBackward()
		r.propagate()
		r.store(dst, c, flipped)
	}
}

func (r *reconstructor) load(marker, mask []float32, channel int, flipped int32) {
	i := channel
	for y := range r.grid.height {
		for p := (y+1)*r.stride + 1; p <= (y+1)*r.stride+r.grid.width; p++ {
			r.mask[p] = key(mask[i]) ^ flipped
			r.marker[p] = min(key(marker[i])^flipped, r.mask[p])
			i += r.grid.channels
		}
	}
}

func (r *reconstructor) store(dst []float32, channel int, flipped int32) {
	i := channel
	for y := range r.grid.height {
		for p := (y+1)*r.stride + 1; p <= (y+1)*r.stride+r.grid.width; p++ {
			dst[i] = unkey(r.marker[p] ^ flipped)
			i += r.grid.channels
		}
	}
}

// scanForward raises each pixel to its neighbours before it in raster order, under the mask.
func (r *reconstructor) scanForward() {
	m, s := r.marker, r.stride
	for y := 1; y <= r.grid.height; y++ {
		for p := y*s + 1; p <= y*s+r.grid.width; p++ {
			m[p] = min(max(m[p], m[p-1], m[p-s-1], m[p-s], m[p-s+1]), r.mask[p])
		}
	}
}

// scanBackward does the same from the other end, and queues the pixels that could still raise a neighbour behind them.
func (r *reconstructor) scanBackward() {
	m, s := r.marker, r.stride
	r.queue = r.queue[:0]
	for y := r.grid.height; y >= 1; y-- {
		for p := y*s + r.grid.width; p >= y*s+1; p-- {
			v := min(max(m[p], m[p+1], m[p+s-1], m[p+s], m[p+s+1]), r.mask[p])
			m[p] = v
			for _, q := range [4]int{p + 1, p + s - 1, p + s, p + s + 1} {
				if m[q] < v && m[q] < r.mask[q] {
					r.queue = append(r.queue, p)
					break
				}
			}
		}
	}
}

// propagate empties the queue, first in first out, raising neighbours until nothing changes.
func (r *reconstructor) propagate() {
	m, s := r.marker, r.stride
	neighbours := [8]int{-s - 1, -s, -s + 1, -1, 1, s - 1, s, s + 1}
	for head := 0; head < len(r.queue); head++ {
		p := r.queue[head]
		for _, step := range neighbours {
			q := p + step
			if m[q] < m[p] && m[q] < r.mask[q] {
				m[q] = min(m[p], r.mask[q])
				r.queue = append(r.queue, q)
			}
		}
	}
}
