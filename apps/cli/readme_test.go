package cli

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// The commands of README.md are run in one folder, from top to bottom, on the table of docs/guide/table.md.
func TestTheCommandsOfREADMEWork(t *testing.T) {
	b := newBench(t)
	b.shipped()
	b.spectra()
	for _, line := range b.commands("README.md", 4) {
		printed := b.readme(line)
		switch line {
		case "go run ./apps/tessera train swimmer-parts":
			b.partsOfTheSwimmer(printed)
		case "tessera init spectra.csv":
			b.contains("what init declares", b.read("models.toml"), "[model.spectra]", "[sweep.")
		}
	}
	b.made("runs/swimmer-parts/atoms.png", "spectra.html")
}

// The pages of the guide are followed from top to bottom, those of one line in one folder: their files are written, their
// commands are run, and what they show is compared with what is printed.
func TestTheGuideIsWhatItsCommandsPrint(t *testing.T) {
	t.Parallel()
	walks := [][]string{{"first-model"}, {"photos"}, {"table", "how-many"}, {"topics"}, {"words"}, {"language"}, {"dictionaries"}, {"classify"}, {"complete"}, {"recommend"}, {"generate"}, {"service"}, {"many-machines"}}
	pages, err := filepath.Glob("../../docs/guide/*.md")
	if err != nil || len(pages) != len(slices.Concat(walks...)) {
		t.Errorf("%d pages in docs/guide, %d are followed: %v", len(pages), len(slices.Concat(walks...)), err)
	}
	for _, walk := range walks {
		t.Run(walk[0], func(t *testing.T) {
			b := newBench(t)
			b.shipped()
			if walk[0] == "photos" {
				fatal.If(t, data.WriteImages(b.path("photos"), []int{32, 32}, swimmer(t)))
			}
			for _, page := range walk {
				b.walk("docs/guide/" + page + ".md")
			}
		})
	}
}

// walk does what a page says: it writes the blocks of awk and TOML as make.awk and models.toml, runs the lines of shell blocks,
// and compares blocks of text with what the commands before them printed.
func (b *bench) walk(page string) {
	b.Helper()
	text := documented(b.T, page)
	if strings.Contains(text, "fashion-mnist") && os.Getenv(data.EnvDir) == "" {
		b.Skipf("left out, %s is not set", data.EnvDir)
	}
	var printed string
	for i, part := range strings.Split("\n"+text, "\n```") {
		language, block, _ := strings.Cut(part, "\n")
		if i%2 == 0 {
			continue // between blocks
		}
		switch language {
		case "awk":
			b.write("make.awk", block+"\n")
		case "toml":
			b.write("models.toml", block+"\n")
		case "sh":
			printed = ""
			for line := range strings.Lines(block) {
				printed += b.readme(strings.TrimSpace(line))
			}
		case "text":
			if missing := unprinted(block, printed); printed != "" && missing != "" {
				b.Errorf("%s shows a line that its commands do not print: %s\nprinted:\n%s", page, missing, printed)
			}
		}
	}
}

// number matches a number with its sign and exponent, without commas.
var number = regexp.MustCompile(`[-+]?[0-9][0-9,]*(\.[0-9]+)?(e[-+]?[0-9]+)?`)

// unprinted returns the first line of a block that the output does not have, in the order of the block. Lines are equal if their
// words are, and their numbers up to a fifth, which other kernels may change; numbers after ± may be any. "..." stands for any lines.
func unprinted(block, output string) string {
	lines := strings.Split(output, "\n")
	for want := range strings.Lines(block) {
		if want = strings.TrimSpace(want); want == "" || want == "..." {
			continue
		}
		at := slices.IndexFunc(lines, func(got string) bool { return alike(want, got) })
		if at < 0 {
			return want
		}
		lines = lines[at+1:]
	}
	return ""
}

