package sweep

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// chosen declares a sweep that selects a setting on the validation images.
var chosen = strings.Replace(declared, "model = \"small\"\nseeds", "model = \"small\"\nselect = \"mse\"\nset.dataset.validation = 0.2\nseeds", 1)

// emitted writes the manifest of a sweep to a new folder and returns the folder and the manifest.
func emitted(t *testing.T, text, name string) (string, *Manifest) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "array")
	fatal.If(t, open(t, spec(t, text, name), Options{Out: dir}).Emit(Manifest{PerTask: 1, PerJob: 10}))
	m, err := ReadManifest(dir)
	fatal.If(t, err)
	return dir, m
}

// part returns a sweep of some trials of a manifest, given by their indices, or of all trials without indices.
func part(t *testing.T, dir string, m *Manifest, o Options, places ...int) *Sweep {
	t.Helper()
	declared, err := m.Declare(places...)
	fatal.If(t, err)
	o.Out = dir
	s := open(t, declared, o)
	fatal.If(t, m.Matches(s, places...))
	return s
}

// task runs the task with the given index.
func task(t *testing.T, dir string, m *Manifest, index int) error {
	t.Helper()
	s := part(t, dir, m, Options{}, index)
	_, err := s.Task(context.Background(), s.Trials[0])
	return err
}

// states returns the states of gathered trials, in the order of the trials.
func states(all []Gathered) (list []State) {
	for _, g := range all {
		list = append(list, g.State)
	}
	return list
}

func collected(t *testing.T, dir string, m *Manifest) ([]Gathered, error) {
	t.Helper()
	_, all, err := part(t, dir, m, Options{}).Collect(context.Background())
	if _, ok := errors.AsType[*Failed](err); err != nil && !ok {
		t.Fatal(err)
	}
	return all, err
}

// ofSweepOnly returns the files of a sweep, without the files that only array jobs have.
func ofSweepOnly(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := files(t, dir)
	for name := range files {
		if name == ManifestFile || strings.HasPrefix(name, failedDir) {
			delete(files, name)
		}
	}
	return files
}

func TestCollectedTasksAreTheSweepOfOneMachine(t *testing.T) {
	whole := t.TempDir()
	fatal.If(t, expect.Err(open(t, spec(t, chosen, "s"), Options{Out: whole}).Run(context.Background())))
	dir, m := emitted(t, chosen, "s")
	for _, index := range []int{3, 0, 2} {
		fatal.If(t, task(t, dir, m, index))
	}
	all, _ := collected(t, dir, m)
	if want := []State{Done, Waiting, Done, Done}; !slices.Equal(states(all), want) {
		t.Fatalf("got %v, want %v", states(all), want)
	}
	fatal.If(t, task(t, dir, m, 1))
	for range 2 { // the second call must change nothing
		fatal.If(t, expect.Err(collected(t, dir, m)))
		same(t, "collected", ofSweepOnly(t, dir), files(t, whole))
	}
	copied := filepath.Join(t.TempDir(), "elsewhere")
	fatal.If(t, os.CopyFS(copied, os.DirFS(dir)))
	for _, name := range []string{ResultsFile, SummaryFile, SelectedFile} {
		_ = os.Remove(filepath.Join(copied, name)) // the error is ignored: if the file is missing, the comparison below fails
	}
	fatal.If(t, expect.Err(collected(t, copied, m)))
	same(t, "a copy", ofSweepOnly(t, copied), files(t, whole))
}

func TestFailedTasksFailAsInTheSweepOfOneMachine(t *testing.T) {
	whole, text := t.TempDir(), declared+diverging
	_, want := open(t, spec(t, text, "d"), Options{Out: whole}).Run(context.Background())
	dir, m := emitted(t, text, "d")
	for i := range m.Tasks() {
		var diverged *train.Diverged
		if err := task(t, dir, m, i); err != nil && !errors.As(err, &diverged) {
			t.Fatal(err)
		}
	}
	all, err := collected(t, dir, m)
	if err == nil || strings.ReplaceAll(err.Error(), dir, whole) != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
	if want := []State{Done, Done, Broken, Broken}; !slices.Equal(states(all), want) {
		t.Fatalf("got %v, want %v", states(all), want)
	}
	same(t, "with failures", ofSweepOnly(t, dir), files(t, whole))
}

