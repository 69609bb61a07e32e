package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// pressed returns a small model of bars with a multiplier that controls the sparseness. keys are the keys of the multiplier.
func pressed(keys string) string {
	return `[model.m]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 6, activation = "relu" }]
decoder = [{ kind = "dense", bias = false }]
loss = [{ kind = "mse" }, { kind = "l1", weight = { kind = "multiplier", ` + keys + ` } }]
optimizer = { kind = "adam", learning_rate = 0.01 }
train = { epochs = 30, batch = 20, min_epoch_steps = 20 }
`
}

// An l1 norm below 0 is not reachable: without an upper bound, the weight would turn off every unit.
func TestAnUnreachableLimitEndsInADiagnosis(t *testing.T) {
	_, err := Run(context.Background(), model(t, pressed("limit = -1.0, rate = 0.1")), Options{Backend: tape.Backend{}, Out: place(t)})
	if collapsed, ok := errors.AsType[*Diverged](err); !ok || collapsed.Collapse == "" {
		t.Fatalf("got %v, want a collapse", err)
	}
	for _, part := range []string{"training collapsed by step", "every unit is dead", "loss[1] (l1)", "its limit -1", "an upper bound `most` of the weight may help"} {
		expect.Contains(t, err.Error(), part, err, "lacks")
	}
}

// With a large rate the first steps raise the weight so far that nearly all units die, and the weight falls to 0 too late. The
// same limit with a small rate is reached.
func TestARateThatIsTooLargeIsDiagnosed(t *testing.T) {
	for keys, want := range map[string]bool{"limit = 0.5, rate = 1.0": true, "limit = 0.5, rate = 0.001": false} {
		var warnings []string
		if _, err := Run(context.Background(), model(t, pressed(keys)), Options{Backend: tape.Backend{}, Out: place(t), Warn: func(text string) { warnings = append(warnings, text) }}); err != nil {
			t.Fatalf("%s: %v", keys, err)
		}
		expect.Equal(t, slices.ContainsFunc(warnings, func(w string) bool {
			return strings.HasPrefix(w, "loss[1] (l1): asked for <= 0.5, reached ") && strings.Contains(w, "switched them off; lower rate")
		}), want, keys, "the warnings", warnings)
	}
}

func TestAnUpperBoundOfAMultiplierKeepsTheModelAndWarns(t *testing.T) {
	var warnings []string
	m := model(t, pressed("limit = 0.0, rate = 0.1, most = 0.0001"))
	r, err := Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t), Warn: func(text string) { warnings = append(warnings, text) }})
	fatal.If(t, err)
	if !slices.ContainsFunc(warnings, func(w string) bool {
		return strings.HasPrefix(w, "loss[1] (l1): asked for <= 0, reached ") && strings.Contains(w, "upper bound of 0.0001")
	}) {
		t.Errorf("got the warnings %q", warnings)
	}
	last := lines(t, r.Run)[29]
	if dead := last["dead_units"].(float64); dead == 6 {
		t.Error("every unit is dead")
	}
}

// measurements writes a table of 60 samples: four positive values a to d, their halves, and a mask.
func measurements(t *testing.T) (path string) {
	text := "a,b,c,d,e,f,g,h,seen\n"
	for i := range 60 {
		a, b, c, d := 1+i%2, 1+i%3, 1+i%5, 1+i%7
		text += fmt.Sprintf("%d,%d,%d,%d,%g,%g,%g,%g,1\n", a, b, c, d, float64(a)/2, float64(b)/2, float64(c)/2, float64(d)/2)
	}
	path = filepath.Join(t.TempDir(), "table.csv")
	fatal.If(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

const nonneg = "constraint = [{ kind = \"nonneg\", on = \"decoder.*.weight\" }]\n"

// Without a word such a training ends with a large error that no setting of the optimizer lowers.
func TestImagesBelowZeroNeedAModelThatReachesThem(t *testing.T) {
	table := measurements(t)
	trained := func(change ...string) (warnings []string) {
		text := `[model.m]
dataset = { name = "csv", images = "` + table + `", scale = "standardise", columns = { seen = "seen", target = ["e", "f", "g", "h"] } }
encoder = [{ kind = "dense", units = 6, activation = "relu" }]
decoder = [{ kind = "dense", bias = false }]
loss = [{ kind = "mse" }]
optimizer = { kind = "adam", learning_rate = 0.01 }
train = { epochs = 20, batch = 20 }
` + nonneg
		m := model(t, strings.NewReplacer(change...).Replace(text))
		fatal.If(t, expect.Err(Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: place(t), Warn: func(text string) { warnings = append(warnings, text) }})))
		return warnings
	}
	const reach = "is in values below 0, which sums of atoms >= 0 do not reach"
	for name, c := range map[string]struct {
		change []string
		want   bool
	}{
		"atoms >= 0":     {nil, true},
		"any atoms":      {[]string{nonneg, ""}, false},
		"positive":       {[]string{`, scale = "standardise"`, ""}, false},
		"another target": {[]string{`{ kind = "mse" }`, `{ kind = "mse", against = "target" }`}, false},
		"a mask":         {[]string{`{ kind = "mse" }`, `{ kind = "mse", mask = "seen" }`}, false},
		"a good model":   {[]string{`activation = "relu"`, `activation = "linear"`, "epochs = 20", "epochs = 300"}, false},
	} {
		warnings := trained(c.change...)
		expect.Equal(t, slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, reach) }), c.want, name, "the warnings", warnings)
	}
}

