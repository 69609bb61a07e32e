package cli

import (
	"fmt"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

func TestInitWritesModelsThatTrain(t *testing.T) {
	b := newBench(t)
	refused := b.must(exitUsage, "init")
	b.contains("standard error", refused.stderr, "models.toml exists already and is not replaced", "tessera init DIR")
	b.write("my houses.csv", "area,price\n"+strings.Repeat("1,2\n2,3\n3,5\n", 7))
	refused = b.must(exitUsage, "init", "my houses.csv") // as it says
	b.contains("standard error", refused.stderr, "not replaced; remove it first, or work in a new folder: mkdir my-houses-models && cd my-houses-models && tessera init '../my houses.csv'")
	expect.Equal(t, b.read("models.toml"), smallModels, "init changed a file")
	b.contains("standard output", b.must(0, "init", "new/folder").stdout, "cd new/folder && tessera train my-bars")
	b.write("file", "")
	b.must(exitWrite, "init", "file/folder")
	b.shipped()
	b.contains("standard output", b.must(0, "init").stdout, "next: `tessera train my-bars`")
	b.contains("check", b.must(0, "check").stdout, "models.toml: 2 models, 1 sweep, no errors")
	for _, model := range []string{"my-bars", "my-limbs"} {
		b.must(0, "train", model, "--epochs", "1", "--quiet")
	}
	b.contains("check", b.must(0, "check").stdout, fmt.Sprintf("also available: %d models", len(tessera.Shipped().Names()))) // the new ones replace none
	b.contains("sweep", b.must(0, "sweep", "sparsity", "--dry-run").stdout, "loss.1.weight", "waiting")
}

// The help topic contains declarations as indented lines, from [model.NAME] or [sweep.NAME] to the next empty line.
func TestTheDeclarationsOfTheHelpTopicAreRight(t *testing.T) {
	t.Parallel()
	var declared strings.Builder
	in := false
	for line := range strings.Lines(modelsText) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
		in = strings.HasPrefix(line, "  [") || in && strings.TrimSpace(line) != ""
		if in {
			declared.WriteString(line)
		}
	}
	f, err := config.Load("topic", []byte(declared.String()))
	fatal.If(t, err)
	f.Extend(tessera.Shipped())
	if err := f.Check(); err != nil || f.FileOf("NAME") != "topic" || f.FileOfSweep("NAME") != "topic" {
		t.Errorf("%v\n%s", err, declared.String())
	}
	b := benchOf(t)
	b.contains("help", b.must(0, "help", "models").stdout, "[model.NAME]", "tessera docs DIR", "\n  errors         tessera check [FILE]\n")
}

func TestDocsWritesManPagesCompletionsAndPages(t *testing.T) { // not parallel: newRoot changes template functions of all commands
	b := benchOf(t)
	b.must(exitUsage, "docs")
	b.must(0, "docs", "out/docs")
	for _, c := range newRoot(widest).Commands() {
		b.contains(c.Name(), b.read("out/docs/man1/tessera-"+c.Name()+".1"), ".TH ", "tessera-"+c.Name())
	}
	b.contains("flags", b.read("out/docs/man1/tessera-rank.1"), `--ranks\fP=INTS`, `--folds\fP=INT`, "otherwise 2)")
	b.contains("models", b.read("out/docs/man1/tessera-models.1"), "dataset = ")
	b.contains("data get", b.read("out/docs/man1/tessera-data-get.1"), ".SH SYNOPSIS")
	for shell, says := range map[string]string{"tessera.bash": "complete -o default -F __start_tessera", "_tessera": "#compdef tessera",
		"tessera.fish": "complete -c tessera", "tessera.ps1": "Register-ArgumentCompleter"} {
		b.contains(shell, b.read("out/docs/completions/"+shell), says)
	}
	b.contains("models.md", b.read("out/docs/models.md"), "## extends")
	b.write("file", "")
	b.must(exitWrite, "docs", "file")
}

// The parts of one kind have one row, also where kinds take turns.
func TestPartsOfAKindHaveOneRow(t *testing.T) {
	part := func(kind string, cosine float64) tessera.FoundPart {
		return tessera.FoundPart{Kind: kind, Part: metrics.Part{Found: cosine > 0.9, Cosine: cosine}}
	}
	rows := partsTable([]tessera.FoundPart{part("disc", 0.95), part("line", 0.5), part("disc", 0.2), part("line", 0.97)}).Rows
	if len(rows) != 2 || fmt.Sprint(rows[0][:2]) != "[disc {1 1 of 2}]" || fmt.Sprint(rows[1][:2]) != "[line {1 1 of 2}]" {
		t.Errorf("got %v", rows)
	}
}

// Samples that are generated are checked as those of files.
func TestCheckGeneratesSamples(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.m]\nkind = \"nmf\"\ncomponents = 2\ndataset = { name = \"linear_rules\", count = 50 }\n")
	b.contains("check", b.must(exitData, "check").stderr, "nmf takes numbers >= 0")
}