func TestADamagedTrialIsRefusedUntilItIsRepaired(t *testing.T) {
	dir, m := emitted(t, declared, "s")
	for i := range m.Tasks() {
		fatal.If(t, task(t, dir, m, i))
	}
	trial := TrialPath(dir, m.Trials[1].ID)
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range []string{folder.State, folder.Model, folder.Config, keptFile} {
		path := filepath.Join(trial, name)
		text, err := os.ReadFile(path)
		fatal.If(t, err)
		damagedText := damaged(r, text, true)
		if name == folder.Config {
			damagedText = []byte(strings.Replace(string(text), "epochs = 3", "epochs = 4", 1))
		}
		fatal.If(t, os.WriteFile(path, damagedText, 0o666))
		all, err := collected(t, dir, m)
		if err == nil || all[1].State != Refused || !strings.Contains(all[1].Problem, name) {
			t.Errorf("%s: %v, %s: %s", name, err, all[1].State, all[1].Problem)
		}
		if results, err := Read(dir); err != nil || results.Trials[1].Metrics != nil || results.Trials[1].Error == "" {
			t.Errorf("%s: the results have metrics of the refused trial: %v, %+v", name, err, results)
		}
		fatal.If(t, os.WriteFile(path, text, 0o666))
	}
	expect.NoError(t, expect.Err(collected(t, dir, m)))
	// The task measures lost metrics again. The collection does not.
	fatal.If(t, os.Remove(filepath.Join(trial, keptFile)))
	if all, _ := collected(t, dir, m); all[1].State != Begun {
		t.Errorf("without metrics: %s", all[1].State)
	}
	expect.NoError(t, task(t, dir, m, 1))
	expect.NoError(t, expect.Err(collected(t, dir, m)))
}

func TestATrialThatAProcessWorksOnIsRunning(t *testing.T) {
	dir, m := emitted(t, declared, "s")
	ctx, cancel := context.WithCancel(context.Background())
	s := part(t, dir, m, Options{Report: func(e Event) {
		if e.Progress.EpochDone && e.Progress.Epoch == 1 {
			if all, _ := collected(t, dir, m); all[2].State != Running {
				t.Errorf("got %s, want %s", all[2].State, Running)
			}
			cancel()
		}
	}}, 2)
	if _, err := s.Task(ctx, s.Trials[0]); !errors.Is(err, train.ErrInterrupted) {
		t.Fatal(err)
	}
	all, err := collected(t, dir, m)
	if g := all[2]; err != nil || g.State != Begun || g.Epoch != 1 {
		t.Errorf("%v: got %s at epoch %d, want %s at 1", err, g.State, g.Epoch, Begun)
	}
	held, err := folder.Open(TrialPath(dir, m.Trials[2].ID), folder.OS{})
	fatal.If(t, err)
	expect.Is(t, task(t, dir, m, 2), folder.ErrLocked, "of another process")
	expect.NoError(t, errors.Join(held.Close(), task(t, dir, m, 2)))
}

func TestAManifestIsRefusedIfOneBitIsWrong(t *testing.T) {
	dir, m := emitted(t, declared, "s")
	path := filepath.Join(dir, ManifestFile)
	text, err := os.ReadFile(path)
	fatal.If(t, err)
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		fatal.If(t, os.WriteFile(path, damaged(r, text, r.IntN(2) == 0), 0o666))
		var of *checkpoint.Error
		if _, err := ReadManifest(dir); !errors.As(err, &of) {
			t.Fatalf("got %v", err)
		}
	}
	expect.Is(t, expect.Err(ReadManifest(t.TempDir())), fs.ErrNotExist, "without one")
	// A damaged manifest is replaced. The manifest of other trials is not.
	s := open(t, spec(t, declared, "s"), Options{Out: dir})
	for range 2 {
		fatal.If(t, s.Emit(Manifest{PerTask: 1, PerJob: 10}))
	}
	if again, _ := os.ReadFile(path); string(again) != string(text) {
		t.Error("another manifest of the same trials")
	}
	for _, other := range []error{s.Emit(Manifest{PerTask: 2, PerJob: 10}), open(t, spec(t, declared, "s", "train.epochs=2"), Options{Out: dir}).Emit(Manifest{PerTask: 1, PerJob: 10})} {
		expect.Is(t, other, folder.ErrForeign)
	}
	// Trials with other data, or with other defaults, do not match the manifest.
	m.Trials[1].ID = "0123456789abcdef"
	declared, err := m.Declare(1)
	fatal.If(t, err)
	expect.Error(t, m.Matches(open(t, declared, Options{Out: dir}), 1), "0123456789abcdef", "another identity")
}

func TestTasksHaveEachTrialOnce(t *testing.T) {
	m := &Manifest{Frozen: &Frozen{Trials: make([]FrozenTrial, 10)}, PerTask: 3}
	var all []int
	for i := range m.Tasks() {
		places, err := m.Task(i)
		fatal.If(t, err)
		all = append(all, places...)
	}
	expect.Slice(t, all, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	expect.Equal(t, m.Tasks(), 4)
	for _, index := range []int{-1, 4} {
		expect.AnyError(t, expect.Err(m.Task(index)), "index", index, "is taken")
	}
}
