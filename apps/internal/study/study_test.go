package study

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tessera"
	"tessera/apps/show/figures"
	"tessera/config"
	"tessera/docs"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/pictures"
	"tessera/internal/sweep"
	"tessera/metrics"
)

var update = flag.Bool("update", false, "write the golden pictures again")

// declared contains a small reproduction on bars: two auto-encoders that differ in p, and a baseline.
const declared = `
[model.small]
dataset = { name = "bars", count = 100 }
encoder = [{ kind = "dense", units = 16, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl", weight = 0.001, target = 0.2 }]
constraint = [{ kind = "nonneg" }]
optimizer = { kind = "adam", learning_rate = 0.05 }
train = { epochs = 40, batch = 32 }

[model.components]
kind = "pca"
dataset = { name = "bars", count = 100 }
components = 16

[sweep.targets]
model = "small"
seeds = [1, 2]
set.loss.1.target = [0.1, 0.3]

[sweep.models]
model = ["small", "components"]

[model.late]
extends = "small"
hook.prune = { from = 30, fraction = 0.5 }

[sweep.late]
model = ["small", "late"]

[model.swimming]
extends = "small"
dataset = "swimmer"

[sweep.sets]
model = ["small", "swimming"]

[sweep.wild]
model = "small"
set.optimizer.learning_rate = [0.01, 1e30]
`

// small returns a reproduction of an invented study.
func small() Reproduction {
	return Reproduction{Name: "small", Title: "Small", About: "Bars.", Sources: []string{"table 1", "notebook"}, Dataset: "bars"}
}

// published returns the rows of the invented study. The first row is not close to any measured model.
func published() []figures.Published {
	row := func(source, declared string, p, mse float64, note string) figures.Published {
		return figures.Published{Source: source, Dataset: "bars", Model: "small", Declared: declared, Note: note,
			Point: figures.Point{Label: "small", P: p, Beta: 0.001, Values: metrics.Values{{Name: "mse", Number: mse}, {Name: "max_approx", Number: 0.5}}}}
	}
	return []figures.Published{
		row("table 1", "small", 0.1, 1000, "far away"),
		row("table 1", "small", 0.7, 0.1, ""),
		row("notebook", "small", 0.3, 0.1, ""),
		row("notebook", "other", 0.3, 0.1, "nobody asked for this one"),
		row("table 2", "small", 0.3, 0.1, "nor for this one"),
	}
}

// reproduce runs a sweep with some changes and writes its page as that of the small reproduction.
func reproduce(t *testing.T, out, name string, o Options, changes ...config.Set) (*Page, *sweep.Results) {
	t.Helper()
	return reproduceAs(t, small(), out, name, o, changes...)
}

// reproduceAs runs a sweep with some changes and writes its page.
func reproduceAs(t *testing.T, r Reproduction, out, name string, o Options, changes ...config.Set) (*Page, *sweep.Results) {
	t.Helper()
	f, err := config.Load("models.toml", []byte(declared))
	fatal.If(t, err)
	spec, err := f.Sweep(name, changes...)
	fatal.If(t, err)
	s, err := sweep.New(context.Background(), spec, sweep.Options{Out: out})
	fatal.If(t, err)
	results, err := s.Run(context.Background())
	if _, ok := errors.AsType[*sweep.Failed](err); err != nil && !ok {
		t.Fatal(err)
	}
	if o.rows == nil {
		o.rows = published()
	}
	p, err := r.Write(context.Background(), s, results, o)
	fatal.If(t, err)
	return p, results
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	fatal.If(t, err)
	return string(text)
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		expect.Contains(t, text, part)
	}
}

