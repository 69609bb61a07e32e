package train

import (
	"context"
	"errors"
	"slices"

	"tessera/data"
	"tessera/graph"
	"tessera/metrics"
	"tessera/team"
)

// watchBatch images are measured together: their outputs stay in the processor's cache. They are fewer where that would
// fill the memory.
const watchBatch = 500

// watched are the metrics that are measured between epochs, in the order of metrics.jsonl, and their keys there.
var watched = []struct{ metric, key string }{
	{"mse", "val_mse"}, {"hoyer", "code_hoyer"}, {"dead_units", "dead_units"}, {"negative_weights", "negative_weights"},
}

// watchedOfHeads are those of heads that are compared with labels: val_accuracy, val_class.accuracy where there are several.
var watchedOfHeads = []string{"accuracy", "nll"}

// watcher measures a model between epochs, without noise.
type watcher struct {
	images     *data.Images
	labels     []int    // of the images; nil where they are not known
	heads      []string // that are compared with labels
	outputs    bool     // the model has a decoder
	validation bool     // the images are validation images: their error is val_mse
	size       int      // of a batch
	programs   compiled
	chosen     metrics.Selection
	indices    []int
	pixels     []float32        // of one batch
	decomposed *decomposed      // images; nil where the encoder does not decompose any
	channels   []float32        // of one batch
	inputs     [][]float32      // of one batch
	units      int              // of one code
	last       *graph.Parameter // weight of the decoder's last layer that has one; nil where none has
}

// newWatcher compiles the programs for the validation images, or for the first fitted ones where there are none.
func newWatcher(m *graph.Model, backend graph.Backend, splits data.Splits) (*watcher, error) {
	w := &watcher{images: splits.Validation, validation: true, heads: m.ClassHeads(), outputs: len(m.Layout.Decoder) > 0,
		size: m.AtOnce(watchBatch), units: m.Units(), programs: compiled{}, last: m.LastWeight()}
	if w.images == nil {
		w.images, w.validation = splits.Fit.Slice(0, min(splits.Fit.Len(), Watched)), false
	}
	n := w.images.Len()
	if n == 0 {
		return nil, errors.New("there are no validation images")
	}
	if err := w.choose(); err != nil {
		return nil, err
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
	w.labels = w.images.Labels()
	w.indices = make([]int, n)
	for i := range w.indices {
		w.indices[i] = i
	}
	w.pixels = make([]float32, min(n, w.size)*w.images.Pixels())
	return w, nil
}

// choose takes the watched metrics from the registry.
func (w *watcher) choose() error {
	var names []string
	for _, one := range watched {
		names = append(names, one.metric)
	}
	chosen, err := metrics.Select(names...)
	if err != nil {
		return err
	}
	if len(w.heads) > 0 {
		of, err := metrics.Select(watchedOfHeads...)
		if err != nil {
			return err
		}
		for i := range of {
			of[i].Optional = true // without labels there is nothing to compare with
		}
		chosen = chosen.Add(of)
	}
	w.chosen = chosen
	return w.chosen.Set("single", true) // right to seven digits, in a fraction of the time
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

// Measure measures the watched images at the end of an epoch.
func (w *watcher) Measure() (values metrics.Values, err error) {
	subject := metrics.Subject{Shape: w.images.Shape, Units: w.units, Images: w.images.Len()}
	has := metrics.ReadsImages | metrics.ReadsCodes
	if w.validation && w.outputs {
		has |= metrics.ReadsOutputs
	}
	if w.validation && w.labels != nil && len(w.heads) > 0 {
		has |= metrics.ReadsLabels | metrics.ReadsLogits
	}
	if w.last != nil {
		subject.Weight = w.last.Data
		has |= metrics.ReadsWeights
	}
	meters, err := metrics.Start(subject, has, w.heads, w.chosen)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, meters.Close()) }()
	for from := 0; from < subject.Images; from += w.size {
		if err := w.batch(meters, from, min(from+w.size, subject.Images)); err != nil {
			return nil, err
		}
	}
	if values, err = meters.Values(context.Background()); err != nil {
		return nil, err
	}
	return watchedKeys(values), nil
}

// watchedKeys gives the values their keys of metrics.jsonl.
func watchedKeys(values metrics.Values) metrics.Values {
	for i := range values {
		name := values[i].Name
		values[i].Name = "val_" + name
		for _, one := range watched {
			if name == one.metric {
				values[i].Name = one.key
			}
		}
	}
	return values
}

// batch encodes and decodes the images from to to and adds them to the meters.
func (w *watcher) batch(meters *metrics.Meters, from, to int) error {
	p, width := w.programs[to-from], w.images.Pixels()
	pixels := w.pixels[:(to-from)*width]
	team.For(to-from, 64, func(a, b int) {
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
		return err
	}
	b, logits := metrics.Batch{Images: pixels, Codes: p.runner.Tap(p.code)}, map[string][]float32{}
	if p.output >= 0 {
		b.Outputs = p.runner.Tap(p.output)
	}
	if w.labels != nil {
		b.Labels = w.labels[from:to]
	}
	for i, tap := range p.Taps {
		if slices.Contains(w.heads, tap.Name) {
			logits[tap.Name] = p.runner.Tap(i)
		}
	}
	return meters.Add(b, logits)
}