func alike(want, got string) bool {
	words := func(s string) string { return strings.Join(strings.Fields(number.ReplaceAllString(s, "#")), " ") }
	if words(want) != words(got) {
		return false
	}
	at, of := number.FindAllStringIndex(want, -1), number.FindAllString(got, -1)
	for i, place := range at {
		x, err1 := strconv.ParseFloat(strings.ReplaceAll(want[place[0]:place[1]], ",", ""), 64)
		y, err2 := strconv.ParseFloat(strings.ReplaceAll(of[i], ",", ""), 64)
		if errors.Join(err1, err2) != nil || math.Abs(x-y) > 0.2*max(math.Abs(x), math.Abs(y)) && !strings.HasSuffix(want[:place[0]], "± ") {
			return false
		}
	}
	return true
}

func TestLinesThatACommandDoesNotPrintAreFound(t *testing.T) {
	const output = "run  runs/a\nmse  0.0100 ± 0.003  12,000\nunits  6\n"
	for block, want := range map[string]string{
		"run runs/a\n...\nunits  6\n":  "",
		"mse 0.0104 ± 0.1  11,500\n":   "",
		"mse 0.0140 ± 0.003  12,000\n": "mse 0.0140 ± 0.003  12,000",
		"units  6\nrun  runs/a\n":      "run  runs/a",
		"useful units  6\n":            "useful units  6",
		"run  runs/a\nunits  6 6\n":    "units  6 6",
	} {
		expect.Equal(t, unprinted(block, output), want, block)
	}
}

// documented returns the text of a page of the repository.
func documented(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	fatal.If(t, err)
	return string(text)
}

