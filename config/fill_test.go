package config

import (
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"

	"tessera/attack"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
)

// shipped returns the text of the project's models.toml.
func shipped(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../models.toml")
	fatal.If(t, err)
	return text
}

func load(t testing.TB, text string) *File {
	t.Helper()
	f, err := Load("models.toml", []byte(text))
	fatal.If(t, err)
	return f
}

// model returns one model of a file, changed by --set arguments.
func model(t testing.TB, f *File, name string, arguments ...string) *Model {
	t.Helper()
	m, err := f.Model(name, parseSets(t, arguments)...)
	fatal.If(t, err)
	return m
}

func parseSets(t testing.TB, arguments []string) []Set {
	t.Helper()
	var sets []Set
	for _, a := range arguments {
		s, err := ParseSet(a)
		fatal.If(t, err)
		sets = append(sets, s)
	}
	return sets
}

// declared returns a model without positions, folders and other fields that are not part of the declaration.
func declared(m *Model) Model {
	d := *m.sized(m.layout)
	d.Extends, d.origin, d.dirs, d.tree, d.layout = "", nil, nil, nil, nil
	return d
}

func checkFillRoundTrip(t *testing.T, m *Model) {
	t.Helper()
	text := m.Text()
	f, err := Load("config.toml", text)
	fatal.If(t, err, text)
	if names := f.Names(); len(names) != 1 || names[0] != m.Name {
		t.Fatalf("the filled text of %q declares %q", m.Name, names)
	}
	again, err := f.Model(m.Name)
	fatal.If(t, err, text)
	if !reflect.DeepEqual(declared(m), declared(again)) {
		t.Errorf("the filled text declares another model:\n%s\nthan\n%s", text, again.Text())
	}
	expect.Equal(t, string(text), string(again.Text()), "filled again, the text differs")
}

func TestEveryShippedModelIsSoundAndItsFilledTextIsTheSameModel(t *testing.T) {
	f := load(t, string(shipped(t)))
	fatal.If(t, f.Check())
	expect.Equal(t, f.Names()[0], "swimmer-parts", "the first model")
	for _, name := range f.Names() {
		m := model(t, f, name)
		if m.About == " " {
			t.Errorf("%s has no description", name)
		}
		checkFillRoundTrip(t, m)
	}
}

func TestFilledTextKeepsStrangeNamesAndStrings(t *testing.T) {
	for _, name := range []string{"a b", "ü", `quote"back\slash`, " ", "no\u00a0break", "a.b"} {
		m := model(t, load(t, "[model."+table.StringText(name)+"]\nabout = "+table.StringText(name+"\r\n\x01")+"\nencoder = [{ kind = \"dense\", units = 2 }]\n"), name)
		checkFillRoundTrip(t, m)
	}
}

// TestFilledTextIsTheSameModelForRandomSettings sets every key of every registered part at random.
func TestFilledTextIsTheSameModelForRandomSettings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	models := 100
	if testing.Short() {
		models = 20
	}
	for range models {
		m := randomModel(r)
		text := m.Text()
		f, err := Load("config.toml", text)
		fatal.If(t, err, text)
		again := &Model{Name: m.Name}
		d := &table.Decoder{Language: language}
		d.Decode(f.models.Child(m.Name), again, "")
		if !reflect.DeepEqual(declared(m), declared(again)) {
			t.Fatalf("the filled text\n%s\nis read as\n%s%v", text, again.Text(), table.Report(d.Found))
		}
	}
}

// randomModel returns a model with a part of every kind. Each part has random settings.
func randomModel(r *rand.Rand) *Model {
	m := &Model{Name: "random", Kind: Autoencoder, About: randomString(r)}
	for _, v := range language.Vocabularies {
		for _, name := range v.Names() {
			part, _ := v.New(name)
			scatter(r, table.Fields(part))
			if v.Around == nil || v.Around == reflect.TypeFor[Model]() {
				continue
			}
			around := reflect.New(v.Around)
			for i := range v.Around.NumField() {
				if v.Around.Field(i).Tag.Get("part") != "" {
					around.Elem().Field(i).Set(reflect.ValueOf(part))
				}
			}
			if d, ok := around.Interface().(interface{ Defaults() }); ok {
				d.Defaults()
			}
			own := language.FieldsOf(around.Interface(), "")
			own[0].Value.SetString(name)
			scatter(r, own[1:])
			switch x := around.Elem().Interface().(type) {
			case Layer:
				m.Encoder, m.Decoder = append(m.Encoder, x), append(m.Decoder, x)
			case Loss:
				m.Losses = append(m.Losses, x)
			case Constraint:
				m.Constraints = append(m.Constraints, x)
			case Schedule:
				m.Optimizer.Schedule = choose(r, m.Optimizer.Schedule, x)
			case Optimizer:
				schedule := m.Optimizer.Schedule
				m.Optimizer = choose(r, m.Optimizer, x)
				if schedule.Kind != "" {
					m.Optimizer.Schedule = schedule
				}
			case Dataset:
				m.Dataset = choose(r, m.Dataset, x)
			}
		}
	}
	scatter(r, language.FieldsOf(&m.Train, Autoencoder))
	return m
}

