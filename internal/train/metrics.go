package train

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/regular"
	"tessera/internal/sealed"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/evaluation"
	"tessera/internal/train/folder"
	"tessera/losses"
	"tessera/metrics"
)

// Metrics contains the numbers of one epoch, a line of metrics.jsonl. An epoch of a baseline is one iteration; its codes are
// not measured.
type Metrics struct {
	Epoch           int            // number of the epoch, from 1
	Step            int            // number of steps since the beginning of the run
	Loss            float64        // sum of Terms: mean over the images of the epoch, each computed with the parameters of its step
	Terms           metrics.Values // the weighted terms of the loss by name, "kind.2" for the second of a kind; empty for a baseline, whose loss is its objective
	Players         metrics.Values // PlayerKey + NAME.loss and .learning_rate for each declared player; empty without players
	Measured        metrics.Values // metrics at the end of the epoch, without noise: see [Watched]; empty within an epoch
	LearningRate    float64        // learning rate of the epoch's last step; NaN for a baseline
	ImagesPerSecond float64        // trained images per second
	Seconds         float64        // wall time of this epoch alone, validation and checkpoint included

	unweighted []float64 // by term: see [job.unweighted]; nil without adaptive weights
	silent     int       // number of units if all codes of the watched images are 0, else 0
}

// PlayerKey is the prefix of the keys for players in metrics.jsonl: player.NAME.loss, player.NAME.learning_rate.
const PlayerKey = "player."

// Watched is the maximum number of training images, the first ones, on which code sparsity and dead units are measured if
// there are no validation images.
const Watched = 10000

// values returns the deterministic numbers by key: the loss, its terms and the metrics.
func (m Metrics) values() metrics.Values {
	v := metrics.Values{finiteValue("loss", m.Loss)}
	for _, one := range slices.Concat(m.Terms, m.Players, m.Measured.Shown()) {
		if one.Missing == "" {
			one = finiteValue(one.Name, one.Number)
		}
		v = append(v, one)
	}
	return v
}

// finiteValue returns number as a value; the value is missing if number is not finite.
func finiteValue(name string, number float64) metrics.Value {
	v := metrics.Number(number)
	if math.IsNaN(number) || math.IsInf(number, 0) {
		v = metrics.NotApplicable("it is not finite")
	}
	v.Name = name
	return v
}

// MarshalJSON writes one object with the keys in a fixed order. Missing and NaN values become null.
func (m Metrics) MarshalJSON() ([]byte, error) {
	all := metrics.Values{finiteValue("epoch", float64(m.Epoch)), finiteValue("step", float64(m.Step))}
	all = append(all, m.values()...)
	return append(all, finiteValue("learning_rate", m.LearningRate), finiteValue("images_per_second", m.ImagesPerSecond),
		finiteValue("seconds", m.Seconds)).MarshalJSON()
}

// watchBatch is the number of images that are measured together: their outputs fit into the processor's cache. Large models
// use fewer to bound the memory.
const watchBatch = 500

// watched lists the metrics that are measured between epochs, in the order of metrics.jsonl, with their keys in that file.
var watched = []struct{ metric, key string }{
	{"mse", "val_mse"}, {"hoyer", "code_hoyer"}, {"dead_units", "dead_units"}, {"negative_weights", "negative_weights"},
}

// watchedOfViews lists the metrics for models that compare views of images, whose codes may collapse; their keys are their names.
// The effective rank is measured of up to rankedUnits units, because its computation is cubic.
var watchedOfViews = []string{spreadKey, rankKey}

const (
	spreadKey   = "code_spread"
	rankKey     = "effective_rank"
	rankedUnits = 512
)

// watchedOfTargets lists the metrics for values that are compared with a column of numbers.
var watchedOfTargets = []string{"rmse", "r2"}

// watchedOfHeads lists the metrics for heads that are compared with classes: val_accuracy, or val_HEAD.accuracy if there are
// several heads.
var watchedOfHeads = []string{"accuracy", "nll"}

// watcher measures a model between epochs, without noise.
type watcher struct {
	images     *data.Images
	labels     []int          // labels of the images; nil if unknown
	heads      []metrics.Head // heads with class logits, with the classes of all images, and values that are compared with numbers
	outputs    bool           // the model reconstructs images
	validation bool           // the images are validation images, whose error is val_mse
	size       int            // batch size
	programs   compiled
	feed       *feed
	chosen     metrics.Selection
	objective  *objective       // measured objective; nil if it is not measured
	model      *graph.Model     // the measured model
	coder      *graph.Coder     // coder for the metrics of train.metrics; nil if there are none
	units      int              // length of a code
	last       *graph.Parameter // weight of the decoder's last layer with weights; nil if there is none
	active     bool             // a code of the last measurement is not 0
}

