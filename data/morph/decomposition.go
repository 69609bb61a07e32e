package morph

import (
	"fmt"
	"math"
	"slices"

	"tessera/parallel/team"
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

// MostLevels bounds the levels of a decomposition. Disks of that many radii are far larger than any image.
const MostLevels = 1 << 16

// Check refuses settings that no decomposition has.
func (d Decomposition) Check() error {
	switch {
	case !slices.Contains(d.Method.Choices(), string(d.Method)):
		return fmt.Errorf("morph: unknown decomposition %q, want one of %v", d.Method, d.Method.Choices())
	case d.Levels < 1:
		return fmt.Errorf("morph: %s: %d levels, want >= 1", d.Method, d.Levels)
	case d.Levels > MostLevels:
		return fmt.Errorf("morph: %s: %d levels, want at most %d", d.Method, d.Levels, MostLevels)
	case d.Start < 0:
		return fmt.Errorf("morph: %s: first radius %d, want >= 0", d.Method, d.Start)
	case d.Step < 0:
		return fmt.Errorf("morph: %s: step %d, want >= 0", d.Method, d.Step)
	}
	return nil
}

// Groups is how many images each image becomes.
func (d Decomposition) Groups() int {
	if d.Original {
		return d.Levels + 2
	}
	return d.Levels + 1
}

// Stack is how many images [Decomposer.LevelsOf] makes of one.
func (d Decomposition) Stack() int {
	if d.Method == AMD {
		return 2 * d.Levels
	}
	return d.Levels
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
