package config

import (
	"strings"
	"testing"

	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

const hooked = `
[model.m]
encoder = [{ kind = "dense", units = 4 }]
[model.m.hook.average]
decay = 0.5
[model.n]
extends = "m"
[model.n.hook.early_stopping]
patience = 3
`

func TestHooksAreTablesByTheirRegisteredName(t *testing.T) {
	f := load(t, hooked)
	m := model(t, f, "n", "hook.average.decay=0.25")
	if len(m.Hooks) != 2 || m.Hooks["average"].(*hooks.Average).Decay != 0.25 || m.Hooks["early_stopping"].(*hooks.EarlyStopping).Patience != 3 {
		t.Errorf("got %+v", m.Hooks)
	}
	checkFillRoundTrip(t, m)
	expect.Contains(t, string(m.Text()), "\n[model.n.hook.average]\ndecay = 0.25\n\n[model.n.hook.early_stopping]\npatience = 3\n", "filled")
	for old, now := range map[string]string{
		"[model.m.hook.average]": "[model.m.hook.avarage]", "decay = 0.5": "decay = 5", "patience = 3": "patients = 3",
	} {
		if err := load(t, strings.Replace(hooked, old, now, 1)).Check(); err == nil {
			t.Errorf("%s is taken", now)
		} else {
			t.Log(err)
		}
	}
}

// false removes an inherited hook, whatever its name, also once more, and a hook of a known kind that there is not. A name that is
// neither is misspelt.
func TestFalseRemovesAHookButNotAMisspeltOne(t *testing.T) {
	const text = `
[model.m]
encoder = [{ kind = "dense", units = 4 }]
hook    = { average = { decay = 0.5 }, again = { kind = "plateau" } }
[model.n]
extends = "m"
hook    = { again = false, average = false }
[model.o]
extends = "n"
hook    = { again = false, revive = false }
`
	f := load(t, text)
	for _, name := range []string{"n", "o"} {
		if m := model(t, f, name); len(m.Hooks) != 0 {
			t.Errorf("%s has the hooks %v", name, m.Hooks)
		}
	}
	if m := model(t, f, "m", "hook.again=false"); len(m.Hooks) != 1 || m.Hooks["average"] == nil {
		t.Errorf("got the hooks %v", m.Hooks)
	}
	misspelt := strings.Replace(text, "again = false, average = false", "avarage = false", 1)
	if err := load(t, misspelt).Check(); err == nil || !strings.Contains(err.Error(), `unknown hook "avarage"`) || !strings.Contains(err.Error(), `did you mean "average"?`) {
		t.Errorf("got %v", err)
	}
}

func TestHooksThatCannotWorkAreRefusedAtTheirTables(t *testing.T) {
	const text = `[model.m]
encoder = [{ kind = "dense", units = 4 }]
[model.m.hook.HOOK]
KEY
`
	for _, c := range []struct{ hook, key, set, want string }{
		{"prune", "fraction = 0.5\non = \"nothing\"", "", "models.toml:5:6: model \"m\": hook.prune: on: \"nothing\" matches no parameter"},
		{"prune", "from = 200\nfraction = 0.5", "", "models.toml:4:8: model \"m\": hook.prune: from: the phase begins after epoch 200"},
		{"prune", "rate = 0.5", "", "nothing to prune: set fraction or threshold"},
		{"teacher", "decay = 0.5", "optimizer = { kind = \"lbfgs\" }\n", "model \"m\": hook.teacher: lbfgs has no mini-batch steps to average"},
		{"revive", "every = 5", "optimizer = { kind = \"lbfgs\" }\n", "model \"m\": hook.revive: lbfgs cannot continue from re-initialised weights"},
	} {
		written := strings.NewReplacer("HOOK", c.hook, "KEY", c.key, "[model.m.hook", c.set+"[model.m.hook").Replace(text)
		expect.Error(t, load(t, written).Check(), c.want, c.hook)
	}
}

// between is a hook whose stage lies between two other stages.
type between struct{ at hooks.Stage }

func (between) Attach(hooks.Training) (*hooks.Active, error) { return nil, nil }
func (b between) Stage() hooks.Stage                         { return b.at }

func TestHooksAreInTheOrderOfTheirStages(t *testing.T) {
	const text = `[model.m]
encoder = [{ kind = "pado" }, { kind = "dense", units = 4 }]
[model.m.hook]
early_stopping = {}
prune = { fraction = 0.1 }
prune-2 = { kind = "prune", fraction = 0.1 }
dense = { kind = "prune", fraction = 0.1 }
adversarial = { epsilon = 0.1 }
average = { decay = 0.9 }
teacher = { decay = 0.9 }
plateau = { patience = 3 }
`
	m := model(t, load(t, text), "m")
	m.Hooks["afterwards"], m.Hooks["zealous"], m.Hooks["first"] = between{hooks.Follow + 1}, between{hooks.Distort - 1}, between{1}
	got := lists.Map(m.AllHooks(), func(h Hook) string { return h.Name })
	want := []string{"first", "decomposition", "dense", "prune", "prune-2", "zealous", "adversarial", "average", "afterwards", "early_stopping", "plateau", "teacher"}
	expect.Slice(t, got, want)
	m = model(t, load(t, hooked), "n")
	if got := m.AllHooks(); len(got) != 2 || got[0].Name != "average" {
		t.Errorf("got %v", got)
	}
}

// A hook that the first layer needs may be declared explicitly, to change its settings.
func TestAHookOfTheFirstLayerIsThereOnce(t *testing.T) {
	const text = `[model.m]
encoder = [{ kind = "amd" }, { kind = "dense", units = 4 }]
`
	for set, cached := range map[string]bool{"train.epochs=3": true, "hook.decomposition.cache=false": false} {
		m := model(t, load(t, text), "m", set)
		if list := m.AllHooks(); len(list) != 1 || list[0].Name != "decomposition" || list[0].Hook.(*hooks.Decomposition).Cache != cached {
			t.Errorf("%s: got %v", set, list)
		}
		if written := strings.Contains(string(m.Text()), "decomposition"); !written {
			t.Errorf("%s: filled to\n%s", set, m.Text())
		}
	}
}

func TestDifferencesNameEveryKey(t *testing.T) {
	f := load(t, hooked)
	was := model(t, f, "n")
	if d := Differences(was, model(t, f, "n")); len(d) > 0 {
		t.Errorf("equal declarations differ: %v", d)
	}
	is := model(t, f, "n", "hook.average.decay=0.25", "train.seed=7", `loss=[{kind="mse"},{kind="l1",weight=0.5}]`)
	got := lists.Map(Differences(was, is), func(d Difference) string { return d.String() })
	want := []string{"hook.average.decay: got 0.25, want 0.5", `loss.1.kind: got "l1", want nothing`, `loss.1.on: got "code", want nothing`,
		"loss.1.weight: got 0.5, want nothing", "train.seed: got 7, want 1"}
	expect.Slice(t, got, want)
	if d := Differences(is, was); d[1].String() != `loss.1.kind: got nothing, want "l1"` {
		t.Errorf("got %v", d[1])
	}
}

// Adversarial examples maximise the error of the output. Without a loss that measures this error they cannot be
// computed.
func TestAnAttackWithoutAnErrorIsRefused(t *testing.T) {
	classes := strings.Replace(headed, `layers = [{ kind = "dense" }]`, `layers = [{ kind = "dense", units = 10 }]`, 1)
	const plain = `
[model.m]
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "mse" }, { kind = "l1" }]
`
	const views = `
[model.m]
encoder = [{ kind = "dense", units = 4 }]
decoder = []
loss = [{ kind = "nt_xent", on = "code" }]
[[model.m.view]]
augment = ["flip"]
`
	const none = "no loss compares the output with the images"
	for name, c := range map[string]struct{ text, table, want string }{
		"a classifier":        {classes, "hook.adversarial", ""},
		"an unknown head":     {classes, "hook.adversarial]\non = \"nose\"", "hook.adversarial: on: got \"nose\", want a head that a loss compares with the labels: one of \"class\""},
		"kl from the image":   {classes, "hook.adversarial]\nobjective = \"kl\"", "hook.adversarial: attack: random_start: "},
		"an unread output":    {strings.Replace(plain, `{ kind = "mse" }, `, "", 1), "hook.adversarial", none},
		"views alone":         {views, "hook.adversarial", "model \"m\": hook.adversarial: no loss reads the images, only their views"},
		"a loss of an output": {plain, "hook.adversarial", ""},
	} {
		head, rest, _ := strings.Cut(c.table, "]")
		err := load(t, c.text+"\n[model.m."+head+"]\nepsilon = 0.05"+rest+"\n").Check()
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || c.want == "" || strings.Count(err.Error(), "model \"m\"") != 1 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want only %q", name, err, c.want)
		}
	}
}

