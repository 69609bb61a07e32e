package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tessera"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/regular"
	"tessera/internal/train"
	"tessera/internal/train/folder"
	"tessera/internal/volume"
	"tessera/losses"
)

// Model is a run to serve, and its name.
type Model struct {
	Name   string       // name in URLs: letters, digits and ._-; "" for the last element of the path of Run or Folder
	Folder string       // folder of a run; the server reads the run again when its files change
	Run    *tessera.Run // an open run, in place of Folder; the caller may close it when New has returned, but a closed one continues no texts
}

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// name returns the name of a model, or an error if it is invalid.
func (m Model) name() (string, error) {
	name, path := m.Name, m.Folder
	if m.Run != nil {
		path = m.Run.Path
	}
	if (m.Run == nil) == (m.Folder == "") {
		return "", invalid("a model needs a Folder or a Run, and not both")
	}
	if name == "" {
		if absolute, err := filepath.Abs(path); err == nil { // of "." too
			path = absolute
		}
		name = filepath.Base(path)
	}
	if !validName.MatchString(name) || name == "." || name == ".." { // clients resolve dots in URLs
		return "", invalid("%s: name of the model: got %q, want letters, digits and ._-; give a name, as in NAME=%s", path, name, path)
	}
	return name, nil
}

// model is a served model with its name. Its run may be replaced while requests still use the previous one.
type model struct {
	name    string
	folder  string // folder of the run; "" for an open run, which is never read again
	kind    string // see generates; "" for the values of the run
	files   files  // files in the folder that are watched
	stats   *modelStats
	mu      sync.RWMutex
	current *loaded
	retired bool // the server is closed: no request may use the model any more
}

// load loads the model from an open run, or from its folder if run is nil.
func (m *model) load(o *Options, run *tessera.Run) (err error) {
	var l *loaded
	if run != nil {
		l, err = o.compile(run, "1", m.stats)
	} else {
		m.files = newFiles(runFiles(m.folder)...)
		l, err = o.open(m.folder, m.kind, m.stats)
	}
	if err == nil {
		m.exchange(l)
	}
	return err
}

// acquire returns the loaded model, nil if the server is closed. The caller releases it.
func (m *model) acquire() *loaded {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.retired {
		return nil
	}
	m.current.users.Add(1)
	return m.current
}

// retire returns the loaded model, which no later request gets.
func (m *model) retire() *loaded {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retired = true
	return m.current
}

// exchange replaces the loaded model and returns the previous one, which the caller closes. Requests that use the previous
// model complete with it.
func (m *model) exchange(by *loaded) (former *loaded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	former, m.current = m.current, by
	m.stats.loaded(by.version)
	return former
}

// reload reads the run of a model again and returns a text for the log, "" for none. If the contents of the files have not
// changed, the loaded model remains.
func (s *Server) reload(m *model) (news string, err error) {
	if version, err := versionOf(m.folder); err == nil && version == m.current.version {
		return "", nil
	}
	if !m.current.unfinished && unfinished(m.folder) { // whose checkpoints are worse models for a while
		return "", fmt.Errorf("serve: %s: its training has not ended", m.folder)
	}
	l, err := s.options.open(m.folder, m.kind, m.stats, slices.Collect(maps.Keys(m.current.missing))...)
	if err != nil {
		m.stats.reloads.WithLabelValues("error").Inc()
		return "", err
	}
	former := m.exchange(l)
	m.stats.reloads.WithLabelValues("ok").Inc()
	s.watching.Go(func() { // the watch does not wait for slow requests
		if err := former.close(); err != nil {
			s.options.Log(fmt.Sprintf("model %s: version %s: %v", m.name, former.version, err))
		}
	})
	return fmt.Sprintf("version %s replaces %s", l.version, former.version), nil
}

// unfinished reports whether a run has further epochs to train.
func unfinished(run string) bool {
	state := train.StatusOf(run).State
	return state == train.Training || state == train.Interrupted
}

// runFiles returns the files of a run that determine its model.
func runFiles(run string) []string {
	paths := lists.Map([]string{folder.Config, folder.PostHoc, folder.Best, folder.Model, folder.State}, func(name string) string { return filepath.Join(run, name) })
	return paths
}

