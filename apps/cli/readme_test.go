package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"tessera/data"
)

// The commands of README.md are run in one folder, from top to bottom, on the table of docs/your-data.md.
func TestTheCommandsOfREADMEWork(t *testing.T) {
	t.Parallel()
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

// The commands of the tour are run in one folder, from top to bottom.
func TestTheCommandsOfTheTourWork(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.shipped()
	if err := data.WriteImages(b.path("images.npy"), []int{32, 32}, swimmer(t)); err != nil {
		t.Fatal(err)
	}
	for _, line := range b.commands("docs/tour.md", 15) {
		if line == "tessera check" { // the section on the reader's own models begins
			b.write("models.toml", block(documented(t, "docs/tour.md"), "toml"))
		}
		printed := b.readme(line)
		if line == "tessera train sparse-bars" {
			b.contains("what the reader's own model prints", strings.Join(strings.Fields(printed), " "), "row 8 of 8", "column 8 of 8")
		}
	}
	b.made("pictures/00000.png", "runs/sparse-bars")
}

// The page about one's own data is executed from top to bottom: its table, its declarations and its conclusions.
func TestTheCommandsOfYourDataWork(t *testing.T) {
	t.Parallel()
	text := documented(t, "docs/your-data.md")
	b := newBench(t)
	b.spectra()
	b.write("models.toml", block(text, "toml"))
	for _, line := range b.commands("docs/your-data.md", 10) {
		printed := strings.Join(strings.Fields(b.readme(line)), " ")
		switch line {
		case "tessera check": // but for the last line, which counts the shipped models
			lines := strings.SplitAfter(b.readme(line), "\n")
			b.contains("the page has what check prints", text, "```text\n"+strings.Join(lines[:len(lines)-2], ""))
		case "tessera train spectra-8":
			b.contains(line, printed, "useful_units 6 6")
		case "tessera sweep units":
			b.contains(line, printed, "spectra 6 3 of 3 1.5", "spectra 5 3 of 3 0.00")
		case "tessera rank spectra-nmf --ranks 4,5,6,7,8":
			b.contains(line, printed, "least, fewest within one standard error 7")
		case "tessera compare sweeps/against-nmf":
			b.contains(line, printed, "A and B 0.99")
		}
	}
	b.made("curves.png", "atoms.png", "spectra.html", "codes.csv", "predicted.csv")
}

// documented returns the text of a page of the repository.
func documented(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// commands returns the lines of the shell blocks of a page, but for those that other tests run: the test command, and awk,
// which [bench.spectra] runs.
func (b *bench) commands(page string, least int) (lines []string) {
	b.Helper()
	for _, part := range strings.Split(documented(b.T, page), "```sh\n")[1:] {
		script, _, _ := strings.Cut(part, "```")
		for line := range strings.Lines(script) {
			if line = strings.TrimSpace(line); line != "go test -timeout 30m ./..." && !strings.HasPrefix(line, "awk ") {
				lines = append(lines, line)
			}
		}
	}
	if len(lines) < least {
		b.Fatalf("%s has %d commands, want at least %d", page, len(lines), least)
	}
	return lines
}

// spectra writes spectra.csv, the table of docs/your-data.md.
func (b *bench) spectra() {
	b.Helper()
	awk, err := exec.LookPath("awk")
	if err != nil {
		b.Skip("left out: awk, which makes the table of the page, is not installed")
	}
	b.write("make.awk", block(documented(b.T, "docs/your-data.md"), "awk"))
	table, err := exec.Command(awk, "-f", b.path("make.awk")).Output()
	if err != nil {
		b.Fatal(err)
	}
	b.write("spectra.csv", string(table))
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
	for path, line := range map[string]string{"../../README.md": "\ngo run ./apps/tessera train swimmer-parts\ngo test -timeout 30m ./...\n", "../../.ci/run": "\ngo test -timeout 30m ./...\n"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), line) {
			t.Errorf("%s does not have the lines %q", path, line)
		}
	}
}

// readme runs one line of README.md.
func (b *bench) readme(line string) (stdout string) {
	b.Helper()
	args, ok := strings.CutPrefix(line, "tessera ")
	if !ok {
		args, ok = strings.CutPrefix(line, "go run ./apps/tessera ")
	}
	if !ok {
		b.Fatalf("not a command of tessera: %s", line)
	}
	if strings.HasPrefix(args, "train parts ") {
		args += " --set dataset.limit=100" // of 60,000
	}
	cmd := b.command(strings.Fields(args)...)
	if strings.Contains(line, "fashion-mnist") || strings.Contains(line, "train parts") || strings.Contains(line, "runs/parts") {
		folder := os.Getenv(data.EnvDir)
		if folder == "" {
			b.Logf("left out, %s is not set: %s", data.EnvDir, line)
			return ""
		}
		cmd.Env = append(cmd.Env, data.EnvDir+"="+folder)
	}
	r := b.finish(cmd)
	if r.code != 0 {
		b.Fatalf("%s: exit code %d\n%s", line, r.code, r.stderr)
	}
	return r.stdout
}

// block returns the first code block of the given language in a text.
func block(text, language string) string {
	_, rest, _ := strings.Cut(text, "```"+language+"\n")
	code, _, _ := strings.Cut(rest, "```")
	return code
}
