package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/internal/atomicfile"
	"tessera/internal/machine"
	"tessera/internal/sealed"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/metrics"
)

// ManifestFile is the file in a sweep's folder that assigns trials to the task indices of an array job.
const ManifestFile = "manifest.json"

// Manifest is the contents of manifest.json: a frozen sweep with everything that its tasks need except the data. The
// tasks of an array job, which may run on different machines, share the sweep's folder and find their trials in the
// manifest by an index.
type Manifest struct {
	Program string   `json:"program"`        // version of tessera that wrote the manifest
	PerTask int      `json:"per_task"`       // number of trials per index; the first trial of index i is i·PerTask
	PerJob  int      `json:"per_job"`        // maximum number of indices per Slurm job
	Metrics []string `json:"metrics"`        // metrics for every trial, as in --metrics; empty: the default metrics
	SVM     bool     `json:"svm"`            // whether the SVM also classifies the codes
	With    []string `json:"with,omitempty"` // settings KEY=VALUE of the metrics
	*Frozen
	SHA256 string `json:"sha256"` // checksum of the file itself; see package sealed
}

// Tasks returns the number of task indices, which start at 0.
func (m *Manifest) Tasks() int { return (len(m.Trials) + m.PerTask - 1) / m.PerTask }

// Task returns the indices of the trials of the task with the given index.
func (m *Manifest) Task(index int) ([]int, error) {
	if index < 0 || index >= m.Tasks() {
		return nil, fmt.Errorf("sweep %q: there is no task %d (want 0 to %d)", m.Sweep, index, m.Tasks()-1)
	}
	var places []int
	for i := index * m.PerTask; i < min((index+1)*m.PerTask, len(m.Trials)); i++ {
		places = append(places, i)
	}
	return places, nil
}

// ReadManifest reads the manifest in a sweep's folder. The error is [fs.ErrNotExist] if there is none, and a
// [*checkpoint.Error] if it is damaged.
func ReadManifest(path string) (*Manifest, error) {
	at := filepath.Join(path, ManifestFile)
	m := &Manifest{}
	err := sealed.Read(at, m)
	if errors.As(err, new(*fs.PathError)) {
		return nil, err
	}
	if err == nil && (m.Frozen == nil || m.PerTask < 1 || m.PerJob < 1 || len(m.Trials) == 0) {
		err = errors.New("it has no trials")
	}
	if err != nil {
		return nil, checkpoint.Errorf(at, "%s", damage(err))
	}
	return m, nil
}

// Emit writes the manifest of the sweep and the given files, such as job scripts, to the sweep's folder, which may
// already contain finished trials. It returns [folder.ErrForeign] if the folder has the manifest of other trials,
// because their tasks may still be waiting.
func (s *Sweep) Emit(m Manifest, files ...folder.File) error {
	if err := s.labelled(); err != nil {
		return err
	}
	m.Program, m.Frozen = machine.Version(), s.Freeze()
	text, err := m.text()
	if err != nil {
		return err
	}
	held, err := folder.Hold(s.Path, s.options.Disk)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := s.Replaces(); err != nil && !s.options.Clean {
		return err
	}
	if err := s.replacesManifest(m); err != nil {
		return err
	}
	for _, dir := range []string{trialsDir, failedDir} {
		if err := os.MkdirAll(filepath.Join(s.Path, dir), 0o777); err != nil {
			return &folder.WriteError{Path: s.Path, Err: err}
		}
	}
	return held.Write(append([]folder.File{{Name: ManifestFile, Data: text}}, files...)...)
}

