package sweep

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tessera/data"
	"tessera/engine"
	"tessera/metrics"
	"tessera/team"
	"tessera/train"
	"tessera/train/folder"
)

func TestResultsDoNotDependOnHowManyTrialsRunAtOnce(t *testing.T) {
	one, three := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "three")
	run(t, declared, Options{Out: one, Jobs: 1})
	run(t, declared, Options{Out: three, Jobs: 3})
	same(t, "three at once", lasting(t, three), lasting(t, one))
}

func TestATrialIsTheRunThatTrainMakes(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	s := open(t, spec(t, declared, "s"), Options{Out: out})
	for _, trial := range s.Trials {
		alone := filepath.Join(t.TempDir(), "run")
		if _, err := train.Run(context.Background(), trial.Model, train.Options{Backend: engine.Backend{Team: team.New(1)}, Out: alone}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{folder.Config, folder.State, folder.Model} {
			a, _ := os.ReadFile(filepath.Join(alone, name))
			b, err := os.ReadFile(filepath.Join(trial.Path, name))
			if err != nil || string(a) != string(b) {
				t.Errorf("trial %s: %s differs from that of a run: %v", trial.ID, name, err)
			}
		}
	}
}

// At every single operation on the disk: what is there afterwards is gone on with, to the same bytes.
func TestASweepThatDiesAtAnyMomentGoesOnToTheSameBytes(t *testing.T) {
	text := strings.Replace(declared, "seeds = [1, 2]", "seeds = [1]", 1)
	whole := filepath.Join(t.TempDir(), "s")
	counter := &dying{}
	run(t, text, Options{Out: whole, Jobs: 1, Disk: counter}, "train.epochs=2")
	want := lasting(t, whole)
	step := 1
	if testing.Short() {
		step = 7
	}
	for at := 1; at <= counter.count; at += step {
		out := filepath.Join(t.TempDir(), "s")
		disk := &dying{at: at, err: errDead}
		_, err := open(t, spec(t, text, "s", "train.epochs=2"), Options{Out: out, Jobs: 1, Disk: disk}).Run(context.Background())
		if !errors.Is(err, errDead) {
			t.Fatalf("the disk died at operation %d of %d, the sweep ended with %v", at, counter.count, err)
		}
		run(t, text, Options{Out: out, Jobs: 2}, "train.epochs=2")
		same(t, "died at operation "+strconv.Itoa(at), lasting(t, out), want)
	}
	t.Logf("%d operations", counter.count)
}

func TestAFullDiskEndsTheSweepWithWhatCouldNotBeWritten(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	disk := &dying{at: 30, err: syscall.ENOSPC}
	_, err := open(t, spec(t, declared, "s"), Options{Out: out, Disk: disk}).Run(context.Background())
	var unwritten *folder.WriteError
	if !errors.As(err, &unwritten) {
		t.Errorf("got %v", err)
	}
}

func TestAnInterruptedSweepGoesOnToTheSameBytes(t *testing.T) {
	whole, cut := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "cut")
	run(t, declared, Options{Out: whole})
	for range 3 {
		ctx, cancel := context.WithCancel(context.Background())
		trained := 0
		o := Options{Out: cut, Report: func(e Event) {
			if e.Progress != nil && e.Progress.EpochDone {
				if trained++; trained == 2 {
					cancel()
				}
			}
		}}
		_, err := open(t, spec(t, declared, "s"), o).Run(ctx)
		cancel()
		if err != nil && !errors.Is(err, train.ErrInterrupted) {
			t.Fatal(err)
		}
	}
	run(t, declared, Options{Out: cut})
	same(t, "interrupted", lasting(t, cut), lasting(t, whole))
}

func TestAFinishedSweepIsLeftAsItIs(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	disk, worked := &dying{}, 0
	run(t, declared, Options{Out: out, Disk: disk, Report: func(e Event) {
		if !e.Kept {
			worked++
		}
	}})
	if disk.count != 0 || worked != 0 {
		t.Errorf("%d operations on the disk, %d reports of work", disk.count, worked)
	}
}

