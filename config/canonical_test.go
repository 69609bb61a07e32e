package config

import (
	"fmt"
	"strings"
	"testing"

	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/layers"
)

const canonicalText = `
[model.m]
about = "a line"
dataset = { name = "bars", count = 100 }
encoder = [{ kind = "dense", units = 6, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl", weight = 0.001 }]
train = { epochs = 4 }
`

func canonical(t *testing.T, text string, sets ...string) string {
	t.Helper()
	f, err := Load("models.toml", []byte(text))
	fatal.If(t, err)
	var changes []Set
	for _, s := range sets {
		set, err := ParseSet(s)
		fatal.If(t, err)
		changes = append(changes, set)
	}
	m, err := f.Model("m", changes...)
	fatal.If(t, err)
	again, err := Load("config.toml", m.Text())
	fatal.If(t, err)
	filled, err := again.Model("m")
	fatal.If(t, err)
	if a, b := m.Canonical(), filled.Canonical(); string(a) != string(b) {
		t.Errorf("the filled text has another canonical text:\n%s\n%s", a, b)
	}
	return string(m.Canonical())
}

func TestTheCanonicalTextHasNoDefaults(t *testing.T) {
	want := `"m" { dataset = { count = 100, name = "bars" }, decoder = [{ kind = "dense", units = 64 }], ` +
		`encoder = [{ activation = "sigmoid", kind = "dense", units = 6 }], loss = [{ kind = "mse" }, { kind = "kl", weight = 0.001 }], train = { epochs = 4 } }`
	got := strings.TrimSpace(canonical(t, canonicalText))
	expect.Equal(t, got, want)
	for set, equal := range map[string]bool{
		`about="another line"`: true, `train.batch=128`: true, `optimizer.kind="adam"`: true, `optimizer.learning_rate=1e-3`: true,
		`optimizer.schedule.kind="constant"`: true, `loss.1.on="code"`: true, `encoder.0.bias=true`: true, `loss.1.weight=1e-3`: true,
		`train.batch=64`: false, `optimizer.kind="sgd"`: false, `optimizer.schedule.kind="cosine"`: false, `encoder.0.bias=false`: false,
		`loss.1.target=0.3`: false, `dataset.validation=0.2`: false, `hook.average.decay=0.9`: false,
	} {
		if other := strings.TrimSpace(canonical(t, canonicalText, set)); (other == want) != equal {
			t.Errorf("%s: got %s", set, other)
		}
	}
}

// later is a later version of a layer, with one more setting.
type later struct {
	layers.Layer
	Old int `toml:"old"`
}

type laterStill struct {
	layers.Layer
	Old   int         `toml:"old"`
	New   float64     `toml:"new"`
	Inner layers.Init `toml:"init"`
}

func TestANewSettingWithADefaultChangesNoCanonicalText(t *testing.T) {
	text := func(l layers.Layer, fresh func() layers.Layer) string {
		r := part.New[layers.Layer]("layer")
		r.Register("later", "", fresh)
		inits := table.Words("inits", layers.Inits, nil)
		w := &table.Writer{Language: &table.Language{Vocabularies: []*table.Vocabulary{table.Words("layers", r, Layer{}), inits}}}
		n, err := w.Departures(&Layer{Kind: "later", Layer: l}, &Layer{})
		fatal.If(t, err)
		return n.String()
	}
	init := func() layers.Init { return &layers.Normal{Stddev: 0.1} }
	before := text(&later{Old: 7}, func() layers.Layer { return &later{Old: 1} })
	after := text(&laterStill{Old: 7, New: 0.5, Inner: init()}, func() layers.Layer { return &laterStill{Old: 1, New: 0.5, Inner: init()} })
	if want := `{ kind = "later", old = 7 }`; before != want || after != want {
		t.Errorf("got %s before and %s after, want %s", before, after, want)
	}
}

// The canonical texts of all shipped models differ. The canonical text of a model equals that of its filled text.
func TestShippedModelsHaveCanonicalTexts(t *testing.T) {
	texts := map[string]string{}
	f, err := Load("models.toml", shipped(t))
	fatal.If(t, err)
	for _, name := range f.Names() {
		m, err := f.Model(name)
		fatal.If(t, err)
		text := string(m.Canonical())
		if other, ok := texts[text]; ok {
			t.Errorf("%s and %s: %s", name, other, text)
		}
		texts[text] = name
		again, err := Load("config.toml", m.Text())
		fatal.If(t, err)
		filled, err := again.Model(name)
		fatal.If(t, err, fmt.Errorf("%s: %w", name, err))
		expect.Equal(t, string(filled.Canonical()), text, name, "of its filled text")
	}
}
