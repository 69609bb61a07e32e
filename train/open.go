package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"tessera/baselines"
	"tessera/config"
	"tessera/graph"
	"tessera/metrics"
	"tessera/train/checkpoint"
	"tessera/train/folder"
)

// Trained is the model of a run.
type Trained struct {
	*graph.Model                 // nil for a baseline
	Baseline     baselines.Model // nil for an auto-encoder
	Spec         *config.Model
	Path         string // the file that the parameters are from
	Epoch        int    // after which the parameters were as they are; with early stopping the best one
	Step         int
}

// Coder returns the model as a coder; an auto-encoder's programs run on that back end, and are freed by its Close.
func (t *Trained) Coder(backend graph.Backend) metrics.Coder {
	if t.Baseline != nil {
		return t.Baseline
	}
	return graph.NewCoder(t.Model, backend)
}

// Open reads the model of a run, finished or not: the parameters of best.safetensors where there is one, else those of
// model.safetensors, else, should a crash have left none, those of the state. A file that is damaged or does not match
// config.toml is a [*checkpoint.Error]; a folder that is not a run is [folder.ErrNotRun].
func Open(run string) (*Trained, error) {
	if _, err := os.Stat(filepath.Join(run, folder.Config)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%s: %w", run, folder.ErrNotRun)
	}
	spec, err := readConfig(filepath.Join(run, folder.Config))
	if err != nil {
		return nil, err
	}
	return open(spec, parametersOf(run))
}

// parametersOf is the file of a run that [Open] reads.
func parametersOf(run string) string {
	for _, name := range []string{folder.Best, folder.Model} {
		path := filepath.Join(run, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return filepath.Join(run, folder.State)
}

// open reads the model of spec from one checkpoint.
func open(spec *config.Model, path string) (*Trained, error) {
	f, err := readOwn(path)
	if err != nil {
		return nil, withRemedy(path, err)
	}
	shape, err := storedShape(path, f)
	if err != nil {
		return nil, err
	}
	t := &Trained{Spec: spec, Path: path}
	if method, ok := spec.Baseline.(baselines.Method); ok {
		t.Baseline, err = openBaseline(spec, method, shape, path, f)
	} else {
		t.Model, err = openNetwork(spec, shape, path, f)
	}
	if err != nil {
		return nil, err
	}
	if t.Epoch, err = strconv.Atoi(f.Metadata[epochKey]); err != nil {
		return nil, checkpoint.Errorf(path, "damaged: %s: %v", epochKey, err)
	}
	if t.Step, err = strconv.Atoi(f.Metadata[stepKey]); err != nil {
		return nil, checkpoint.Errorf(path, "damaged: %s: %v", stepKey, err)
	}
	return t, nil
}

// openNetwork returns the auto-encoder of a checkpoint.
func openNetwork(spec *config.Model, shape []int, path string, f *checkpoint.File) (*graph.Model, error) {
	if f.Metadata[contentsKey] == "state" {
		return shownBy(spec, path, f)
	}
	m, err := graph.New(spec, shape)
	if err != nil {
		return nil, checkpoint.Mismatchf(path, "does not match its model: %v", err)
	}
	return m, loadParameters(m, path, f, "", current(m))
}

// shownBy returns the model of a state with the values that its hooks show.
func shownBy(spec *config.Model, path string, f *checkpoint.File) (*graph.Model, error) {
	from, err := stateOf(path, f)
	if err != nil {
		return nil, err
	}
	s, err := finishedSession(spec, from, Options{})
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.learner.(interface{ shown() *graph.Model }).shown(), nil
}

// withRemedy says how to get a damaged file back that is derived from the state.
func withRemedy(path string, err error) error {
	var damaged *checkpoint.Error
	if !errors.As(err, &damaged) || filepath.Base(path) == folder.State {
		return err
	}
	return checkpoint.Errorf(damaged.Path, "%s; `tessera resume %s` writes it anew from the state", damaged.Problem, filepath.Dir(path))
}
