//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tessera/apps/show/comparison"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/samefiles"
)

// smallSweeps declares sweeps of the small model on the swimmer.
const smallSweeps = smallModels + `
[sweep.targets]
about = "p and beta"
model = "small"
seeds = [1, 2]
set.loss.1.target = [0.1, 0.3]
set.loss.1.weight = { from = 1e-4, to = 1e-2, count = 3 }

[sweep.wild]
model = "small"
set.optimizer.learning_rate = [0.01, 1e30]
`

func newSweepBench(t *testing.T) *bench {
	t.Helper()
	b := benchOf(t)
	b.write("models.toml", smallSweeps)
	return b
}

// files returns the files of a sweep that do not depend on times.
func (b *bench) files(sweep string) map[string]string {
	b.Helper()
	all, err := samefiles.Files(b.path(sweep))
	fatal.If(b, err)
	return all
}

func TestASweepKilledTenTimesEndsWithTheBytesOfAnUninterruptedOne(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	args := []string{"sweep", "targets", "--out"}
	b.must(0, append(args, "whole")...)
	r := b.moments()
	const kills, epochs = 10, 120 // the last kill happens before epoch 120 of 144
	killed := 0
	for killed == 0 { // a sweep that ends before its first kill tests nothing: another one is begun
		b.remove("killed")
		for killed < kills && b.killAfter("killed", killed*epochs/kills+r.IntN(epochs/kills), time.Duration(r.IntN(5000))*time.Microsecond, append(args, "killed")...) {
			killed++
		}
	}
	t.Logf("killed %d of %d times", killed, kills)
	b.must(0, append(args, "killed")...)
	want := b.files("whole")
	expect.NoError(t, samefiles.Differ(b.files("killed"), want, true))
	for _, trial := range trialsOf(t, want["results.json"]) {
		expect.Equal(t, b.timeless("whole/trials/"+trial), b.timeless("killed/trials/"+trial), "metrics of", trial)
	}
}

// killAfter starts a sweep and kills it after its trials have completed the given number of epochs together, plus moment. It
// reports whether the sweep was still running.
func (b *bench) killAfter(sweep string, epochs int, moment time.Duration, args ...string) bool {
	b.Helper()
	return b.killWhen(func() bool { return b.epochs(sweep) >= epochs }, moment, args...)
}

// epochs counts the epochs of a sweep's trials.
func (b *bench) epochs(sweep string) int {
	b.Helper()
	n := 0
	paths, _ := filepath.Glob(b.path(sweep + "/trials/*/metrics.jsonl"))
	for _, path := range paths {
		text, _ := os.ReadFile(path) // a trial may be about to be written
		n += strings.Count(string(text), "\n")
	}
	return n
}

func trialsOf(t *testing.T, results string) []string {
	t.Helper()
	var r struct{ Trials []struct{ Trial string } }
	fatal.If(t, json.Unmarshal([]byte(results), &r))
	var ids []string
	for _, trial := range r.Trials {
		ids = append(ids, trial.Trial)
	}
	return ids
}

func TestASweepSaysWhatItDoesAndWhatCameOfIt(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	r := b.must(0, "sweep", "targets", "--epochs", "1")
	b.contains("standard error", r.stderr, "sweep sweeps/targets: 12 trials\n", "[12/12] small loss.1.target=", "loss.1.weight=0.001 seed=2  mse 0.")
	if strings.Contains(r.stderr, "\x1b") || strings.Contains(r.stderr, "\r") {
		t.Errorf("control characters on what is no terminal: %q", r.stderr)
	}
	b.contains("standard output", r.stdout, "measured on the whole data set, the fitted samples among them\n\nmodel  loss.1.target  loss.1.weight  seeds   mse", "2 of 2  0.", " ± ", comparison.Spread+"\n\nsweep  sweeps/targets/results.csv\n")
	expect.Equal(t, strings.Count(r.stdout, "\n"), 2+1+6+1+2, "lines", r.stdout)
	for _, name := range []string{"results.json", "results.csv", "summary.csv", "timings.csv", "trials"} {
		if !b.exists("sweeps/targets/" + name) {
			t.Errorf("the sweep holds no %s", name)
		}
	}
	r = b.must(0, "sweep", "targets", "--epochs", "1")
	b.contains("standard error", r.stderr, "12 trials were already done\n")
}

