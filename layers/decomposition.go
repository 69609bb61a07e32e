package layers

import (
	"fmt"
	"sync"

	"gorgonia.org/gorgonia"
	"tessera/config/part"
	"tessera/data/morph"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Decomposition is embedded by `amd` and `pado`. They decompose an image x into channels [x,] R_1, ..., R_L, S with x = S +
// R_1 + ... + R_L, and rescale each channel:
//
//	y = (channel - low) gain
//
// The state consists of low and gain, of shape (channels), initially 0 and 1. Before its first step a run computes both from
// the training images: low is a channel's minimum and 1/gain its range. Each channel of the training images then has the
// range [0,1]; a constant channel becomes 0. All other images, including test images, are rescaled by the same numbers: the
// code of an image does not depend on other images. The study, in contrast, rescaled test images by their own range.
//
// Source of the defaults: the study's experiments on additive morphological decompositions, 5 levels, radii 1, 2, ..., 5.
type Decomposition struct {
	Levels   int  `toml:"levels" want:"> 0" doc:"L, the number of residuals"`
	Radius   int  `toml:"radius" want:"> 0" doc:"radius of the disk of the first level in pixels"`
	Step     int  `toml:"step" want:">= 0" doc:"increase of the radius per level"`
	Original bool `toml:"original" doc:"the image itself is the first channel"`
}

var studied = Decomposition{Levels: 5, Radius: 1, Step: 1}

// Decomposing is implemented by layers that decompose images and then rescale the channels by the parameters "low" and
// "gain". Their Preparation returns a [morph.Decomposition].
type Decomposing interface {
	Preparing
	// Decompose returns the decomposition.
	Decompose() morph.Decomposition
}

func (d *Decomposition) OutputShape(in []int) ([]int, error) {
	if len(in) != 2 && len(in) != 3 {
		return nil, fmt.Errorf("got an input of shape %v, want images: (height, width) or (height, width, channels)", in)
	}
	if d.Levels > morph.MaxLevels {
		return nil, part.KeyErrorf("levels", "got %d, want at most %d", d.Levels, morph.MaxLevels)
	}
	return []int{in[0], in[1], channels(in) * d.of(morph.PADO).Groups()}, nil
}

func (d *Decomposition) Parameters(in []int) []Parameter {
	shape := []int{channels(in) * d.of(morph.PADO).Groups()}
	return []Parameter{
		{Name: "low", Shape: shape, Init: &Constant{}, FanIn: 1, FanOut: 1, State: true},
		{Name: "gain", Shape: shape, Init: &Constant{Value: 1}, FanIn: 1, FanOut: 1, State: true},
	}
}

// Rest implements [Preparing]: it rescales the channels.
func (*Decomposition) Rest(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	places := volume.Of(x.Shape()[1 : x.Dims()-1])
	y := c.MulRow(c.SubRow(c.Flatten(x), c.Tile(s.Parameter("low"), places)), c.Tile(s.Parameter("gain"), places))
	return c.Reshape(y, x.Shape()...), c.Err()
}

func (d *Decomposition) of(method morph.Method) morph.Decomposition {
	return morph.Decomposition{Method: method, Levels: d.Levels, Start: d.Radius, Step: d.Step, Original: d.Original}
}

// decomposed applies a decomposing layer to images.
func decomposed(l Decomposing, s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	f, err := perImage(l.Decompose(), x.Shape()[1:])
	if err != nil {
		return nil, err
	}
	y, err := ops.Each(x, f)
	if err != nil {
		return nil, err
	}
	return l.Rest(s, y)
}

// DecomposeOp is the spec of the op that decomposes images of a given shape. See [morph.Decomposition].
type DecomposeOp struct {
	morph.Decomposition
	Shape []int
}

// perImage applies a decomposition to single images.
func perImage(d morph.Decomposition, in []int) (ops.PerImage, error) {
	if _, err := morph.NewDecomposer(d, in); err != nil {
		return ops.PerImage{}, err
	}
	single, double := &linear[float32]{of: d, in: in}, &linear[float64]{of: d, in: in}
	return ops.PerImage{
		Spec:    DecomposeOp{d, in},
		Out:     []int{in[0], in[1], channels(in) * d.Groups()},
		Work:    float64(200 * d.Stack() * volume.Of(in)),
		Float32: func(dst, image []float32) { value(single, dst, image) },
		Float64: func(dst, image []float64) { double.push(dst, image, image) },
		Pull32:  single.pull, Push32: single.push,
		Pull64: double.pull, Push64: double.push,
	}, nil
}

// linear is the linear map that equals a decomposition near one image: every value of a level is the value of a certain pixel
// of the image.
type linear[T ops.Float] struct {
	of   morph.Decomposition
	in   []int
	pool sync.Pool
}

// workspace contains the buffers of one goroutine.
type workspace[T ops.Float] struct {
	*morph.Decomposer
	levels  []T
	sources []int32
}

func (l *linear[T]) space() *workspace[T] {
	if w, ok := l.pool.Get().(*workspace[T]); ok {
		return w
	}
	d, _ := morph.NewDecomposer(l.of, l.in) // perImage has already made one without error
	n := l.of.Stack() * volume.Of(l.in)
	return &workspace[T]{d, make([]T, n), make([]int32, n)}
}

// value writes the channels of an image to dst, in the precision of package morph.
func value(l *linear[float32], dst, image []float32) {
	w := l.space()
	defer l.pool.Put(w)
	w.LevelsOf(w.levels, image)
	morph.Combine(l.of, channels(l.in), dst, image, w.levels)
}

// push applies the linear map at image to v and writes the channels to dst. For v = image these are the channels of the
// image.
func (l *linear[T]) push(dst, image, v []T) {
	w := l.space()
	defer l.pool.Put(w)
	morph.Sources(w.Decomposer, w.sources, image)
	for i, from := range w.sources {
		w.levels[i] = v[from]
	}
	morph.Combine(l.of, channels(l.in), dst, v, w.levels)
}

// pull applies the transpose of the linear map of [linear.push].
func (l *linear[T]) pull(dst, image, v []T) {
	w := l.space()
	defer l.pool.Put(w)
	morph.Sources(w.Decomposer, w.sources, image)
	clear(dst)
	clear(w.levels)
	morph.CombineGradient(l.of, channels(l.in), dst, w.levels, v)
	for i, from := range w.sources {
		dst[from] += w.levels[i]
	}
}
