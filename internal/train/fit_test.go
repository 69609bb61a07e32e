package train

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tessera/classical"
	"tessera/config"
	"tessera/config/part"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
)

// fitted contains baselines on small images whose states differ: a rule without state, a rule with step sizes, passes over
// mini-batches (also with centres and with several starts), centres only, an online rule, and a fit without a state before its
// only iteration.
var fitted = map[string]string{
	"nmf":        "kind = \"nmf\"\ncomponents = 8\niterations = 4",
	"mini-batch": "kind = \"nmf\"\ncomponents = 8\niterations = 3\nbatch = 100\ntolerance = 0.0",
	"sparse_nmf": "kind = \"sparse_nmf\"\ncomponents = 8\niterations = 4\nsolver = \"gradient\"\nper = \"image\"\ncode_sparsity = 0.5",
	"centres":    "kind = \"kmeans\"\ncomponents = 8\niterations = 3\nbatch = 100\ntolerance = 0.0\nrestarts = 2",
	"kmeans":     "kind = \"kmeans\"\ncomponents = 8\niterations = 4\ntolerance = 0.0",
	"nnsae":      "kind = \"nnsae\"\ncomponents = 8\niterations = 3",
	"dictionary": "kind = \"dictionary\"\ncomponents = 8\niterations = 3\nbatch = 100\ntolerance = 0.0",
	"pca":        "kind = \"pca\"\ncomponents = 8",
}

// holes hide entries of the images.
var holes = []string{"dataset.hide=0.4"}

// baseline returns the named model of fitted.
func baseline(t testing.TB, name string, sets ...string) *config.Model {
	t.Helper()
	text := "[model.fitted]\n" + fitted[name] + "\ndataset = \"bars\"\ntrain = { checkpoint_seconds = 0.0 }\n"
	return model(t, text, sets...)
}

func TestTwoFitsGiveEqualBytes(t *testing.T) {
	for name := range fitted {
		m := baseline(t, name)
		sameRun(t, trained(t, m, Options{}).Run, trained(t, m, Options{}).Run)
	}
}

// countdown is a context that is done after the given number of calls of Err.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

func interruptedWithinAPass(t *testing.T, m *config.Model) {
	t.Helper()
	want, within := trained(t, m, Options{}), 0
	for asked := 1; ; asked++ {
		run, left := place(t), asked
		_, err := Run(countdown{context.Background(), &left}, m, Options{Out: run, Disk: &faulty.Disk{}})
		if err == nil {
			break
		}
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		if !exists(run, folder.State) { // not begun
			continue
		}
		from, err := readState(filepath.Join(run, folder.State))
		fatal.If(t, err)
		if !strings.Contains(from.file.Metadata[numbersKey], `"position":0`) {
			within++
		}
		fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Disk: &faulty.Disk{}})))
		sameRun(t, run, want.Run)
	}
	if within < 5 {
		t.Errorf("only %d interrupts were within a pass", within)
	}
}

func TestAFitReportsAFullDisk(t *testing.T) {
	m := baseline(t, "kmeans")
	_, err := Run(context.Background(), m, Options{Out: place(t), Disk: &faulty.Disk{FullAt: 12}})
	expect.As[*folder.WriteError](t, err, "")
	expect.Is(t, err, syscall.ENOSPC)
}

