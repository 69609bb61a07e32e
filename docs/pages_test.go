package docs_test

import (
	"cmp"
	"errors"
	"flag"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"tessera/attack"
	"testing"

	"tessera"
	"tessera/classical"
	"tessera/config"
	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/constraints"
	"tessera/data"
	"tessera/data/augment"
	"tessera/hooks"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
	"tessera/optim"
)

var update = flag.Bool("update", false, "write docs/parts.md and the tables of docs/shipped-models.md and docs/metrics.md")

// The table of shipped models is at the end of this file, after these lines.
const (
	modelsFile = "docs/shipped-models.md"
	tableHead  = "| model | what it is |\n| --- | --- |\n"
)

// root is the folder of the module, as seen from the folder of the tests.
const root = ".."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	fatal.If(t, err)
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
		fatal.If(t, err)
		want.WriteString("| `" + name + "` | " + m.About + " |\n")
	}
	if *update {
		fatal.If(t, os.WriteFile(filepath.Join(root, modelsFile), []byte(before+tableHead+want.String()), 0o600))
		return
	}
	expect.Equal(t, got, want.String(), modelsFile, "lists")
}

// Every shipped model has a row in the tables of the page of the shipped models, which are those of the sweep, or the page says
// why it has none.
func TestTheTablesOfTheShippedModelsHaveEveryModel(t *testing.T) {
	const page, heading = "docs/reproduction/shipped.md", "\n## Models without a row\n"
	_, missing, ok := strings.Cut(read(t, page), heading)
	if !ok {
		t.Fatalf("%s has no section %q", page, strings.TrimSpace(heading))
	}
	rows := read(t, "docs/reproduction/shipped.csv") + read(t, "docs/reproduction/shipped-costly.csv")
	var without strings.Builder // the first cells of the table of the missing models
	for line := range strings.Lines(missing) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		without.WriteString(cell)
	}
	models := tessera.Shipped()
	sweep, err := models.Sweep("shipped")
	fatal.If(t, err)
	trained := map[string]bool{}
	for _, trial := range sweep.Trials {
		trained[trial.Model.Name] = true
	}
	for _, name := range models.Names() {
		row, reason := true, strings.Contains(without.String(), "`"+name+"`")
		for _, of := range []string{"\nFashion-MNIST,", "\nMNIST,"} {
			row = row && strings.Contains(rows, of+name+",")
		}
		switch {
		case row != trained[name]:
			t.Errorf("%s: %s has rows of both data sets: %v, and is a model of [sweep.shipped]: %v", page, name, row, trained[name])
		case row == reason:
			t.Errorf("%s: %s needs rows or a reason in %q, and not both: has rows %v, a reason %v", page, name, strings.TrimSpace(heading), row, reason)
		}
	}
}

// TestItemsOfListsBeginTheirLines finds items that were joined with the item before when lines were broken again.
func TestItemsOfListsBeginTheirLines(t *testing.T) {
	joined := regexp.MustCompile("[.)`] - (\\*\\*|`|[A-Z])")
	pages := 0
	for _, pattern := range []string{"*.md", "*/*.md"} {
		names, err := filepath.Glob(pattern)
		fatal.If(t, err)
		for _, name := range names {
			pages++
			code := false
			for i, line := range strings.Split(read(t, "docs/"+filepath.ToSlash(name)), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "```") {
					code = !code
				}
				if !code && !strings.HasPrefix(line, "\t") && !strings.HasPrefix(strings.TrimSpace(line), "|") && joined.MatchString(line) {
					t.Errorf("docs/%s:%d: an item of a list is within a line: %s", name, i+1, line)
				}
			}
		}
	}
	if pages < 40 {
		t.Errorf("%d pages", pages)
	}
}

// blocks returns the code blocks of the given language.
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
	sources, err := filepath.Glob("../apps/cli/testdata/outside/parts/*.go")
	fatal.If(t, err)
	examples := trimmed(read(t, "example_test.go"))
	for _, source := range sources {
		examples += trimmed(read(t, strings.TrimPrefix(source, "../")))
	}
	for file, least := range map[string]int{"README.md": 2, "docs/from-go.md": 2, "docs/guide/service.md": 4, "docs/adding-a-part.md": 2} {
		snippets := blocks(read(t, file), "go")
		if len(snippets) < least {
			t.Errorf("%s: %d snippets, want at least %d", file, len(snippets), least)
		}
		for _, snippet := range snippets {
			expect.Contains(t, examples, trimmed(snippet), file, "in no example", snippet)
		}
	}
}

func TestTheErrorOfTheFirstModelIsWhatItGives(t *testing.T) {
	text := read(t, "docs/guide/first-model.md")
	models, err := config.Load("models.toml", []byte(strings.Replace(blocks(text, "toml")[0], "units ", "unitz ", 1)))
	fatal.If(t, err)
	var found *table.Diagnostics
	if err := models.Check(); !errors.As(err, &found) || !strings.Contains(text, "```console\n"+found.Error()+"\n```") {
		t.Errorf("docs/guide/first-model.md does not show\n%v", err)
	}
}

