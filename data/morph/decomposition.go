package morph

import (
	"cmp"
	"fmt"
	"slices"

	"tessera/internal/parallel/team"
)

// Method names an additive morphological decomposition.
type Method string

// Decompositions of an image x into levels l = 1..L with disks of radius r_l. OpenRec_l is the reconstruction by dilation,
// under x, of the opening of x; CloseRec_l is the reconstruction by erosion, above x, of the closing of x; level 0 is x.
const (
	// AMD: R_l = ((OpenRec_(l-1) - OpenRec_l) - (CloseRec_l - CloseRec_(l-1))) / 2, S = (CloseRec_L + OpenRec_L) / 2.
	AMD Method = "amd"
	// PADO, positive, by openings: R_l = OpenRec_(l-1) - OpenRec_l >= 0, S = OpenRec_L.
	PADO Method = "pado"
)

func (Method) Choices() []string { return []string{string(AMD), string(PADO)} }

// Decomposition splits every image into residuals R_1..R_L and a smooth remainder S with x = S + R_1 + ... + R_L. The disk of
// level l has radius Start + (l-1) * Step.
type Decomposition struct {
	Method   Method
	Levels   int  // L, at least 1; the study used 5
	Start    int  // first radius, at least 0; the study used 1
	Step     int  // increase of the radius per level, at least 0; the study used 1
	Original bool // the decomposed image begins with the image itself
}

// Apply returns the decomposed images, with the channels [x,] R_1, ..., R_L, S, and the shape of one of them,
// (height, width, channels). Each of x, R_1, ..., S has as many channels as the original images.
func (d Decomposition) Apply(images []float32, shape []int) ([]float32, []int, error) {
	if err := d.Check(); err != nil {
		return nil, nil, err
	}
	g, n, err := gridOf(images, shape)
	if err != nil {
		return nil, nil, err
	}
	out := g
	out.channels *= d.Groups()
	values := make([]float32, n*out.pixels())
	team.For(n, grain, func(from, to int) {
		w := newDecomposer(d, g)
		levels := make([]float32, d.Stack()*g.pixels())
		for i := from; i < to; i++ {
			image := images[i*g.pixels() : (i+1)*g.pixels()]
			w.LevelsOf(levels, image)
			Combine(d, g.channels, values[i*out.pixels():(i+1)*out.pixels()], image, levels)
		}
	})
	return values, []int{out.height, out.width, out.channels}, nil
}

// MaxLevels is the maximum number of levels of a decomposition. The disks of higher levels would exceed any image.
const MaxLevels = 1 << 16

func (d Decomposition) Check() error {
	switch {
	case !slices.Contains(d.Method.Choices(), string(d.Method)):
		return fmt.Errorf("morph: unknown decomposition %q, want one of %v", d.Method, d.Method.Choices())
	case d.Levels < 1:
		return fmt.Errorf("morph: %s: %d levels, want >= 1", d.Method, d.Levels)
	case d.Levels > MaxLevels:
		return fmt.Errorf("morph: %s: %d levels, want at most %d", d.Method, d.Levels, MaxLevels)
	case d.Start < 0:
		return fmt.Errorf("morph: %s: first radius %d, want >= 0", d.Method, d.Start)
	case d.Step < 0:
		return fmt.Errorf("morph: %s: step %d, want >= 0", d.Method, d.Step)
	}
	return nil
}

// Groups returns the number of images that a decomposed image consists of.
func (d Decomposition) Groups() int {
	if d.Original {
		return d.Levels + 2
	}
	return d.Levels + 1
}

// Stack returns the number of images that [Decomposer.LevelsOf] writes for each image.
func (d Decomposition) Stack() int {
	if d.Method == AMD {
		return 2 * d.Levels
	}
	return d.Levels
}

// Decomposer computes the levels of images of one shape, one image at a time. It is not safe for concurrent use.
type Decomposer struct {
	Decomposition
	grid          grid
	openings      []*Filter
	closings      []*Filter
	reconstructor *reconstructor
	order         []int32   // the pixels of an image, sorted by value
	ranks, chosen []float32 // image of ranks, and its levels
}

// NewDecomposer returns the decomposer for images of the given shape.
func NewDecomposer(d Decomposition, shape []int) (*Decomposer, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	g, err := newGrid(shape)
	if err != nil {
		return nil, err
	}
	return newDecomposer(d, g), nil
}

func newDecomposer(d Decomposition, g grid) *Decomposer {
	w := &Decomposer{Decomposition: d, grid: g, reconstructor: newReconstructor(g)}
	for l := range d.Levels {
		radius := d.Start + l*d.Step
		w.openings = append(w.openings, newFilter(Opening, radius, g))
		if d.Method == AMD {
			w.closings = append(w.closings, newFilter(Closing, radius, g))
		}
	}
	return w
}