func TestResumingAFinishedFitChangesNothing(t *testing.T) {
	for name := range fitted {
		run := trained(t, baseline(t, name), Options{}).Run
		before := read(t, run, folder.State)
		r, err := Resume(context.Background(), run, Options{Dirs: data.Dirs{"gone"}})
		if err != nil || !r.AlreadyFinished || !slices.Equal(before, read(t, run, folder.State)) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// The expected result is that of the same fit without a run.
func TestARunOfABaselineEqualsItsFit(t *testing.T) {
	for name := range fitted {
		m := baseline(t, name)
		set, err := m.Dataset.Source.Load(context.Background(), nil, data.Both)
		fatal.If(t, err)
		own, err := m.Baseline.New(set.Shape, m.Train.Seed)
		fatal.If(t, err)
		last, err := classical.Fit(context.Background(), own, set.Train, nil)
		fatal.If(t, err)
		want, err := own.Encode(set.Train.Float32())
		fatal.If(t, err)
		r := trained(t, m, Options{})
		if all := lines(t, r.Run); r.Epochs != last.Iteration || len(all) != last.Iteration || all[len(all)-1]["loss"] != last.Objective ||
			all[0]["val_mse"] != nil || all[0]["dead_units"] != nil {
			t.Errorf("%s: %+v with lines %v, want %+v", name, r, all, last)
		}
		for range 2 { // by its parameters, then by its state
			o, err := Open(r.Run)
			fatal.If(t, err)
			got, err := o.Baseline.Encode(set.Train.Float32())
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: codes of %s are not those of the fit (%v)", name, o.Path, err)
			}
			_ = os.Remove(filepath.Join(r.Run, folder.Model))
		}
	}
}

func TestAFitThatConvergesEndsEarly(t *testing.T) {
	r := trained(t, baseline(t, "nmf", "iterations=100", "tolerance=0.2"), Options{})
	if !r.StoppedEarly || r.Epochs >= 100 || r.Epochs != len(lines(t, r.Run)) {
		t.Errorf("got %+v", r)
	}
}

func TestErrorsOfAFitNameTheProblem(t *testing.T) {
	var setting part.KeyError
	for _, name := range []string{"nmf", "kmeans", "pca"} {
		_, err := Run(context.Background(), baseline(t, name, "components=20", "dataset.count=10"), Options{Out: place(t)})
		if !errors.As(err, &setting) || setting.Key != "components" {
			t.Errorf("%s: got %v, want a part.KeyError", name, err)
		}
	}
	var refused *data.Error
	_, err := Run(context.Background(), npy(t, "nmf", -0.5), Options{Out: place(t)})
	const place0 = "row 0, column 0: got -0.5, but nmf takes numbers >= 0; write scale"
	if !errors.As(err, &refused) || refused.Dataset != "npy" || !strings.Contains(err.Error(), place0) {
		t.Errorf("negative pixels: got %v, want a *data.Error", err)
	}
	if _, err = Examine(context.Background(), npy(t, "nmf", -0.5), Options{}); err == nil || !strings.Contains(err.Error(), place0) {
		t.Errorf("negative pixels, examined: got %v", err)
	}
	_, err = Run(context.Background(), npy(t, "kmeans", 1e30), Options{Out: place(t)})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("squares that overflow: got %v, want a *data.Error", err)
	}
	for _, first := range []float64{1e30, 3e37} { // without penalties nmf computes in another unit
		for name, sets := range map[string][]string{"nmf": nil, "mini-batch": {"init=random"}} {
			if _, err = Run(context.Background(), npy(t, name, first, sets...), Options{Out: place(t)}); err != nil {
				t.Errorf("%s of %v: %v", name, first, err)
			}
		}
		refused = nil
		if _, err = Run(context.Background(), npy(t, "nmf", first, "l1_codes=0.001", "l1_atoms=0.001"), Options{Out: place(t)}); !errors.As(err, &refused) {
			t.Errorf("eigenvalues that overflow: got %v, want a *data.Error", err)
		}
	}
	_, err = Run(context.Background(), npy(t, "dictionary", 1e30), Options{Out: place(t)})
	if diverged, ok := errors.AsType[*Diverged](err); !ok || diverged.Step != 2 || strings.Contains(err.Error(), "learning_rate") {
		t.Errorf("squares that overflow: got %v, want a *Diverged", err)
	}
}

// npy returns a baseline on 20 images of 3 x 3 pixels. The first pixels of the images increase from first to 2 first.
func npy(t *testing.T, name string, first float64, sets ...string) *config.Model {
	t.Helper()
	values := make([]float32, 20*9)
	for i := range 20 {
		values[9*i] = float32(first * (1 + float64(i)/20))
	}
	file := filepath.Join(t.TempDir(), "images.npy")
	fatal.If(t, data.WriteImages(file, []int{3, 3}, values))
	return baseline(t, name, append(sets, "components=2", "dataset.name=npy", "dataset.images="+file)...)
}

func TestACheckpointOfAnotherBaselineIsRefused(t *testing.T) {
	run := trained(t, baseline(t, "kmeans", "restarts=1"), Options{}).Run
	edit(t, run, `kind = "kmeans"`, `kind = "nmf"`)
	expect.As[*checkpoint.Error](t, expect.Err(Open(run)), `kind "kmeans"`, "open")
	expect.As[*checkpoint.Error](t, expect.Err(Resume(context.Background(), run, Options{Disk: &faulty.Disk{}})), `kind: got "nmf", want "kmeans"`, "resume")
	run = trained(t, baseline(t, "nmf"), Options{}).Run
	edit(t, run, "components = 8", "components = 9")
	expect.As[*checkpoint.Error](t, expect.Err(Open(run)), "", "other components")
}

func TestAFitResumesOnlyWithItsImages(t *testing.T) {
	m := npy(t, "nmf", 0.5, "tolerance=0")
	run := place(t)
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := Run(ctx, m, Options{Out: run, Disk: &faulty.Disk{}, Report: func(Progress) { cancel() }}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	other := npy(t, "nmf", 0.75).Dataset.Source
	load := func(ctx context.Context, d *config.Dataset) (*data.Set, error) {
		set, err := other.Load(ctx, nil, data.Both)
		if err == nil {
			state, err := readState(filepath.Join(run, folder.State))
			if err != nil {
				return nil, err
			}
			for i := range set.Files { // files of the same checksum, which cannot be
				set.Files[i].SHA256 = state.Data[i]
			}
		}
		return set, err
	}
	expect.As[*checkpoint.Error](t, expect.Err(Resume(context.Background(), run, Options{Load: load})), "")
}

func TestARunWithoutAtomsYetIsNotOpened(t *testing.T) {
	run := place(t)
	for asked := 0; !exists(run, folder.State); asked++ { // until the first interrupt that is after the beginning
		left := asked
		if _, err := Run(countdown{context.Background(), &left}, baseline(t, "pca"), Options{Out: run}); !errors.Is(err, ErrInterrupted) {
			t.Fatalf("got %v", err)
		}
	}
	expect.As[*checkpoint.Error](t, expect.Err(Open(run)), "resume")
	fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Disk: &faulty.Disk{}})))
	o, err := Open(run)
	if err != nil || math.Abs(float64(o.Baseline.Atoms().Values[0])) > 1 {
		t.Errorf("got %v", err)
	}
}