// Attacks use the head of a classifier and the output of an auto-encoder.
func TestTheAttackedHeadIsTheOneThatIsComparedWithLabels(t *testing.T) {
	classes := strings.Replace(headed, `layers = [{ kind = "dense" }]`, `layers = [{ kind = "dense", units = 10 }]`, 1)
	const plain = "[model.m]\nencoder = [{ kind = \"dense\", units = 4 }]\n"
	for text, want := range map[string]string{classes: "class", plain: ""} {
		m, err := load(t, text+"\n[model.m.hook.adversarial]\nepsilon = 0.05\n").Model("m")
		fatal.If(t, err)
		expect.Equal(t, m.Hooks["adversarial"].(*hooks.Adversarial).On, want, "attacks")
	}
}

func TestHooksThatReadTermsNameThem(t *testing.T) {
	const text = `
[model.m]
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "mse" }, { kind = "l1", weight = 0.1 }]
hook.surgery = TERMS
`
	for terms, want := range map[string]string{
		`{}`:                         "",
		`{ terms = ["l1", "mse"] }`:  "",
		`{ terms = ["l1", "msse"] }`: `hook.surgery: terms: the model has no loss term "msse"`,
		`{ terms = ["l1"] }`:         `hook.surgery: terms: got 1, want at least 2 loss terms`,
		`{ terms = ["l1", "l1"] }`:   `hook.surgery: terms: got 1, want at least 2 loss terms`,
		`{ terms = 1 }`:              `hook.surgery: terms`,
	} {
		err := load(t, strings.Replace(text, "TERMS", terms, 1)).Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %s", terms, err, want)
		}
	}
	one := strings.Replace(strings.Replace(text, "TERMS", "{}", 1), `, { kind = "l1", weight = 0.1 }`, "", 1)
	expect.Error(t, load(t, one).Check(), "at least 2", "one term")
}