func TestAWiderSweepRepeatsNoTrialThatIsThere(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	wider := strings.Replace(declared, "[0.1, 0.3]", "[0.1, 0.2, 0.3]", 1)
	var kept, trained int
	r := run(t, wider, Options{Out: out, Report: func(e Event) {
		if e.Kept {
			kept++
		} else if e.Ended {
			trained++
		}
	}})
	if kept != 4 || trained != 2 || len(r.Trials) != 6 || len(r.Settings) != 3 {
		t.Errorf("%d kept, %d trained, %d trials, %d settings", kept, trained, len(r.Trials), len(r.Settings))
	}
}

func TestAFailedTrialStopsNoOther(t *testing.T) {
	out := filepath.Join(t.TempDir(), "d")
	var told []string
	s := open(t, spec(t, declared+diverging, "d"), Options{Out: out, Report: func(e Event) {
		if e.Err != nil {
			told = append(told, e.Trial.ID)
		}
	}})
	r, err := s.Run(context.Background())
	var failed *Failed
	if !errors.As(err, &failed) || len(failed.Trials) != 2 || len(told) != 2 || failed.Total != 4 {
		t.Fatalf("%d failures told, error %v", len(told), err)
	}
	for i, row := range r.Trials {
		if bad := i >= 2; (row.Metrics == nil) != bad || strings.Contains(row.Error, "diverged") != bad || strings.Contains(row.Error, out) {
			t.Errorf("trial %d: metrics %v, error %q", i, row.Metrics, row.Error)
		}
	}
	if got := r.Settings[1]; len(got.Seeds) != 0 || len(got.Trials) != 2 || len(got.Mean) != 0 {
		t.Errorf("the setting that failed: %+v", got)
	}
	before := lasting(t, out)
	if _, err := open(t, spec(t, declared+diverging, "d"), Options{Out: out}).Run(context.Background()); !errors.As(err, &failed) {
		t.Errorf("the second time: %v", err)
	}
	same(t, "the second time", lasting(t, out), before)
}

func TestASweepIsPutIntoAFolderOfItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		err   error // nil where a sweep may resume there
	}{
		"nothing":              {nil, nil},
		"an old sweep":         {[]string{"notes.md", ResultsFile}, nil},
		"trials":               {[]string{"trials/a/config.toml"}, nil},
		"killed at once":       {[]string{ResultsFile + ".new"}, nil},
		"killed a bit later":   {[]string{SummaryFile + ".new"}, nil},
		"a run":                {[]string{folder.Config, folder.State}, folder.ErrForeign},
		"a run, mixed":         {[]string{folder.Config, ResultsFile, "trials/a/config.toml"}, folder.ErrForeign},
		"somebody's files":     {[]string{"notes.md", "results.csv"}, folder.ErrForeign},
		"a file of that name":  {[]string{"trials"}, folder.ErrForeign},
		"a folder of somebody": {[]string{"photos/1.png"}, folder.ErrForeign},
	} {
		out := t.TempDir()
		for _, file := range c.files {
			path := filepath.Join(out, file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		before := lasting(t, out)
		if _, err := New(context.Background(), spec(t, declared, "s"), Options{Out: out}); !errors.Is(err, c.err) || err != nil && !strings.Contains(err.Error(), out) {
			t.Errorf("%s: got %v, want %v", name, err, c.err)
		}
		same(t, name, lasting(t, out), before)
		for _, file := range c.files {
			below := filepath.Join(out, file)
			if _, err := New(context.Background(), spec(t, declared, "s"), Options{Out: below}); strings.Contains(file, ".") && !errors.Is(err, folder.ErrNotFolder) {
				t.Errorf("%s: got %v, want ErrNotFolder", below, err)
			}
		}
	}
}

// withSVM is the default selection and the SVM.
func withSVM(t *testing.T) metrics.Selection {
	t.Helper()
	svm, err := metrics.Select("svm")
	if err != nil {
		t.Fatal(err)
	}
	return metrics.Default().Add(svm)
}

// Whether there are labels is known before results are written again.
func TestTheSVMNeedsLabels(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out}, "train.epochs=1")
	before := lasting(t, out)
	var missing *data.Error
	again := open(t, spec(t, declared, "s", "train.epochs=1"), Options{Out: out, Metrics: withSVM(t)})
	if _, err := again.Run(context.Background()); !errors.As(err, &missing) ||
		!strings.Contains(err.Error(), "bars: svm_accuracy needs labels, its images have none") {
		t.Errorf("got %v", err)
	}
	same(t, "refused", lasting(t, out), before)
}

