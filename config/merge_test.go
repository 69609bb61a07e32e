package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
)

func TestDefaultsAreThoseOfTheContract(t *testing.T) {
	m := model(t, load(t, "[[model.m.encoder]]\nkind = \"dense\"\nunits = 3\n"), "m")
	expect.Equal(t, m.Kind, Autoencoder, "kind")
	expect.Equal(t, m.Dataset.Name, "swimmer", "kind")
	if want := (&layers.Dense{Units: 1024, Activation: "linear", Bias: true, Init: &layers.GlorotUniform{}}); len(m.Decoder) != 1 || !reflect.DeepEqual(m.Resolved([]int{32, 32}).Decoder[0].Layer, want) {
		t.Errorf("decoder %+v", m.Decoder)
	}
	if want := []Loss{{Kind: "mse", On: "output", Weight: &losses.Constant{Value: 1}, Loss: &losses.MSE{}, Against: "images"}}; !reflect.DeepEqual(m.Losses, want) {
		t.Errorf("losses %+v", m.Losses)
	}
	if m.Optimizer.Kind != "adam" || m.Optimizer.Schedule.Kind != "constant" || m.Optimizer.ClipNorm != 0 {
		t.Errorf("optimizer %+v", m.Optimizer)
	}
	if want := (Train{Epochs: 100, Batch: 128, Seed: 1, CheckpointSeconds: 5}); !reflect.DeepEqual(m.Train, want) {
		t.Errorf("train %+v", m.Train)
	}
	expect.Equal(t, len(m.Constraints), 0, "constraints", m.Constraints)
}

func TestAdadeltaDefaultsAreTheStudys(t *testing.T) {
	m := model(t, load(t, "[model.m]\noptimizer = { kind = \"adadelta\" }\n[[model.m.encoder]]\nkind = \"dense\"\nunits = 3\n"), "m")
	if want := (&optim.Adadelta{Rate: 1, Rho: 0.95, Epsilon: 1e-7}); !reflect.DeepEqual(m.Optimizer.Optimizer, want) {
		t.Errorf("got %+v", m.Optimizer.Optimizer)
	}
}

const family = `
[model.base]
about = "base"
dataset = { name = "fashion-mnist", limit = 1000, validation = 0.1 }
optimizer = { kind = "adadelta", rho = 0.5, epsilon = 1e-3, clip_norm = 2.0 }
train = { epochs = 7, seed = 3 }
[[model.base.encoder]]
kind = "dense"
units = 3
activation = "sigmoid"
[[model.base.loss]]
kind = "mse"
[[model.base.loss]]
kind = "kl"
weight = 0.5
target = 0.3

[model.same]
extends = "base"
optimizer = { kind = "adadelta", epsilon = 1e-2 }
train = { epochs = 8 }
loss = [{ kind = "bce" }, { kind = "mse" }]
decoder = [{ kind = "dense", activation = "sigmoid" }]

[model.other]
extends = "base"
dataset = "mnist"
optimizer = { kind = "adam", beta1 = 0.5 }

[model.back]
extends = "other"
optimizer = { kind = "adadelta", rho = 0.25 }

[model.set]
extends = "base"
dataset = { fit = "test" }
`

func TestTablesMergeAndArraysReplace(t *testing.T) {
	m := model(t, load(t, family), "same")
	if want := (&optim.Adadelta{Rate: 1, Rho: 0.5, Epsilon: 1e-2}); !reflect.DeepEqual(m.Optimizer.Optimizer, want) || m.Optimizer.ClipNorm != 2 {
		t.Errorf("optimizer %+v, clip_norm %g", m.Optimizer.Optimizer, m.Optimizer.ClipNorm)
	}
	if m.Train.Epochs != 8 || m.Train.Seed != 3 || m.About != "" {
		t.Errorf("%+v, about %q", m.Train, m.About)
	}
	if len(m.Losses) != 2 || m.Losses[0].Kind != "bce" || m.Losses[1].Kind != "mse" || len(m.Encoder) != 1 {
		t.Errorf("losses %+v, encoder %+v", m.Losses, m.Encoder)
	}
}

