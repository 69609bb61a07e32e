package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// kinds declares a sweep of two models of different kinds, each with separate keys.
const kinds = `
[model.net]
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl", weight = 0.5 }]
[model.factors]
kind = "nmf"
components = 3
[sweep.s]
model = ["net", "factors"]
set.dataset.limit = [50, 60]
[sweep.s.for.net]
set.dataset.limit = 70
zip.encoder.0.units = [4, 8]
zip.loss.1.weight = [0.5, 0.25]
[sweep.s.for.factors.set]
components = [3, 4]
`

// settings returns the keys and the trials of a sweep as text.
func settings(t *testing.T, text string, sets ...string) (keys []string, trials []string) {
	t.Helper()
	var changes []Set
	for _, argument := range sets {
		set, err := ParseSet(argument)
		fatal.If(t, err)
		changes = append(changes, set)
	}
	s, err := load(t, text).Sweep("s", changes...)
	fatal.If(t, err)
	for _, trial := range s.Trials {
		trials = append(trials, fmt.Sprint(trial.Model.Name, trial.Values))
	}
	return s.Keys, trials
}

func TestModelsOfDifferentKindsHaveKeysOfTheirOwn(t *testing.T) {
	fatal.If(t, load(t, kinds).Check())
	keys, trials := settings(t, kinds)
	expect.Slice(t, keys, []string{"dataset.limit", "encoder.0.units", "loss.1.weight", "components"}, "keys")
	want := []string{"net[70 4 0.5 <nil>]", "net[70 8 0.25 <nil>]", "factors[50 <nil> <nil> 3]", "factors[50 <nil> <nil> 4]", "factors[60 <nil> <nil> 3]", "factors[60 <nil> <nil> 4]"}
	expect.Slice(t, trials, want)
	// --set for a key that the sweep sets for one model applies only to this model, and removes the key from its pair
	keys, trials = settings(t, kinds, "components=5", "loss.1.weight=0.1")
	expect.Slice(t, trials, []string{"net[70 4]", "net[70 8]", "factors[50 <nil>]", "factors[60 <nil>]"}, keys)
}

// swept returns the text of a sweep of one model with the given axes.
func swept(axes string) string {
	return "[model.m]\n" + strings.Replace(oneLayer, "units = 3", "units = 3, activation = \"sigmoid\"", 1) + "loss = [{ kind = \"mse\" }, { kind = \"kl\" }]\n[sweep.s]\nmodel = \"m\"\n" + axes
}

func TestRandomSettingsAreThoseOfTheSeed(t *testing.T) {
	random := func(more string) []string {
		_, trials := settings(t, swept("random.set.loss.1.weight = { from = 1e-4, to = 0.1 }\nrandom.set.loss.1.target = { from = 0.1, to = 0.3, scale = \"linear\" }\n"+more))
		return trials
	}
	first := random("random.count = 10")
	if len(first) != 10 || !slices.Equal(random("random.count = 10"), first) || !slices.Equal(random("random.count = 10\nrandom.seed = 1"), first) {
		t.Errorf("got %q", first)
	}
	expect.Slice(t, random("random.count = 25")[:10], first, "a larger count draws other settings")
	for _, more := range []string{"random.seed = 2", "random.sampling = \"latin_hypercube\""} {
		if slices.Equal(random("random.count = 10\n"+more), first) {
			t.Errorf("%s: the same settings", more)
		}
	}
}

func TestRandomValuesAreInTheirRangesAndALatinHypercubeFillsThem(t *testing.T) {
	const count = 40
	s, err := load(t, swept(fmt.Sprintf(`
[sweep.s.random]
count = %d
sampling = "latin_hypercube"
[sweep.s.random.set]
loss.1.weight = { from = 1e-4, to = 0.1 }
loss.1.target = { from = 0.4, to = 0.1, scale = "linear" }
encoder.0.units = { from = 1, to = 4, scale = "linear" }
optimizer.kind = ["adam", "sgd"]
`, count))).Sweep("s")
	fatal.If(t, err)
	if len(s.Trials) != count {
		t.Fatalf("%d trials", len(s.Trials))
	}
	weights, targets, units, adam := map[int]bool{}, map[int]bool{}, map[int64]int{}, 0
	for _, trial := range s.Trials {
		weight, target := trial.Values[0].(float64), trial.Values[1].(float64)
		weights[int(math.Log10(weight/1e-4)/3*count)] = true
		targets[int((0.4-target)/0.3*count)] = true
		units[trial.Values[2].(int64)]++
		if trial.Values[3] == "adam" {
			adam++
		}
	}
	if len(weights) < count-1 || len(targets) < count-1 { // rounding may move a value into the next part
		t.Errorf("%d parts of the weights and %d of the targets have a value, want %d", len(weights), len(targets), count)
	}
	if len(units) != 4 || units[1] != 10 || units[4] != 10 || adam != 20 {
		t.Errorf("units %v, adam %d times, want equal shares", units, adam)
	}
}

func TestWhatIsWrongWithAxesIsReportedInItsPlace(t *testing.T) {
	for axes, want := range map[string]string{
		"zip.loss.1.weight = [1, 2]\nzip.loss.1.target = [0.1, 0.2, 0.3]":                        "zip: loss.1.target has 3 values, but loss.1.weight has 2",
		"zip.loss.1.weight = [1, 2]":                                                             "zip: only loss.1.weight: nothing is paired with it",
		"set.loss.1.weight = [1, 2]\nzip.loss.1.weight = [1, 2]\nzip.loss.1.target = [0.1, 0.2]": "zip: loss.1.weight is given twice",
		"random.count = 3": "random: no key is drawn",
		"random.set.loss.1.weight = { from = 1, to = 2 }":                                        "missing key \"count\"",
		"random.count = 3\nrandom.set.loss.1.weight = 5":                                         "random.set: loss.1.weight: got 5, want a range { from, to } or a list of values",
		"random.count = 3\nrandom.set.loss.1.weight = { from = 0, to = 2 }":                      "from: got 0, want > 0",
		"random.count = 3\nrandom.set.loss.1.weight = { from = 1, to = 2, count = 3 }":           "unknown key \"count\"",
		"random.count = 3\nrandom.set.train.seed = { from = 1, to = 2 }":                         "the seed is set by the sweep's key \"seeds\"",
		"set.optimizer = { kind = \"adam\", learning_rate = [0.1, 0.2] }":                        "optimizer.learning_rate: a list in an inline table could be one value or several",
		"set.dataset = { name = \"bars\", x = { y = [1, 2] } }":                                  "dataset.x.y: a list in an inline table",
		"for.n.set.loss.1.weight = 1":                                                            "\"n\" is no model of this sweep",
		"for.m = 3":                                                                              "for.m",
		"for.m.sett.loss.1.weight = 1":                                                           "unknown table \"sett\"",
		"set = 3":                                                                                "set: want a table",
		"random.count = 9000\nrandom.set.loss.1.weight = { from = 1.0, to = 2 }\nseeds = [1, 2]": "gives more than 10000 trials",
	} {
		err := load(t, swept(axes+"\n")).Check()
		expect.Error(t, err, want, axes)
	}
}
