package config

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera/config/part/table"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/losses"
)

const sweeping = `
[[model.m.encoder]]
kind = "dense"
units = 4
activation = "sigmoid"
[[model.m.loss]]
kind = "mse"
[[model.m.loss]]
kind = "kl"
[model.n]
extends = "m"
[sweep.s]
about = "one line"
model = ["m", "n"]
seeds = [5, 6]
[sweep.s.set]
train.epochs = 3
loss.1.weight = [0.5, 1]
optimizer = [{ kind = "adam" }, { kind = "sgd" }]
`

func TestTrialsAreAllCombinationsWithSeedsFastest(t *testing.T) {
	s, err := load(t, sweeping).Sweep("s")
	fatal.If(t, err)
	if s.Name != "s" || s.About != "one line" || !slices.Equal(s.Keys, []string{"loss.1.weight", "optimizer"}) {
		t.Errorf("got %+v", s)
	}
	i := 0
	for _, model := range []string{"m", "n"} {
		for _, weight := range []any{0.5, int64(1)} {
			for _, kind := range []string{"adam", "sgd"} {
				for _, seed := range []uint64{5, 6} {
					if i >= len(s.Trials) {
						t.Fatalf("%d trials, want 16", len(s.Trials))
					}
					trial := s.Trials[i]
					i++
					want := []any{weight, map[string]any{"kind": kind}}
					m := trial.Model
					if !reflect.DeepEqual(trial.Values, want) || m.Name != model || m.Optimizer.Kind != kind || m.Train.Seed != seed ||
						m.Train.Epochs != 3 || (m.Losses[1].Weight.At(0) == 0.5) != (weight == 0.5) {
						t.Errorf("trial %d: values %v, model %+v", i, trial.Values, m)
					}
				}
			}
		}
	}
	expect.Equal(t, len(s.Trials), i, "trials")
}

func TestATrialIsTheModelThatSetMakes(t *testing.T) {
	f := load(t, sweeping)
	s, err := f.Sweep("s")
	fatal.If(t, err)
	var sets []Set
	for _, argument := range []string{"train.epochs=3", "loss.1.weight=1", `optimizer={ kind = "sgd" }`, "train.seed=6"} {
		set, err := ParseSet(argument)
		fatal.If(t, err)
		sets = append(sets, set)
	}
	m, err := f.Model("m", sets...)
	fatal.If(t, err)
	expect.Equal(t, string(s.Trials[7].Model.Text()), string(m.Text()))
}

func TestSetTakesThePlaceOfASweptKey(t *testing.T) {
	set, err := ParseSet("loss.1.weight=0.25")
	fatal.If(t, err)
	s, err := load(t, sweeping).Sweep("s", set)
	fatal.If(t, err)
	if len(s.Trials) != 8 || !slices.Equal(s.Keys, []string{"optimizer"}) {
		t.Errorf("%d trials of %q", len(s.Trials), s.Keys)
	}
	for _, trial := range s.Trials {
		expect.Equal(t, trial.Model.Losses[1].Weight.At(0), 0.25, "weight", trial.Model.Losses[1].Weight)
	}
}