func TestThePagePutsMeansOverSeedsNextToWhatWasPublished(t *testing.T) {
	out := t.TempDir()
	p, results := reproduce(t, out, "targets", Options{})
	got := lists.Map(p.Rows, func(r ComparedRow) string { return r.Name() + ": " + r.Verdict() })
	if want := []string{"small: OUTSIDE: mse", "small: not measured", "small: " + p.Rows[2].Verdict()}; !slices.Equal(got, want) {
		t.Fatalf("rows %q, want %q", got, want)
	}
	for i, at := range []int{0, 2} {
		m, want := p.Rows[at].Measured, results.Settings[i]
		if !slices.Equal(m.Mean, want.Mean) || !slices.Equal(m.Deviation, want.Deviation) || len(m.Mean) == 0 || m.Done != 2 || m.Epochs != 40 {
			t.Errorf("row %d is of %+v, want of %+v", at, m, results.Settings[i])
		}
	}
	page := read(t, filepath.Join(out, "page", "README.md"))
	contains(t, page, "# Small\n", "\n\n**Answer.** "+p.Summary()+"\n\n## Reconstruction and sparsity\n", markdown(t, judgedTable(p.Rows)), markdown(t, shownOf(p.Rows)), "far away", "notes.md",
		"**the bias not dilated, nothing clipped**", "**dead units**")
	for _, never := range []string{"asked for", "nor for this one", "quick look", "**SVM**"} {
		if strings.Contains(page, never) {
			t.Errorf("the page says %q", never)
		}
	}
	expect.Equal(t, read(t, filepath.Join(out, "page", "table.csv")), string(comparisonCSV(p.Rows)), "the table")
	for _, drawing := range drawings {
		name := drawing.name
		contains(t, page, "]("+name+".png)")
		if picture := read(t, filepath.Join(out, "page", name+".png")); !strings.HasPrefix(picture, "\x89PNG") {
			t.Errorf("%s is no PNG", name)
		}
	}
}

// The expected interval for two differences a and b: the mean is (a+b)/2, the standard deviation |a-b|/√2, and half of the
// interval t |a-b|/2, where t = 12.7062 is the 97.5 % quantile of Student's t with one degree of freedom.
func TestThePageHasDifferencesPairedBySeed(t *testing.T) {
	out := t.TempDir()
	p, results := reproduce(t, out, "targets", Options{})
	var d []float64
	for i := range 2 {
		first, _ := results.Trials[i].Metrics.Number("mse")
		other, _ := results.Trials[2+i].Metrics.Number("mse")
		d = append(d, other-first)
	}
	mean, half := (d[0]+d[1])/2, 12.7062*math.Abs(d[0]-d[1])/2
	got := p.Rows[2].Measured.Differences["mse"]
	if d[0] == d[1] || math.Abs(got.Mean-mean) > 1e-12 || math.Abs(got.Low-(mean-half)) > 1e-4*half || math.Abs(got.High-(mean+half)) > 1e-4*half {
		t.Errorf("got %+v, want %g ± %g", got, mean, half)
	}
	shown := fmt.Sprintf("%+.2g [", mean)
	if math.Abs(mean) < half {
		shown = "no difference shown ["
	}
	contains(t, read(t, filepath.Join(out, "page", "README.md")), "## Differences between models\n\nEach value is the mean difference from small (p = 0.1, β = 0.001), the first trained model",
		"| model | p | β | common seeds | mse | hoyer_contribution | max_approx |", "| small | 0.3 | 0.001 | 2 | "+shown)
	expect.Equal(t, len(p.Rows[0].Measured.Differences), 0, "the first model differs from itself", p.Rows[0].Measured.Differences)
}

