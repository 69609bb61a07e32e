package train

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"tessera/classical"
	"tessera/config"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine/ir"
	"tessera/internal/regular"
	"tessera/internal/tokens"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/volume"
	"tessera/metrics"
	"tessera/posthoc"
)

// Trained is the model of a run.
type Trained struct {
	*graph.Model                 // the model; nil for a baseline
	Baseline     classical.Model // the baseline; nil for an auto-encoder
	Spec         *config.Model
	Path         string // file of the parameters
	Epoch        int    // epoch of the parameters; with early stopping the best one
	Step         int

	Scaling *data.Scaling // scaling of the samples that the model reads; nil if there is none
	Range   [2]float32    // smallest and largest value of the fitted samples, before scaling
	Means   data.Means    // of the values that no fitted sample lacks; nil for a model that has learned what a missing value is
	Classes []string      // names of the classes of a classifier; nil if unknown

	Digest  string                  // SHA-256 of the file of the parameters
	PostHoc map[string]posthoc.Head // models fitted to heads after the training, by head; see [Trained.ReadPostHoc]

	RowNames, ColumnNames []string // names of the fitted rows and of the columns of a sparse matrix; nil if the names are 0, 1, ...

	Tokens *tokens.Tokenizer // fitted vocabulary of texts; nil for other samples

	folder string                                       // folder that [Open] read; "" for a model from elsewhere
	kept   func() (text []byte, path string, err error) // function that reads posthoc.json; nil for a model without a folder
}

// OutputIsSample reports whether the values of the output are those of a sample: see [config.Model.OutputIsSample].
func (t *Trained) OutputIsSample() bool { return t.Model == nil || t.Spec.OutputIsSample(t.Layout) }

// Coder returns a coder of the model, for scaled samples. An auto-encoder's programs run on the given back end; the coder's
// Close frees them.
func (t *Trained) Coder(backend ir.Backend) metrics.Coder {
	if t.Baseline != nil {
		return t.Baseline
	}
	return graph.NewCoder(t.Model, backend).WithPostHoc(t.PostHoc)
}

// Open reads the model of a finished or unfinished run. The parameters come from best.safetensors if it exists, else from
// model.safetensors, else (after a crash) from the state. It returns a [*checkpoint.Error] for a file that is damaged or
// does not match config.toml, a [*FormatError] for a file of another version, and [folder.ErrNotRun] for a folder that is not a run.
func Open(run string) (*Trained, error) {
	return folderOf(run).open()
}

// OpenFS reads the model of a run in a folder of a file system, for example an [embed.FS]; "" and "." are its root. It
// needs config.toml and one of the files that [Open] reads. Errors: as Open.
func OpenFS(fsys fs.FS, dir string) (*Trained, error) {
	if fsys == nil {
		return nil, errors.New("train: the file system is nil")
	}
	return files{path.Clean(dir), path.Join, func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) }, false}.open()
}

// Read reads a model from the bytes of model.safetensors or best.safetensors, whose metadata contain the declaration. name
// is the name of the file in errors, which are those of [Open].
func Read(name string, b []byte) (*Trained, error) {
	f, err := decodeOwn(name, b)
	if err != nil {
		return nil, err
	}
	spec, err := parseConfig(name, []byte(f.Metadata[declarationKey]))
	if err != nil {
		return nil, err
	}
	return open(spec, name, f)
}

type files struct {
	run  string
	join func(...string) string
	read func(path string) ([]byte, error)
	disk bool // run is a folder of the operating system
}

// folderOf returns the files of a folder of the operating system.
func folderOf(run string) files { return files{run, filepath.Join, regular.ReadUnlinked, true} }

// ConfigOf returns the model that the config.toml of a run declares. For a folder that is not a run the error is
// [folder.ErrNotRun].
func ConfigOf(run string) (*config.Model, error) { return folderOf(run).config() }

// Declared returns the model that text declares, in the format of config.toml; name is the name of the text in errors.
func Declared(name string, text []byte) (*config.Model, error) { return parseConfig(name, text) }