// LevelsOf writes OpenRec_1, ..., OpenRec_L of an image to dst and, for AMD, CloseRec_1, ..., CloseRec_L after them: Stack
// images. Each value is a value of the image.
func (w *Decomposer) LevelsOf(dst, image []float32) {
	n := len(image)
	for l, opening := range w.openings {
		level := dst[l*n : (l+1)*n]
		opening.Image(level, image)
		w.reconstructor.image(level, level, image, 0)
	}
	for l, closing := range w.closings {
		level := dst[(w.Levels+l)*n:][:n]
		closing.Image(level, image)
		w.reconstructor.image(level, level, image, flip)
	}
}

// Sources writes, for every value of [Decomposer.LevelsOf], the index of the pixel that has this value. The levels commute
// with increasing maps, so the levels of the image of ranks identify pixels. Equal pixels are ranked in reading order, as if
// each were slightly larger than the previous one. The derivative that follows the sources is therefore that of an image
// arbitrarily close to this one, and thus a subgradient.
func Sources[T float32 | float64](w *Decomposer, dst []int32, image []T) {
	if w.order == nil {
		w.order, w.ranks = make([]int32, len(image)), make([]float32, len(image))
		w.chosen = make([]float32, w.Stack()*len(image))
	}
	for i := range w.order {
		w.order[i] = int32(i)
	}
	slices.SortStableFunc(w.order, func(a, b int32) int { return cmp.Compare(image[a], image[b]) })
	for rank, i := range w.order {
		w.ranks[i] = float32(rank)
	}
	w.LevelsOf(w.chosen, w.ranks)
	for i, rank := range w.chosen {
		dst[i] = w.order[int(rank)]
	}
}

// Combine computes the channels [x,] R_1, ..., R_L, S of one image, as [Decomposition.Apply] does, from the image and its
// levels. channels is the number of channels of the image.
func Combine[T float32 | float64](d Decomposition, channels int, dst, image, levels []T) {
	n, groups := len(image), d.Groups()
	for i, x := range image {
		out := dst[i/channels*groups*channels+i%channels:]
		at := 0
		if d.Original {
			out[0], at = x, channels
		}
		lower, upper := x, x
		for l := range d.Levels {
			opened := levels[l*n+i]
			residual := lower - opened
			if d.Method == AMD {
				closed := levels[(d.Levels+l)*n+i]
				residual = (residual - (closed - upper)) / 2
				upper = closed
			}
			out[at], lower = residual, opened
			at += channels
		}
		if out[at] = lower; d.Method == AMD {
			out[at] = (upper + lower) / 2
		}
	}
}

// CombineGradient is the adjoint of [Combine], which is linear. It adds the contributions of gradient, the gradient of the
// channels, to the gradients of the image and of its levels.
func CombineGradient[T float32 | float64](d Decomposition, channels int, image, levels, gradient []T) {
	n, groups := len(image), d.Groups()
	for i := range image {
		g := gradient[i/channels*groups*channels+i%channels:]
		at := 0
		if d.Original {
			image[i] += g[0]
			at = channels
		}
		for stack := range d.Stack() / d.Levels { // openings and, for AMD, closings contribute equally
			share := T(d.Levels) / T(d.Stack())
			before := &image[i]
			for l := range d.Levels {
				here := &levels[(stack*d.Levels+l)*n+i]
				*before += share * g[at+l*channels]
				*here -= share * g[at+l*channels]
				before = here
			}
			*before += share * g[at+d.Levels*channels]
		}
	}
}

// reconstructor computes the reconstruction by dilation of a marker under a mask: the limit of m <- min(dilate(m), mask),
// where the dilation is by the 3x3 square (8-connectivity) and m starts as min(marker, mask). It restores the peaks of the
// mask that the marker touches and removes the others. With flipped keys it computes the dual, the reconstruction by erosion
// above the mask.
//
// The buffers contain one channel of the marker and the mask as keys. A frame of outside pixels gives every pixel eight
// neighbours. A frame pixel equals its mask and is below all other pixels, so it never changes and is never queued.
//
// Source: L. Vincent, Morphological grayscale reconstruction in image analysis, IEEE Trans. Image Processing 2(2), 1993: the
// hybrid algorithm, two raster scans and a queue.
type reconstructor struct {
	grid         grid
	stride       int // length of a row with its frame
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

// scanForward raises each pixel to the maximum of its preceding neighbours in raster order, limited by the mask.
func (r *reconstructor) scanForward() {
	m, s := r.marker, r.stride
	for y := 1; y <= r.grid.height; y++ {
		for p := y*s + 1; p <= y*s+r.grid.width; p++ {
			m[p] = min(max(m[p], m[p-1], m[p-s-1], m[p-s], m[p-s+1]), r.mask[p])
		}
	}
}

// scanBackward does the same in reverse raster order and queues the pixels that can still raise a following neighbour.
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

// propagate processes the queue, first in first out, and raises neighbours until nothing changes.
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