func TestTwoProcessesDoNotWorkOnOneSweep(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	held, err := folder.Hold(out, folder.OS{})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if _, err := open(t, spec(t, declared, "s"), Options{Out: out}).Run(context.Background()); !errors.Is(err, folder.ErrLocked) {
		t.Errorf("got %v", err)
	}
}

// A trial that starts from another run is another trial when that run has other parameters; what it trained is not kept.
func TestATrialIsAnotherOneWhenItsStartIs(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	start := func(seed string) {
		m := spec(t, declared, "s", "train.epochs=1", "train.seed="+seed).Trials[0].Model
		o := train.Options{Backend: engine.Backend{Team: team.New(1)}, Out: source, Force: true}
		if _, err := train.Run(context.Background(), m, o); err != nil {
			t.Fatal(err)
		}
	}
	id := func() string {
		return open(t, spec(t, declared, "s", `start={run="`+source+`"}`), Options{Out: t.TempDir()}).Trials[0].ID
	}
	start("1")
	first, again := id(), id()
	start("2")
	if second := id(); again != first || second == first {
		t.Errorf("got %s, again %s, then %s with other parameters", first, again, second)
	}
}

func TestIdentityIsOfTheFilledModelAndTheData(t *testing.T) {
	ids := func(text string, sets ...string) []string {
		var all []string
		for _, trial := range open(t, spec(t, text, "s", sets...), Options{Out: "x"}).Trials {
			all = append(all, trial.ID)
		}
		return all
	}
	plain := ids(declared)
	for text, equal := range map[string]bool{
		strings.Replace(declared, "a line for people", "another", 1):                        true,
		strings.Replace(declared, "weight = 0.001, target = 0.2", "weight = 0.001", 1):      true, // which the sweep sets
		strings.Replace(declared, "nonneg\" }", "nonneg\", on = \"decoder.*.weight\" }", 1): true,
		strings.Replace(declared, "batch = 32", "batch = 33", 1):                            false,
		strings.Replace(declared, "count = 100", "count = 101", 1):                          false,
		strings.Replace(declared, "model.small", "model.other", 1):                          false,
	} {
		text = strings.Replace(text, `model = "small"`, `model = "`+map[bool]string{true: "other", false: "small"}[strings.Contains(text, "model.other")]+`"`, 1)
		if got := ids(text); slices.Equal(got, plain) != equal {
			t.Errorf("got %v, want equal to %v: %v\n%s", got, plain, equal, text)
		}
	}
	if got := ids(declared, "loss.1.target=0.1"); !slices.Equal(got, plain[:2]) {
		t.Errorf("the value alone: got %v, want %v", got, plain[:2])
	}
	if got := ids(strings.Replace(declared, "[0.1, 0.3]", "[0.1, 0.3]\nset.train.min_delta = [0, 0.0]", 1)); !slices.Equal(got, plain) {
		t.Errorf("a value written in two ways: got %v, want %v", got, plain)
	}
	one := identity(open(t, spec(t, declared, "s"), Options{}).Trials[0].Model, []data.File{{Path: "a", SHA256: "1"}})
	two := identity(open(t, spec(t, declared, "s"), Options{}).Trials[0].Model, []data.File{{Path: "b", SHA256: "2"}})
	if one == two {
		t.Error("other data, same identity")
	}
}

func TestMeansAndDeviationsAreOverSeeds(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	r := run(t, strings.Replace(declared, "[1, 2]", "[1, 2, 7]", 1), Options{Out: out})
	for i, s := range r.Settings {
		var x []float64
		for _, row := range r.Trials[3*i : 3*i+3] {
			if row.Values["loss.1.target"] != s.Values["loss.1.target"] {
				t.Errorf("setting %d has trial %+v", i, row)
			}
			mse, _ := row.Metrics.Number("mse")
			x = append(x, mse)
		}
		m := (x[0] + x[1] + x[2]) / 3
		d := math.Sqrt(((x[0]-m)*(x[0]-m) + (x[1]-m)*(x[1]-m) + (x[2]-m)*(x[2]-m)) / 2)
		gotMean, _ := s.Mean.Number("mse")
		gotDeviation, _ := s.Deviation.Number("mse")
		if math.Abs(gotMean-m) > 1e-15 || math.Abs(gotDeviation-d) > 1e-15 || d == 0 || !slices.Equal(s.Seeds, []uint64{1, 2, 7}) {
			t.Errorf("got %v ± %v over %v, want %v ± %v", gotMean, gotDeviation, s.Seeds, m, d)
		}
	}
}