// text returns the contents of the manifest's file.
func (m Manifest) text() ([]byte, error) {
	m.SHA256 = sealed.Open
	text, err := sealed.Document(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return text, nil
}

// replacesManifest returns an error if the folder has the manifest of other trials. A damaged manifest may be replaced.
func (s *Sweep) replacesManifest(m Manifest) error {
	old, err := ReadManifest(s.Path)
	if err != nil {
		return nil
	}
	m.Program = old.Program // another version of the program may have written a manifest of the same trials
	was, err := old.text()
	if err != nil {
		return err
	}
	if now, err := m.text(); err != nil || bytes.Equal(was, now) {
		return err
	}
	return &foreign{s.Path, "has the " + ManifestFile +
		" of other trials or settings, whose tasks may still be waiting or running; if none is, remove that file"}
}

// Matches returns an error if the trials of s differ from those of the manifest. places are the indices of the trials
// of s in the manifest; without indices, s must have all trials. The trials differ if the data, or the defaults of this
// version of tessera, have changed.
func (m *Manifest) Matches(s *Sweep, places ...int) error {
	if len(places) == 0 {
		for i := range m.Trials {
			places = append(places, i)
		}
	}
	for i, place := range places {
		if i >= len(s.Trials) || s.Trials[i].ID != m.Trials[place].ID {
			const problem = "the trial of place %d is not the one that was declared (%s): the data have other checksums, or another version of " +
				"the program wrote it (%s, this is %s)"
			return checkpoint.Mismatchf(filepath.Join(s.Path, ManifestFile), problem, place, m.Trials[place].ID, m.Program, machine.Version())
		}
	}
	return nil
}

// failedDir is the folder within a sweep's folder that contains a file for every trial that failed as a task of an
// array job.
const failedDir = "failed"

// failure is the contents of a file in failedDir.
type failure struct {
	Trial   string `json:"trial"`
	Problem string `json:"problem"` // the problem as in the results
	SHA256  string `json:"sha256"`  // checksum of the file itself; see package sealed
}

// failurePath returns the path of the file that records a trial's failure.
func (s *Sweep) failurePath(t *Trial) string { return filepath.Join(s.Path, failedDir, t.ID+".json") }

// Task runs one trial like [Sweep.Do] and records a failure in the sweep's folder, for [Sweep.Collect]. It does not
// record errors after which the same task may succeed: an interruption, a full disk, or a trial that another process is
// using.
func (s *Sweep) Task(ctx context.Context, t *Trial) (*metrics.Result, error) {
	if err := os.Remove(s.failurePath(t)); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by an earlier attempt
		return nil, &folder.WriteError{Path: s.failurePath(t), Err: err}
	}
	measured, err := s.Do(ctx, t)
	var unwritten *folder.WriteError
	switch {
	case err == nil:
		return measured, nil
	case ctx.Err() != nil || errors.Is(err, train.ErrInterrupted):
		return nil, &Interrupted{t.Path}
	case errors.As(err, &unwritten), errors.Is(err, folder.ErrLocked):
		return nil, err
	}
	t.err = err
	return nil, errors.Join(err, s.recordFailure(t))
}

func (s *Sweep) recordFailure(t *Trial) error {
	text, err := sealed.Document(failure{t.ID, t.problem(), sealed.Open})
	if err != nil {
		return err
	}
	path := s.failurePath(t)
	err = os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = atomicfile.Write(path, func(w io.Writer) error { _, err := w.Write(text); return err })
	}
	if err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}

// failure returns the recorded problem of a trial. It returns "" if there is none or the record is unreadable.
func (s *Sweep) failure(t *Trial) string {
	var f failure
	if sealed.Read(s.failurePath(t), &f) != nil || f.Trial != t.ID {
		return ""
	}
	return f.Problem
}

// Further states of a trial that [Sweep.Collect] returns, in addition to [Waiting], [Begun] and [Done].
const (
	Running State = "running" // a process is running it
	Broken  State = "failed"  // its task has recorded an error that a retry would repeat
	Refused State = "refused" // its files are damaged or belong to another trial
)

// Gathered is the state of one trial of an array job.
type Gathered struct {
	Trial   *Trial
	Index   int // index of the trial in the sweep
	State   State
	Problem string // the reason why a trial failed or was rejected, and what to do
	Epoch   int    // number of complete epochs or iterations of a trial that has started but not finished
	Kernel  string // kernels with which a finished trial was trained
}

// Collect gathers the trials that the tasks of an array job have trained in the sweep's folder or in a copy of it. It
// verifies the identities and checksums of their files and writes the same results as [Sweep.Run], byte for byte. It
// does not train, and does not repeat measurements. When all trials have ended, it measures the selected settings on
// the test images, once. Collect may be called at any time, repeatedly, even while tasks are running.
//
// The errors are those of [Sweep.Run]. With a [*Failed] it also returns the results and the states.
func (s *Sweep) Collect(ctx context.Context) (*Results, []Gathered, error) {
	held, err := folder.Hold(s.Path, s.options.Disk)
	if err != nil {
		return nil, nil, err
	}
	defer held.Close()
	if err := s.Replaces(); err != nil && !s.options.Clean {
		return nil, nil, err
	}
	w := &work{Sweep: s, folder: held, event: Event{Total: len(s.Trials)}, stop: func() {}}
	var all []Gathered
	for i, t := range s.Trials {
		if ctx.Err() != nil {
			return nil, nil, &Interrupted{s.Path}
		}
		g := s.gather(t)
		g.Index = i
		all = append(all, g)
	}
	if err := errors.Join(w.write(), w.removeSelection()); err != nil {
		return nil, nil, err
	}
	if len(s.criteria) > 0 {
		w.test(ctx)
	}
	if w.fatal != nil {
		return nil, nil, w.fatal
	}
	return s.results(), all, s.failed()
}

// gather reads and verifies one trial.
func (s *Sweep) gather(t *Trial) Gathered {
	t.measured, t.onTest, t.err = nil, nil, nil
	g := Gathered{Trial: t, State: Waiting}
	if t.Begun() {
		g.State = Begun
		if t.err = s.verifyBegun(t, &g); t.err != nil {
			t.measured = nil // metrics are useless without a valid trial
			g.State, g.Problem = Refused, t.problem()
			return g
		}
	}
	switch problem := s.failure(t); {
	case g.State == Done:
	case folder.Held(t.Path):
		g.State = Running
	case problem != "":
		t.err = errors.New(problem)
		g.State, g.Problem = Broken, problem
	}
	return g
}