func TestRangesHoldBothEndsAndRoundValues(t *testing.T) {
	for text, want := range map[string][]any{
		"{ from = 1e-4, to = 0.1, count = 4 }":                    {1e-4, 1e-3, 1e-2, 0.1},
		"{ from = 0.123456789, to = 1e-9, count = 2 }":            {0.123456789, 1e-9},
		"{ from = 16, to = 128, count = 4 }":                      {int64(16), int64(32), int64(64), int64(128)},
		"{ from = 1, to = 3, count = 7 }":                         {int64(1), int64(2), int64(3)},
		`{ from = 0.0, to = 1, count = 5, scale = "linear" }`:     {0.0, 0.25, 0.5, 0.75, 1.0},
		`{ from = 1.0, to = 0.0, count = 4, scale = "linear" }`:   {1.0, 0.666667, 0.333333, 0.0},
		`{ from = 1, to = 3, count = 3, scale = "linear" }`:       {int64(1), int64(2), int64(3)},
		`{ from = 0.1, to = 0.1, count = 3, scale = "logaritm" }`: nil,
	} {
		root, _ := table.Parse(table.NewSource("models.toml", "r = "+text))
		d := &table.Decoder{Language: language}
		got := lists.Map(spreadOut(d, root.Child("r"), "set.r"), func(n *table.Node) any { return n.Leaf })
		if !reflect.DeepEqual(got, want) || (want == nil) != (len(d.Found) > 0) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// Only a combination of second values is invalid. File.Check, which does not check all combinations, finds no error,
// but File.Sweep does.
func TestCombinationsThatAreWrongAreFoundWhenTheSweepIsAskedFor(t *testing.T) {
	f := load(t, sweeping+`
[sweep.c]
model = "m"
set.encoder.0.activation = ["sigmoid", "softplus"]
set.loss.1.kind = ["hoyer", "kl"]
`)
	fatal.If(t, f.Check())
	_, err := f.Sweep("c")
	if found, ok := errors.AsType[*table.Diagnostics](err); !ok || len(found.List) != 1 || !strings.Contains(err.Error(), `sweep "c": model "m": loss[1] (kl): kl needs values in [0,1]`) {
		t.Errorf("got %v", err)
	}
}

func TestSetThatMakesTrialsWrongIsToBlame(t *testing.T) {
	set, err := ParseSet("encoder.0.activation=softplus")
	fatal.If(t, err)
	_, err = load(t, sweeping).Sweep("s", set)
	if err == nil || !strings.HasPrefix(err.Error(), `--set encoder.0.activation: sweep "s": model "m": loss[1] (kl): kl needs`) {
		t.Errorf("got %v", err)
	}
}

func TestUnknownSweepsAreSuggested(t *testing.T) {
	_, err := load(t, sweeping+"[sweep.figure8]\nmodel = \"m\"\n").Sweep("figure-8")
	expect.As[*UnknownSweep](t, err, `did you mean "figure8"?`)
}

// No part without a kind has a table with the key `to`, or with two keys of a range, because such a table in a sweep is
// read as a range.
func TestNoTableWithoutAKindHasTheKeysOfARange(t *testing.T) {
	for _, title := range []string{"hooks", "datasets"} {
		list, _ := Describe(title)
		for _, d := range list {
			var of []string
			for _, k := range d.Keys {
				if k.Key == "to" {
					of = append(of, k.Key, k.Key)
				} else if slices.Contains(table.Keys(&spread{}, ""), k.Key) {
					of = append(of, k.Key)
				}
			}
			if len(of) > 1 {
				t.Errorf("%s: %s has the keys %q, by which a sweep knows a range", title, d.Name, of)
			}
		}
	}
}

func TestTheShippedFigure8IsTheStudys(t *testing.T) {
	s, err := load(t, string(shipped(t))).Sweep("figure8")
	fatal.If(t, err)
	var got [][2]float64
	for i, trial := range s.Trials {
		if trial.Model.Train.Seed != uint64(1+i%3) {
			t.Fatalf("trial %d has the seed %d", i, trial.Model.Train.Seed)
		}
		if i%3 > 0 {
			continue
		}
		kl := trial.Model.Losses[1]
		got = append(got, [2]float64{kl.Loss.(*losses.KL).Target, kl.Weight.At(0)})
	}
	var want [][2]float64
	for _, p := range []float64{0.01, 0.05, 0.1, 0.2} {
		for _, beta := range []float64{1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1, 5e-1} {
			want = append(want, [2]float64{p, beta})
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
}

// A factorisation has iterations and no epochs. A separable one has neither.
func TestPassesAreEpochsOrIterationsByTheModel(t *testing.T) {
	f := load(t, string(shipped(t))+"[sweep.mixed]\nmodel = [\"sparse-nmf\", \"separable\", \"shallow\"]\n[model.separable]\nkind = \"separable_nmf\"\n[sweep.kinds]\nmodel = \"shallow\"\nset.kind = [\"nmf\", \"separable_nmf\", \"autoencoder\"]\n")
	plain, err := f.Sweep("mixed")
	fatal.If(t, err)
	quick, err := f.Sweep("mixed", Passes(3))
	fatal.If(t, err)
	kinds, err := f.Sweep("kinds", Passes(3))
	fatal.If(t, err)
	for i, want := range []string{"iterations = 3", "", "epochs = 3"} { // of the final declaration of a trial
		text := string(kinds.Trials[i].Model.Text())
		if !strings.Contains(text, want) || want == "" && (strings.Contains(text, "iterations") || strings.Contains(text, "epochs")) {
			t.Errorf("%v: got\n%s", kinds.Trials[i].Values, text)
		}
	}
	differing := func(i int) (lines []string) {
		before := strings.Split(string(plain.Trials[i].Model.Text()), "\n")
		for j, line := range strings.Split(string(quick.Trials[i].Model.Text()), "\n") {
			if line != before[j] {
				lines = append(lines, strings.Join(strings.Fields(line), " "))
			}
		}
		return lines
	}
	for i, want := range [][]string{{"iterations = 3"}, nil, {"epochs = 3"}} {
		expect.Slice(t, differing(i), want, plain.Trials[i].Model.Name)
	}
	s, err := load(t, strings.Replace(sweeping, "epochs = 3", "epochs = [3, 4]", 1)).Sweep("s", Passes(7))
	fatal.If(t, err)
	if slices.Contains(s.Keys, "train.epochs") || s.Trials[0].Model.Train.Epochs != 7 {
		t.Errorf("swept epochs: keys %q, %d epochs", s.Keys, s.Trials[0].Model.Train.Epochs)
	}
}

// A shorter training must still be long enough for the hooks of a model: dsd prunes after 200 epochs. Other models of the sweep
// are trained without it; no model at all is an error, as is a model that another change makes invalid.
func TestAModelThatPassesMakeInvalidIsLeftOut(t *testing.T) {
	f := load(t, string(shipped(t))+"[sweep.both]\nmodel = [\"shallow\", \"dsd\"]\nseeds = [1, 2]\n[sweep.alone]\nmodel = \"dsd\"\n")
	s, err := f.Sweep("both", Passes(201))
	if err != nil || len(s.Trials) != 4 || s.Unfit != nil {
		t.Fatalf("201 passes: %d trials, unfit %v, %v", len(s.Trials), s.Unfit, err)
	}
	s, err = f.Sweep("both", Passes(200))
	fatal.If(t, err)
	want := []Unfit{{"dsd", "", "hook.prune: from: the phase begins after epoch 200, but the run ends after epoch 200: nothing would be pruned"}}
	if !slices.Equal(s.Unfit, want) || len(s.Trials) != 2 || s.Trials[0].Model.Name != "shallow" || s.Trials[1].Model.Train.Epochs != 200 {
		t.Errorf("200 passes: unfit %q, %d trials; want %q and the 2 trials of shallow", s.Unfit, len(s.Trials), want)
	}
	expect.As[*table.Diagnostics](t, expect.Err(f.Sweep("alone", Passes(200))), "the phase begins after epoch 200", "the only model of a sweep")
	epochs, err := ParseSet("hook.prune.from=300")
	fatal.If(t, err)
	expect.As[*table.Diagnostics](t, expect.Err(f.Sweep("alone", epochs, Passes(250))), "", "an invalid combination for the only model")
	batch, err := ParseSet("train.batch=0")
	fatal.If(t, err)
	expect.As[*table.Diagnostics](t, expect.Err(f.Sweep("both", batch, Passes(200))), "", "another invalid change")
}

// Other settings of a model keep their trials.
func TestASettingThatPassesMakeInvalidIsLeftOut(t *testing.T) {
	f := load(t, string(shipped(t))+"[sweep.s]\nmodel = \"dsd\"\nseeds = [1, 2]\nset.hook.prune.from = [100, 300]\n")
	s, err := f.Sweep("s", Passes(200))
	fatal.If(t, err)
	want := []Unfit{{"dsd", "hook.prune.from=300", "hook.prune: from: the phase begins after epoch 300, but the run ends after epoch 200: nothing would be pruned"}}
	expect.Slice(t, s.Unfit, want, "unfit")
	expect.Equal(t, len(s.Trials), 2, "unfit")
}

// Passes also changes a single model. Seeds does not.
func TestChangesOfSweepsGivenToAModel(t *testing.T) {
	f, err := Load("models.toml", []byte("[model.m]\nencoder = [{ kind = \"dense\", units = 2 }]\n[model.n]\nkind = \"nmf\"\ncomponents = 2\n"))
	fatal.If(t, err)
	for name, key := range map[string]string{"m": "train.epochs", "n": "iterations"} {
		m, err := f.Model(name, Passes(7))
		fatal.If(t, err)
		expect.Equal(t, maps.Collect(m.Settings())[key], "7", key)
	}
	seeds, err := Seeds([]uint64{1, 2})
	fatal.If(t, err)
	expect.Error(t, expect.Err(f.Model("m", seeds)), "train.seed")
}
