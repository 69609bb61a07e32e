package train

import (
	"context"
	"errors"

	"tessera/data"
	"tessera/engine/ir"
	"tessera/graph"
	"tessera/losses"
	"tessera/metrics"
)

// watchBatch is the number of images that are measured together: their outputs stay in the processor's cache. Large models
// use fewer to bound the memory.
const watchBatch = 500

// watched are the metrics that are measured between epochs, in the order of metrics.jsonl, with their keys there.
var watched = []struct{ metric, key string }{
	{"mse", "val_mse"}, {"hoyer", "code_hoyer"}, {"dead_units", "dead_units"}, {"negative_weights", "negative_weights"},
}

// watchedOfHeads are the metrics of heads that are compared with labels: val_accuracy, or val_HEAD.accuracy for several
// heads.
var watchedOfHeads = []string{"accuracy", "nll"}

// watcher measures a model between epochs, without noise.
type watcher struct {
	images     *data.Images
	labels     []int    // of the images; nil if unknown
	heads      []string // that are compared with labels
	outputs    bool     // the model has a decoder
	validation bool     // the images are validation images, whose error is val_mse
	size       int      // of a batch
	programs   compiled
	feed       *feed
	chosen     metrics.Selection
	units      int              // of one code
	last       *graph.Parameter // weight of the decoder's last layer with weights; nil if there is none
}

// newWatcher compiles the programs for the validation images or, if there are none, for the first training images.
func newWatcher(m *graph.Model, h around, backend ir.Backend, splits data.Splits) (*watcher, error) {
	w := &watcher{images: splits.Validation, validation: true, heads: m.ClassHeads(), outputs: len(m.Layout.Decoder) > 0,
		size: m.AtOnce(watchBatch), units: m.Units(), last: m.LastWeight()}
	if w.images == nil {
		w.images, w.validation = splits.Fit.First(Watched), false
	}
	if w.images.Len() == 0 {
		return nil, errors.New("there are no validation images")
	}
	w.labels = w.images.Labels()
	err := w.choose()
	if err != nil {
		return nil, err
	}
	r := graph.Request{Want: m.Layout.Values(), Prepared: h.prepares()}
	if w.programs, err = compileAll(m, backend, r, w.images.Len(), w.size); err != nil {
		return nil, err
	}
	if w.feed, err = newFeed(w.images, h, 0, w.programs); err != nil {
		return nil, errors.Join(err, w.programs.Close())
	}
	return w, nil
}

// choose selects the watched metrics from the registry.
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
			of[i].Optional = true // without labels the accuracy is missing
		}
		chosen = chosen.Add(of)
	}
	w.chosen = chosen
	return w.chosen.Set("single", true) // accurate to seven digits, and much faster
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

// watchedKeys renames the values to their keys in metrics.jsonl.
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

// batch encodes and decodes the images in [from, to) and adds them to the meters.
func (w *watcher) batch(meters *metrics.Meters, from, to int) error {
	p := w.programs[to-from]
	if err := w.feed.run(p, from, to); err != nil {
		return err
	}
	b := metrics.Batch{Images: w.feed.inputs[0], Codes: p.value(losses.Code), Outputs: p.value(losses.Output)}
	if w.labels != nil {
		b.Labels = w.labels[from:to]
	}
	logits := map[string][]float32{}
	for _, head := range w.heads {
		logits[head] = p.value(head)
	}
	return meters.Add(b, logits)
}