func TestAChangedKindDropsInheritedKeys(t *testing.T) {
	f := load(t, family)
	m := model(t, f, "other")
	if want := (&optim.Adam{Rate: 1e-3, Beta1: 0.5, Beta2: 0.999, Epsilon: 1e-8}); !reflect.DeepEqual(m.Optimizer.Optimizer, want) || m.Optimizer.ClipNorm != 0 {
		t.Errorf("optimizer %+v, clip_norm %g", m.Optimizer.Optimizer, m.Optimizer.ClipNorm)
	}
	if want := (data.Selection{Fit: "train", Validation: data.Validation{Fraction: 0.1}}); m.Dataset.Name != "mnist" || m.Dataset.Selection != want {
		t.Errorf("a name replaces a data set's table: got %+v", m.Dataset)
	}
	// The kind changes twice. The keys of the first adadelta are not restored.
	if want := (&optim.Adadelta{Rate: 1, Rho: 0.25, Epsilon: 1e-7}); !reflect.DeepEqual(model(t, f, "back").Optimizer.Optimizer, want) {
		t.Errorf("got %+v", model(t, f, "back").Optimizer.Optimizer)
	}
	if want := (data.Selection{Fit: "test", Limit: 1000, Validation: data.Validation{Fraction: 0.1}}); model(t, f, "set").Dataset.Selection != want {
		t.Errorf("a data set's table merges: got %+v", model(t, f, "set").Dataset)
	}
}

func TestSetChangesAnyKey(t *testing.T) {
	f := load(t, family)
	for _, c := range []struct {
		sets []string
		get  func(m *Model) any
		want any
	}{
		{[]string{"loss.1.weight=0.01"}, func(m *Model) any { return m.Losses[1].Weight.At(0) }, 0.01},
		{[]string{"loss.1.weight=0.01"}, func(m *Model) any { return m.Losses[1].Loss }, &losses.KL{Target: 0.3}},
		{[]string{"loss.1.kind=l1"}, func(m *Model) any { return m.Losses[1] }, Loss{Kind: "l1", On: "code", Weight: &losses.Constant{Value: 1}, Loss: &losses.L1{}}},
		{[]string{"loss.1.weight=3", "loss.1.kind=l1"}, func(m *Model) any { return m.Losses[1] }, Loss{Kind: "l1", On: "code", Weight: &losses.Constant{Value: 3}, Loss: &losses.L1{}}},
		{[]string{"loss.1.kind=kl"}, func(m *Model) any { return m.Losses[1].Weight.At(0) }, 0.5},
		{[]string{"train.batch=64"}, func(m *Model) any { return m.Train.Batch }, 64},
		{[]string{"train.batch = 64 # as on the other machine"}, func(m *Model) any { return m.Train.Batch }, 64},
		{[]string{"train.batch=64", "train.batch=32"}, func(m *Model) any { return m.Train.Batch }, 32},
		{[]string{"dataset=mnist", "dataset.fit=test"}, func(m *Model) any { return m.Dataset.Name + " " + m.Dataset.Fit }, "mnist test"},
		{[]string{"dataset.fit=test"}, func(m *Model) any { return m.Dataset.Limit }, 1000},
		{[]string{"dataset=mnist", "dataset.fit=test"}, func(m *Model) any { return m.Dataset.Limit }, 0},
		{[]string{"dataset.name=bars", "dataset.seed=5"}, func(m *Model) any { return m.Dataset.Source }, &data.Bars{Side: 8, Count: 500, Seed: 5}},
		{[]string{"optimizer.kind=adam"}, func(m *Model) any { return m.Optimizer.ClipNorm }, 0.0},
		{[]string{"optimizer.schedule.kind=cosine"}, func(m *Model) any { return m.Optimizer.Schedule.Kind }, "cosine"},
		{[]string{"optimizer.schedule.kind=cosine"}, func(m *Model) any { return m.Optimizer.ClipNorm }, 2.0},
		{[]string{"encoder.0.init.kind=normal", "encoder.0.init.stddev=0.1"}, func(m *Model) any { return m.Encoder[0].Layer.(*layers.Dense).Init }, &layers.Normal{Stddev: 0.1}},
		{[]string{"encoder.0.activation=softmax"}, func(m *Model) any { return m.Encoder[0].Layer.(*layers.Dense).Activation }, layers.ActivationName("softmax")},
		{[]string{"decoder.0.bias=false"}, func(m *Model) any { return m.Decoder[0].Layer.(*layers.Dense).Bias }, false},
		{[]string{`loss=[{kind="mse"}]`, "loss.0.weight=2"}, func(m *Model) any { return m.Losses }, []Loss{{Kind: "mse", On: "output", Weight: &losses.Constant{Value: 2}, Loss: &losses.MSE{}, Against: "images"}}},
		{[]string{`train={epochs=3}`, "train.batch=2"}, func(m *Model) any { return [2]int{m.Train.Epochs, m.Train.Batch} }, [2]int{3, 2}},
		{[]string{"train.batch=2", `train={epochs=3}`}, func(m *Model) any { return [2]int{m.Train.Epochs, m.Train.Batch} }, [2]int{3, 2}},
		{[]string{`constraint=[{kind="nonneg"}]`}, func(m *Model) any { return len(m.Constraints) }, 1},
		{[]string{"about=a = b, 'c'"}, func(m *Model) any { return m.About }, "a = b, 'c'"},
		{[]string{"about="}, func(m *Model) any { return m.About }, ""},
		{[]string{"about=\"12\""}, func(m *Model) any { return m.About }, "12"},
		{[]string{"about=x\n[model]"}, func(m *Model) any { return m.About }, "x\n[model]"},
	} {
		m := model(t, f, "base", c.sets...)
		if got := c.get(m); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, want %+v", c.sets, got, c.want)
		}
		checkFillRoundTrip(t, m)
	}
}