// The test draws every kind of figure of runs from a small, fixed run of one seed, and writes its page three times: the second one equals
// the first one, and the third one has notes.
func TestThePageOfASmallRun(t *testing.T) {
	out := t.TempDir()
	p, _ := reproduce(t, out, "models", Options{})
	for _, f := range p.figures {
		if f.name == "penalties" { // which is of no run; package report has its picture
			continue
		}
		drawn, err := os.Open(filepath.Join(p.Path, f.name+".png"))
		fatal.If(t, err)
		picture, err := png.Decode(drawn)
		drawn.Close()
		fatal.If(t, err)
		pictures.Golden(t, filepath.Join("testdata", f.name+".png"), picture, *update)
	}
	if golden, _ := filepath.Glob("testdata/*.png"); len(golden) != len(p.figures)-1 {
		t.Errorf("golden pictures %q", golden)
	}
	page := read(t, filepath.Join(out, "page", "README.md"))
	contains(t, page, "## Differences between models\n\nOne seed shows no difference between models: give the sweep several seeds.\n\n")
	if strings.Contains(page, "common seeds") {
		t.Error("the page has a table of differences")
	}
	if i := slices.IndexFunc(p.Rows, func(r ComparedRow) bool { return r.Name() == "components" }); i < 0 || p.Rows[i].Measured.Epochs != 0 {
		t.Errorf("the row of the baseline: %+v", p.Rows)
	}

	before := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(out, "page", "*"))
	for _, f := range files {
		before[f] = read(t, f)
	}
	if len(before) < 5 {
		t.Fatalf("only %q", files)
	}
	half := filepath.Join(out, "page", ".training.png.abcdefghij.tmp") // which a killed process left
	old := time.Now().Add(-time.Hour)
	fatal.If(t, errors.Join(os.WriteFile(half, nil, 0o600), os.Chtimes(half, old, old)))
	reproduce(t, out, "models", Options{})
	expect.AnyError(t, expect.Err(os.Stat(half)), "the half of a picture is still there")
	for f, text := range before {
		expect.Equal(t, read(t, f), text, f, "is another")
	}

	notes := filepath.Join(out, "page", NotesFile)
	fatal.If(t, os.WriteFile(notes, []byte("It was the weather.\n"), 0o666))
	reproduce(t, out, "models", Options{})
	page = read(t, filepath.Join(out, "page", "README.md"))
	contains(t, page, "## Explanations\n\nIt was the weather.\n")
	if strings.Contains(page, "nothing is explained yet") || read(t, notes) != "It was the weather.\n" {
		t.Errorf("the notes were not taken:\n%s", page)
	}
}

func TestAPageSaysWhatItsCommandLineChanged(t *testing.T) {
	change, err := config.ParseSet(`dataset={ name = "bars", count = 20 }`)
	fatal.If(t, err)
	seeds, err := config.Seeds([]uint64{7, 8})
	fatal.If(t, err)
	out := t.TempDir()
	reproduce(t, out, "models", Options{}, change, config.Passes(2), seeds)
	contains(t, read(t, filepath.Join(out, "page", "README.md")),
		"**A quick trial, not a reproduction**: made with `--set 'dataset={ name = \"bars\", count = 20 }' --epochs 2`, which changes",
		"The trials have the seeds of `--seeds 7,8`, not the declared ones.",
		"by `tessera reproduce small --set 'dataset={ name = \"bars\", count = 20 }' --epochs 2 --seeds 7,8`;")
	for text, want := range map[string]string{"--set a=b": "`--set a=b`", "a`b": "`` a`b ``", "a``b": "``` a``b ```"} {
		expect.Equal(t, code(text), want, text, "as code")
	}
}

func TestAPageSaysOnWhichImagesItsValuesAreMeasured(t *testing.T) {
	out := t.TempDir()
	p, _ := reproduce(t, out, "models", Options{}, config.Passes(1))
	contains(t, read(t, filepath.Join(out, "page", "README.md")), "All values are measured on all images, the fitted ones among them, not on the test images, as the published ones are.")
	expect.Equal(t, p.Rows[len(p.Rows)-1].Measured.Point().Split, "all", "figures show points of")
	change, err := config.ParseSet("dataset.validation=0.2")
	fatal.If(t, err)
	out = t.TempDir()
	reproduce(t, out, "models", Options{}, config.Passes(1), change)
	contains(t, read(t, filepath.Join(out, "page", "README.md")), "measured on the images that the training held out for validation, not on the test images")
}