// objective is the objective on validation images: the mean of each term over the batches, weighted by their numbers of
// images. Terms that compare samples, read views or a teacher depend on the batch: if the model has one, all terms are measured
// on the same batches after every epoch, of the size of the training batches and with the same views; a last smaller batch is
// left out.
type objective struct {
	spec    *config.Model
	terms   []int     // indices of the measured terms
	sums    []float64 // sums of the terms over the images
	counted int       // number of these images

	loader   *loader  // makes the fixed batches; nil if the terms are means over images
	programs compiled // for these batches
}

func newObjective(spec *config.Model) *objective {
	if !spec.MeasuresObjective() {
		return nil
	}
	terms := spec.ValidatedTerms()
	return &objective{spec: spec, terms: terms, sums: make([]float64, len(terms))}
}

// compares reports whether a term depends on the batch.
func (o *objective) compares() bool {
	return slices.ContainsFunc(o.terms, func(i int) bool { return !o.spec.Validates(o.spec.Losses[i]) })
}

// begin compiles the programs for fixed batches of the images.
func (o *objective) begin(m *graph.Model, h hookList, backend ir.Backend, images *data.Images) (err error) {
	size := min(o.spec.Train.Batch, images.Len())
	r := graph.Request{Want: []string{graph.Terms}, Compared: true, Prepared: h.prepares()}
	if o.programs, err = compileAll(m, backend, r, size, size); err != nil {
		return err
	}
	o.loader = &loader{images: images, seed: o.spec.Train.Seed, size: size, epochs: 1, threads: runtime.GOMAXPROCS(0), inputs: map[int][]graph.Input{size: o.programs[size].Inputs}}
	if o.loader.views, err = viewsOf(o.spec, images.Shape); err == nil {
		o.loader.prepared, err = h.prepare(images, o.programs)
	}
	return err
}

// measure adds the terms of the fixed batches.
func (o *objective) measure() error {
	l := *o.loader
	l.Start(0, 0, 0)
	for range l.images.Len() / l.size {
		err := guard("making a batch of validation samples", func() error {
			team.For(l.threads, 1, func(from, to int) {
				for thread := from; thread < to; thread++ {
					l.Fill(thread)
				}
			})
			return nil
		})
		if err != nil {
			return err
		}
		b, err := l.Take()
		if err != nil {
			return err
		}
		p := o.programs[b.size]
		if err := p.Run(b.values); err != nil {
			return err
		}
		o.add(p, b.size)
	}
	return nil
}

// add adds the terms from a program's last run, on n images.
func (o *objective) add(p *program, n int) {
	for k, i := range o.terms {
		o.sums[k] += p.scalar(p.terms[i]) * float64(n)
	}
	o.counted += n
}

// values returns the means over the images as val_loss and val_loss.TERM. It omits val_loss if some terms cannot be measured,
// because the sum of the others is not the objective.
func (o *objective) values() metrics.Values {
	sum := 0.0
	all := metrics.Values{{}}
	for k, i := range o.terms {
		v := metrics.Number(o.sums[k] / float64(o.counted))
		v.Name = ObjectiveKey + "." + o.spec.TermName(i)
		sum += v.Number
		all = append(all, v)
	}
	if all[0] = metrics.Number(sum); len(o.terms) < len(o.spec.Losses) {
		all[0] = metrics.NotApplicable("a term cannot be measured on validation samples")
	}
	all[0].Name = ObjectiveKey
	clear(o.sums)
	o.counted = 0
	return all
}

// Judging lists the keys of metrics.jsonl by which a model is judged between epochs, most important first: the errors of heads, of the
// reconstruction, and the objective, on validation images.
func Judging(values metrics.Values) (keys []string) {
	for _, measure := range []string{"accuracy", "rmse", "mse", "loss"} {
		for _, v := range values {
			head, ok := strings.CutSuffix(v.Name, measure)
			if ok && v.Missing == "" && strings.HasPrefix(head, "val_") && !strings.HasPrefix(head, ObjectiveKey+".") && (head == "val_" || strings.HasSuffix(head, ".")) {
				keys = append(keys, v.Name)
			}
		}
	}
	return keys
}