func TestADryRunShowsTheTrialsAndDoesNothing(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	r := b.must(0, "sweep", "targets", "--dry-run")
	if b.exists("sweeps") || strings.Count(r.stdout, "waiting") != 12 {
		t.Errorf("something was done, or there are not 12 trials:\n%s", r.stdout)
	}
	b.must(0, "sweep", "targets", "--set", "loss.1.target=0.1", "--set", "loss.1.weight=0.001")
	r = b.must(0, "sweep", "targets", "--dry-run")
	expect.Equal(t, strings.Count(r.stdout, "done"), 2, r.stdout)
	expect.Equal(t, strings.Count(r.stdout, "waiting"), 10, r.stdout)
}

func TestFailedTrialsAreToldAtOnceAndAtTheEndWithExitCode8(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	r := b.must(exitSweep, "sweep", "wild", "--epochs", "2", "--jobs", "1")
	b.contains("standard error", r.stderr, "[1/2] small optimizer.learning_rate=0.01 seed=1  mse ",
		"[2/2] small optimizer.learning_rate=1e+30 seed=1  failed: ", `tessera: sweep "wild": 1 of 2 trials failed`, "diverged at step")
	b.contains("standard output", r.stdout, "1 of 1", "0 of 1")
}

func TestListShowsSweepsToo(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	b.contains("list sweeps", b.must(0, "list", "sweeps").stdout, "sweeps of models.toml\n  targets")
}

func TestMistakesOfASweepEndWithExitCode3AndOfUsageWith2(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	for args, says := range map[string]string{
		"sweep target":               `unknown sweep "target" in models.toml and the shipped models: did you mean "targets"?`,
		"sweep targets --jobs 0":     "--jobs: got 0, want > 0",
		"sweep targets -f none.toml": "none.toml",
	} {
		b.contains("tessera "+args, b.must(exitUsage, strings.Fields(args)...).stderr, says)
	}
	b.must(0, "train", "small", "--epochs", "1")
	b.write("own/notes.txt", "mine")
	for args, says := range map[string][]string{
		"sweep targets --out runs/small":           {"runs/small: is the folder of a run", "nothing was replaced: move it away, or give another --out"},
		"sweep targets --out runs/small --dry-run": {"runs/small: is the folder of a run"},
		"sweep targets --out own":                  {"own: is not empty and holds no sweep: neither results.json nor trials/", "give another --out"},
		"sweep targets --out models.toml":          {"models.toml: exists already, as a file\ngive another --out"},
	} {
		b.contains("tessera "+args, b.must(exitUsage, strings.Fields(args)...).stderr, says...)
	}
	if b.exists("runs/small/results.json") || b.exists("runs/small/trials") || b.exists("own/results.json") {
		t.Error("a refused sweep wrote something")
	}
	r := b.must(exitData, "sweep", "targets", "--svm")
	b.contains("standard error", r.stderr, "swimmer: its samples have no labels, but svm_accuracy needs them\n", "leave the metric out: --svm=false")
	r = b.must(exitConfig, "sweep", "targets", "--set", "train.epoch=3")
	b.contains("standard error", r.stderr, `--set train.epoch: sweep "targets": model "small": train: unknown key "epoch"`)
	b.write("models.toml", strings.Replace(smallSweeps, "[0.1, 0.3]", "[0.1, 3]", 1))
	b.must(0, "sweep", "wild", "--dry-run") // another sweep is none of its business
	for _, args := range []string{"check", "sweep targets"} {
		r := b.must(exitConfig, strings.Fields(args)...)
		b.contains("tessera "+args, r.stderr, `sweep "targets": model "small": loss[1] (kl): target: got 3, want a number in (0,1)`, "[0.1, 3]")
	}
}

func TestAnInterruptedSweepEndsWithExitCode130AndGoesOn(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	args := []string{"sweep", "targets", "--out"}
	b.must(0, append(args, "whole")...)
	r := b.interrupted("cut/trials/"+trialsOf(t, b.read("whole/results.json"))[0], "cut", append(args, "cut")...)
	if r.code != exitInterrupted {
		t.Fatalf("exit code %d, want %d: %s", r.code, exitInterrupted, r.stderr)
	}
	b.contains("standard error", r.stderr, "cut: interrupted\n", "run the same command again to resume")
	b.must(0, append(args, "cut")...)
	expect.NoError(t, samefiles.Differ(b.files("cut"), b.files("whole"), false))
}