func TestFailedTrialsAreToldAndSettingsAreNamedWhereModelsDoNotTellThemApart(t *testing.T) {
	out := t.TempDir()
	p, _ := reproduce(t, out, "wild", Options{})
	contains(t, read(t, filepath.Join(out, "page", "README.md")), "## Trials that failed\n\n- `small`, seed 1 (", "diverged at step")
	last := p.Rows[len(p.Rows)-1]
	expect.Equal(t, last.Name(), "small optimizer.learning_rate=1e+30", "the row of the failed trial")
	expect.Equal(t, last.Verdict(), "not measured", "the row of the failed trial")
}

func TestEveryReproductionIsASweepOfItsNameThatHasATrialForEachRowOfItsTable(t *testing.T) {
	for _, r := range Reproductions() {
		t.Run(r.Name, func(t *testing.T) {
			models, err := r.Declaration()
			fatal.If(t, err)
			spec, err := models.Sweep(r.Name)
			fatal.If(t, err)
			if d := r.Drawing; d != nil && !slices.ContainsFunc(spec.Trials, func(trial config.Trial) bool { return trial.Model.Name == d.Features }) {
				t.Errorf("no trial is of %s, the model of the features", d.Features)
			}
			var measured []Measured
			for _, trial := range spec.Trials {
				m := Measured{Model: trial.Model.Name, Dataset: trial.Model.Dataset.Name}
				m.P, m.Beta = Penalty(trial.Model)
				measured = append(measured, m)
			}
			for _, row := range r.published(figures.PublishedRows(), measured) {
				if row.Source != "notebook" && !slices.ContainsFunc(measured, func(m Measured) bool { return corresponds(row, m) }) { // notebooks hold more than is trained again
					t.Errorf("%s (%s) has no trial", row.Label, row.Declared)
				}
			}
			for _, name := range r.Figures {
				if !slices.ContainsFunc(drawings, func(f figure) bool { return f.name == name }) {
					t.Errorf("no figure is called %q", name)
				}
			}
			selected, err := metrics.Select(r.Columns...)
			expect.NoError(t, err)
			for _, text := range r.With {
				expect.NoError(t, selected.SetText(text))
			}
		})
	}
}

// Every sweep that is shipped, or declared by a page, has a page that tells what came of it, made again by `tessera reproduce`.
func TestEveryDeclaredSweepIsAReproduction(t *testing.T) {
	files, err := fs.Glob(docs.Declarations, "reproduction/*.toml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got the files %q and the error %v", files, err)
	}
	for _, file := range append(files, "") {
		models, err := Reproduction{File: file}.Declaration()
		fatal.If(t, err)
		for _, name := range models.SweepNames() {
			expect.NoError(t, expect.Err(Find(name)), "the sweep", name, cmp.Or(file, tessera.ModelsFile))
		}
	}
}

// A published row that names a model has the same p and beta as the model.
func TestDeclaredModelsAreThePublishedOnes(t *testing.T) {
	models := tessera.Shipped()
	for _, row := range figures.PublishedRows() {
		if !strings.HasPrefix(row.Source, "table") {
			continue
		}
		m, err := models.Model(row.Declared)
		fatal.If(t, err)
		p, beta := Penalty(m)
		if same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }; !same(p, row.P) || !same(beta, row.Beta) {
			t.Errorf("%s has p %v, beta %v, published are %v and %v", row.Declared, p, beta, row.P, row.Beta)
		}
	}
}

func TestResultsOfAnotherSweepAreAnError(t *testing.T) {
	foreign := &sweep.Results{Settings: []sweep.Setting{{Model: "other", Trials: []string{"0123"}}}}
	_, err := small().Write(t.Context(), &sweep.Sweep{Path: t.TempDir()}, foreign, Options{})
	expect.Error(t, err, `it has no trial of the setting "other"`)
}

func TestUnknownNamesAreSuggested(t *testing.T) {
	_, err := Find("tabel1")
	expect.As[*Unknown](t, err, `did you mean "table1"?`)
	if r, err := Find("table2"); err != nil || !r.Deep {
		t.Errorf("table2: %+v, %v", r, err)
	}
}