// commands returns the lines of the shell blocks of a page, but for those that other tests run: the test command, and awk,
// which [bench.spectra] runs.
func (b *bench) commands(page string, least int) (lines []string) {
	b.Helper()
	for _, part := range strings.Split(documented(b.T, page), "```sh\n")[1:] {
		script, _, _ := strings.Cut(part, "```")
		for line := range strings.Lines(script) {
			if line = strings.TrimSpace(line); line != "go test -timeout 30m -ldflags=-w ./..." && !strings.HasPrefix(line, "awk ") {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) < least {
		b.Fatalf("%s has %d commands, want at least %d", page, len(lines), least)
	}
	return lines
}

// spectra writes spectra.csv, the table of docs/guide/table.md.
func (b *bench) spectra() {
	b.Helper()
	b.write("make.awk", block(documented(b.T, "docs/guide/table.md"), "awk"))
	b.readme("awk -f make.awk > spectra.csv")
}

// made reports each missing file.
func (b *bench) made(files ...string) {
	b.Helper()
	for _, file := range files {
		if !b.exists(file) {
			b.Errorf("%s was not made", file)
		}
	}
}

// CI runs the test command of README.md, so both must be equal.
func TestREADMEHasTheTestCommandOfCI(t *testing.T) {
	for path, line := range map[string]string{"../../README.md": "\ngo run ./apps/tessera train swimmer-parts\ngo test -timeout 30m -ldflags=-w ./...\n", "../../.ci/run": "\ngo test -timeout 30m -ldflags=-w ./...\n"} {
		text, err := os.ReadFile(path)
		fatal.If(t, err)
		expect.Contains(t, string(text), line, path, "does not have the lines")
	}
}

// argument matches an argument of a shell command, with quoted parts.
var argument = regexp.MustCompile(`([^\s']|'[^']*')+`)

// shell runs the few other commands of pages; ok is false for another line.
func (b *bench) shell(line string) (stdout string, ok bool) {
	b.Helper()
	if folders, ok := strings.CutPrefix(line, "mkdir -p "); ok {
		for _, folder := range strings.Fields(folders) {
			fatal.If(b, os.MkdirAll(b.path(folder), 0o700))
		}
		return "", true
	}
	if text, file, ok := strings.Cut(strings.TrimPrefix(line, "echo '"), "' > "); ok && strings.HasPrefix(line, "echo '") {
		b.write(file, text+"\n")
		return "", true
	}
	if file, ok := strings.CutPrefix(line, "cat "); ok {
		return b.read(file), true
	}
	return "", false
}

// shorter has what a test adds to commands that train long although their page shows no number of the run, or one that a shorter training reaches:
// how the command is written, and what the commands behind it make of the run, needs no trained weights.
var shorter = map[string][]string{
	"train vq-vae":      {"--set", `dataset={name="shapes",validation=0.1,count=500,test=50,height=28,width=28}`, "--epochs", "1"}, // as large as clothes
	"train vq-prior":    {"--set", "dataset.limit=500", "--set", "encoder.0.units=8", "--epochs", "1"},
	"train bert-mini":   {"--set", "dataset.grammar=500", "--epochs", "1"},
	"train gpt-grammar": {"--set", "dataset.grammar=12000"}, // the perplexity is within a fifth of the page's
	"train photos":      {"--epochs", "2"},
	"train parts --set dataset.name=images --set dataset.file=photos --set dataset.size=28 --epochs 20 -o runs/mine": {"--epochs", "1"},
}

// readme runs a line of a page: a command of tessera, or awk, which writes files or whose output goes into one.
func (b *bench) readme(line string) (stdout string) {
	b.Helper()
	if stdout, ok := b.shell(line); ok {
		return stdout
	}
	if line, ok := strings.CutPrefix(line, "awk -f make.awk"); ok {
		file := strings.TrimPrefix(line, " > ")
		awk, err := exec.LookPath("awk")
		if err != nil {
			b.Skip("left out: awk, which makes the table of the page, is not installed")
		}
		run := exec.Command(awk, "-f", "make.awk")
		run.Dir = b.path("")
		table, err := run.Output()
		fatal.If(b, err)
		if file != "" {
			b.write(file, string(table))
		}
		return ""
	}
	args, ok := strings.CutPrefix(line, "tessera ")
	if !ok {
		args, ok = strings.CutPrefix(line, "go run ./apps/tessera ")
	}
	if !ok {
		b.Fatalf("not a command of tessera: %s", line)
	}
	words := argument.FindAllString(args, -1)
	for i, word := range words {
		words[i] = strings.ReplaceAll(word, "'", "")
	}
	if args == "train swimmer-parts" && !b.exists("runs") { // three pages begin with it
		return b.swimmerParts()
	}
	cmd := b.command(append(words, shorter[args]...)...)
	if folder := os.Getenv(data.EnvDir); folder != "" {
		cmd.Env = append(cmd.Env, data.EnvDir+"="+folder)
	}
	r := b.finish(cmd)
	if r.code != 0 {
		b.Fatalf("%s: exit code %d\n%s", line, r.code, r.stderr)
	}
	return r.stdout
}

// swimmerRun is the run of the command with which pages begin. TestMain removes its folder.
var swimmerRun struct {
	sync.Once
	folder, stdout string
}

// swimmerParts gives the bench a copy of the run of the command with which pages begin, and returns what the command printed.
func (b *bench) swimmerParts() string {
	b.Helper()
	if testing.Short() {
		b.Skip("trains a model")
	}
	swimmerRun.Do(func() {
		folder, err := os.MkdirTemp("", "swimmer")
		fatal.If(b, err)
		in := &bench{b.T, b.binary, folder}
		swimmerRun.folder, swimmerRun.stdout = folder, in.must(0, "train", "swimmer-parts").stdout
	})
	fatal.If(b, os.CopyFS(b.path("runs"), os.DirFS(filepath.Join(swimmerRun.folder, "runs"))))
	return swimmerRun.stdout
}

// block returns the first code block of the given language in a text.
func block(text, language string) string {
	_, rest, _ := strings.Cut(text, "```"+language+"\n")
	code, _, _ := strings.Cut(rest, "```")
	return code
}
