package page_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/apps/show/page"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
)

// sweptVectors runs a small sweep on vectors of a file, with labels.
func sweptVectors(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := "class,a,b,c,d\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,%g,%g,%g,%g\n", i%2, float64(i%2), float64(i%3)/2, float64(i%5)/4, float64(i%7)/6)
	}
	fatal.If(t, os.WriteFile(filepath.Join(dir, "v.csv"), []byte(text), 0o600))
	return ran(t, fmt.Sprintf(`
[model.table]
dataset = { name = "csv", images = %q, labels = "class" }
encoder = [{ kind = "dense", units = 3, activation = "sigmoid" }]
head.class = { from = "code", layers = [{ kind = "dense", units = 2 }] }
loss = [{ kind = "mse" }, { kind = "cross_entropy", on = "class" }]
train = { epochs = 2, batch = 20 }
[sweep.tables]
model = "table"
`, filepath.Join(dir, "v.csv")), "tables")
}

// quoted matches the texts that are equal for images and vectors: definitions of metrics and terms, settings, scripts and
// pictures.
var quoted = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>|<dl class="terms">.*?</dl>|<td class="about">.*?</td>|` +
	`<p class="note">(?:In the formulas |x is ).*?</p>|<pre.*?</pre>|title="[^"]*"|data:image/png|images per second:`)

func TestPagesOfVectorsSpeakOfSamples(t *testing.T) {
	path := sweptVectors(t)
	swept, sweepText := sweepPage(t, path)
	one, err := page.ReadRun(context.Background(), sweep.TrialPath(path, swept.Trials[0].Name), options)
	fatal.If(t, err)
	var runPage bytes.Buffer
	fatal.If(t, (&page.Report{Runs: []*page.Run{one}}).Write(&runPage))
	contains(t, sweepText, "<td>sample → dense → code</td>", "4 validation samples of ")
	if !regexp.MustCompile(`4 validation samples of \S+v\.csv`).MatchString(sweepText) { // the file, not the kind of the data set
		t.Error("the page of the sweep does not name the file of its samples")
	}
	contains(t, runPage.String(), "<td>sample of 4 values → dense → code of ", "Move the slider to see other samples", "4 labelled samples", `title="atom 0: `)
	for what, text := range map[string]string{"sweep": sweepText, "run": runPage.String()} {
		for line := range strings.Lines(quoted.ReplaceAllString(text, "")) {
			if strings.Contains(strings.ToLower(line), "image") {
				t.Errorf("the page of a %s of vectors says %q", what, line)
			}
		}
	}
}

// declaredRun trains a declared model and returns the folder of its run.
func declaredRun(t *testing.T, text string) string {
	t.Helper()
	file, err := config.Load("models.toml", []byte("[model.m]\n"+text))
	fatal.If(t, err)
	m, err := file.Model("m")
	fatal.If(t, err)
	out := filepath.Join(t.TempDir(), "run")
	r, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: out})
	if err == nil {
		err = r.Close()
	}
	fatal.If(t, err)
	return out
}

// The columns have very different scales. The pictures of the vectors have one colour scale, and the names of the columns.
func TestVectorsShareAScaleAndHaveTheNamesOfTheirColumns(t *testing.T) {
	dir := t.TempDir()
	text := "length [mm],mass,species\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,%d,%s\n", i%7, 1000*(i%5), []string{"a", "b"}[i%2])
	}
	fatal.If(t, os.WriteFile(filepath.Join(dir, "m.csv"), []byte(text), 0o600))
	declare := func(more string) string {
		t.Helper()
		return declaredRun(t, fmt.Sprintf(`
dataset = { name = "csv", images = %q, labels = "species", scale = "standardise" }
encoder = [{ kind = "dense", units = 3, activation = "relu" }]
train = { epochs = 2, batch = 10 }
%s`, filepath.Join(dir, "m.csv"), more))
	}
	text = rendered(t, declare(""))
	contains(t, text, `>length [mm]</span><span title="mass">mass</span>`, "White is 0, red is positive up to", `class="gallery grid vectors"`, "samples of "+filepath.Join(dir, "m.csv"))
	// A classifier is called one, and what its loss optimises comes first.
	text = rendered(t, declare("decoder = []\nloss = [{ kind = \"cross_entropy\", on = \"class\" }]\n[model.m.head.class]\nlayers = [{ kind = \"dense\" }]\n"))
	contains(t, text, "<td>classifier</td>", "<td>class: code → dense</td>")
	if accuracy, dead := strings.Index(text, "<span>accuracy</span>"), strings.Index(text, "<span>units are dead</span>"); accuracy < 0 || dead < accuracy {
		t.Errorf("accuracy stands at %d, dead units at %d", accuracy, dead)
	}
	if strings.Contains(text, "auto-encoder") {
		t.Error("a classifier is called an auto-encoder")
	}
}

func TestTheAtomsOfTheTrialsOfATableNameItsColumns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.csv")
	text := "length [mm],mass,width\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,%d,%d\n", i%7, i%5, i%3)
	}
	fatal.If(t, os.WriteFile(file, []byte(text), 0o600))
	s, text := sweepPage(t, ran(t, fmt.Sprintf(`
[model.m]
dataset = { name = "csv", file = %q, scale = "minmax" }
encoder = [{ kind = "dense", units = 3, activation = "relu" }]
train = { epochs = 1, batch = 10 }
[sweep.units]
model = "m"
set.encoder.0.units = [2, 3]
set.dataset.columns = [["length [mm]", "mass", "width"], ["mass", "width"]]
`, file), "units"))
	contains(t, text, "White is 0, red is positive up to", `["length [mm]","mass","width"]`)
	for i, want := range []int{3, 2, 3, 2} {
		one := s.Trials[i].Atoms
		expect.Equal(t, len(one.Names), want, "names of the columns of trial", i)
		expect.Equal(t, len(one.Abouts), one.Shown)
		contains(t, one.Abouts[0], "atom 0: ")
	}
}

func TestManyUnitsForFewSamplesAreNoted(t *testing.T) {
	if text := rendered(t, run(t, "swimmers")); strings.Contains(text, "for 256 fitted") {
		t.Error("20 units for 256 images are noted")
	}
	out := declaredRun(t, `
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "dense", units = 9, activation = "relu" }]
train = { epochs = 1 }
`)
	contains(t, rendered(t, out), "9 units for 40 fitted images")
}

func TestAReportOfNoRunIsAnError(t *testing.T) {
	expect.AnyError(t, (&page.Report{Runs: []*page.Run{nil}}).Write(io.Discard), "a nil run is written")
}

// Names of many columns overlap on a narrow page, which leaves them out.
func TestManyNamesOfColumnsAreMarked(t *testing.T) {
	for n, want := range map[int]string{16: `class="columns"`, 17: `class="columns many"`} {
		expect.Contains(t, string(doc.HTML(&doc.Gallery{Names: strings.Split(strings.Repeat("a,", n-1)+"a", ",")})), want, n, "names")
	}
}

// A table of many runs is scrolled: texts that wrap beyond its edge would leave tall empty rows.
func TestRowsOfWideTablesAreOneLine(t *testing.T) {
	for n, want := range map[int]string{5: `class="numbers explained"`, 6: `class="numbers wide"`} {
		table := &doc.Table{Columns: make([]doc.Column, n)}
		table.Columns[n-1].Wrap = true
		expect.Contains(t, string(doc.HTML(table)), want, n, "columns")
	}
}