// versionOf returns the beginning of the SHA-256 of three files of a run: the declaration, the procedures fitted after the
// training, and the parameters. Equal files have equal versions on every machine.
func versionOf(run string) (string, error) {
	sum := sha256.New()
	for i, path := range runFiles(run) {
		f, err := regular.OpenUnlinked(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
		if i > 1 { // only the first file with parameters is read
			break
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// open reads a run and compiles it. The kinds of images that the former version could not make get the reasons of this one. A
// kind that can now be made is not served either: the models of a server are those of its start. It returns an error if the
// files change meanwhile, so that version and model match.
func (o *Options) open(path, kind string, stats *modelStats, left ...string) (*loaded, error) {
	before := signatureOf(runFiles(path)...)
	run, err := tessera.Open(path, o.Runs)
	if err != nil {
		return nil, err
	}
	version, err := versionOf(path)
	if err != nil {
		return nil, errors.Join(err, run.Close())
	}
	var l *loaded
	if kind != "" {
		l, err = o.generates(kind, run, version, stats)
	} else {
		if l, err = o.compile(run, version, stats); err == nil {
			l.leaveOut(run, left)
		}
		if err == nil && l.language != nil {
			l.run = run
		} else {
			err = errors.Join(err, run.Close())
		}
	}
	if err != nil {
		return nil, err
	}
	l.unfinished = unfinished(path)
	if signatureOf(runFiles(path)...) != before {
		return nil, errors.Join(fmt.Errorf("serve: %s: its files changed while they were read", path), l.close())
	}
	return l, nil
}

// loaded is a compiled run. Requests acquire it and release it.
type loaded struct {
	version    string // version of the model, see versionOf
	unfinished bool   // its training had not ended
	shape      []int  // shape of an image
	pixels     int
	source     data.Source // reads pictures as the data set of the training does
	pictures   bool        // the values of the training were in [0,1], like pixels divided by 255
	names      []string    // names of the values of a vector, as in the file of the training; nil if they have none or the file is gone
	inputs     []*feature
	widest     int               // number of values per sample of the largest input
	outputs    []*output         // outputs of a request that names none
	derived    []*output         // the outputs label and probability of each head of classes
	run        *tessera.Run      // open run of a model that makes images or continues texts, which close closes; nil for others
	language   *continuation     // continues texts; nil for other models
	named      bool              // a column has classes, of which requests may send the names
	text       textReader        // makes samples of texts; nil for other samples
	places     map[string]int    // numbers of the columns of a sparse matrix whose other entries are 0; nil for other samples
	shift      *data.Scaling     // subtracted from images in float64, see [data.Scaling.Split]; nil for none
	vacant     []float32         // as which missing values of a sample are computed; nil if the training had none
	seen       data.Seen         // what the model knows of the samples of the training
	log        func(string)      // logs the first warning about a request
	missing    map[string]string // kinds of images that [Options.Generate] would add but the run cannot make, with the reasons
	users      sync.WaitGroup
}

// textReader returns the values of the sample of a text, and its other columns.
type textReader func(text string) (values []float32, columns map[string][]float32, err error)

// inputName is the name of the images in requests. Other inputs have the names of their columns.
const inputName = "input"

// feature is an input of a model: a column of its samples.
type feature struct {
	name, column string
	shape        []int // shape of one sample
	size         int   // product of the shape
	datatypes    []string
	whole        bool               // the values are whole numbers
	within       []float32          // smallest and largest value; nil for any
	readers      []*tessera.Encoder // encoders that read the column; each accepts the values of a request
	drawn        bool               // the values are drawn at random in training; a request provides them
	names        []string           // names of the values of a sample, such as the columns of a table; nil if they have none
	classes      []string           // names of the classes; nil if the values are not classes or have no names
	scaled       bool               // the values are scaled like images
}

// feature returns the input for a column, which an encoder reads.
func (l *loaded) feature(c data.Column, reader *tessera.Encoder) (*feature, error) {
	if i := slices.IndexFunc(l.inputs, func(f *feature) bool { return f.column == c.Name }); i >= 0 {
		l.inputs[i].readers = append(l.inputs[i].readers, reader)
		return l.inputs[i], nil
	}
	f := &feature{name: c.Name, column: c.Name, shape: c.Shape, size: c.Size(), datatypes: []string{typeFP32, typeFP64}, classes: c.Names, drawn: c.Drawn, readers: []*tessera.Encoder{reader},
		scaled: c.Name == losses.Images || c.AsImages}
	switch {
	case c.Name == losses.Images:
		f.name, f.names = inputName, l.names
		if l.text != nil {
			f.datatypes = append(f.datatypes, typeBytes)
		}
		if l.pictures {
			f.datatypes = append(f.datatypes, typeUINT8)
		}
	case c.Name == inputName:
		return nil, fmt.Errorf("the column %q has the name that images have in requests: give it another name", c.Name)
	case c.Type == data.Bytes:
		f.datatypes = append([]string{typeUINT8}, f.datatypes...)
	case c.Type == data.Whole:
		f.whole, f.datatypes = true, []string{typeINT32, typeINT64, typeFP32, typeFP64}
		if f.classes != nil {
			f.datatypes = slices.Insert(f.datatypes, 0, typeBytes)
			l.named = true
		}
	}
	if len(f.shape) == 0 {
		f.shape = []int{1}
	}
	if f.size == 0 {
		return nil, fmt.Errorf("the shape of the column %q is not known", c.Name)
	}
	l.inputs = append(l.inputs, f)
	l.widest = max(l.widest, f.size)
	return f, nil
}

func (l *loaded) input(name string) *feature {
	if i := slices.IndexFunc(l.inputs, func(f *feature) bool { return f.name == name }); i >= 0 {
		return l.inputs[i]
	}
	return nil
}

// wantedInputs returns a description of the inputs that a request may have, for an error message.
func (l *loaded) wantedInputs() string {
	names := lists.Map(l.inputs, func(f *feature) string { return strconv.Quote(f.name) })
	if len(names) == 1 {
		return "one input, " + names[0]
	}
	return "inputs among " + strings.Join(names, ", ")
}

// output is a value that a model computes.
type output struct {
	name     string
	quoted   []byte // name as a JSON string
	inputs   []*feature
	datatype string
	shape    []int // shape of the value for one image
	batch    *batcher
	encoder  *tessera.Encoder
	names    []string                                                       // names of the values, for the output
	classes  []string                                                       // names of the classes, for a head of classes and for its label and probability
	labels   [][]byte                                                       // classes as JSON strings, for a label
	binary   [][]byte                                                       // classes as binary data, for a label: each text after its length
	predict  func(logits []float32, count int) (*tessera.Prediction, error) // computes label and probability from logits
}

// compile compiles the programs of a run for all of its values.
func (o *Options) compile(run *tessera.Run, version string, stats *modelStats) (*loaded, error) {
	l := &loaded{version: version, shape: run.Shape(), seen: run.Seen(), source: run.Model.Dataset.Source}
	l.pictures = l.seen.Pixels()
	l.pixels, l.language = volume.Of(l.shape), continues(run, o.Workers)
	l.shift, _ = run.Scaling().Split()
	if l.pixels == 0 {
		return nil, fmt.Errorf("serve: run %s: the shape of its images is unknown (got %v)", run.Path, l.shape)
	}
	if s, ok := run.Reading(run.Model.Dataset.Source).(data.TextReader); ok && run.Tokens() != nil {
		l.text = func(text string) ([]float32, map[string][]float32, error) {
			sample, err := s.ReadTexts(context.Background(), []string{text})
			if err != nil {
				return nil, nil, err
			}
			return sample.Float32(), sample.All(), nil
		}
	}
	if of := data.SparseOf(run.Model.Dataset.Source); l.shift == nil && (of == nil || of.AbsentIsZero()) { // no scaling that subtracts keeps zeros
		for i, name := range run.ColumnNames() {
			if l.places == nil {
				l.places = map[string]int{}
			}
			l.places[name] = i
		}
	}
	if of := run.Model.Dataset.Source; data.HasMissing(of) && data.SparseOf(of) == nil {
		l.vacant = make([]float32, l.pixels)
		run.Scaling().Undo(l.vacant)
		if run.TakesHoles() {
			l.vacant = slices.Repeat([]float32{float32(math.NaN())}, l.pixels)
		}
	}
	if len(l.shape) == 1 && l.places == nil { // requests to a sparse matrix have its names
		l.names, _ = run.ValueNames(context.Background()) // the file of the training may be gone
	}
	var once sync.Once
	l.log = func(text string) {
		once.Do(func() { o.Log(fmt.Sprintf("model %s: a request: %s; said once", run.Path, text)) })
	}
	for _, name := range run.Values() {
		out, err := o.output(l, run, name, stats)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("serve: output %q: %w", name, err), l.close())
		}
		l.outputs = append(l.outputs, out)
		if slices.Contains(run.ClassHeads(), name) {
			l.derived = append(l.derived, out.predictions(run)...)
		}
	}
	return l, nil
}

// output compiles the programs of one value and starts its batcher.
func (o *Options) output(l *loaded, run *tessera.Run, name string, stats *modelStats) (*output, error) {
	sizes := slices.DeleteFunc([]int{1, 8, 64}, func(size int) bool { return size >= o.MaxBatch })
	encoder, err := run.Centred().Encoder(tessera.EncoderOptions{Value: name, Workers: o.Workers, Sizes: append(sizes, o.MaxBatch)})
	if err != nil {
		return nil, err
	}
	out := &output{name: name, quoted: quoted(name), datatype: typeFP32, shape: []int{encoder.Units()}, encoder: encoder}
	if name == losses.Output {
		out.shape, out.names = run.Shape(), l.names
	}
	row := 0
	for _, c := range encoder.Columns() {
		f, err := l.feature(c, encoder)
		if err != nil {
			return nil, errors.Join(err, encoder.Close())
		}
		out.inputs = append(out.inputs, f)
		row += f.size
	}
	out.batch = &batcher{in: row, out: encoder.Units(), most: o.MaxBatch, wait: o.MaxWait, places: int64(o.Queue),
		observe: stats.batch(name),
		encode: func(ctx context.Context, dst, images []float32) ([]float32, error) {
			before := len(dst)
			dst, err := encoder.Encode(ctx, dst, images)
			if err == nil && name == losses.Output && run.Outputs() != nil {
				l.shift.Undo(dst[before:])
			}
			return dst, err
		}}
	out.batch.start(o.Workers)
	return out, nil
}

// predictions returns the two additional outputs of a head of classes: the name of the most probable class, and the
// probabilities of all classes.
func (o *output) predictions(run *tessera.Run) []*output {
	o.classes = run.HeadClasses(o.name)
	label, probability := *o, *o
	label.name, probability.name = o.name+".label", o.name+".probability"
	label.datatype, label.shape = typeBytes, []int{1}
	for _, class := range o.classes {
		label.labels = append(label.labels, quoted(class))
		label.binary = append(label.binary, append(binary.LittleEndian.AppendUint32(nil, uint32(len(class))), class...))
	}
	for _, d := range []*output{&label, &probability} {
		d.quoted = quoted(d.name)
		d.predict = func(logits []float32, count int) (*tessera.Prediction, error) {
			return run.PredictionOf(o.name, logits, count)
		}
	}
	if run.Thresholds(o.name) != nil { // the label would depend on the group too
		return []*output{&probability}
	}
	return []*output{&label, &probability}
}

func quoted(text string) []byte {
	b, err := json.Marshal(text)
	if err != nil { // no text is an error
		panic(err)
	}
	return b
}

func (l *loaded) release() { l.users.Done() }

// close waits for the requests, then frees all programs.
func (l *loaded) close() error {
	if l == nil {
		return nil
	}
	l.users.Wait()
	var errs []error
	for _, o := range l.outputs {
		o.batch.stop()
		errs = append(errs, o.encoder.Close())
	}
	errs = append(errs, l.run.Close())
	return errors.Join(errs...)
}

func (l *loaded) all() []*output { return slices.Concat(l.outputs, l.derived) }

func (l *loaded) output(name string) *output {
	all := l.all()
	if i := slices.IndexFunc(all, func(o *output) bool { return o.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

func (l *loaded) outputNames() []string {
	names := lists.Map(l.all(), func(o *output) string { return o.name })
	return names
}

// metadata returns a description of the model as it is loaded.
func (m *model) metadata(l *loaded) any {
	type tensor struct {
		Name     string   `json:"name"`
		Datatype string   `json:"datatype"`
		Shape    []int    `json:"shape"`
		Names    []string `json:"names,omitempty"`
		Classes  []string `json:"classes,omitempty"`
		Drawn    bool     `json:"drawn,omitempty"`
		Missing  bool     `json:"missing,omitempty"`  // null is a missing value
		Optional bool     `json:"optional,omitempty"` // what a request without it means is clear
	}
	batched := func(shape []int) []int { return append([]int{-1}, shape...) }
	var inputs, outputs []tensor
	for _, f := range l.inputs {
		inputs = append(inputs, tensor{f.name, f.datatypes[0], batched(f.shape), f.names, f.classes, f.drawn, f.column == losses.Images && l.vacant != nil, f.column == data.ObservedColumn})
	}
	for _, o := range l.all() {
		outputs = append(outputs, tensor{o.name, o.datatype, batched(o.shape), o.names, o.classes, false, false, false})
	}
	missing := map[string]string{} // by the name that the model would have
	for kind, reason := range l.missing {
		missing[m.name+"."+kind] = reason
	}
	return struct {
		Name     string            `json:"name"`
		Versions []string          `json:"versions"`
		Platform string            `json:"platform"`
		Inputs   []tensor          `json:"inputs"`
		Outputs  []tensor          `json:"outputs"`
		Missing  map[string]string `json:"not_served,omitempty"`
	}{m.name, []string{l.version}, "tessera", inputs, outputs, missing}
}
