package tessera_test

import (
	"errors"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/metrics"
	"tessera/part/table"
)

var update = flag.Bool("update", false, "write docs/parts.md and the tables of docs/shipped-models.md and docs/metrics.md")

// The table of shipped models is the end of this file, after these lines.
const (
	modelsFile = "docs/shipped-models.md"
	tableHead  = "| model | what it is |\n| --- | --- |\n"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocsListTheShippedModels(t *testing.T) {
	before, got, ok := strings.Cut(read(t, modelsFile), tableHead)
	if !ok {
		t.Fatalf("%s has no table of models", modelsFile)
	}
	var want strings.Builder
	models := tessera.Shipped()
	for _, name := range models.Names() {
		m, err := models.Model(name)
		if err != nil {
			t.Fatal(err)
		}
		want.WriteString("| `" + name + "` | " + m.About + " |\n")
	}
	if *update {
		if err := os.WriteFile(modelsFile, []byte(before+tableHead+want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want.String() {
		t.Errorf("%s lists\n%s\nwant\n%s\n(go test . -update writes it)", modelsFile, got, want.String())
	}
}

// blocks returns the code blocks of a language.
func blocks(text, language string) []string {
	var found []string
	for _, rest := range strings.Split(text, "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(rest, "```")
		found = append(found, block)
	}
	return found
}

// trimmed returns the lines of a text without their indentation.
func trimmed(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

func TestGoInDocsIsThatOfTheExamples(t *testing.T) {
	for _, c := range []struct{ file, within, source string }{
		{"README.md", "tessera.Train(", "example_test.go"},
		{"docs/adding-a-part.md", "Charbonnier", "example_test.go"},
		{"docs/adding-a-part.md", "Darken", "apps/cli/testdata/outside/parts/darken.go"},
	} {
		found := 0
		for _, snippet := range blocks(read(t, c.file), "go") {
			if !strings.Contains(snippet, c.within) {
				continue
			}
			found++
			if !strings.Contains(trimmed(read(t, c.source)), trimmed(snippet)) {
				t.Errorf("%s: not in %s:\n%s", c.file, c.source, snippet)
			}
		}
		if found != 1 {
			t.Errorf("%s: %d snippets with %q, want 1", c.file, found, c.within)
		}
	}
}

func TestTheErrorInREADMEIsWhatItsModelGives(t *testing.T) {
	text := read(t, "README.md")
	models, err := config.Load("models.toml", []byte(strings.Replace(blocks(text, "toml")[0], "units ", "unitz ", 1)))
	if err != nil {
		t.Fatal(err)
	}
	var found *table.Diagnostics
	if err := models.Check(); !errors.As(err, &found) || !strings.Contains(text, "```text\n"+found.Error()+"\n```") {
		t.Errorf("README.md does not show\n%v", err)
	}
}

func TestTheDeclarationsOfTheDocsAreRight(t *testing.T) {
	for _, page := range []string{"docs/models.md", "docs/sweeps.md", "docs/many-machines.md"} {
		found := blocks(read(t, page), "toml")
		if len(found) == 0 {
			t.Errorf("%s has no declarations", page)
		}
		for _, declaration := range found {
			models, err := config.Load(page, []byte(declaration))
			if err == nil {
				models.Extend(tessera.Shipped())
				err = models.Check()
			}
			if err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	text := read(t, "docs/models.md")
	for _, of := range []any{config.Model{}, config.Train{}} {
		for i := range reflect.TypeOf(of).NumField() {
			if key := reflect.TypeOf(of).Field(i).Tag.Get("toml"); key != "" && !strings.Contains(text, "`"+key+"`") {
				t.Errorf("docs/models.md does not describe %s", key)
			}
		}
	}
}

// metricsTable is the table of docs/metrics.md: the metrics that are always shown first, then the others by name.
func metricsTable() string {
	var b strings.Builder
	b.WriteString("| key | better | what it is |\n| --- | --- | --- |\n")
	names := slices.Clone(metrics.Standard)
	for _, e := range metrics.Registry.All() {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	for _, name := range names {
		e, _ := metrics.Registry.Lookup(name)
		d := e.New().Describe()
		for _, m := range d.Measures {
			b.WriteString("| `" + m.Name + "` | " + string(m.Better) + " | " + m.Doc)
			if m.Unit != "" && !m.Count {
				b.WriteString(" (in " + m.Unit + ")")
			}
			if !d.ScaleFree {
				b.WriteString(". Depends on scale")
			}
			if d.OnRequest {
				b.WriteString(". On request")
			}
			b.WriteString(" |\n")
		}
	}
	return b.String()
}

func TestTheMetricsInTheDocsAreTheRegisteredOnes(t *testing.T) {
	const file = "docs/metrics.md"
	text := read(t, file)
	before, rest, ok := strings.Cut(text, "| key | better | what it is |\n")
	_, after, ok2 := strings.Cut(rest, "\n\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no table of metrics", file)
	}
	want := before + metricsTable() + "\n" + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != text {
		t.Errorf("the table of %s is not that of the registry, which is\n%s\n(go test . -update writes it)", file, metricsTable())
	}
}
