package morph

import (
	"fmt"
	"math"
	"slices"

	"tessera/internal/parallel"
)

// Method names an additive morphological decomposition.
type Method string

// The decompositions of an image x over levels l = 1..L with disks of radius r_l. OpenRec_l is the reconstruction by
// dilation, under x, of the opening of x; CloseRec_l the reconstruction by erosion, above x, of its closing; level 0 is x.
const (
	// AMD: R_l = ((OpenRec_(l-1) - OpenRec_l) - (CloseRec_l - CloseRec_(l-1))) / 2, S = (CloseRec_L + OpenRec_L) / 2.
	AMD Method = "amd"
	// PADO, positive, by openings: R_l = OpenRec_(l-1) - OpenRec_l >= 0, S = OpenRec_L.
	PADO Method = "pado"
)

// Choices lists the methods.
func (Method) Choices() []string { return []string{string(AMD), string(PADO)} }

// Decomposition splits every image into residuals R_1..R_L and a smooth rest S with x = S + R_1 + ... + R_L. The disk of
// level l has radius Start + (l-1) * Step.
type Decomposition struct {
	Method   Method
	Levels   int  // L, at least 1; the study used 5
	Start    int  // the first radius, at least 0; the study used 1
	Step     int  // what each level adds to it, at least 0; the study used 1
	Original bool // put the image itself before its residuals
}

// Apply returns the images as channels, [x,] R_1, ..., R_L, S (each as many channels wide as the images were), and the
// shape of one result, (height, width, channels).
func (d Decomposition) Apply(images []float32, shape []int) ([]float32, []int, error) {
	if err := d.check(); err != nil {
		return nil, nil, err
	}
	g, n, err := gridOf(images, shape)
	if err != nil {
		return nil, nil, err
	}
	out := g
	out.channels *= d.groups()
	values := make([]float32, n*out.pixels())
	parallel.For(n, grain, func(from, to int) {
		w := newDecomposer(d, g)
		for i := from; i < to; i++ {
			w.image(values[i*out.pixels():(i+1)*out.pixels()], images[i*g.pixels():(i+1)*g.pixels()])
		}
	})
	return values, []int{out.height, out.width, out.channels}, nil
}

func (d Decomposition) check() error {
	switch {
	case !slices.Contains(d.Method.Choices(), string(d.Method)):
		return fmt.Errorf("morph: unknown decomposition %q, want one of %v", d.Method, d.Method.Choices())
	case d.Levels < 1:
		return fmt.Errorf("morph: %s: %d levels, want >= 1", d.Method, d.Levels)
	case d.Start < 0:
		return fmt.Errorf("morph: %s: first radius %d, want >= 0", d.Method, d.Start)
	case d.Step < 0:
		return fmt.Errorf("morph: %s: step %d, want >= 0", d.Method, d.Step)
	}
	return nil
}

// groups is how many images each image becomes.
func (d Decomposition) groups() int {
	if d.Original {
		return d.Levels + 2
	}
	return d.Levels + 1
}

// decomposer works on one image at a time.
type decomposer struct {
	Decomposition
	grid             grid
	openings         []*Filter
	closings         []*Filter
	reconstructor    *reconstructor
	lower, upper     []float32 // OpenRec and CloseRec of the level before
	opened, closed   []float32 // and of this one
	residual, smooth []float32
}

func newDecomposer(d Decomposition, g grid) *decomposer {
	w := &decomposer{Decomposition: d, grid: g, reconstructor: newReconstructor(g)}
	for l := range d.Levels {
		radius := d.Start + l*d.Step
		w.openings = append(w.openings, newFilter(Opening, radius, g))
		w.closings = append(w.closings, newFilter(Closing, radius, g))
	}
	for _, buffer := range []*[]float32{&w.lower, &w.upper, &w.opened, &w.closed, &w.residual, &w.smooth} {
		*buffer = make([]float32, g.pixels())
	}
	return w
}

// image writes the channels of one image to dst.
func (w *decomposer) image(dst, image []float32) {
	group := 0
	if w.Original {
		w.put(dst, image, group)
		group++
	}
	copy(w.lower, image)
	copy(w.upper, image)
	for l := range w.Levels {
		w.openings[l].Image(w.opened, image)
		w.reconstructor.image(w.opened, w.opened, image, 0)
		if w.Method == AMD {
			w.closings[l].Image(w.closed, image)
			w.reconstructor.image(w.closed, w.closed, image, flip)
		}
		w.level()
		w.put(dst, w.residual, group+l)
		w.lower, w.opened = w.opened, w.lower
		w.upper, w.closed = w.closed, w.upper
	}
	w.rest()
	w.put(dst, w.smooth, group+w.Levels)
}

// level computes the residual of one level.
func (w *decomposer) level() {
	for i := range w.residual {
		w.residual[i] = w.lower[i] - w.opened[i]
		if w.Method == AMD {
			w.residual[i] = (w.residual[i] - (w.closed[i] - w.upper[i])) / 2
		}
	}
}

// rest computes S from the last level.
func (w *decomposer) rest() {
	copy(w.smooth, w.lower)
	if w.Method == AMD {
		for i := range w.smooth {
			w.smooth[i] = (w.upper[i] + w.lower[i]) / 2
		}
	}
}

// put writes an image into its channels of dst.
func (w *decomposer) put(dst, image []float32, group int) {
	c := w.grid.channels
	for p := range w.grid.height * w.grid.width {
		copy(dst[(p*w.groups()+group)*c:][:c], image[p*c:(p+1)*c])
	}
}

// Rescale maps each channel of the images to [0,1], in place, by its least and greatest value over all of them; a
// constant channel becomes 0. The study did this separately for training and test images.
func Rescale(images []float32, channels int) error {
	if channels < 1 || len(images)%channels != 0 {
		return fmt.Errorf("morph: %d values cannot have %d channels", len(images), channels)
	}
	for c := range channels {
		low, high := float32(math.Inf(1)), float32(math.Inf(-1))
		for i := c; i < len(images); i += channels {
			low, high = min(low, images[i]), max(high, images[i])
		}
		scale := high - low
		if scale == 0 {
			scale = 1
		}
		for i := c; i < len(images); i += channels {
			images[i] = (images[i] - low) / scale
		}
	}
	return nil
}
