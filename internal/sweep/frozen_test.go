package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// varied declares a sweep with values of every type.
const varied = declared + `
[model.factors]
kind = "nmf"
dataset = { name = "bars", count = 100 }
components = 3
iterations = 4
[sweep.v]
model = ["small", "factors"]
select = ["mse", "-hoyer"]
set.dataset.validation = [0.2]
[sweep.v.for.small]
set.loss.1.weight = [0.0, 1e6, 1e-30]
set.optimizer = [{ kind = "adam", beta1 = 0.5 }, { kind = "sgd" }]
set.encoder.1.activation = ["sigmoid", "hard_sigmoid"]
[sweep.v.for.factors]
set.components = [2, 3]
`

// thawed writes a frozen sweep as JSON and declares the sweep from it.
func thawed(t *testing.T, f *Frozen) *config.Sweep {
	t.Helper()
	text, err := json.Marshal(f)
	fatal.If(t, err)
	var read Frozen
	fatal.If(t, json.Unmarshal(text, &read))
	s, err := read.Declare()
	fatal.If(t, err)
	return s
}

func TestAFrozenSweepIsTheSameSweep(t *testing.T) {
	s := open(t, spec(t, varied, "v", "train.seed=3"), Options{Out: t.TempDir()})
	again := open(t, thawed(t, s.Freeze()), Options{Out: s.Path})
	if len(s.Trials) != 14 || len(again.Trials) != len(s.Trials) {
		t.Fatalf("got %d trials, want %d", len(again.Trials), len(s.Trials))
	}
	for i, trial := range s.Trials {
		if other := again.Trials[i]; other.ID != trial.ID || !bytes.Equal(other.Model.Text(), trial.Model.Text()) {
			t.Errorf("trial %d: got %s, want %s", i, other.ID, trial.ID)
		}
	}
	want, err := s.results().files()
	fatal.If(t, err)
	got, err := again.results().files()
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("results: %v\n%s\nwant\n%s", err, got[0].Data, want[0].Data)
	}
	one, _ := json.Marshal(s.Freeze()) // cannot fail: the sweep was already written above
	two, err := json.Marshal(again.Freeze())
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("frozen again: %v\n%s\nwant\n%s", err, two, one)
	}
}

// The shipped models need images that may be missing on this machine, so only their declarations are compared.
func TestEveryShippedTrialSurvivesFreezing(t *testing.T) {
	text, err := os.ReadFile("../../models.toml")
	fatal.If(t, err)
	file, err := config.Load("models.toml", text)
	fatal.If(t, err)
	trials := 0
	for _, name := range file.SweepNames() {
		spec, err := file.Sweep(name)
		fatal.If(t, err)
		s := &Sweep{Name: name, Keys: spec.Keys, split: spec.Split}
		for _, trial := range spec.Trials {
			s.Trials = append(s.Trials, &Trial{Trial: trial, ID: identity(trial.Model, nil)})
		}
		for i, again := range thawed(t, s.Freeze()).Trials {
			if trials++; testing.Short() && trials%5 > 0 {
				continue
			}
			expect.Equal(t, identity(again.Model, nil), s.Trials[i].ID, name, "trial", i, again.Model.Text())
		}
	}
	if trials < 50 {
		t.Errorf("only %d trials", trials)
	}
}

func TestAFrozenSweepRefusesWhatItDoesNotHave(t *testing.T) {
	s := open(t, spec(t, declared, "s"), Options{Out: t.TempDir()})
	for want, change := range map[string]func(f *Frozen){
		"no trial has the index 3": func(f *Frozen) { f.Trials = f.Trials[:3] },
		"has 2 values, want 1":     func(f *Frozen) { f.Trials[3].Values = values{int64(1), "x"} },
		"unknown":                  func(f *Frozen) { f.Trials[3].Declared = "[model.a]\nencodr = []" },
		"got 2 models":             func(f *Frozen) { f.Trials[3].Declared = "[model.a]\n[model.b]\n" },
		"expected":                 func(f *Frozen) { f.Trials[3].Declared = "[model" },
	} {
		f := s.Freeze()
		change(f)
		expect.Error(t, expect.Err(f.Declare(3)), want)
	}
}

func TestTrialsDoneOneByOneAreThoseOfASweep(t *testing.T) {
	whole, single := t.TempDir(), t.TempDir()
	fatal.If(t, expect.Err(open(t, spec(t, declared, "s"), Options{Out: whole}).Run(context.Background())))
	f := open(t, spec(t, declared, "s"), Options{Out: single}).Freeze()
	for i := range f.Trials {
		spec, err := f.Declare(i)
		fatal.If(t, err)
		s := open(t, spec, Options{Out: single})
		for range 2 { // in the second round the metrics exist
			fatal.If(t, expect.Err(s.Do(context.Background(), s.Trials[0])))
		}
	}
	if Is(single) {
		t.Error("results were written")
	}
	fatal.If(t, expect.Err(open(t, spec(t, declared, "s"), Options{Out: single}).Run(context.Background())))
	same(t, "trial by trial", files(t, single), files(t, whole))
}