// A model that collapses although its atoms reach all values needs other advice.
func TestACollapseNamesImagesBelowZero(t *testing.T) {
	for constraint, want := range map[string]bool{nonneg: true, "": false} {
		text := ofMeasurements(t, pressed("limit = -1.0, rate = 0.1")) + constraint
		_, err := Run(context.Background(), model(t, text), Options{Backend: tape.Backend{}, Out: place(t)})
		expect.Error(t, err, "every unit is dead", constraint)
		expect.Equal(t, strings.Contains(err.Error(), "values below 0"), want, constraint)
	}
}

// ofMeasurements returns a model of the measurements in place of bars.
func ofMeasurements(t *testing.T, text string) string {
	return strings.Replace(text, `name = "bars", count = 60`, `name = "csv", scale = "standardise", images = "`+measurements(t)+`"`, 1)
}

// The weight rises from 0 during the only epoch. The spread of codes of 6 units is between 1 and √6, whatever the weights of the steps.
func TestADiagnosisTellsAValueThatTheTermHad(t *testing.T) {
	text := strings.Replace(strings.Replace(pressed("limit = 0.5, rate = 0.01"), `"l1"`, `"spread"`, 1), "epochs = 30", "epochs = 1", 1)
	var warnings []string
	fatal.If(t, expect.Err(Run(context.Background(), model(t, text), Options{Backend: tape.Backend{}, Out: place(t), Warn: func(text string) { warnings = append(warnings, text) }})))
	reached := 0.0
	for _, w := range warnings {
		fmt.Sscanf(w, "loss[1] (spread): asked for <= 0.5, reached %g,", &reached)
	}
	if reached < 1 || reached > math.Sqrt(6) {
		t.Errorf("reached %g, want in [1, √6]: %q", reached, warnings)
	}
}

// If nothing spreads the codes and the weights decay, the codes of all samples become equal.
func TestCollapsedCodesOfViewsAreReported(t *testing.T) {
	for term, want := range map[string]string{
		`{ kind = "invariance", on = "code" }, { kind = "l2" }, { kind = "weight_decay", on = "encoder.*.weight", weight = 1 }`:                                   "the codes have collapsed; the codes of all samples are almost equal: code_spread ",
		`{ kind = "invariance", on = "code" }, { kind = "variance", on = "code", weight = 1e-9 }, { kind = "weight_decay", on = "encoder.*.weight", weight = 1 }`: "enlarge the batch, or give a larger weight to variance",
		`{ kind = "nt_xent", on = "code" }`: "",
	} {
		text := `[model.m]
dataset = { name = "bars", count = 60 }
encoder = [{ kind = "dense", units = 6, init = { kind = "normal", stddev = 0.01 } }]
decoder = []
view = [{ augment = ["flip"] }]
loss = [` + term + `]
optimizer = { kind = "adam", learning_rate = 0.02 }
train = { epochs = 60, batch = 20 }
`
		var warnings []string
		r, err := Run(context.Background(), model(t, text), Options{Out: place(t), Warn: func(text string) { warnings = append(warnings, text) }})
		fatal.If(t, err, term)
		last := lines(t, r.Run)[59]
		if spread, rank := last["code_spread"].(float64), last["effective_rank"].(float64); (spread < leastSpread) != (want != "") || rank < 0 {
			t.Errorf("%s: spread %g, rank %g", term, spread, rank)
		}
		said := slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, want) })
		if len(warnings) > 1 || said != (want != "") {
			t.Errorf("%s: got the warnings %q, want one with %q", term, warnings, want)
		}
		said = len(warnings) > 0
		fatal.If(t, expect.Err(Resume(context.Background(), r.Run, Options{Epochs: 62, Warn: func(text string) { warnings = append(warnings, text) }})), term)
		if said && len(warnings) > 1 {
			t.Errorf("%s: a resumed run warns again: %q", term, warnings)
		}
	}
}

