package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"tessera/data"
)

// The commands of README.md are run in one folder, from top to bottom.
func TestTheCommandsOfREADMEWork(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.shipped()
	if err := data.WriteImages(b.path("images.npy"), []int{32, 32}, swimmer(t)); err != nil {
		t.Fatal(err)
	}
	toml := block(string(text), "toml")
	commands, found := 0, false
	for _, part := range strings.Split(string(text), "```sh\n")[1:] {
		script, _, _ := strings.Cut(part, "```")
		for line := range strings.Lines(script) {
			line = strings.TrimSpace(line)
			if line == "go test -timeout 30m ./..." { // this test is part of it
				continue
			}
			if line == "tessera check" { // the section on one's own models begins
				b.write("models.toml", toml)
			}
			commands++
			printed := b.readme(line)
			if line == "go run ./apps/tessera train swimmer-parts" {
				found = true
				b.partsOfTheSwimmer(printed)
			}
			if line == "tessera train sparse-bars" {
				b.contains("what the reader's own model prints", strings.Join(strings.Fields(printed), " "), "row 8 of 8", "column 8 of 8")
			}
		}
	}
	if commands < 10 || !found {
		t.Errorf("README.md has %d commands, among them the training of the swimmer: %v", commands, found)
	}
	for _, made := range []string{"runs/swimmer-parts/atoms.png", "pictures/00000.png", "runs/sparse-bars"} {
		if !b.exists(made) {
			t.Errorf("%s was not made", made)
		}
	}
}

// The page about one's own data is executed from top to bottom: its table, its declarations and its conclusions.
func TestTheCommandsOfYourDataWork(t *testing.T) {
	awk, err := exec.LookPath("awk")
	if err != nil {
		t.Skip("left out: awk, which makes the table of the page, is not installed")
	}
	page, err := os.ReadFile("../../docs/your-data.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	b := newBench(t)
	b.write("make.awk", block(text, "awk"))
	b.write("models.toml", block(text, "toml"))
	table, err := exec.Command(awk, "-f", b.path("make.awk")).Output()
	if err != nil {
		t.Fatal(err)
	}
	b.write("spectra.csv", string(table))
	commands := 0
	for _, part := range strings.Split(text, "```sh\n")[1:] {
		script, _, _ := strings.Cut(part, "```")
		for line := range strings.Lines(script) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "awk ") {
				continue
			}
			commands++
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
	}
	if commands < 10 {
		t.Errorf("the page has %d commands", commands)
	}
	for _, made := range []string{"curves.png", "atoms.png", "spectra.html", "codes.csv", "predicted.csv"} {
		if !b.exists(made) {
			t.Errorf("%s was not made", made)
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
		args += " --set dataset.limit=500" // of 60,000
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
