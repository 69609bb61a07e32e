package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"tessera"
	"tessera/internal/volume"
	"tessera/losses"
)

// Model is a model that a server serves.
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
		return "", errors.New("serve: a model needs a Folder or a Run, and not both")
	}
	if name == "" {
		if absolute, err := filepath.Abs(path); err == nil { // of "." too
			path = absolute
		}
		name = filepath.Base(path)
	}
	if !validName.MatchString(name) {
		return "", fmt.Errorf("serve: %s: name of the model: got %q, want letters, digits and ._-; give a name, as in NAME=%s", path, name, path)
	}
	return name, nil
}

// model is a model under its name. Its run may be exchanged while requests use it.
type model struct {
	name    string
	folder  string // "" of a run that is never read again
	stats   *modelStats
	mu      sync.RWMutex
	current *loaded
}

// acquire returns what the model is now. The caller releases it.
func (m *model) acquire() *loaded {
	m.mu.RLock()
	defer m.mu.RUnlock()
	m.current.users.Add(1)
	return m.current
}

// exchange replaces what the model is and returns the former one, with which the requests that hold it finish. The caller closes it.
func (m *model) exchange(by *loaded) (former *loaded) {
	m.mu.Lock()
	defer m.mu.Unlock()
	former, m.current = m.current, by
	return former
}

// loaded is a run that is ready to compute. Requests hold it while they use it.
type loaded struct {
	version  string // of the model: the beginning of the checksum of its files
	files    signature
	shape    []int // of an image
	pixels   int
	pictures bool // the samples of the training were in [0,1], as bytes divided by 255 are
	outputs  []*output
	users    sync.WaitGroup
}

// overshoot is how far values of resampled pixels may leave [0,1].
const overshoot = 0.1

// output is a value that a model computes.
type output struct {
	name    string
	quoted  []byte // the name in JSON
	shape   []int  // of the value of one image
	batch   *batcher
	encoder *tessera.Encoder
}

func (l *loaded) release() { l.users.Done() }

// close waits for the requests, then frees all programs.
func (l *loaded) close() error {
	l.users.Wait()
	var errs []error
	for _, o := range l.outputs {
		o.batch.stop()
		errs = append(errs, o.encoder.Close())
	}
	return errors.Join(errs...)
}

// output returns the output of that name, nil if there is none.
func (l *loaded) output(name string) *output {
	if i := slices.IndexFunc(l.outputs, func(o *output) bool { return o.name == name }); i >= 0 {
		return l.outputs[i]
	}
	return nil
}

// names lists the outputs.
func (l *loaded) names() []string {
	var names []string
	for _, o := range l.outputs {
		names = append(names, o.name)
	}
	return names
}

// load compiles the programs of a run for all of its values.
func (o *Options) load(run *tessera.Run, version string, stats *modelStats) (*loaded, error) {
	low, high := run.Range()
	l := &loaded{version: version, shape: run.Shape(), pictures: low >= -overshoot && high <= 1+overshoot}
	l.pixels = volume.Of(l.shape)
	if l.pixels == 0 {
		return nil, fmt.Errorf("serve: run %s: the shape of its images is unknown (got %v)", run.Path, l.shape)
	}
	for _, name := range run.Values() {
		out, err := o.output(run, name, stats)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("serve: output %q: %w", name, err), l.close())
		}
		l.outputs = append(l.outputs, out)
	}
	return l, nil
}

// sizes are the batch sizes that programs are compiled for.
func (o *Options) sizes() []int {
	var sizes []int
	for _, size := range []int{1, 8, 64} {
		if size < o.MaxBatch {
			sizes = append(sizes, size)
		}
	}
	return append(sizes, o.MaxBatch)
}

// output compiles the programs of one value and starts its batcher.
func (o *Options) output(run *tessera.Run, name string, stats *modelStats) (*output, error) {
	encoder, err := run.Encoder(tessera.EncoderOptions{Value: name, Workers: o.Workers, Sizes: o.sizes()})
	if err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, errors.Join(err, encoder.Close())
	}
	out := &output{name: name, quoted: quoted, shape: []int{encoder.Units()}, encoder: encoder}
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
