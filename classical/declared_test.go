package classical_test

import (
	"strings"
	"testing"

	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

const declared = `
[model.pca]
kind = "pca"
dataset = "fashion-mnist"
components = 100

[model.kmeans]
kind = "kmeans"
dataset = "fashion-mnist"

[model.nmf]
kind = "nmf"
dataset = "fashion-mnist"

[model.nmf-mu]
extends = "nmf"
solver = "mu"

[model.nmf-kl]
extends = "nmf-mu"
loss = "kl"

[model.sparse-nmf]
kind = "sparse_nmf"
dataset = { name = "fashion-mnist", fit = "test" }
code_sparsity = 0.6
`

func TestBaselinesAreDeclaredAndFilled(t *testing.T) {
	file, err := config.Load("models.toml", []byte(declared))
	fatal.If(t, err)
	for name, filled := range map[string]string{
		"pca": "components", "kmeans": "iterations", "nmf": `solver = "hals"`, "nmf-mu": `solver = "mu"`,
		"nmf-kl": `loss = "kl"`, "sparse-nmf": `per = "atom"`,
	} {
		m, err := file.Model(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.Baseline == nil || m.Baseline.Describe().Units != 100 {
			t.Errorf("%s: decoded as %T with %d units", name, m.Baseline, m.Baseline.Describe().Units)
		}
		if text := string(m.Text()); !strings.Contains(text, filled) || strings.Contains(text, "epochs") {
			t.Errorf("%s: %s is missing, or there are epochs, in\n%s", name, filled, text)
		}
	}
}

func TestMistakesInABaselineAreReported(t *testing.T) {
	for toml, want := range map[string]string{
		"kind = \"nmf\"\nloss = \"kl\"":            `solver`,
		"kind = \"nmf\"\ncomponents = 0":           `> 0`,
		"kind = \"nmf\"\nsolver = \"cd\"":          `hals`,
		"kind = \"pca\"\ntrain.epochs = 3":         `"epochs"`,
		"kind = \"pca\"\nseed = 3":                 `seed`,
		"kind = \"sparse_nmf\"\nper = \"image\"":   `gradient`,
		"kind = \"sparse_nmf\"\natom_sparsity = 2": `[0,1]`,
	} {
		file, err := config.Load("models.toml", []byte("[model.x]\n"+toml+"\n"))
		if err == nil {
			err = file.Check()
		}
		expect.Error(t, err, want, toml)
	}
}
