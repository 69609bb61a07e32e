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
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"tessera"
	"tessera/internal/regular"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/train/folder"
)

// Model is a run to serve, and its name.
type Model struct {
	Name   string       // in URLs: letters, digits and ._-; "" takes the last element of the path of Run, or of Folder
	Folder string       // of a run; the server reads it again when its files change
	Run    *tessera.Run // an open run, in place of Folder; it may be closed when New has returned
}

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// name returns the name of a model, checked.
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

// model is a model under its name. Its run may be exchanged while requests use it.
type model struct {
	name    string
	folder  string // "" of a run that is never read again
	files   files  // of the folder; for the watch
	stats   *modelStats
	mu      sync.RWMutex
	current *loaded
}

// load loads the model from an open run, or from its folder if that is nil.
func (m *model) load(o *Options, run *tessera.Run) (err error) {
	var l *loaded
	if run != nil {
		l, err = o.compile(run, "1", m.stats)
	} else {
		m.files = newFiles(runFiles(m.folder)...)
		l, err = o.open(m.folder, m.stats)
	}
	if err == nil {
		m.exchange(l)
	}
	return err
}

// acquire returns the loaded model. The caller releases it.
func (m *model) acquire() *loaded {
	m.mu.RLock()
	defer m.mu.RUnlock()
	m.current.users.Add(1)
	return m.current
}

// exchange replaces the loaded model and returns the former one, with which the requests that hold it finish. The caller closes it.
func (m *model) exchange(by *loaded) (former *loaded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	former, m.current = m.current, by
	m.stats.loaded(by.version)
	return former
}

// reload reads the run of a model again and returns what to log, "" for nothing. Equal files under new times change nothing.
func (s *Server) reload(m *model) (news string, err error) {
	if version, err := versionOf(m.folder); err == nil && version == m.current.version {
		return "", nil
	}
	l, err := s.options.open(m.folder, m.stats)
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

// runFiles are the files of a run that determine its model.
func runFiles(run string) []string {
	var paths []string
	for _, name := range []string{folder.Config, folder.Best, folder.Model, folder.State} {
		paths = append(paths, filepath.Join(run, name))
	}
	return paths
}

// versionOf returns the beginning of the SHA-256 of the declaration and of the parameters of a run: equal files have equal
// versions on every machine.
func versionOf(run string) (string, error) {
	sum := sha256.New()
	for i, path := range runFiles(run) {
		f, err := regular.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", err
		}
		if i > 0 { // only the first file with parameters is read
			break
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:6]), nil
}

// open reads a run and compiles it. The files must not change meanwhile, so that version and model agree.
func (o *Options) open(path string, stats *modelStats) (*loaded, error) {
	before := signatureOf(runFiles(path)...)
	run, err := tessera.Open(path, o.Runs)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	version, err := versionOf(path)
	if err != nil {
		return nil, err
	}
	l, err := o.compile(run, version, stats)
	if err != nil {
		return nil, err
	}
	if signatureOf(runFiles(path)...) != before {
		return nil, errors.Join(fmt.Errorf("serve: %s: its files changed while they were read", path), l.close())
	}
	return l, nil
}

// loaded is a compiled run. Requests hold it while they use it.
type loaded struct {
	version  string // of the model: the beginning of the checksum of its files
	shape    []int  // of an image
	pixels   int
	pictures bool      // the samples of the training were in [0,1], as bytes divided by 255 are
	outputs  []*output // those of a request that names none
	derived  []*output // computed from the heads of classes
	users    sync.WaitGroup
}

// overshoot is how far values of resampled pixels may leave [0,1].
const overshoot = 0.1

// output is a value that a model computes.
type output struct {
	name     string
	quoted   []byte // the name in JSON
	datatype string
	shape    []int // of the value of one image
	batch    *batcher
	encoder  *tessera.Encoder
	classes  []string                                              // of a head of classes and of its label and probability
	labels   [][]byte                                              // the classes in JSON, of a label
	binary   [][]byte                                              // the classes as binary data: each text after its length
	predict  func(logits []float32, count int) *tessera.Prediction // of label and probability
}

