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

// Errors for columns that do not exist or are not suitable have a position and list the valid names.
func TestColumnsThatDoNotFitAreLocated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.csv")
	fatal.If(t, os.WriteFile(path, []byte("a,b,w,u,v,g\n1,2,0.5,1,0,f\n3,4,0.25,0,1,m\n"), 0o600))
	const text = `
[model.m]
dataset = { name = "csv", images = "FILE", columns = { weight = "w", target = ["u", "v"], group = "g" } }
encoder = [{ kind = "dense", units = 3 }]
decoder = []
head.y.layers = [{ kind = "dense" }]
loss = [{ kind = "mse", on = "y", against = "target" KEYS }]
`
	for _, c := range []struct{ keys, key, want, hint string }{
		{`, mask = "masc"`, "masc", `mask: there is no column or value "masc"`, `columns: "images", "labels", "group", "target", "weight"; values: "code", "y"`},
		{`, sample_weight = "weigth"`, "weigth", `sample_weight: there is no column or value "weigth"`, `did you mean "weight"?`},
		{`, sample_weight = "target"`, "target", `sample_weight: "target" has 2 values for each sample, want one`, ""},
		{`, mask = "code"`, "code", `mask: "code" has 3 values for each sample, but "y" has 2: want as many, one for each of its tokens, or one`, ""},
		{` }, { kind = "mse", on = "code", against = "target"`, "target", `against: "target" has 2 values for each sample, but "code" has 3`, ""},
		{` }, { kind = "l1", against = "target"`, "target", "against: l1 compares with nothing", "leave it out"},
		{` }, { kind = "hoyer", mask = "target"`, "target", "mask: hoyer is no mean over entries", `"mse"`},
		{` }, { kind = "cross_entropy", on = "y", against = "weight"`, "weight", `against: "weight" has 1 values of type float32`, ""},
	} {
		f, err := Load("models.toml", []byte(strings.NewReplacer("FILE", path, "KEYS", c.keys).Replace(text)))
		fatal.If(t, err)
		_, err = f.Model("m")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.hint) || !strings.Contains(err.Error(), "models.toml:7:") {
			t.Errorf("%s: got %v, want %q in line 7", c.keys, err, c.want)
		}
	}
	f, _ := Load("models.toml", []byte(strings.NewReplacer("FILE", path, "KEYS", "", "head.y", "head.group", `"y"`, `"group"`).Replace(text)))
	expect.Error(t, expect.Err(f.Model("m")), `invalid name "group" of a head: the data set has a column of this name`, "a head with the name of a column")
}

// The file of a table is named by `file` or by its older spelling `images`, but not by both. Both spellings give the
// same declaration.
func TestTheFileOfATableHasTwoSpellings(t *testing.T) {
	for keys, want := range map[string]string{
		`file = "none.csv"`:                       "",
		`images = "none.csv"`:                     "",
		`file = "none.csv", images = "other.csv"`: `models.toml:3:55: model "m": dataset (csv): images: is another spelling of file, which is given too: leave out one of them`,
		`labels = "kind"`:                         `models.toml:3:20: model "m": dataset (csv): missing key "file"`,
	} {
		f, err := Load("models.toml", []byte("\n[model.m]\ndataset = { name = \"csv\", "+keys+" }\nencoder = [{ kind = \"dense\", units = 3 }]\n"))
		fatal.If(t, err)
		m, err := f.Model("m")
		if want != "" {
			expect.Error(t, err, want, keys)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", keys, err)
			continue
		}
		expect.Contains(t, string(m.Canonical()), `file = "none.csv"`, keys, "its canonical text")
		checkFillRoundTrip(t, m)
	}
}

// A mask of floats weights its entries; a mask of whole numbers is 0 or 1.
func TestAMaskOfFloatsIsAWeight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.csv")
	fatal.If(t, os.WriteFile(path, []byte("a,b,w,u\n1,2,0.5,1\n3,4,0.25,0\n"), 0o600))
	for mask, weighs := range map[string]bool{"w": true, "u": false} {
		m := model(t, load(t, strings.NewReplacer("FILE", path, "MASK", mask).Replace(`
[model.m]
dataset = { name = "csv", images = "FILE", columns = { images = ["a", "b"], w = "w", u = "u" } }
encoder = [{ kind = "dense", units = 3 }]
loss    = [{ kind = "mse", mask = "MASK" }]
`)), "m")
		layout, err := m.Layout([]int{2})
		fatal.If(t, err)
		for _, w := range m.Wanted(layout) {
			if w.Column == mask && w.Holds(0.5) != weighs || w.Holds(-1) || w.Holds(2) {
				t.Errorf("%s: %+v", mask, w)
			}
		}
	}
}

// Numbers beyond a vocabulary are named with the size that holds them all.
func TestAVocabularyThatIsTooSmallIsNamedWithTheSizeThatIsNeeded(t *testing.T) {
	m, err := load(t, "[model.m]\ndataset = { file = \"x.npy\" }\nencoder = [{ kind = \"embedding\", vocabulary = 5, units = 2 }, { kind = \"dense\", units = 2 }]\n").Model("m")
	fatal.If(t, err)
	for want, values := range map[string][]float32{
		"value 1: got 7, but encoder.0 (embedding) wants whole numbers from 0 to 4": {1, 7, 11, 4},
		"the largest is 11: vocabulary = 12 holds them all":                         {1, 7, 11, 4},
		": vocabulary = 9 holds":   {1, -1, 8, 4},
		"got 2.5, but":             {1, 2.5, 11, 4},
		"write unknown = true\x00": {1, 3, -1, 4}, // none is too large
	} {
		images, err := data.NewFloats([]int{2}, values, nil)
		fatal.If(t, err)
		err = m.Unusable("npy", []int{2}, images)
		expect.Error(t, fmt.Errorf("%w\x00", err), want)
	}
}