// ObjectiveKey is the key for the objective on the validation images in metrics.jsonl; its terms have the keys
// ObjectiveKey.TERM.
const ObjectiveKey = "val_loss"

// newWatcher compiles the programs for the validation images or, if there are none, for the first training images.
func newWatcher(m *graph.Model, h hookList, backend ir.Backend, splits data.Splits) (*watcher, error) {
	w := &watcher{images: splits.Validation, validation: true, outputs: m.Spec.Reconstructs() == nil,
		size: m.AtOnce(watchBatch), units: m.Units(), last: m.LastWeight(), model: m}
	if w.images == nil {
		w.images, w.validation = splits.Fit.First(Watched), false
	}
	if w.images.Len() == 0 {
		return nil, errors.New("there are no validation samples")
	}
	w.labels = w.images.Labels()
	for _, h := range m.Spec.ClassHeads() {
		w.heads = append(w.heads, metrics.Head{Name: h.Value, Labels: w.images.Classes(h.Column)})
	}
	for _, t := range m.Spec.Targets(m.Layout) {
		w.heads = append(w.heads, metrics.Head{Name: t.Value, Target: &t})
	}
	err := w.choose()
	if err != nil {
		return nil, err
	}
	r := graph.Request{Want: m.Layout.Values(), Prepared: h.prepares()}
	if w.validation && (w.labels != nil || !readsLabels(m.Spec)) {
		w.objective = newObjective(m.Spec)
	}
	if w.objective != nil && w.objective.compares() {
		if err := w.objective.begin(m, h, backend, w.images); err != nil {
			return nil, err
		}
	} else if w.objective != nil {
		r.Want = append(r.Want, graph.Terms)
	}
	if len(m.Spec.Train.Metrics) > 0 {
		w.coder = graph.NewCoder(m, backend)
	}
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
		if w.model.Spec.HasUnits() || !config.OfUnits(one.metric) {
			names = append(names, one.metric)
		}
	}
	if len(w.model.Spec.Views) > 0 {
		names = append(names, watchedOfViews...)
		if w.units > rankedUnits {
			names = names[:len(names)-1]
		}
	}
	chosen, err := metrics.Select(names...)
	if err != nil {
		return err
	}
	if len(w.heads) > 0 {
		of, err := metrics.Select(slices.Concat(watchedOfHeads, watchedOfTargets)...)
		if err != nil {
			return err
		}
		for i := range of {
			of[i].Optional = true // without labels the accuracy is missing
		}
		chosen = chosen.Add(of)
	}
	if err := chosen.Set("single", true); err != nil { // accurate to seven digits, and much faster
		return err
	}
	declared, err := w.model.Spec.WatchedMetrics()
	for i := range declared {
		declared[i].Optional = true
	}
	w.chosen = chosen.Add(declared)
	return err
}

// subject returns the description of the model for the metrics; has lists the available inputs.
func (w *watcher) subject() (s metrics.Subject, has metrics.Reads) {
	s = metrics.Subject{Shape: w.images.Shape, Units: w.units, Images: w.images.Len(), Holed: w.images.Holed()}
	has = metrics.ReadsImages | metrics.ReadsCodes
	if w.validation && w.outputs {
		has |= metrics.ReadsOutputs
	}
	if w.validation && w.labels != nil {
		has |= metrics.ReadsLabels
	}
	if w.validation && slices.ContainsFunc(w.heads, func(h metrics.Head) bool { return h.Labels != nil }) {
		has |= metrics.ReadsLogits
	}
	if w.validation && w.predictsNumbers() {
		has |= metrics.ReadsTargets
	}
	if w.last != nil {
		s.Weight = w.last.Data
		has |= metrics.ReadsWeights
	}
	if w.coder == nil {
		return s, has
	}
	s.Coder, s.Seed, s.Known, s.Parts, s.Atoms = w.coder, w.model.Spec.Train.Seed, evaluation.Known(w.model.Spec), w.images.Parts, w.model.Atoms()
	s.Scaling = w.images.Scaling()
	s.Range[0], s.Range[1] = w.images.Scaled(nil).Range()
	if s.Atoms != nil && w.model.Layout.Decodes() == nil {
		has |= metrics.ReadsAtoms
	}
	if w.coder.Language() != nil {
		has |= metrics.ReadsTokens
	}
	if w.coder.Pair() != nil {
		has |= metrics.ReadsPair
	}
	if len(s.Parts) > 0 {
		has |= metrics.ReadsParts
	}
	if len(s.Shape) > 1 {
		has |= metrics.ReadsPictures
	}
	return s, has
}