func TestTablesSayWhatTheDocumentSays(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	r, err := Read(out)
	if err != nil || !Is(out) || Is(filepath.Join(out, "trials")) {
		t.Fatal(err)
	}
	rows := readTable(t, filepath.Join(out, TableFile))
	if len(rows) != len(r.Trials) {
		t.Fatalf("%d rows, %d trials", len(rows), len(r.Trials))
	}
	for i, row := range rows {
		trial := r.Trials[i]
		kept := &metrics.Result{}
		text, err := os.ReadFile(filepath.Join(TrialPath(out, row["trial"]), keptFile))
		if err != nil || json.Unmarshal(text, kept) != nil {
			t.Fatal(err)
		}
		if row["trial"] != trial.Trial || row["loss.1.target"] != trial.Texts(r.Keys)[0] || row["seed"] != strconv.FormatUint(trial.Seed, 10) ||
			row["mse"] != number(kept.Values, "mse") || row["dataset"] != "bars" || row["images"] != "100" ||
			row["max_approx"] != number(trial.Metrics.Values, "max_approx") || row["error"] != "" {
			t.Errorf("row %v\nof trial %+v", row, trial)
		}
		if _, ok := row["svm_accuracy"]; ok {
			t.Error("a column of the SVM, which was not asked for")
		}
	}
	for i, row := range readTable(t, filepath.Join(out, SummaryFile)) {
		s := r.Settings[i]
		if row["model"] != "small" || row["seeds"] != "2" || row["hoyer"] != number(s.Mean, "hoyer") ||
			row["hoyer_deviation"] != number(s.Deviation, "hoyer") {
			t.Errorf("row %v\nof setting %+v", row, s)
		}
	}
	for _, row := range readTable(t, filepath.Join(out, TimingsFile)) {
		if s, err := strconv.ParseFloat(row["seconds"], 64); err != nil || s <= 0 || row["epochs"] != "3" {
			t.Errorf("timing %v", row)
		}
	}
}

// readTable reads a CSV file as maps from column to cell.
func readTable(t *testing.T, path string) []map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, cell := range record {
			row[records[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

// The images are read once; the SVM is added to trials that are done without training them again.
func TestTheSVMIsAddedToTrialsThatAreDone(t *testing.T) {
	if os.Getenv(data.EnvDir) == "" {
		t.Logf("left out: %s is not set", data.EnvDir)
		return
	}
	text := strings.Replace(declared, `{ name = "bars", count = 100 }`, `{ name = "fashion-mnist", limit = 200 }`, 1)
	text = strings.Replace(text, "[sweep.s]", "[sweep.s]\nsplit = \"test\"", 1)
	out := filepath.Join(t.TempDir(), "s")
	o := Options{Out: out, Dirs: data.SearchDirs("")}
	set := []string{"loss.1.target=0.1", "train.seed=1", "encoder.1.units=2", "train.epochs=1"}
	run(t, text, o, set...)
	before := lasting(t, out)
	o.Metrics = withSVM(t)
	epochs := 0
	o.Report = func(e Event) {
		if e.Progress != nil {
			epochs++
		}
	}
	r := run(t, text, o, set...)
	accuracy, _ := r.Settings[0].Mean.Number("svm_accuracy")
	if each, ok := r.Trials[0].Metrics.Number("svm_accuracy"); epochs > 0 || len(r.Trials) != 1 || !ok || each != accuracy || accuracy < 0.2 {
		t.Errorf("%d reports of training, %+v", epochs, r.Settings)
	}
	o.Metrics = nil
	run(t, text, o, set...)
	after := lasting(t, out)
	for _, name := range []string{ResultsFile, TableFile, SummaryFile} {
		if after[name] != before[name] {
			t.Errorf("without the SVM again, %s is another", name)
		}
	}
}
