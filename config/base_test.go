package config

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/layers"
)

const baseText = `
[model.shallow]
encoder = [{ kind = "dense", units = 4 }]
[model.deep]
extends = "shallow"
[model.deep.train]
epochs = 7
[sweep.s]
model = ["shallow", "deep"]
[sweep.t]
model = "deep"
`

const ownText = `
[model.shallow]
extends = "shallow"
encoder = [{ kind = "dense", units = 9 }]
[model.mine]
extends = "deep"
[model.other]
extends = "shallow"
[sweep.t]
model = ["mine", "deep"]
[sweep.t.set]
"train" = { batch = [8, 16] }
`

// extended loads ownText and extends it with the declarations of baseText.
func extended(t *testing.T, text string) *File {
	t.Helper()
	base, err := Load("base.toml", []byte(baseText))
	fatal.If(t, err)
	f := load(t, text)
	f.Extend(base)
	return f
}

func unitsOf(m *Model) int { return m.Encoder[0].Layer.(*layers.Dense).Units }

func TestAFileAddsToItsBase(t *testing.T) {
	f := extended(t, ownText)
	fatal.If(t, f.Check())
	expect.Equal(t, strings.Join(f.Names(), " "), "shallow mine other deep", "models")
	expect.Equal(t, strings.Join(f.SweepNames(), " "), "t s", "sweeps")
	for _, want := range []struct {
		model, file   string
		units, epochs int
	}{
		{"shallow", "models.toml", 9, 100}, // hides the model of base with the same name, which it extends
		{"other", "models.toml", 9, 100},
		{"deep", "base.toml", 4, 7}, // models of base do not change
		{"mine", "models.toml", 4, 7},
	} {
		m := model(t, f, want.model)
		if file := f.FileOf(want.model); file != want.file || unitsOf(m) != want.units || m.Train.Epochs != want.epochs {
			t.Errorf("%s: got %s, %d units, %d epochs, want %+v", want.model, file, unitsOf(m), m.Train.Epochs, want)
		}
	}
	if f.FileOfSweep("s") != "base.toml" || f.FileOfSweep("t") != "models.toml" || f.FileOf("none") != "" {
		t.Error("the files of sweeps, or of an unknown model, are wrong")
	}
}

func TestSweepsOverBothFiles(t *testing.T) {
	f := extended(t, ownText)
	own, err := f.Sweep("t")
	if err != nil || len(own.Trials) != 4 {
		t.Fatalf("%v: got %d trials, want 4", err, len(own.Trials))
	}
	inherited, err := f.Sweep("s", parseSets(t, []string{"train.epochs=2"})...)
	if err != nil || len(inherited.Trials) != 2 {
		t.Fatalf("%v: got %d trials, want 2", err, len(inherited.Trials))
	}
	if m := inherited.Trials[0].Model; unitsOf(m) != 4 || m.Train.Epochs != 2 {
		t.Errorf("a sweep of the base must train the models of the base: got %d units, %d epochs", unitsOf(m), m.Train.Epochs)
	}
}

func TestExtendsByACommandLineArgument(t *testing.T) {
	f := extended(t, ownText)
	if m := model(t, f, "deep", "extends=other"); unitsOf(m) != 9 || m.Train.Epochs != 7 {
		t.Errorf("got %d units, %d epochs, want 9, 7", unitsOf(m), m.Train.Epochs)
	}
	if m := model(t, f, "shallow", "extends=deep"); unitsOf(m) != 9 || m.Train.Epochs != 7 {
		t.Errorf("got %d units, %d epochs, want 9, 7", unitsOf(m), m.Train.Epochs)
	}
	_, err := f.Model("shallow", parseSets(t, []string{"extends=other"})...)
	expect.Error(t, err, "a cycle: shallow -> other -> shallow")
}