func TestFiguresAreDrawnFromASweepWithoutItsModels(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	b.must(0, "sweep", "targets", "--epochs", "2")
	for _, kind := range []string{"curves", "hoyer-scatter", "mse-scatter", "pareto"} {
		b.must(0, "figure", kind, "sweeps/targets", "--out", "before.svg")
		parameters, _ := filepath.Glob(b.path("sweeps/targets/trials/*/*.safetensors"))
		for _, path := range parameters {
			fatal.If(t, os.Remove(path))
		}
		b.must(0, "figure", kind, "sweeps/targets", "--out", "after.svg")
		if svg := b.read("after.svg"); svg != b.read("before.svg") || !strings.Contains(svg, "p = 0.3") && kind != "pareto" {
			t.Errorf("%s: another figure without the trials' parameters, or none of p = 0.3", kind)
		}
	}
}

func TestAPlanSaysWhatASweepTakes(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	b.write("models.toml", strings.Replace(smallSweeps, "epochs = 12", "epochs = 2", 1))
	r := b.must(0, "sweep", "targets", "--plan", "--cores", "8,4")
	b.contains("standard output", r.stdout, "sweep targets: 12 trials", "1 shape", "time on 12 cores", "; the longest trial takes", "memory with 4 cores", "early stopping")
	if b.exists("sweeps") {
		t.Error("the plan made a folder")
	}
	r = b.must(0, "sweep", "targets", "--plan", "--json", "--quiet")
	var p struct {
		Trials        int
		Work, Seconds float64
		Shapes        []struct{ Step float64 }
	}
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil || p.Trials != 12 || p.Work <= 0 || p.Seconds <= 0 || len(p.Shapes) != 1 || p.Shapes[0].Step <= 0 || r.stderr != "" {
		t.Errorf("%v: %s%s", err, r.stdout, r.stderr)
	}
	for _, wrong := range [][]string{{"--plan", "--cores", "0"}, {"--plan", "--cores", "a"}, {"--cores", "3"}, {"--json"}, {"--plan", "--emit", "slurm"}} {
		b.must(exitUsage, append([]string{"sweep", "targets"}, wrong...)...)
	}
}

// The data set swimmer has no test images.
func TestASelectionSaysOnWhichImagesItsSettingsAreMeasured(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	b.write("models.toml", smallModels+"[sweep.chosen]\nmodel = \"small\"\nset.train.epochs = [1, 2]\nset.dataset.validation = [0.2]\nselect = \"mse\"\n")
	r := b.must(0, "sweep", "chosen", "--metrics", "mse")
	const warning = "the settings differ in the data on which they are selected"
	b.contains("standard output", r.stdout, "measured on the validation split\n", "selected by mse, measured on the whole data set, the fitted samples among them\n")
	if strings.Contains(r.stdout+r.stderr, warning) {
		t.Errorf("of one data set: %s%s", r.stdout, r.stderr)
	}
	b.write("models.toml", smallModels+"[sweep.sets]\nmodel = \"small\"\nset.train.epochs = 1\nset.dataset = [{ name = \"swimmer\", validation = 0.2 }, { name = \"bars\", validation = 0.2 }]\nselect = \"mse\"\n")
	r = b.must(0, "sweep", "sets", "--metrics", "mse")
	b.contains("two data sets", r.stdout+r.stderr, warning, "a better mse may come from easier samples")
}

// The table of a sweep contains the requested metrics.
func TestTheTableOfASweepShowsTheMetricsThatItMeasured(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", smallModels+"[sweep.s]\nmodel = \"small\"\nset.train.epochs = [1, 2]\n")
	head := func(args ...string) string {
		b.remove("sweeps")
		_, table, _ := strings.Cut(b.must(0, append([]string{"sweep", "s"}, args...)...).stdout, "\n\n")
		line, _, _ := strings.Cut(table, "\n")
		return strings.Join(strings.Fields(line), " ")
	}
	for want, args := range map[string][]string{
		"model train.epochs seeds cosine":               {"--metrics", "cosine"},
		"model train.epochs seeds kl mse_clipped":       {"--metrics", "kl,mse_clipped"},
		"model train.epochs seeds hoyer coherence_mean": {"--metrics", "hoyer,coherence_mean"},
	} {
		expect.Equal(t, head(args...), want, args)
	}
	if got := head(); !strings.HasPrefix(got, "model train.epochs seeds mse hoyer") {
		t.Errorf("by default: got the columns %q", got)
	}
}