func (r files) config() (*config.Model, error) {
	at := r.join(r.run, folder.Config)
	text, err := r.read(at)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		if r.disk {
			return nil, folder.NotRun(r.run)
		}
		return nil, fmt.Errorf("%s: %w", r.run, folder.ErrNotRun)
	} else if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	return parseConfig(at, text)
}

// parseConfig reads the only model in text, in the format of config.toml; path is the name of the text in errors.
func parseConfig(path string, text []byte) (*config.Model, error) {
	f, err := config.Load(path, text)
	if err != nil {
		return nil, err
	}
	f.Trained = true
	names := f.Names()
	if len(names) != 1 {
		return nil, checkpoint.Errorf(path, "got %d models, want 1, the model of the run", len(names))
	}
	m, err := f.Model(names[0])
	if wrong, ok := errors.AsType[*table.Diagnostics](err); ok {
		for i, d := range wrong.List {
			if strings.HasPrefix(d.Problem, "unknown kind ") { // a run is written by a program, without typing errors
				wrong.List[i].Suggestion = "a part of another program, or of another version: open the run with the one that trained it"
			}
		}
	}
	return m, err
}

func (r files) open() (*Trained, error) {
	spec, err := r.config()
	if err != nil {
		return nil, err
	}
	path, b, err := r.parameters()
	if err != nil {
		return nil, err
	}
	f, err := decodeOwn(path, b)
	if err != nil {
		return nil, withRemedy(path, err)
	}
	if err := sameModel(spec, path, f); err != nil {
		return nil, err
	}
	t, err := open(spec, path, f)
	if err != nil {
		return nil, err
	}
	t.Digest = digestOf(b)
	if r.disk {
		t.folder = r.run
	}
	t.kept = r.postHoc
	return t, nil
}

func (r files) postHoc() (text []byte, path string, err error) {
	path = r.join(r.run, folder.PostHoc)
	text, err = r.read(path)
	return text, path, err
}

// parameters reads the first parameter file of a run that exists.
func (r files) parameters() (path string, b []byte, err error) {
	for _, name := range []string{folder.Best, folder.Model, folder.State} {
		path = r.join(r.run, name)
		if b, err = r.read(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, checkpoint.Errorf(path, "is missing")
	} else if err != nil {
		return path, nil, fmt.Errorf("checkpoint: %w", err)
	}
	return path, b, nil
}

func open(spec *config.Model, path string, f *checkpoint.File) (*Trained, error) {
	shape, err := storedShape(path, f)
	if err != nil {
		return nil, err
	}
	columns, err := storedColumns(path, f)
	if err != nil {
		return nil, err
	}
	spec = spec.For(shape, columns)
	t := &Trained{Spec: spec, Path: path}
	if method := spec.Baseline; method != nil {
		t.Baseline, err = openBaseline(spec, method, shape, path, f)
	} else {
		t.Model, err = openNetwork(spec, shape, path, f)
	}
	if err != nil {
		return nil, err
	}
	kept, err := storedSamples(path, f, volume.Of(shape))
	if err != nil {
		return nil, err
	}
	t.Scaling, t.Range, t.Means, t.Classes, t.RowNames, t.ColumnNames, t.Tokens = kept.scaling, kept.span, kept.means, kept.classes, kept.rowNames, kept.columnNames, kept.tokens
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
	m, err := graph.Empty(spec, shape)
	if err != nil {
		return nil, checkpoint.Mismatchf(path, "does not match its model: %v", err)
	}
	return m, loadParameters(m, path, f)
}

// shownBy returns the model of a state with the values that replace the parameters, such as a moving average.
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
	return s.learner.(interface{ shown() (*graph.Model, error) }).shown()
}

// withRemedy adds the remedy to the error for a damaged derived file.
func withRemedy(path string, err error) error {
	var damaged *checkpoint.Error
	if !errors.As(err, &damaged) || filepath.Base(path) == folder.State {
		return err
	}
	return checkpoint.Errorf(damaged.Path, "%s; `tessera resume %s` restores the file from the state", damaged.Problem, filepath.Dir(path))
}