// A head that predicts numbers far from 0 worse than their mean does says so at the end, with a remedy that works; the progress of its run is
// judged by its error and the objective, and not by the terms of the objective.
func TestTargetsFarFromZeroThatAreNotReachedAreReported(t *testing.T) {
	rows := "a,b,price\n"
	for i := range 80 {
		a, b := float64(i%9)/9, float64(i%7)/7
		rows += fmt.Sprintf("%.3f,%.3f,%.1f\n", a, b, 200+60*a-30*b)
	}
	path := filepath.Join(t.TempDir(), "houses.csv")
	fatal.If(t, os.WriteFile(path, []byte(rows), 0o600))
	text := `
[model.price]
dataset = { name = "csv", file = "` + path + `", validation = 0.25, columns = { target = "price" } }
encoder = [{ kind = "dense", units = 8, activation = "relu" }]
decoder = []
head.cost.layers = [{ kind = "dense" }]
loss = [{ kind = "mse", on = "cost", against = "target" }]
train = { epochs = 20, batch = 32 }
`
	for set, want := range map[string]bool{"": true, "optimizer.learning_rate=0.1 train.epochs=300": false} {
		var warnings []string
		r, err := Run(t.Context(), model(t, text, strings.Fields(set)...), Options{Backend: engine.Backend{}, Out: place(t), Warn: func(text string) { warnings = append(warnings, text) }})
		fatal.If(t, err)
		got := slices.ContainsFunc(warnings, func(w string) bool {
			return strings.HasPrefix(w, "cost predicts target worse than its mean does (R² -") && strings.Contains(w, "far from numbers of mean 21")
		})
		expect.Equal(t, got, want, set, "the warnings", warnings)
		history, err := ReadHistory(r.Run)
		fatal.If(t, err)
		expect.Slice(t, Judging(history[0].Values), []string{"val_rmse", "val_loss"}, "judged by")
	}
}

func TestTheRemedyForTargetsFarFromZeroFitsTheHead(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := "a,price,age\n"
	for i := range 60 {
		rows += fmt.Sprintf("%.3f,%d,%d\n", float64(i%9)/9, 1000+i%9, 5+i%7)
	}
	fatal.If(t, os.WriteFile("houses.csv", []byte(rows), 0o600))
	for _, c := range []struct{ target, layers, want string }{
		{`["price", "age"]`, `[{ kind = "dense" }]`, "Its 2 numbers have different means: give each a head"},
		{`"price"`, `[{ kind = "dense" }, { kind = "affine", offset = 5.0 }]`, "Its last layer affine begins there if factor is about 2."},
		{`"price"`, `[{ kind = "dense" }, { kind = "affine", offset = 1004.0 }]`, ""},
		{`"price"`, `[{ kind = "dense" }]`, `End the head with the layer { kind = "affine", factor = 2.`},
	} {
		text := "[model.m]\ndataset = { name = \"csv\", file = \"houses.csv\", validation = 0.25, columns = { images = [\"a\"], target = " + c.target + " } }\n" +
			"encoder = [{ kind = \"dense\", units = 4 }]\ndecoder = []\nhead.y.layers = " + c.layers + "\nloss = [{ kind = \"mse\", on = \"y\", against = \"target\" }]\n" +
			"optimizer = { learning_rate = 0.03 }\ntrain = { epochs = 20, batch = 8 }\n"
		said := ""
		trained(t, model(t, text), Options{Backend: engine.Backend{}, Warn: func(text string) {
			if strings.Contains(text, "outputs begin near 0") {
				said = text
			}
		}})
		if !strings.Contains(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%s, %s: got %q, want %q", c.target, c.layers, said, c.want)
		}
	}
}
