package sweep

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/machine"
	"tessera/internal/parallel/team"
	"tessera/internal/sealed"
	"tessera/internal/train"
	"tessera/internal/train/folder"
)

// oneTrial lists changes after which the sweep s has a single trial of one epoch.
var oneTrial = []string{"loss.1.target=0.1", "train.seed=1", "train.epochs=1", "encoder.1.units=2"}

// put writes a file of a trial.
func put(t testing.TB, path string, text []byte) {
	t.Helper()
	fatal.If(t, os.WriteFile(path, text, 0o600))
}

// trialFile returns the path of a file of the first trial.
func trialFile(t testing.TB, out, name string) string {
	t.Helper()
	r, err := Read(out)
	fatal.If(t, err)
	return filepath.Join(TrialPath(out, r.Trials[0].Trial), name)
}

func TestMetricsOfATrialThatChangedAreMeasuredAgain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out}, oneTrial...)
	want := files(t, out)
	path := trialFile(t, out, keptFile)
	whole, err := os.ReadFile(path)
	fatal.If(t, err)
	step := len(whole) / 12
	for i := 3; i < len(whole); i += step {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1
		for what, text := range map[string][]byte{"a flipped bit": damaged, "cut": whole[:i]} {
			put(t, path, text)
			run(t, declared, Options{Out: out}, oneTrial...)
			same(t, what, files(t, out), want)
		}
	}
	put(t, path, bytes.Replace(whole, []byte(`"mse": 0.`), []byte(`"mse": 0.9`), 1))
	run(t, declared, Options{Out: out}, oneTrial...)
	same(t, "another digit", files(t, out), want)
}

func TestMetricsOfOtherParametersAreMeasuredAgain(t *testing.T) {
	out, other := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out}, oneTrial...)
	run(t, declared, Options{Out: other}, append([]string{"train.seed=2"}, oneTrial[0], oneTrial[2], oneTrial[3])...)
	want := files(t, out)
	foreign, err := os.ReadFile(trialFile(t, other, folder.Model))
	fatal.If(t, err)
	put(t, trialFile(t, out, folder.Model), foreign)
	worked := false
	run(t, declared, Options{Out: out, Report: func(e Event) { worked = worked || !e.Kept }}, oneTrial...)
	if !worked {
		t.Error("the metrics of other parameters were taken for those of the trial")
	}
	same(t, "after the trial has its parameters again", files(t, out), want)
}

// Without the check, an unfinished trial with a changed declaration would be trained to its end and reported under the
// name of the original trial.
func TestATrialWhoseDeclarationChangedIsRefused(t *testing.T) {
	text := strings.Replace(declared, "seeds = [1, 2]", "seeds = [1]", 1)
	for name, change := range map[string]func(path string, id string){
		"an edited key": func(path, _ string) {
			file := filepath.Join(path, folder.Config)
			b, err := os.ReadFile(file)
			fatal.If(t, err)
			put(t, file, bytes.Replace(b, []byte("epochs = 3"), []byte("epochs = 2"), 1))
		},
		"another run": func(path, _ string) {
			m := spec(t, text, "s", "train.seed=9", "loss.1.target=0.1").Trials[0].Model
			fatal.If(t, expect.Err(train.Run(context.Background(), m, train.Options{Backend: engine.Backend{Team: team.New(1)}, Out: path, Force: true})))
		},
	} {
		out := filepath.Join(t.TempDir(), "s")
		ctx, cancel := context.WithCancel(context.Background())
		s := open(t, spec(t, text, "s"), Options{Out: out, Jobs: 1, Report: func(e Event) {
			if e.Progress != nil && e.Progress.EpochDone {
				cancel()
			}
		}})
		if _, err := s.Run(ctx); !errors.Is(err, train.ErrInterrupted) || !s.Trials[0].Begun() {
			t.Fatalf("%s: the sweep ended with %v", name, err)
		}
		change(s.Trials[0].Path, s.Trials[0].ID)
		r, err := open(t, spec(t, text, "s"), Options{Out: out}).Run(context.Background())
		if failed, ok := errors.AsType[*Failed](err); !ok || len(failed.Trials) != 1 || !strings.Contains(err.Error(), "does not declare the model of this trial") {
			t.Errorf("%s: got %v", name, err)
		}
		if r == nil || r.Trials[0].Metrics != nil || r.Trials[1].Metrics == nil {
			t.Errorf("%s: results %+v", name, r)
		}
		fatal.If(t, os.RemoveAll(s.Trials[0].Path))
		run(t, text, Options{Out: out})
	}
}

func TestDamagedResultsOfASweepAreNotRead(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out}, oneTrial...)
	path := filepath.Join(out, ResultsFile)
	b, err := os.ReadFile(path)
	fatal.If(t, err)
	put(t, path, bytes.Replace(b, []byte(`"mse": 0.`), []byte(`"mse": 0.9`), 1))
	expect.Error(t, expect.Err(Read(out)), "checksum is wrong; run the sweep again")
	run(t, declared, Options{Out: out}, oneTrial...)
	expect.NoError(t, expect.Err(Read(out)))
}

// A default that another version had gives the trial the same name and another config.toml.
func TestATrialOfAnotherVersionIsNotCalledDamaged(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out}, oneTrial...)
	change := func(name, from, to string) {
		path := trialFile(t, out, name)
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte(from)) {
			t.Fatalf("%s has no %q: %v", name, from, err)
		}
		put(t, path, bytes.Replace(text, []byte(from), []byte(to), 1))
	}
	change(folder.Config, "batch = 32", "batch = 31")
	_, err := open(t, spec(t, declared, "s", oneTrial...), Options{Out: out}).Run(t.Context())
	expect.Error(t, err, "does not declare the model of this trial: train.batch")
	e, err := train.ReadEnvironment(filepath.Dir(trialFile(t, out, folder.Environment)))
	fatal.If(t, err)
	e.Version, e.SHA256 = "0.1.9", sealed.Open
	text, err := sealed.Document(e)
	fatal.If(t, err)
	put(t, trialFile(t, out, folder.Environment), text)
	_, err = open(t, spec(t, declared, "s", oneTrial...), Options{Out: out}).Run(t.Context())
	expect.Error(t, err, "is of tessera 0.1.9, whose defaults differ from those of "+machine.Version()+": train.batch")
	expect.Error(t, err, "run the sweep with that version")
}
