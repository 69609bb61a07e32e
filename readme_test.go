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
	"tessera/table"
)

var update = flag.Bool("update", false, "write the tables of README.md and docs/metrics.md again")

// The table of shipped models stands between these lines of README.md.
const tableHead, tableFoot = "| model | what it is |\n| --- | --- |\n", "\n## Checks\n"

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestREADMEListsTheShippedModels(t *testing.T) {
	text := readme(t)
	before, rest, ok := strings.Cut(text, tableHead)
	got, after, ok2 := strings.Cut(rest, tableFoot)
	if !ok || !ok2 {
		t.Fatal("README.md has no table of models")
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
		if err := os.WriteFile("README.md", []byte(before+tableHead+want.String()+tableFoot+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want.String() {
		t.Errorf("README.md lists\n%s\nwant\n%s\n(go test . -update writes it)", got, want.String())
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

func TestGoInREADMEIsThatOfTheExamples(t *testing.T) {
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	snippets := blocks(readme(t), "go")
	if len(snippets) != 2 {
		t.Errorf("%d snippets, want 2", len(snippets))
	}
	for _, snippet := range snippets {
		if !strings.Contains(trimmed(string(examples)), trimmed(snippet)) {
			t.Errorf("not in example_test.go:\n%s", snippet)
		}
	}
}

func TestTheMistakeInREADMEIsWhatItsModelGives(t *testing.T) {
	text := readme(t)
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
	text, err := os.ReadFile("docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	found := blocks(string(text), "toml")
	if len(found) < 2 {
		t.Fatalf("docs/models.md has %d declarations", len(found))
	}
	for _, declaration := range found {
		models, err := config.Load("docs/models.md", []byte(declaration))
		if err == nil {
			err = models.Check()
		}
		if err != nil {
			t.Errorf("%v", err)
		}
	}
	for _, of := range []any{config.Model{}, config.Train{}} {
		for i := range reflect.TypeOf(of).NumField() {
			if key := reflect.TypeOf(of).Field(i).Tag.Get("toml"); key != "" && !strings.Contains(string(text), "`"+key+"`") {
				t.Errorf("docs/models.md does not tell of %s", key)
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
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), "| key | better | what it is |\n")
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
	if want != string(text) {
		t.Errorf("the table of %s is not that of the registry, which is\n%s\n(go test . -update writes it)", file, metricsTable())
	}
}
