package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tessera/config"
	"tessera/internal/fatal"
)

// outsideBinary builds the tests of the module in testdata/outside once. They are also the command with the parts of that module, so that
// one binary is linked instead of two.
var outsideBinary = sync.OnceValues(func() (path string, err error) {
	if outsideFolder, err = os.MkdirTemp("", "outside"); err != nil {
		return "", err
	}
	path = filepath.Join(outsideFolder, "outside")
	if err := goes("vet", "."); err != nil { // the module's own command
		return "", err
	}
	return path, goes("test", "-c", "-ldflags=-s -w", "-o", path, "./parts") // without debugging information it is linked in half the time
})

// outsideFolder contains the binary of [outsideBinary]. TestMain removes it.
var outsideFolder string

// outside returns a bench for the command of the module in testdata/outside, which registers parts of its own.
func outside(t *testing.T) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the command of another module")
	}
	b := benchOf(t)
	path, err := outsideBinary()
	fatal.If(t, err)
	b.binary = path
	text, err := os.ReadFile("testdata/outside/models.toml")
	fatal.If(t, err)
	b.write("models.toml", string(text))
	return b
}

// goes runs the go command in the outside module, without a network.
func goes(args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = "testdata/outside"
	cmd.Env = append(os.Environ(), "GOPROXY=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s(the requirements of testdata/outside/go.mod and go.sum are copies of those of this module)", strings.Join(args, " "), err, out)
	}
	return nil
}

func TestAModuleOutsideHasItsOwnPartsInEveryCommand(t *testing.T) {
	t.Parallel()
	b := outside(t)
	for kind, part := range map[string]string{"layers": "centre", "losses": "pair_spread", "hooks": "wobble", "datasets": "stripes", "augmentations": "darken", "metrics": "mean_code", "columns": "lognormal", "scalings": "square_root",
		"constraints": "at_least", "optimizers": "row_scaled", "schedules": "root", "weights": "alternating", "inits": "signs", "baselines": "medians", "attacks": "noise", "criteria": "errors", "calibrations": "halved", "formats": "sizes"} {
		b.contains("list "+kind, b.must(0, "list", kind).stdout, part)
	}
	b.must(0, "check")
	b.contains("a wrong key of an outside part", b.must(exitConfig, "train", "stripes", "--set", "hook.wobble.sice=1").stderr, `did you mean "size"?`)
	b.contains("a wrong value", b.must(exitConfig, "train", "stripes", "--set", "dataset.count=0").stderr, "count", "[1,100000]")
	b.must(0, "train", "stripes", "--epochs", "2", "--out", "run")
	b.contains("config.toml", b.read("run/config.toml"), `name = "stripes"`, `kind = "centre"`, "wobble")
	b.contains("eval", b.must(0, "eval", "run", "--json").stdout, `"mean_code"`)
	b.contains("calibrate", b.must(exitUsage, "calibrate", "run", "--method", "halve").stderr, "halved")
	b.contains("attack", b.must(0, "attack", "run", "--attack", "noise,fgsm", "--set", "tries=2", "--limit", "5").stdout, "noise", "tries 2")
	b.must(0, "export", "run", "--to", "sizes", "-o", "sizes.txt")
	b.contains("an outside format", b.read("sizes.txt"), "encoder.")
	b.must(0, "export", "run", "--to", "onnx", "--part", "encoder", "-o", "encoder.onnx")
	b.contains("the form of the op of centre", b.read("encoder.onnx"), "ReduceMean", "encoder.0")
	b.contains("help", b.must(0, "figure", "--help").stdout, "lengths of the atoms of runs")
	b.must(0, "figure", "lengths", "run", "-o", "lengths.svg")
	b.contains("a figure of another module", b.read("lengths.svg"), "lengths of atoms")
	b.must(0, "report", "run", "-o", "run.html")
	b.contains("a section of another module", b.read("run.html"), "<h2>Lengths of atoms</h2>", "atoms with a length")
	b.must(0, "train", "pairs", "--out", "pairs")
	b.contains("eval of a model without a decoder", b.must(0, "eval", "pairs", "--json").stdout, `"mean_code"`)
	b.must(0, "train", "every", "--out", "every")
	b.must(0, "train", "every", "--set", "optimizer.kind=signed", "--out", "signed")
	b.must(0, "train", "medians", "--out", "medians")
	b.contains("eval of a baseline", b.must(0, "eval", "medians", "--json").stdout, `"mean_code"`)
	b.must(0, "sweep", "counts", "--epochs", "1")
	b.contains("the table of the sweep", b.read("sweeps/counts/results.csv"), "mean_code", "60", "90")
}

