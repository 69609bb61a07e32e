package layers

import (
	"errors"
	"fmt"
	"sync"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/morph"
)

// Decomposition is what `amd` and `pado` have in common. They turn an image x into channels, [x,] R_1, ..., R_L, S with
// x = S + R_1 + ... + R_L, and rescale each:
//
//	y = (channel - low) gain
//
// The state low and gain, of shape (channels), starts at 0 and 1. A run sets it, before its first step, so that each channel
// of the images that it fits runs over [0,1]; low is their least value, 1/gain their range, and a constant channel becomes 0.
// All other images, also those of a test, are rescaled by the same numbers: what an encoder does to an image depends on no
// other one. (The study took those of the test images for the test images.)
//
// Source of the defaults: the study's experiments on additive morphological decompositions, 5 levels, radii 1, 2, ..., 5.
type Decomposition struct {
	Levels   int  `toml:"levels" want:"> 0" doc:"L, the number of residuals"`
	Radius   int  `toml:"radius" want:"> 0" doc:"of the disk of the first level, in pixels"`
	Step     int  `toml:"step" want:">= 0" doc:"what each level adds to the radius"`
	Original bool `toml:"original" doc:"the image itself is the first channel"`
}

var studied = Decomposition{Levels: 5, Radius: 1, Step: 1}

// Decomposing is implemented by layers whose costly part, a decomposition, is a fixed function of single images. Where one
// is the first of an encoder, training decomposes every image once and applies the rest only.
type Decomposing interface {
	Layer
	// Decompose returns what Apply does first.
	Decompose() morph.Decomposition
	// Rescale is what it does then, to decomposed images. It reads the parameters "low" and "gain".
	Rescale(s Scope, channels *gorgonia.Node) (*gorgonia.Node, error)
}

// OutputShape implements [Layer].
func (d *Decomposition) OutputShape(in []int) ([]int, error) {
	if len(in) != 2 && len(in) != 3 {
		return nil, fmt.Errorf("got an input of shape %v, want images: (height, width) or (height, width, channels)", in)
	}
	return []int{in[0], in[1], channels(in) * d.of(morph.PADO).Groups()}, nil
}

// Parameters implements [Layer].
func (d *Decomposition) Parameters(in []int) []Parameter {
	shape := []int{channels(in) * d.of(morph.PADO).Groups()}
	return []Parameter{
		{Name: "low", Shape: shape, Init: &Constant{}, FanIn: 1, FanOut: 1, State: true},
		{Name: "gain", Shape: shape, Init: &Constant{Value: 1}, FanIn: 1, FanOut: 1, State: true},
	}
}

// Rescale implements [Decomposing].
func (*Decomposition) Rescale(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	places := size(x.Shape()[1 : x.Dims()-1])
	y := c.MulRow(c.SubRow(c.Flatten(x), c.Tile(s.Parameter("low"), places)), c.Tile(s.Parameter("gain"), places))
	return c.Reshape(y, x.Shape()...), c.Err()
}

func (d *Decomposition) of(method morph.Method) morph.Decomposition {
	return morph.Decomposition{Method: method, Levels: d.Levels, Start: d.Radius, Step: d.Step, Original: d.Original}
}

// decomposed applies a decomposing layer to images.
func decomposed(l Decomposing, s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	if x.Dims() < 3 {
		return nil, errors.New("want images with a batch axis")
	}
	f, err := perImage(l.Decompose(), x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	y, err := ops.Each(x, f)
	if err != nil {
		return nil, err
	}
	return l.Rescale(s, y)
}

// workspace is what one goroutine needs for one image.
type workspace struct {
	*morph.Decomposer
	single   []float32
	double   []float64
	sources  []int32
	gradient []float64 // of the levels
}

// perImage is a decomposition as a function of images. In float64, and for the gradient, levels are taken from the pixels
// that they come from.
func perImage(d morph.Decomposition, in []int) (ops.PerImage, error) {
	if _, err := morph.NewDecomposer(d, in); err != nil {
		return ops.PerImage{}, err
	}
	pixels, deep := size(in), channels(in)
	spaces := &sync.Pool{New: func() any {
		w, _ := morph.NewDecomposer(d, in) // which has been made before
		n := d.Stack() * pixels
		return &workspace{w, make([]float32, n), make([]float64, n), make([]int32, n), make([]float64, n)}
	}}
	f := ops.PerImage{
		Name: fmt.Sprintf("%s(%d,%d,%d,%t)%v", d.Method, d.Levels, d.Start, d.Step, d.Original, in),
		Out:  []int{in[0], in[1], deep * d.Groups()},
		Work: float64(200 * d.Stack() * pixels),
	}
	f.Float32 = func(dst, image []float32) {
		w := spaces.Get().(*workspace)
		defer spaces.Put(w)
		w.LevelsOf(w.single, image)
		morph.Combine(d, deep, dst, image, w.single)
	}
	f.Float64 = func(dst, image []float64) {
		w := spaces.Get().(*workspace)
		defer spaces.Put(w)
		w.Sources(w.sources, image)
		for i, from := range w.sources {
			w.double[i] = image[from]
		}
		morph.Combine(d, deep, dst, image, w.double)
	}
	f.Gradient64 = func(dst, image, gradient []float64) {
		w := spaces.Get().(*workspace)
		defer spaces.Put(w)
		w.Sources(w.sources, image)
		clear(dst)
		clear(w.gradient)
		morph.CombineGradient(d, deep, dst, w.gradient, gradient)
		for i, from := range w.sources {
			dst[from] += w.gradient[i]
		}
	}
	f.Gradient32 = func(dst, image, gradient []float32) { narrowed(f.Gradient64, dst, image, gradient) }
	f.Tangent64 = func(dst, image, direction []float64) {
		w := spaces.Get().(*workspace)
		defer spaces.Put(w)
		w.Sources(w.sources, image)
		for i, from := range w.sources {
			w.double[i] = direction[from]
		}
		morph.Combine(d, deep, dst, direction, w.double)
	}
	f.Tangent32 = func(dst, image, direction []float32) { narrowed(f.Tangent64, dst, image, direction) }
	return f, nil
}

// narrowed calls a function of float64 values with float32 ones.
func narrowed(f func(dst, image, v []float64), dst, image, v []float32) {
	double := make([]float64, len(dst))
	f(double, widened(image), widened(v))
	for i, x := range double {
		dst[i] = float32(x)
	}
}

func widened(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