func TestTheDeclarationsOfTheDocsAreRight(t *testing.T) {
	for _, page := range []string{"docs/models.md", "docs/sweeps.md"} {
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
			expect.NoError(t, err)
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

// metricsTable returns the table of docs/metrics.md: first the metrics that are always shown, then the others by name.
func metricsTable() string {
	var b strings.Builder
	b.WriteString("| key | better | what it is |\n| --- | --- | --- |\n")
	names := slices.Clone(metrics.Standard)
	names = lists.Add(names, lists.Map(metrics.Registry.All(), func(e part.Entry[metrics.Metric]) string { return e.Name })...)
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
		fatal.If(t, os.WriteFile(filepath.Join(root, file), []byte(want), 0o600))
		return
	}
	expect.Equal(t, want, text, "the table of", file, "is not that of the registry, which", metricsTable(), "(go test ./docs -update writes it)")
}

// partsFile is generated from the registries and from the doc comments of the registered types.
const (
	partsFile = "docs/parts.md"
	partsHead = "<!-- written by go test ./docs -update -->\n"
)

// chapter describes a kind of parts in docs/parts.md.
type chapter struct {
	heading, kind string // title, and kind as in `tessera list`
	intro         string
	shared        map[string]bool // keys that the introduction describes, and whether their defaults differ
	types         map[string]reflect.Type
}

// typesOf returns the registered types by name.
func typesOf[T any](r *part.Registry[T]) map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, e := range r.All() {
		t := reflect.TypeOf(e.New())
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		types[e.Name] = t
	}
	return types
}

func chapters() []chapter {
	return []chapter{
		{"Losses", "losses", "Every loss has the key `weight`: a number (1.0) or a [schedule](#schedules-of-loss-weights). `on` names what the term reads: " +
			"`output`, `code`, a head, `atoms`, or parameters by a glob of their paths.", map[string]bool{"weight": false, "on": true}, typesOf(losses.Registry)},
		{"Schedules of loss weights", "weights", "`weight = { kind = \"linear\", to = 0.01 }`.", nil, typesOf(losses.Weights)},
		{"Layers and activations", "layers", "The parameters and states of the layers are the tensors of a run: [Python and R](python.md#layout-of-the-tensors).", nil,
			typesOf(layers.Registry)},
		{"Initial values", "inits", "`init = \"he_normal\"`, or a table. Biases begin at 0.", nil, typesOf(layers.Inits)},
		{"Constraints", "constraints", "Every constraint has the key `on` = \"decoder.*.weight\": a glob over parameter paths.", map[string]bool{"on": false},
			typesOf(constraints.Registry)},
		{"Optimizers", "optimizers", "All optimizers but `lbfgs` have the keys `clip_norm` = 0.0 (largest norm of the whole gradient; 0 does not clip) and " +
			"`schedule`, a [schedule](#schedules-of-the-learning-rate).", map[string]bool{"clip_norm": false, "schedule": false}, typesOf(optim.Registry)},
		{"Schedules of the learning rate", "schedules", "A schedule is a factor of `learning_rate`, computed at every step. Every schedule has the key " +
			"`warmup_epochs` = 0.0: number of epochs over which the rate rises linearly from 0.", map[string]bool{"warmup_epochs": false}, typesOf(optim.Schedules)},
		{"Hooks", "hooks", "", nil, typesOf(hooks.Registry)},
		{"Attacks", "attacks", "`attack = \"fgsm\"`, or a table, of the hook [adversarial](#adversarial); [Robustness](robustness.md) measures all of them.", nil, typesOf(attack.Registry)},
		{"Augmentations", "augmentations", "", nil, typesOf(augment.Registry)},
		{"Data sets", "datasets", "[Data sets](data.md) describes files, scales, and the keys `fit`, `limit`, `validation` and `labelled` of every data set.",
			map[string]bool{"fit": false, "limit": false, "validation": false, "labelled": false}, typesOf(data.Registry)},
		{"Drawn columns", "columns", "[Models](models.md#drawn-columns) says when they are drawn.", nil, typesOf(data.Draws)},
		{"Baselines", "baselines", "[Models](models.md#baselines) compares them and describes the keys `about`, `extends`, `dataset` and `train`.",
			map[string]bool{"about": false, "extends": false, "dataset": false, "train": false}, typesOf(classical.Registry)},
	}
}

// comments returns the doc comments of the types and functions of a package of this module, by name; with names of functions
// in lower case.
func comments(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	fatal.If(t, err)
	found := map[string]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		fatal.If(t, err)
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					found["func "+strings.ToLower(d.Name.Name)] = d.Doc.Text()
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if spec, ok := s.(*ast.TypeSpec); ok {
						found[spec.Name.Name] = cmp.Or(spec.Doc.Text(), d.Doc.Text())
					}
				}
			}
		}
	}
	return found
}

