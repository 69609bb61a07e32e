package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// drawing returns a model with the drawn columns that columns declares. The model reads all of them except "unread".
func drawing(t *testing.T, columns string) (*Model, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.csv")
	fatal.If(t, os.WriteFile(path, []byte("a,b,w\n1,2,0.5\n3,4,0.25\n"), 0o600))
	f, err := Load("models.toml", []byte(fmt.Sprintf(`
[model.m]
dataset = { name = "csv", file = %q, columns = { weight = "w" } }
encoder = [{ kind = "dense", units = 3 }]
decoder = []
head.y  = { from = "noise", layers = [{ kind = "dense" }] }
loss    = [{ kind = "mse", on = "y", against = "target", mask = "mask", sample_weight = "weight" }]
%s
`, path, columns)))
	if err != nil {
		return nil, err
	}
	return f.Model("m")
}

const (
	drawnNoise  = "column.noise = { kind = \"normal\", shape = [2, 2] }\n"
	drawnTarget = "column.target = { kind = \"other\" }\n"
	drawnMask   = "column.mask = { kind = \"bernoulli\", like = \"images\" }\n"
)

func TestDrawnColumnsHaveTheirShapes(t *testing.T) {
	m, err := drawing(t, drawnNoise+drawnTarget+drawnMask)
	fatal.If(t, err)
	l, err := m.Layout([]int{2})
	fatal.If(t, err)
	for name, want := range map[string]string{"noise": "[2 2]float32", "target": "[2]float32", "mask": "[2]whole"} {
		if c, ok := l.Column(name); !ok || !c.Drawn || fmt.Sprint(c.Shape, c.Type) != want {
			t.Errorf("%s: got %v, want %s", name, c, want)
		}
	}
	if l.Size("y") != 2 { // the same number of values as the target
		t.Errorf("y has %d values", l.Size("y"))
	}
	if need := m.Dataset.Need(); fmt.Sprint(need.Columns) != "[weight]" || len(m.Columns()) != 1 {
		t.Errorf("the files have to hold %v", need.Columns)
	}
	if again, err := m.With(); err != nil || string(again.Text()) != string(m.Text()) || !strings.Contains(string(m.Text()), "[model.m.column.noise]") {
		t.Errorf("%v:\n%s", err, m.Text())
	}
	behind := m.BehindDrawn([]data.Column{{Name: "noise", Drawn: true}, {Name: "target", Drawn: true}, {Name: "weight"}})
	if len(behind) != 2 || behind[0].Name != "images" || behind[1].Name != "weight" {
		t.Errorf("what must be there: %v", behind)
	}
}

func TestDrawnColumnsThatDoNotFitAreLocated(t *testing.T) {
	for _, c := range []struct{ columns, want, hint string }{
		{strings.Replace(drawnTarget, `"other"`, `"other", of = "wieght"`, 1), `8:40: model "m": column.target (other): of: there is no column "wieght"`, `"weight"`},
		{strings.Replace(drawnTarget, `"other"`, `"others"`, 1), `column.target: unknown kind "others"`, `"other"`},
		{drawnTarget + "column.weight = { kind = \"constant\" }", `invalid name "weight" of a drawn column: the data set has a column of this name`, ""},
		{drawnTarget + "column.code = { kind = \"constant\" }", `invalid name "code" of a drawn column: the name is reserved`, ""},
		{drawnTarget + "column.y = { kind = \"constant\" }", `invalid name "y" of a head: a drawn column has this name`, ""},
		{drawnTarget + "column.unread = { kind = \"constant\" }", `column.unread (constant): nothing reads the drawn column "unread"`, "from of a head"},
		{drawnTarget + "column.level = {}", `column.level: missing key "kind"`, ""},
		{"", `there is no column or value "target"`, `"images"`},
	} {
		_, err := drawing(t, c.columns+"\n"+drawnNoise+drawnMask)
		expect.Error(t, err, c.want, c.columns)
		expect.Error(t, err, c.hint, c.columns)
	}
}

// The declaration of a run is read without the shape of its samples. Parameters that layers share are then unknown,
// which is not an error.
func TestSharedLayersOfARun(t *testing.T) {
	f, err := Load("config.toml", []byte(`
[model.m]
encoder = [{ kind = "dense", units = 3 }]
column.noise = { kind = "normal", shape = [1024] }
head.y = { from = "noise", layers = [{ kind = "dense", units = 3, share = "encoder.0" }] }
loss = [{ kind = "mse" }, { kind = "l1", on = "y" }]
`))
	fatal.If(t, err)
	f.Trained = true
	m, err := f.Model("m")
	fatal.If(t, err)
	expect.NoError(t, expect.Err(m.Layout([]int{32, 32})))
	expect.AnyError(t, expect.Err(m.Layout([]int{2})), "a layer shares parameters of another shape")
}

// A drawn column that has the shape of samples with holes reads none of their values, one of other samples does.
func TestOnlyTheValuesOfSamplesWithHolesAreRefused(t *testing.T) {
	const text = `
[model.m]
dataset = { name = "bars", hide = 0.1 }
encoder = [{ kind = "add", value = "drawn" }, { kind = "dense", units = 3 }]
column.drawn = { kind = "normal", like = "images" }
`
	expect.NoError(t, load(t, text).Check())
	expect.Error(t, load(t, strings.Replace(text, `"normal", like =`, `"other", of =`, 1)).Check(), `of: "images" has missing or hidden entries`)
}
