package config

import (
	"strings"
	"sync"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

const headed = `
[model.m]
dataset = "fashion-mnist"
encoder = [{ kind = "dense", units = 12, activation = "sigmoid" }]
decoder = []
loss    = [{ kind = "cross_entropy", on = "class" }, { kind = "kl", on = "hidden", target = 0.2 }]

[model.m.head.class]
from   = "hidden"
layers = [{ kind = "dense" }]

[model.m.head.hidden]
layers = [{ kind = "dense", units = 7, activation = "sigmoid" }]
`

func TestHeadsComputeValuesFromValues(t *testing.T) {
	m := model(t, load(t, headed), "m")
	l, err := m.Layout([]int{28, 28})
	fatal.If(t, err)
	expect.Slice(t, l.Values(), []string{"code", "hidden", "class"}, "values")
	if l.Size("class") != 10 || l.Size("hidden") != 7 || l.Size("output") != 0 {
		t.Errorf("sizes: class %d, hidden %d, output %d", l.Size("class"), l.Size("hidden"), l.Size("output"))
	}
	paths := lists.Map(l.Parameters(), func(p ParameterPath) string { return p.Path })
	want := []string{"encoder.0.weight", "encoder.0.bias", "head.hidden.0.weight", "head.hidden.0.bias", "head.class.0.weight", "head.class.0.bias"}
	expect.Slice(t, paths, want, "parameters")
	if text := string(m.Text()); !strings.Contains(text, "decoder = []") || !strings.Contains(text, "units = 10") {
		t.Errorf("the filled text lacks the empty decoder or the number of classes:\n%s", text)
	}
	checkFillRoundTrip(t, m)
}

func TestWrongHeadsAreReportedWhereTheyAre(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"a value that there is not":  {`from   = "hidden"`, `from = "hiden"`, `models.toml:9:8: model "m": head.class: from: unknown value "hiden"`},
		"a cycle":                    {"[model.m.head.hidden]", "[model.m.head.hidden]\nfrom = \"class\"", `head.class: from: a cycle: class -> hidden -> class`},
		"a name that is taken":       {"head.hidden", "head.output", `head.output: invalid name "output" of a head`},
		"read by nothing":            {`{ kind = "cross_entropy", on = "class" }, `, "", `head.class: no loss reads the head "class"`},
		"no such value of a loss":    {`on = "class"`, `on = "clas"`, `loss[0] (cross_entropy): on: there is no column or value "clas"`},
		"parameters of a loss":       {`{ kind = "kl", on = "hidden", target = 0.2 }`, `{ kind = "l2", on = "encoder.*.weight" }`, `it names parameters, which these losses read: "asymmetric_decay", "atom_spread", `},
		"labels that there are not":  {`"fashion-mnist"`, `"swimmer"`, `loss[0] (cross_entropy): cross_entropy needs labels, but swimmer has none`},
		"too few classes":            {`layers = [{ kind = "dense" }]`, `layers = [{ kind = "dense", units = 9 }]`, `on: "class" has 9 values, but fashion-mnist has 10 classes`},
		"a range that does not suit": {`units = 7, activation = "sigmoid"`, `units = 7`, `loss[1] (kl): kl needs values in [0,1]`},
		"an output without decoder":  {`{ kind = "kl", on = "hidden", target = 0.2 }`, `{ kind = "mse" }`, `mse reads the output, but the model has no decoder`},
		"views that there are not":   {`{ kind = "kl", on = "hidden", target = 0.2 }`, `{ kind = "nt_xent", on = "hidden" }`, `nt_xent compares the two views of each image, but the model has none`},
		"lbfgs":                      {"decoder = []", "decoder = []\noptimizer = { kind = \"lbfgs\" }", `loss[0] (cross_entropy): cross_entropy needs the whole batch in one piece`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(headed, c.old, c.new)
			if text == headed {
				t.Fatal("nothing was changed")
			}
			err := load(t, text).Check()
			expect.Error(t, err, c.want)
		})
	}
}

// Computing a layout does not change the declaration. The race detector checks this with concurrent calls.
func TestManyGoroutinesAskForLayoutsOfOneModel(t *testing.T) {
	text := strings.Replace(headed, "decoder = []", `decoder = [{ kind = "dense" }]`, 1)
	text = strings.Replace(text, "loss    = [", `loss    = [{ kind = "mse" }, `, 1)
	m := model(t, load(t, text), "m")
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			side := 10 + i
			l, err := m.Layout([]int{side, side})
			if err != nil {
				t.Error(err)
			} else if got := l.Size("output"); got != side*side {
				t.Errorf("images of %d pixels: the output has %d values", side*side, got)
			}
		})
	}
	wait.Wait()
}

func TestALayerDoesNotReadLabelsThatThereAreNot(t *testing.T) {
	err := load(t, `[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }]
decoder = []
head.of = { from = "labels", layers = [{ kind = "embedding", vocabulary = 4, units = 4 }, { kind = "flatten" }] }
loss    = [{ kind = "contrastive", on = "code", with = "of" }]
`).Check()
	expect.Error(t, err, `models.toml:5:20: model "m": head.of: from: reads labels, but bars has none`)
}

func TestFilesAreNotReadByWrongSettings(t *testing.T) {
	for _, scale := range []string{`"Standardise"`, `["log", 2]`, `true`} {
		text := `[model.m]
dataset = { name = "csv", file = "testdata/columns.csv", labels = "lab", scale = ` + scale + ` }
encoder = [{ kind = "dense", units = 4 }]
decoder = []
head    = { class = { layers = [{ kind = "dense" }] } }
loss    = [{ kind = "cross_entropy", on = "class" }]
`
		if err := load(t, text).Check(); err == nil || !strings.Contains(err.Error(), "scale") || strings.Contains(err.Error(), "units") {
			t.Errorf("scale = %s: got %v, want an error about the scale alone", scale, err)
		}
	}
}