func TestSetChangesWhatAModelExtends(t *testing.T) {
	m := model(t, load(t, family), "set", "extends=other")
	if m.Dataset.Name != "mnist" || m.Dataset.Fit != "test" || m.Optimizer.Kind != "adam" {
		t.Errorf("got %+v, %+v", m.Dataset, m.Optimizer)
	}
}

// TestSetLeavesTheFileAlone checks that --set changes do not affect the file: afterwards it gives the model as
// declared.
func TestSetLeavesTheFileAlone(t *testing.T) {
	f := load(t, family)
	before := model(t, f, "base").Text()
	model(t, f, "base", "loss.1.weight=9", "dataset.fit=test", "optimizer.kind=sgd", "encoder.0.units=9", "train.seed=99")
	if after := model(t, f, "base").Text(); !reflect.DeepEqual(before, after) {
		t.Errorf("the file's model changed to\n%s", after)
	}
}

func TestUnknownModelsAreSuggested(t *testing.T) {
	_, err := load(t, family).Model("bsae")
	expect.As[*UnknownModel](t, err, "")
	expect.Equal(t, err.Error(), `unknown model "bsae" in models.toml: did you mean "base"?`)
	_, err = load(t, "").Model("m")
	expect.As[*UnknownModel](t, err, "")
	expect.Equal(t, err.Error(), `unknown model "m" in models.toml`)
}

// A model that extends a model with an error has the error, too, located in the other model. All other models can be
// trained.
func TestABrokenModelBlocksOnlyThoseThatExtendIt(t *testing.T) {
	f := load(t, family+`
[model.broken]
extends = "base"
abuot = "x"
[model.heir]
extends = "broken"
encoder = [{ kind = "dense", units = 2, activation = "sigmoid" }]
[model.lost]
extends = "heir"
about = "twice"
about = "twice"
[sweep.of-base]
model = "base"
set.train.epochs = [1, 2]
[sweep.of-heir]
model = ["base", "heir"]
[sweep.broken]
model = "bse"
[modle.x]
`)
	for name, subjects := range map[string][]string{
		"base": nil, "same": nil, "broken": {`model "broken"`}, "heir": {`model "broken"`}, "lost": {`model "broken"`, `model "lost"`},
	} {
		_, err := f.Model(name)
		expect.Slice(t, subjectsOf(err), subjects, "model", name)
	}
	for name, subjects := range map[string][]string{"of-base": nil, "of-heir": {`model "broken"`}, "broken": {`sweep "broken"`}} {
		_, err := f.Sweep(name)
		expect.Slice(t, subjectsOf(err), subjects, "sweep", name)
	}
	expect.Slice(t, subjectsOf(f.Check()), []string{`model "broken"`, `model "lost"`, `sweep "broken"`, ""}, "check reports errors of", f.Check())
	if _, err := f.Model("base", parseSets(t, []string{"extends=heir"})...); !slices.Equal(subjectsOf(err), []string{`model "base"`}) {
		t.Errorf("base that extends a broken model: %v", err)
	}
}

// subjectsOf returns the subjects of the errors.
func subjectsOf(err error) (subjects []string) {
	if all, ok := errors.AsType[*table.Diagnostics](err); ok {
		for _, d := range all.List {
			subjects = append(subjects, d.Subject)
		}
	}
	return subjects
}

