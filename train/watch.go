package train

import (
	"errors"
	"math"

	"tessera/data"
	"tessera/graph"
	"tessera/internal/parallel"
	"tessera/kernel"
	"tessera/metrics"
)

// watchBatch images are looked at together: their outputs stay in the processor's cache. They are fewer where that would
// fill the memory.
const watchBatch = 500

// watcher measures a model between epochs, without noise.
type watcher struct {
	images     *data.Images
	outputs    bool // the model has a decoder
	validation bool // the images are validation images: their error is val_mse
	size       int  // of a batch
	programs   compiled
	indices    []int
	pixels     []float32        // of one batch
	decomposed *decomposed      // images; nil where the encoder does not decompose any
	channels   []float32        // of one batch
	inputs     [][]float32      // of one batch
	codes      []float32        // of all images
	units      int              // of one code
	last       *graph.Parameter // weight of the decoder's last layer that has one; nil where none has
}

// newWatcher compiles the programs for the validation images, or for the first fitted ones where there are none.
func newWatcher(m *graph.Model, backend graph.Backend, splits data.Splits) (*watcher, error) {
	w := &watcher{images: splits.Validation, validation: true, outputs: len(m.Layout.Decoder) > 0, size: m.AtOnce(watchBatch), units: m.Units(), programs: compiled{}, last: m.LastWeight()}
	if w.images == nil {
		w.images, w.validation = splits.Fit.Slice(0, min(splits.Fit.Len(), Watched)), false
	}
	n := w.images.Len()
	if n == 0 {
		return nil, errors.New("there are no validation images")
	}
	for _, size := range []int{min(n, w.size), n % w.size} {
		if size == 0 || w.programs[size] != nil {
			continue
		}
		p, err := compile(m, backend, graph.Request{Batch: size, Want: m.Layout.Values()})
		if err != nil {
			return nil, errors.Join(err, w.programs.Close())
		}
		w.programs[size] = p
		if w.decomposed, err = w.decompose(p); err != nil {
			return nil, errors.Join(err, w.programs.Close())
		}
	}
	w.indices = make([]int, n)
	for i := range w.indices {
		w.indices[i] = i
	}
	w.pixels = make([]float32, min(n, w.size)*w.images.Pixels())
	w.codes = make([]float32, n*w.units)
	return w, nil
}

// decompose finds the levels of the watched images once, where a program wants them.
func (w *watcher) decompose(p *program) (*decomposed, error) {
	if w.decomposed != nil {
		return w.decomposed, nil
	}
	d, err := decompose(w.images, p.Inputs)
	if d != nil {
		w.channels = make([]float32, min(w.images.Len(), w.size)*d.of.Groups()*w.images.Pixels())
	}
	return d, err
}

// Measure fills in what is measured at the end of an epoch.
func (w *watcher) Measure(m *Metrics) error {
	n, sum := w.images.Len(), 0.0
	for from := 0; from < n; from += w.size {
		to := min(from+w.size, n)
		squares, err := w.batch(from, to)
		if err != nil {
			return err
		}
		sum += squares
	}
	m.ValMSE = math.NaN()
	if w.validation && w.outputs {
		m.ValMSE = sum / float64(n*w.images.Pixels())
	}
	var err error
	if m.CodeHoyer, err = metrics.MeanHoyer(w.codes, w.units); err != nil {
		return err
	}
	dead, err := metrics.DeadUnits(w.codes, w.units)
	m.DeadUnits = len(dead)
	if w.last != nil {
		m.NegativeWeights = new(metrics.NegativeWeights(w.last.Data))
	}
	return err
}

// batch encodes and decodes the images from to to, keeps their codes and returns the sum of their squared errors. The
// kernel sums an image in float32, images are summed in float64: the mean is that of package metrics to seven digits.
func (w *watcher) batch(from, to int) (sum float64, err error) {
	p, width := w.programs[to-from], w.images.Pixels()
	pixels := w.pixels[:(to-from)*width]
	parallel.For(to-from, 64, func(a, b int) {
		w.images.Batch(pixels[a*width:b*width], w.indices[from+a:from+b])
		if w.decomposed != nil {
			groups := w.decomposed.of.Groups()
			w.decomposed.Batch(w.decomposed.space(), w.channels[a*width*groups:b*width*groups], w.indices[from+a:from+b])
		}
	})
	w.inputs = append(w.inputs[:0], pixels)
	if w.decomposed != nil {
		w.inputs = append(w.inputs, w.channels[:len(pixels)*w.decomposed.of.Groups()])
	}
	if err := p.Run(w.inputs); err != nil {
		return 0, err
	}
	copy(w.codes[from*w.units:to*w.units], p.runner.Tap(p.code))
	if !w.outputs {
		return 0, nil
	}
	output, distance := p.runner.Tap(p.output), kernel.Float32().SquaredDistance
	for ; len(pixels) > 0; pixels, output = pixels[width:], output[width:] {
		sum += float64(distance(pixels[:width], output[:width]))
	}
	return sum, nil
}