// verifyBegun verifies a trial that has a folder, and reads its metrics if it is done. While a process is running the trial,
// missing metrics are not an error.
func (s *Sweep) verifyBegun(t *Trial, g *Gathered) error {
	if err := t.verify(); err != nil {
		return err
	}
	status := train.StatusOf(t.Path)
	g.Epoch = status.Epoch
	t.measured = s.kept(t)
	if t.measured == nil {
		if status.State == train.Training {
			return nil
		}
		return s.verifyMetrics(t)
	}
	arithmetic, err := train.ArithmeticOf(t.Path) // also verifies the checksum of the state
	if err != nil {
		return err
	}
	g.Kernel, g.State = arithmetic.Kernel, Done
	if len(s.criteria) > 0 {
		t.onTest = s.read(t, testFile, data.TestSplit)
	}
	return nil
}

// verifyMetrics returns an error if metrics exist but are invalid. Run would measure such a trial again.
func (s *Sweep) verifyMetrics(t *Trial) error {
	path := filepath.Join(t.Path, keptFile)
	err := sealed.Read(path, &keptMetrics{})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // the training has not ended
	case err == nil:
		if _, open := train.Open(t.Path); open != nil {
			return open
		}
		err = errors.New("is of other parameters, or lacks metrics")
	}
	return checkpoint.Errorf(path, "%s; copy the trial again, or remove this file and run its task again, which measures the trial",
		strings.TrimPrefix(err.Error(), path+": "))
}

// Frozen is a sweep as data: every trial with all defaults. Other processes and machines declare the same trials from
// it, without the file and the flags of the original declaration.
type Frozen struct {
	Sweep   string             `json:"sweep"`
	Keys    []string           `json:"keys"`    // keys that vary
	Split   data.Split         `json:"split"`   // images on which the trials are measured
	Changes []string           `json:"changes"` // flags that changed the declaration
	Select  []config.Criterion `json:"select,omitempty"`
	Trials  []FrozenTrial      `json:"trials"` // trials in the order of the sweep
}

// FrozenTrial is one trial of a [Frozen] sweep.
type FrozenTrial struct {
	ID       string `json:"trial"`    // [Trial.ID]: a hash of the model and its data
	Values   values `json:"values"`   // values of the sweep's keys; null for a key that the model does not have
	Declared string `json:"declared"` // the model as text, written by [config.Model.Text]
}

// values is a list of JSON values that distinguishes integers from other numbers, because tables print the two
// differently.
type values []any

// MarshalJSON implements [json.Marshaler]. It writes float64 values such as 1e6 in a form that differs from integers.
func (v values) MarshalJSON() ([]byte, error) {
	all := append([]any{}, v...)
	for i, one := range all {
		switch f, ok := one.(float64); {
		case !ok:
		case math.IsInf(f, 0): // JSON cannot represent infinity
			all[i] = text(f)
		case f == math.Trunc(f):
			all[i] = json.RawMessage(strconv.FormatFloat(f, 'e', -1, 64))
		}
	}
	return json.Marshal(all)
}

func (v *values) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var read []any
	if err := d.Decode(&read); err != nil {
		return err
	}
	for i := range read {
		read[i] = numbered(read[i])
	}
	*v = read
	return nil
}

// numbered replaces the numbers in a decoded JSON value by int64 or float64.
func numbered(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // a number that is out of range becomes infinite
		return f
	case []any:
		for i := range v {
			v[i] = numbered(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = numbered(v[key])
		}
	}
	return v
}

// Freeze returns the sweep as data.
func (s *Sweep) Freeze() *Frozen {
	f := &Frozen{Sweep: s.Name, Keys: append([]string{}, s.Keys...), Split: s.split, Changes: append([]string{}, s.changes...), Select: s.criteria}
	for _, t := range s.Trials {
		f.Trials = append(f.Trials, FrozenTrial{ID: t.ID, Values: append(values{}, t.Values...), Declared: string(t.Model.Text())})
	}
	return f
}

// Declare returns the declaration of the trials of a frozen sweep with the given indices, or of all trials if there are
// none. It returns an error for an index out of range, and for a model that is invalid in this version of tessera.
func (f *Frozen) Declare(indices ...int) (*config.Sweep, error) {
	if len(indices) == 0 {
		for i := range f.Trials {
			indices = append(indices, i)
		}
	}
	s := &config.Sweep{Name: f.Sweep, Keys: f.Keys, Split: f.Split, Select: f.Select, Changes: f.Changes}
	for _, i := range indices {
		if i < 0 || i >= len(f.Trials) {
			return nil, fmt.Errorf("sweep %q: no trial has the index %d; want 0 to %d", f.Sweep, i, len(f.Trials)-1)
		}
		t := f.Trials[i]
		if len(t.Values) != len(f.Keys) {
			return nil, fmt.Errorf("sweep %q: trial %s has %d values, want %d", f.Sweep, t.ID, len(t.Values), len(f.Keys))
		}
		m, err := train.Declared("trial "+t.ID, []byte(t.Declared))
		if err != nil {
			return nil, err
		}
		s.Trials = append(s.Trials, config.Trial{Model: m, Values: t.Values})
	}
	return s, nil
}