func TestTextsThatAreNotUTF8AreRefused(t *testing.T) {
	_, err := Load("models.toml", []byte("# fine ✓\nabout = \"a\xffb\"\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "models.toml:2:11: not valid UTF-8\n") {
		t.Errorf("got %v", err)
	}
	expect.AnyError(t, expect.Err(ParseSet("about=\xff")), "a --set argument that is not UTF-8 is taken")
}

func TestNumbersAreWrittenShortestAndExact(t *testing.T) {
	for v, want := range map[float64]string{
		1: "1.0", 0.1: "0.1", 2.9296875e-06: "2.9296875e-06", 1e300: "1e+300", 1. / 3: "0.3333333333333333",
		math.Inf(1): "inf", math.Inf(-1): "-inf", 123456789: "1.23456789e+08",
	} {
		expect.Equal(t, table.NumberText(v), want)
	}
}

// A model that changes the kind of the model that it extends inherits the keys that both kinds have. The other keys get
// the defaults of the new kind.
func TestAModelOfAnotherKindKeepsItsImagesAndSeed(t *testing.T) {
	f := load(t, `
[model.trained]
dataset = { name = "bars", count = 40, limit = 30 }
encoder = [{ kind = "dense", units = 3 }]
train = { epochs = 7, batch = 5, seed = 9 }
[model.fitted]
extends = "trained"
kind = "nmf"
components = 5
[model.again]
extends = "fitted"
kind = "autoencoder"
encoder = [{ kind = "dense", units = 2 }]
`)
	for _, m := range []*Model{model(t, f, "fitted"), model(t, f, "trained", "kind=nmf", "components=5"), model(t, f, "again", "kind=nmf", "components=5"),
		model(t, f, "again"), model(t, f, "trained", "kind=autoencoder"), model(t, f, "fitted", "kind=autoencoder", `encoder=[{ kind = "dense", units = 2 }]`)} {
		if m.Dataset.Name != "bars" || m.Dataset.Limit != 30 || m.Train.Seed != 9 {
			t.Errorf("%s (%s): got %+v, seed %d", m.Name, m.Kind, m.Dataset, m.Train.Seed)
		}
		if m.Kind == Autoencoder && (len(m.Decoder) != 1 || len(m.Losses) != 1 || m.Optimizer.Kind != "adam") {
			t.Errorf("%s (%s): got %+v", m.Name, m.Kind, m)
		}
		if m.Kind != Autoencoder && (m.Baseline == nil || m.Baseline.Describe().Units != 5) {
			t.Errorf("%s (%s): got %+v", m.Name, m.Kind, m.Baseline)
		}
		checkFillRoundTrip(t, m)
	}
	expect.Equal(t, model(t, f, "trained", "kind=autoencoder").Train.Epochs, 7, "an auto-encoder that stays one has")
}

// Another data set does not inherit the selection of test images: it would fit or select on them without a word. A change of the name
// alone keeps it, except for files.
func TestASelectionOfTestImagesBelongsToItsDataSet(t *testing.T) {
	f := load(t, `
[model.fits]
kind       = "nmf"
components = 2
dataset    = { name = "fashion-mnist", fit = "test", validation = "test", limit = 50 }
[model.child]
extends = "fits"
dataset = { name = "mnist" }
[model.own]
extends = "child"
dataset = { name = "npy", images = "a.npy", test_images = "b.npy" }
`)
	for _, c := range []struct{ name, set, fit, validation string }{
		{"fits", "", "test", "test"},
		{"fits", "train.seed=2", "test", "test"},
		{"fits", "dataset.name=mnist", "test", "test"},
		{"fits", `dataset={ name = "fashion-mnist", limit = 9 }`, "test", "test"},
		{"child", "", "train", "0.1"},
		{"own", "", "train", "0.1"},
		{"fits", `dataset={ name = "mnist" }`, "train", "0.1"},
		{"fits", `dataset={ name = "mnist", fit = "test" }`, "test", "0.1"},
		{"fits", `dataset={ name = "npy", images = "a.npy", test_images = "b.npy" }`, "train", "0.1"},
		{"fits", `dataset={ name = "npy", images = "a.npy" }`, "train", "0.1"},
	} {
		var sets []string
		if c.set != "" {
			sets = append(sets, c.set)
		}
		m := model(t, f, c.name, sets...)
		if got := fmt.Sprint(m.Dataset.Validation.TOML()); m.Dataset.Fit != c.fit || got != c.validation {
			t.Errorf("%s with %q fits %s and validates on %s, want %s and %s", c.name, c.set, m.Dataset.Fit, got, c.fit, c.validation)
		}
		told := strings.Contains(strings.Join(m.Warnings(), "\n"), `dataset.validation = "test" is not inherited by the data set`)
		if want := c.validation != "test"; told != want || m.Dataset.Limit == 0 {
			t.Errorf("%s with %q: limit %d, warnings %q", c.name, c.set, m.Dataset.Limit, m.Warnings())
		}
	}
}
