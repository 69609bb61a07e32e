package morph

import (
	"cmp"
	"slices"
)

// Decomposer computes the levels of images of one shape, one image at a time. It is not safe for use by several goroutines
// at once.
type Decomposer struct {
	Decomposition
	grid          grid
	openings      []*Filter
	closings      []*Filter
	reconstructor *reconstructor
	order         []int32   // of an image's pixels, by value
	ranks, chosen []float32 // an image of ranks, and its levels
}

// NewDecomposer returns the decomposer of a decomposition for images of that shape.
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
// images, each of whose values is one of the image's.
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

// Sources writes for every value of [Decomposer.LevelsOf] the pixel of the image that it is the value of: the levels commute
// with increasing maps, so that those of the image of the pixels' ranks name pixels. Equal pixels are ranked in reading
// order, as if each were a little larger than the one before: what moves with its source has the derivative of an image
// arbitrarily near by, which is a subgradient of this one.
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

// Combine writes the channels of one image, [x,] R_1, ..., R_L, S as [Decomposition.Apply] does, from the image, which has
// that number of channels, and its levels.
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

// CombineGradient is the adjoint of [Combine], which is linear: it adds to the gradients of the image and of its levels what
// the gradient of the channels gives them.
func CombineGradient[T float32 | float64](d Decomposition, channels int, image, levels, gradient []T) {
	n, groups := len(image), d.Groups()
	for i := range image {
		g := gradient[i/channels*groups*channels+i%channels:]
		at := 0
		if d.Original {
			image[i] += g[0]
			at = channels
		}
		for stack := range d.Stack() / d.Levels { // openings and, for AMD, closings take part alike
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