// markdown returns a doc comment as Markdown with lines of at most 150 bytes. Its links to Go names become the names.
func markdown(text string) string {
	parser := comment.Parser{LookupPackage: func(string) (string, bool) { return "", false }, LookupSym: func(_, _ string) bool { return true }}
	printer := comment.Printer{DocLinkURL: func(*comment.DocLink) string { return "" }}
	var b strings.Builder
	plain := strings.NewReplacer("\\_", "_", "\\[", "[", "\\`", "`", "\\<", "<") // these mean nothing within our sentences
	for line := range strings.Lines(plain.Replace(string(printer.Markdown(parser.Parse(text))))) {
		b.WriteString(wrapped(strings.TrimRight(line, "\n"), ""))
	}
	return b.String()
}

// marks match words that would be the sign of a list, a heading or a quotation at the start of a line.
var marks = regexp.MustCompile(`^([-+*]|[0-9]+[.)]|[=>#].*|--+)$`)

// wrapped breaks a line of Markdown. Continuation lines begin with indent, and none with a sign of Markdown. Code is not changed.
func wrapped(line, indent string) string {
	if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "    ") {
		return line + "\n"
	}
	var words []string
	for i, word := range strings.Fields(line) {
		if i > 1 && marks.MatchString(word) {
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
	}
	var b strings.Builder
	width := 0
	for i, word := range words {
		switch {
		case i == 0:
		case width+1+len(word) > 150:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String() + "\n"
}

func TestWrappedLinesAreShortAndBeginWithWords(t *testing.T) {
	for end, want := range map[string]string{"2, it": "\n  2, it\n", "- it": "\n  longest - it\n", "1. it": "\n  longest 1. it\n", "-3 it": "\n  -3 it\n", "= 3": "\n  longest = 3\n"} {
		if got := wrapped("- "+strings.Repeat("word ", 28)+"longest "+end, "  "); !strings.HasSuffix(got, want) || strings.Index(got, "\n") > 150 {
			t.Errorf("%s: got %q, want %q at the end", end, got, want)
		}
	}
}

// keyLines returns descriptions of the keys of a part: default, range, meaning. For a shared key it contains only the default,
// and only if the parts have different defaults.
func keyLines(keys []table.KeyDescription, shared map[string]bool) string {
	var b strings.Builder
	for _, k := range keys {
		differs, known := shared[k.Key]
		if known && !differs {
			continue
		}
		line := "- `" + k.Key + "`"
		switch {
		case k.Required:
			line += ", required"
		case k.Default != "":
			line += " = `" + k.Default + "`"
		}
		if strings.ContainsAny(k.Want, "0123456789") || len(k.Choices) > 0 && len(k.Choices) < 8 {
			line += ", " + k.Want
		}
		if !known {
			line += ": " + k.About
		}
		b.WriteString(wrapped(line, "  "))
	}
	if b.Len() > 0 {
		return "\n" + b.String()
	}
	return ""
}

// partsPage returns docs/parts.md without its first lines.
func partsPage(t *testing.T) string {
	t.Helper()
	texts := map[string]map[string]string{}
	var b strings.Builder
	for _, c := range chapters() {
		b.WriteString("\n## " + c.heading + "\n")
		if c.intro != "" {
			b.WriteString("\n" + wrapped(c.intro, ""))
		}
		list, ok := config.Describe(c.kind)
		if !ok || len(list) != len(c.types) {
			t.Fatalf("%s: %d parts in the language, %d registered", c.kind, len(list), len(c.types))
		}
		for _, d := range list {
			of := c.types[d.Name]
			folder, ok := strings.CutPrefix(of.PkgPath(), "tessera/")
			if !ok {
				continue // a part of an example
			}
			if texts[folder] == nil {
				texts[folder] = comments(t, folder)
			}
			name := of.Name()
			if !ast.IsExported(name) { // a shared type: its constructor has the comment
				name = "func " + strings.ReplaceAll(d.Name, "-", "")
			}
			text := texts[folder][name]
			if _, shared := reflect.New(of).Interface().(table.Shared); shared { // with a comment on all of them
				text = "Files: " + d.About + "."
			}
			if text == "" {
				t.Errorf("%s %s: the type %s of package %s has no doc comment", c.kind, d.Name, of.Name(), folder)
			}
			b.WriteString("\n### " + d.Name + "\n\n" + markdown(text) + keyLines(d.Keys, c.shared))
		}
	}
	return b.String()
}

func TestThePageOfPartsIsThatOfTheSource(t *testing.T) {
	before, got, ok := strings.Cut(read(t, partsFile), partsHead)
	if !ok {
		t.Fatalf("%s has no line %q", partsFile, partsHead)
	}
	want := partsPage(t)
	if *update {
		fatal.If(t, os.WriteFile(filepath.Join(root, partsFile), []byte(before+partsHead+want), 0o600))
		return
	}
	expect.Equal(t, got, want, partsFile, "is not what the source says (go test ./docs -update writes it)")
}