// A command of another module is one struct with tags: it is in help and completion, and its flags are checked as those of all commands.
func TestACommandOfAnotherModule(t *testing.T) {
	t.Parallel()
	b := outside(t)
	b.must(0, "train", "stripes", "--epochs", "1", "--out", "run")
	b.contains("help", b.must(0, "--help").stdout, "peaks ", "Print the largest value of each atom")
	b.contains("its help", b.must(0, "peaks", "--help").stdout, "tessera peaks RUN", "--above number", "leave out atoms")
	b.contains("completion", b.must(0, "__complete", "pea").stdout, "peaks")
	b.contains("completion of flags", b.must(0, "__complete", "peaks", "run", "--a").stdout, "--above")
	b.contains("a wrong value", b.must(exitUsage, "peaks", "run", "--above", "-1").stderr, "--above: got -1, want a number >= 0")
	b.contains("no run", b.must(exitUsage, "peaks", "nowhere").stderr, "nowhere: no such folder")
	b.contains("the table", b.must(0, "peaks", "run").stdout, "atom", "peak", "0 ")
	b.contains("JSON", b.must(0, "peaks", "run", "--json").stdout, `"atoms": [`, `"peak": `)
}

// docs/adding-a-part.md contains, for every kind that list prints, a section with an example.
func TestEveryKindOfPartHasASectionOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/adding-a-part.md")
	fatal.If(t, err)
	for _, kind := range append(config.Vocabularies(), metricsTitle) {
		row := regexp.MustCompile("(?m)^\\| `" + kind + "` \\| .*`laws\\..*\\[(.+?)\\]\\(#").FindSubmatch(page)
		if row == nil {
			t.Errorf("the table of docs/adding-a-part.md has no row of %s with its laws and a section", kind)
		} else if !strings.Contains(string(page), "\n## "+string(row[1])+"\n") {
			t.Errorf("%s: there is no section %q", kind, row[1])
		}
	}
}

func TestTheOutsidePartsObeyTheLaws(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles the tests of another module")
	}
	path, err := outsideBinary()
	fatal.If(t, err)
	cmd := exec.Command(path)
	cmd.Dir = "testdata/outside/parts"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A run with a stateful hook is killed ten times. Before each kill, metrics.jsonl must contain some new epochs.
func TestAnOutsideRunIsKilledTenTimesAndResumed(t *testing.T) {
	t.Parallel()
	const kills, between = 10, 20
	b := outside(t)
	train := func(out, epochs string) []string {
		return []string{"train", "stripes", "--out", out, "--epochs", epochs, "--set", "train.checkpoint_seconds=0"}
	}
	for kill := range kills {
		args := []string{"resume", "killed"}
		if kill == 0 {
			args = train("killed", "100000")
		}
		if !b.killWhen(func() bool { return b.measured("killed") >= (kill+1)*between }, 0, args...) {
			t.Fatalf("kill %d: the run ended by itself", kill)
		}
	}
	epochs := strconv.Itoa(b.complete("killed") + 20)
	b.must(0, "resume", "killed", "--epochs", epochs)
	b.must(0, train("straight", epochs)...)
	b.sameRun("straight", "killed")
	b.contains("the state", b.read("killed/state.safetensors"), "hook/wobble/mean")
}

// measured returns the number of epochs in a run's metrics.
func (b *bench) measured(run string) int {
	text, err := os.ReadFile(b.path(run + "/metrics.jsonl"))
	if err != nil {
		return 0 // not begun
	}
	return bytes.Count(text, []byte("\n"))
}