// Measure measures the watched images at the end of an epoch.
func (w *watcher) Measure() (values metrics.Values, err error) {
	subject, has := w.subject()
	meters, err := metrics.Start(subject, has, w.heads, w.chosen)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, meters.Close()) }()
	w.active = false
	for from := 0; from < subject.Images; from += w.size {
		if err := w.batch(meters, from, min(from+w.size, subject.Images)); err != nil {
			return nil, err
		}
	}
	if values, err = meters.Values(context.Background()); err != nil {
		return nil, err
	}
	values = watchedKeys(values)
	if w.objective != nil && w.objective.loader != nil {
		if err := w.objective.measure(); err != nil {
			return nil, err
		}
	}
	if w.objective != nil {
		values = append(values, w.objective.values()...)
	}
	return values, nil
}

func (w *watcher) Close() error {
	err := w.programs.Close()
	if w.objective != nil {
		err = errors.Join(err, w.objective.programs.Close())
	}
	if w.coder != nil {
		err = errors.Join(err, w.coder.Close())
	}
	return err
}

// watchedKeys renames the values to their keys in metrics.jsonl.
func watchedKeys(values metrics.Values) metrics.Values {
	for i := range values {
		name := values[i].Name
		if values[i].Name = "val_" + name; slices.Contains(watchedOfViews, name) {
			values[i].Name = name
		}
		for _, one := range watched {
			if name == one.metric {
				values[i].Name = one.key
			}
		}
	}
	return values
}

// predictsNumbers reports whether the model has values that are compared with columns of numbers.
func (w *watcher) predictsNumbers() bool {
	return slices.ContainsFunc(w.heads, func(h metrics.Head) bool { return h.Target != nil })
}

// batch encodes and decodes the images in [from, to) and adds them to the meters.
func (w *watcher) batch(meters *metrics.Meters, from, to int) error {
	p := w.programs[to-from]
	if err := w.feed.run(p, from, to); err != nil {
		return err
	}
	b := metrics.Batch{Images: w.feed.pixels(p, from, to), Codes: p.value(losses.Code), Outputs: p.value(losses.Output)}
	w.active = w.active || slices.ContainsFunc(b.Codes, func(v float32) bool { return v != 0 })
	if w.images.Holed() || w.coder != nil || w.predictsNumbers() {
		b.Columns = w.columns(from, to)
	}
	if w.labels != nil {
		b.Labels = w.labels[from:to]
	}
	var heads []metrics.Head
	for _, h := range w.heads {
		one := metrics.Head{Name: h.Name, Target: h.Target, Logits: p.value(h.Name)}
		if h.Labels != nil {
			one.Labels = h.Labels[from:to]
		}
		heads = append(heads, one)
	}
	if w.objective != nil && w.objective.loader == nil {
		w.objective.add(p, to-from)
	}
	return meters.Add(b, heads)
}

// Epoch is one line of metrics.jsonl: the values of one epoch by name.
type Epoch struct {
	Epoch  float64
	Values metrics.Values
}

// ReadHistory reads the metrics.jsonl of a run. A run without this file has no epochs. For a damaged file it returns a
// [*checkpoint.Error] with the number of the damaged line, together with the epochs before that line. The run itself does not
// need the file.
func ReadHistory(run string) ([]Epoch, error) {
	path := filepath.Join(run, folder.Metrics)
	file, err := regular.OpenUnlinked(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseHistory(path, file)
}

func parseHistory(path string, r io.Reader) (epochs []Epoch, err error) {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var e Epoch
		ok := false
		if err := json.Unmarshal(lines.Bytes(), &e.Values); err != nil {
			return epochs, checkpoint.Errorf(path, "line %d is damaged: %v; the run itself is intact", n, err)
		}
		if err := sealed.CheckLine(lines.Bytes()); err != nil {
			return epochs, checkpoint.Errorf(path, "line %d is damaged: %v; the run itself is intact", n, err)
		}
		if e.Epoch, ok = e.Values.Number("epoch"); !ok {
			return epochs, checkpoint.Errorf(path, "line %d is damaged: it has no epoch; the run itself is intact", n)
		}
		epochs = append(epochs, e)
	}
	return epochs, lines.Err()
}

func (w *watcher) columns(from, to int) map[string][]float32 {
	indices := lists.Range(from, to)
	return w.images.Subset(indices).All()
}