func TestErrorsInExtendedFiles(t *testing.T) {
	cycle := extended(t, "[model.shallow]\nextends = \"b\"\n[model.b]\nextends = \"shallow\"\n")
	expect.Error(t, cycle.Check(), "a cycle: shallow -> b -> shallow")
	f := extended(t, "[model.m]\nextends = \"depe\"\n")
	expect.Error(t, f.Check(), `did you mean "deep"?`)
	var unknown *UnknownModel
	if _, err := f.Model("none"); !errors.As(err, &unknown) || unknown.File != "models.toml and base.toml" || !slices.Contains(unknown.Names, "deep") {
		t.Errorf("got %v", err)
	}
	var sweep *UnknownSweep
	if _, err := f.Sweep("none"); !errors.As(err, &sweep) || len(sweep.Names) != 2 {
		t.Errorf("got %v", err)
	}

	broken, err := Load("base.toml", []byte("[model.a]\nencoder = [{ kind = \"dense\", units = 0 }]\n"))
	fatal.If(t, err)
	f = load(t, "[model.m]\nextends = \"a\"\n[model.a]\nextends = \"a\"\n")
	f.Extend(broken)
	for _, name := range []string{"m", "a"} {
		expect.Error(t, expect.Err(f.Model(name)), "base.toml:2:", name)
	}
}

// An inherited part that does not suit the model is written in the base, which its author may not be able to change.
func TestAnErrorInAnInheritedPartNamesTheModelToChange(t *testing.T) {
	base, err := Load("base.toml", []byte(`
[model.parts]
encoder = [{ kind = "dense", units = 4 }]
decoder = [{ kind = "tied", weight = "encoder.0.weight" }]
hook.revive = {}
`))
	fatal.If(t, err)
	const (
		mine   = "\n[model.mine]\nextends = \"parts\"\n"
		deep   = "encoder = [{ kind = \"unrolled\", units = 4, steps = 2 }, { kind = \"dense\", units = 4 }]\n"
		moved  = "encoder = [{ kind = \"flatten\" }, { kind = \"dense\", units = 4 }]\n"
		source = "[model.mine] (models.toml:2:8) inherits this from model \"parts\""
	)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a hook": {mine + deep, []string{`base.toml:5:15: model "mine": hook.revive: `, source + ": write hook.revive = false there to leave it out"}},
		"a list": {mine + moved, []string{"base.toml:4:", source + ": declare the list `decoder` there, it replaces the inherited one"}},
		"two levels": {mine + deep + "[model.heir]\nextends = \"mine\"\n", []string{source + ": write",
			"[model.heir] (models.toml:5:8) inherits this from model \"parts\": write hook.revive = false there"}},
	} {
		f := load(t, c.text)
		f.Extend(base)
		err = f.Check()
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error()+"\n", want) {
				t.Errorf("%s: got %v, want %q", name, err, want)
			}
		}
	}

	f := load(t, mine+"encoder = [{ kind = \"dense\", units = 5 }]\n")
	f.Extend(base)
	fatal.If(t, f.Check())
	change := `encoder=[{ kind = "unrolled", units = 4, steps = 2 }, { kind = "dense", units = 4 }]`
	if _, err = f.Model("mine", parseSets(t, []string{change})...); err == nil || strings.Contains(err.Error(), "inherits this") {
		t.Errorf("got %v, want an error of the change alone", err)
	}
}

// The kind of the data set is inherited, its file is not.
func TestAnErrorOfADataSetStandsAtTheTableThatNamesItsFile(t *testing.T) {
	f := load(t, `[model.base]
dataset = { grammar = 9, length = 4, tokens = "words" }
encoder = [{ kind = "embedding", vocabulary = 99, units = 4 }]
[model.mine]
extends = "base"
dataset = { file = "b.csv", text = "t", tokens = "words" }
`)
	for name, line := range map[string]int{"base": 2, "mine": 6} {
		m, err := f.Model(name)
		fatal.If(t, err)
		expect.Equal(t, m.InDataset("is missing").At.Place().Line, line, name)
	}
}

// A folder as a data set has a slash at its end.
func TestAFolderWithoutASlashIsNoUnknownName(t *testing.T) {
	t.Chdir(t.TempDir())
	const text = "[model.m]\ndataset = \"topic\"\nencoder = [{ kind = \"dense\", units = 3 }]\n"
	expect.Error(t, load(t, text).Check(), `did you mean "topics"?`)
	fatal.If(t, os.Mkdir("topic", 0o700))
	expect.Error(t, load(t, text).Check(), `a folder is written with a slash at its end: "topic/"`)
}

func TestUnsupportedNamesAreNoParts(t *testing.T) {
	for _, v := range language.Vocabularies {
		for _, name := range v.Names() {
			if _, lacking := lacks[plainName(name)]; lacking {
				t.Errorf("%s: %q is registered, but messages call it unsupported", v.Title, name)
			}
		}
	}
}