// compile compiles the programs of a run for all of its values.
func (o *Options) compile(run *tessera.Run, version string, stats *modelStats) (*loaded, error) {
	low, high := run.Range()
	l := &loaded{version: version, shape: run.Shape(), pictures: low >= -overshoot && high <= 1+overshoot}
	l.pixels = volume.Of(l.shape)
	if l.pixels == 0 {
		return nil, fmt.Errorf("serve: run %s: the shape of its images is unknown (got %v)", run.Path, l.shape)
	}
	for _, name := range run.Values() {
		out, err := o.output(run, name, stats)
		if errors.Is(err, tessera.ErrNotImagesAlone) { // requests have images only
			continue
		}
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
func (o *Options) output(run *tessera.Run, name string, stats *modelStats) (*output, error) {
	sizes := slices.DeleteFunc([]int{1, 8, 64}, func(size int) bool { return size >= o.MaxBatch })
	encoder, err := run.Encoder(tessera.EncoderOptions{Value: name, Workers: o.Workers, Sizes: append(sizes, o.MaxBatch)})
	if err != nil {
		return nil, err
	}
	out := &output{name: name, quoted: quoted(name), datatype: typeFP32, shape: []int{encoder.Units()}, encoder: encoder}
	if name == losses.Output {
		out.shape = run.Shape()
	}
	out.batch = &batcher{in: volume.Of(run.Shape()), out: encoder.Units(), most: o.MaxBatch, wait: o.MaxWait, places: int64(o.Queue),
		observe: stats.batch(name),
		encode: func(ctx context.Context, dst, images []float32) ([]float32, error) {
			return encoder.Encode(ctx, dst, images)
		}}
	out.batch.start(o.Workers)
	return out, nil
}

// predictions returns the outputs of a head of classes: the name of the most probable class, and the probabilities of all.
func (o *output) predictions(run *tessera.Run) []*output {
	o.classes = run.ClassNames(o.batch.out)
	label, probability := *o, *o
	label.name, probability.name = o.name+".label", o.name+".probability"
	label.datatype, label.shape = typeBytes, []int{1}
	for _, class := range o.classes {
		label.labels = append(label.labels, quoted(class))
		label.binary = append(label.binary, append(binary.LittleEndian.AppendUint32(nil, uint32(len(class))), class...))
	}
	for _, d := range []*output{&label, &probability} {
		d.quoted = quoted(d.name)
		d.predict = func(logits []float32, count int) *tessera.Prediction { return run.PredictionOf(o.name, logits, count) }
	}
	return []*output{&label, &probability}
}

// quoted returns a text in JSON.
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
	return errors.Join(errs...)
}

// all returns all outputs.
func (l *loaded) all() []*output { return slices.Concat(l.outputs, l.derived) }

// output returns the output of that name, nil if there is none.
func (l *loaded) output(name string) *output {
	all := l.all()
	if i := slices.IndexFunc(all, func(o *output) bool { return o.name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// names lists the outputs.
func (l *loaded) names() []string {
	var names []string
	for _, o := range l.all() {
		names = append(names, o.name)
	}
	return names
}

// metadata describes the model.
func (l *loaded) metadata(name string) any {
	type tensor struct {
		Name     string   `json:"name"`
		Datatype string   `json:"datatype"`
		Shape    []int    `json:"shape"`
		Classes  []string `json:"classes,omitempty"`
	}
	batched := func(shape []int) []int { return append([]int{-1}, shape...) }
	var outputs []tensor
	for _, o := range l.all() {
		outputs = append(outputs, tensor{o.name, o.datatype, batched(o.shape), o.classes})
	}
	return struct {
		Name     string   `json:"name"`
		Versions []string `json:"versions"`
		Platform string   `json:"platform"`
		Inputs   []tensor `json:"inputs"`
		Outputs  []tensor `json:"outputs"`
	}{name, []string{l.version}, "tessera", []tensor{{inputName, typeFP32, batched(l.shape), nil}}, outputs}
}