// choose returns a or b at random. If a is zero, it returns b.
func choose[T any](r *rand.Rand, a, b T) T {
	if reflect.ValueOf(a).IsZero() || r.IntN(2) == 0 {
		return b
	}
	return a
}

// scatter sets the fields to random values that their tags allow.
func scatter(r *rand.Rand, fields []table.Field) {
	numbers := []float64{0, 1, 2, 3, 0.1, 1. / 3, -0.25, 5e-324, 1e-7, 123456789, math.MaxFloat32, 1e300}
	for _, f := range fields {
		switch x := f.Value.Addr().Interface().(type) {
		case *data.Validation:
			*x = data.Validation{Fraction: r.Float64()}
			continue
		case *[]int:
			*x = []int{1 + r.IntN(9), 1 + r.IntN(9)}
			continue
		case *[]layers.Layer:
			for range 1 + r.IntN(2) {
				names := layers.Registry.Names()
				e, _ := layers.Registry.Lookup(names[r.IntN(len(names))])
				part := e.New()
				scatter(r, table.Fields(part))
				*x = append(*x, part)
			}
			continue
		}
		switch choices := f.Choices(); {
		case choices != nil:
			f.Value.SetString(choices[r.IntN(len(choices))])
		case f.Value.Kind() == reflect.String:
			f.Value.SetString(randomString(r))
		case f.Value.Kind() == reflect.Bool:
			f.Value.SetBool(r.IntN(2) == 0)
		case f.Value.Kind() == reflect.Interface:
			v := language.Vocabularies[slices.IndexFunc(language.Vocabularies, func(v *table.Vocabulary) bool { return v.Holds(f.Value.Type()) })]
			names := v.Names()
			part, _ := v.New(names[r.IntN(len(names))])
			scatter(r, table.Fields(part))
			f.Value.Set(reflect.ValueOf(part))
		case f.Value.Kind() != reflect.Struct:
			for range 50 {
				n := numbers[r.IntN(len(numbers))]
				if f.Value.CanFloat() && f.SetNumber(n) || f.SetNumber(int64(min(n, 1e9))) {
					break
				}
			}
		}
	}
}

func randomString(r *rand.Rand) string {
	runes := []rune("abc \"'\\\n\t\r\x00\x7f=#[]{}.é✓")
	text := lists.Of(1+r.IntN(12), func(int) rune { return runes[r.IntN(len(runes))] })
	return string(text)
}

// A declaration that has the keys of the attack in the table of the hook, as older runs do, means the same as one with a table of the
// attack; a change by either spelling replaces the other. fgsm has no keys of pgd. Naming the attack that is there keeps its settings.
func TestAFormerSpellingOfAnAttackMeansTheSame(t *testing.T) {
	f := load(t, `
[model.m]
encoder = [{ kind = "dense", units = 4 }]
hook.adversarial = { steps = 20, step_size = 0.01 }
[model.n]
extends = "m"
hook.adversarial = { method = "pgd" }
[model.o]
extends = "m"
hook.adversarial.attack = { kind = "pgd", random_start = true }
[model.p]
encoder = [{ kind = "dense", units = 4 }]
hook.mine = { kind = "adversarial", method = "fgsm", random_start = false, epsilon = 0.1 }
`)
	pgd := func(steps int, size float64, random bool) attack.Attack {
		return &attack.PGD{Steps: steps, StepSize: size, RandomStart: random}
	}
	for _, c := range []struct {
		model string
		sets  []string
		want  attack.Attack
	}{
		{"m", nil, pgd(20, 0.01, false)}, {"n", nil, pgd(20, 0.01, false)}, {"o", nil, pgd(20, 0.01, true)}, {"m", []string{"hook.adversarial.method=pgd"}, pgd(20, 0.01, false)},
		{"n", []string{"hook.adversarial.method=fgsm"}, &attack.FGSM{}}, {"n", []string{"hook.adversarial.attack=fgsm"}, &attack.FGSM{}},
		{"o", []string{"hook.adversarial.steps=3", "hook.adversarial.attack.step_size=0.5"}, pgd(3, 0.5, true)},
		{"o", []string{`hook.adversarial={ method = "fgsm" }`}, &attack.FGSM{}},
	} {
		m := model(t, f, c.model, c.sets...)
		text := string(m.Text())
		for _, at := range []*Model{m, model(t, load(t, text), c.model)} {
			if got := at.Hooks["adversarial"].(*hooks.Adversarial).Attack; !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s %q: got %+v, want %+v\n%s", c.model, c.sets, got, c.want, text)
			}
		}
	}
	if h := model(t, f, "p").Hooks["mine"].(*hooks.Adversarial); !reflect.DeepEqual(h.Attack, &attack.FGSM{}) || h.Epsilon != 0.1 {
		t.Errorf("got %+v", h)
	}
	expect.Error(t, expect.Err(f.Model("n", parseSets(t, []string{"hook.adversarial.method=fgsm", "hook.adversarial.steps=3"})...)), `unknown key "steps"`)
}
