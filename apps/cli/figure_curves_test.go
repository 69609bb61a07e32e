package cli

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
)

// sweptFigures declares sweeps over other keys than those of the study.
const sweptFigures = smallModels + `
[model.factors]
kind = "nmf"
components = 3
iterations = 2

[sweep.units]
model = "small"
seeds = [1, 2]
set.encoder.2.units = [3, 6]
set.train.epochs = 1

[sweep.kinds]
model = ["small", "factors"]
for.small.set.encoder.2.units = [3, 6]
for.factors.set.components = [3, 6]

[sweep.search]
model = "small"
random.count = 4
random.set.loss.1.weight = { from = 1e-4, to = 1e-1 }
random.set.optimizer.kind = ["adam", "rmsprop"]

[sweep.optimizers]
model = "small"
set.optimizer.kind = ["adam", "rmsprop"]
`

// texts returns the texts of an SVG file.
func (b *bench) texts(name string) string {
	b.Helper()
	var all []string
	d := xml.NewDecoder(strings.NewReader(b.read(name)))
	for {
		token, err := d.Token()
		if err != nil {
			return strings.Join(all, "|")
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			all = append(all, string(text))
		}
	}
}

func TestCurvesAreDrawnOverTheSweptKey(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", sweptFigures)
	for _, name := range []string{"units", "kinds", "search", "optimizers"} {
		b.must(0, "sweep", name, "--epochs", "1")
	}
	draw := func(args ...string) string {
		t.Helper()
		b.must(0, append(args, "--out", "f.svg")...)
		return b.texts("f.svg")
	}
	b.contains("units", draw("figure", "curves", "sweeps/units"), "units of layer 3 of the encoder", "mse of all images", "hoyer")
	b.contains("kinds", draw("figure", "curves", "sweeps/kinds", "--x", "encoder.2.units,components", "--metrics", "mse"), "encoder.2.units / components", "small", "factors")
	b.contains("search", draw("figure", "curves", "sweeps/search", "--metrics", "mse,l0"), "weight of the kl term", "adam", "rmsprop", "l0")

	for problem, args := range map[string][]string{
		`no swept key has two numbers to draw over (got optimizer.kind)`: {"sweeps/optimizers"},
		`"loss.1.weight" is not swept, want one of encoder.2.units`:      {"sweeps/units", "--x", "loss.1.weight"},
		"optimizer.kind has fewer than two numbers":                      {"sweeps/search", "--x", "optimizer.kind"},
		`"accuracy" was not measured`:                                    {"sweeps/units", "--metrics", "accuracy"},
		"other keys are drawn of folders of sweeps":                      {"runs/small"},
	} {
		if args[0] == "runs/small" {
			b.must(0, "train", "small", "--epochs", "1")
		}
		b.contains(problem, b.must(exitUsage, append([]string{"figure", "curves", "--published", "none"}, args...)...).stderr, problem)
	}
}

func TestRunsOfASweepAreNamedByTheirSettings(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", sweptFigures)
	b.must(0, "sweep", "units")
	for _, kind := range []string{"training", "codes", "reconstructions"} {
		b.must(0, "figure", kind, "sweeps/units", "--out", "f.svg")
		b.contains(kind, b.texts("f.svg"), "units 3", "units 6")
	}
	paths, _ := filepath.Glob(b.path("sweeps/units/trials/*"))
	b.must(0, append([]string{"figure", "training", "--out", "f.svg"}, paths...)...)
	b.contains("trials", b.texts("f.svg"), "units 3, seed 1", "units 3, seed 2", "units 6, seed 1", "units 6, seed 2")
}

func TestASweepSaysWhichTrialsAreNotItsOwn(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", sweptFigures)
	b.must(0, "sweep", "units")
	table := b.read("sweeps/units/results.csv")
	b.contains("other epochs", b.must(exitUsage, "sweep", "units", "--epochs", "2").stderr, "4 finished trials", "--epochs 2", "--clean", "another --out")
	b.contains("a dry run", b.must(0, "sweep", "units", "--epochs", "2", "--dry-run").stderr, "4 finished trials")
	expect.Equal(t, b.read("sweeps/units/results.csv"), table, "the results were replaced")
	b.write("models.toml", strings.Replace(sweptFigures, "units = [3, 6]", "units = [3, 5]", 1))
	b.contains("other values", b.must(0, "sweep", "units").stderr, "2 other trials in sweeps/units/trials")
	if r := b.must(0, "sweep", "units", "--dry-run"); strings.Count(r.stdout, "not of this declaration") != 2 {
		t.Errorf("want two orphans:\n%s", r.stdout)
	}
	if r := b.must(0, "sweep", "units", "--clean"); strings.Contains(r.stderr, "other trial") {
		t.Errorf("after --clean: %s", r.stderr)
	}
	if entries, _ := os.ReadDir(b.path("sweeps/units/trials")); len(entries) != 4 {
		t.Errorf("%d trials are left, want 4", len(entries))
	}
}
