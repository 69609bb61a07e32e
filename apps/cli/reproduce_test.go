//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// smallStudy declares the sweeps of reproductions with models that train quickly.
const smallStudy = smallModels + `
[model.factors]
kind = "nmf"
components = 6

[sweep.table1]
model = ["small", "factors"]
seeds = [1, 2]

[sweep.figure8]
model = "small"
set.loss.1.target = [0.1, 0.3]
set.loss.1.weight = [0.001, 0.01]

[sweep.shipped]
model = ["small", "factors"]
seeds = [1, 2]

[sweep.known-parts]
model = ["small", "factors"]

[sweep.deep-belief]
model = "factors"

[model.late]
extends = "small"
hook.prune = { from = 3, fraction = 0.5 }

[sweep.later]
model = "late"
set.hook.prune.from = [0, 3]

[sweep.mnist]
model = ["small", "late"]
set.train.epochs = 4

[sweep.table2]
model = "small"
set.optimizer.learning_rate = [0.01, 1e30]
`

func newStudyBench(t *testing.T) *bench {
	t.Helper()
	b := benchOf(t)
	b.write("models.toml", smallStudy)
	return b
}

// page returns the files of a page of a sweep, by name.
func (b *bench) page(sweep string) map[string]string {
	b.Helper()
	files := map[string]string{}
	paths, _ := filepath.Glob(b.path(sweep + "/page/*"))
	for _, path := range paths {
		files[filepath.Base(path)] = b.read(sweep + "/page/" + filepath.Base(path))
	}
	return files
}

func TestAReproductionIsOfTheTrialsOfItsSweep(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	b.must(0, "sweep", "table1")
	r := b.must(0, "reproduce", "table1", "--svm=false")
	b.contains("standard error", r.stderr, "4 trials were already done\n")
	b.contains("standard output", r.stdout, "verdict", "sparse-nmf", "0.0109", "not measured", "2 of 2", "small", "factors", "max_approx published",
		"0 of 6 published rows are within tolerance, 0 outside, 6 not measured.",
		"mean difference from small (p = 0.2, β = 0.001), the first trained model of this page", "common seeds", "factors  -  -  2  ", "page  sweeps/table1/page/README.md\n")
	files := b.page("sweeps/table1")
	for _, name := range []string{"README.md", "table.csv", "reconstructions.png", "codes.png", "atoms.png", "max-approximations.png", "training.png",
		"curves.png", "hoyer-scatter.png", "mse-scatter.png", "pareto.png", "penalties.png"} {
		if files[name] == "" {
			t.Errorf("the page holds no %s", name)
		}
	}
	expect.Equal(t, len(files), 12, "files")
}

func TestTheShippedModelsAreComparedInOneTable(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	r := b.must(0, "reproduce", "shipped", "--metrics", "mse")
	b.contains("standard output", r.stdout, "model    images  epochs", "small    256     12 ", "factors  256     ", " 2 of 2  0.", "page  sweeps/shipped/page/README.md\n")
	if strings.Contains(r.stdout, "useful_units") {
		t.Errorf("a column that was not measured is shown:\n%s", r.stdout)
	}
	if files := b.page("sweeps/shipped"); len(files) != 2 || files["README.md"] == "" || files["table.csv"] == "" {
		t.Errorf("the page has %d files, want README.md and table.csv", len(files))
	}
	r = b.must(0, "reproduce", "shipped", "--metrics", "mse")
	b.contains("standard error of the second call", r.stderr, "4 trials were already done\n")
}

func TestMetricsOfATableMayBeGlobsAndEverySweepOfTheDocumentationHasATable(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	r := b.must(0, "reproduce", "known-parts", "--metrics", "mse,max_app*")
	b.contains("standard output", r.stdout, "seeds   mse ", "  max_approx ", "max_approx_clipped", "page  sweeps/known-parts/page/README.md\n")
	b.contains("the page", b.page("sweeps/known-parts")["README.md"], "docs/reproduction/known-parts.md has the question and the answer.", "by `tessera reproduce known-parts --metrics 'mse,max_app*'`;")
	r = b.must(0, "reproduce", "known-parts", "-f", "models.toml", "--metrics", "parts_found")
	b.contains("standard output", r.stdout, "parts_found")
	b.contains("the page", b.page("sweeps/known-parts")["README.md"], "by `tessera reproduce known-parts -f models.toml --metrics parts_found`;")
}

func TestATableHasTheColumnsAskedForIfTheyDoNotApplyOrHaveNoDeclaredSettings(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	for _, name := range []string{"elbo", "mse"} { // of variational models; not of annealed importance sampling, whose temperatures are declared
		r := b.must(0, "reproduce", "deep-belief", "--metrics", name)
		b.contains("standard output", r.stdout, "model    images  epochs  seeds   "+name+" ")
		b.contains("the page", b.page("sweeps/deep-belief")["README.md"], "| model | images | epochs | seeds | "+name+" | seconds |")
	}
}

func TestAMetricThatAppliesToNoTrialIsReported(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	for _, command := range []string{"sweep", "reproduce"} {
		r := b.must(0, command, "known-parts", "--metrics", "mse,elbo")
		b.contains("standard error", r.stderr, "warning: --metrics: elbo applies to no trial of this sweep, or has no value\n")
		if strings.Contains(r.stderr, "--metrics: mse") || strings.Contains(r.stdout, "elbo") {
			t.Errorf("%s: got the warnings\n%sand the table\n%s", command, r.stderr, r.stdout)
		}
	}
	b.write("models.toml", smallModels+"[sweep.chosen]\nmodel = \"small\"\nset.train.epochs = [1, 2]\nset.dataset.validation = [0.2]\nselect = \"mse\"\n")
	b.contains("standard error of a sweep that selects by another metric", b.must(0, "sweep", "chosen", "--metrics", "elbo").stderr,
		"warning: --metrics: elbo applies to no trial")
}

// The sweep of a file of docs/reproduction needs no -f. A sweep of its name in the user's models.toml is trained instead.
func TestTheSweepOfAPageIsDeclaredUnlessTheUserDeclaresIt(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	r := b.must(exitConfig, "reproduce", "dsd-codes", "--set", "encoder.9.units=1")
	b.contains("with the file of the page", r.stderr, `sweep "dsd-codes": model "dense"`)
	r = b.must(exitUsage, "reproduce", "dsd-codes", "-f", "models.toml")
	b.contains("with another file", r.stderr, `unknown sweep "dsd-codes" in models.toml`)
	b.write("models.toml", smallStudy+"\n[sweep.dsd-codes]\nmodel = \"small\"\n")
	b.contains("with the user's sweep", b.must(0, "reproduce", "dsd-codes", "--dry-run").stdout, "small")
}

func TestImagesThatAreNotThereAreMadeByACommandThatTheErrorNames(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	for name, command := range map[string]string{"patches": "`python3 internal/tools/bench/patches.py pictures pictures`", "letters": "`python3 internal/tools/bench/glyphs.py FONTS glyphs`"} {
		b.contains(name, b.must(exitData, "reproduce", name, "--dry-run").stderr, "not found", command)
	}
	b.write("models.toml", smallStudy+"\n[sweep.patches]\nmodel = \"small\"\nset.optimizer.learning_rate = [1e30]\n")
	if r := b.must(exitSweep, "reproduce", "patches"); strings.Contains(r.stderr, "tools/bench") {
		t.Errorf("another error says how to make pictures:\n%s", r.stderr)
	}
}

func TestMoreSeedsAreAddedToAReproduction(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	b.must(0, "reproduce", "table1", "--epochs", "1", "--seeds", "1", "--svm=false")
	b.contains("the page of one seed", b.page("sweeps/table1")["README.md"], "One seed shows no difference between models: give the sweep several seeds.",
		"The trials have the seeds of `--seeds 1`, not the declared ones.", "by `tessera reproduce table1 --epochs 1 --seeds 1 --svm=false`;")
	r := b.must(0, "reproduce", "table1", "--epochs", "1", "--seeds", "1,5", "--svm=false")
	b.contains("standard error", r.stderr, "2 trials were already done\n")
	b.contains("the page of two seeds", b.page("sweeps/table1")["README.md"], "| small | 0.2 | 0.001 | 1 | 2 of 2 |", "| factors | - | - | 2 | ")
}

func TestAReproductionKilledGoesOnToTheSameBytes(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	args := []string{"reproduce", "table1", "--svm=false", "--out"}
	b.must(0, append(args, "whole")...)
	r := b.moments()
	killed := 0
	for killed == 0 { // a sweep that ends before its first kill tests nothing: another one is begun
		b.remove("killed")
		for killed < 3 && b.killAfter("killed", 5*killed+r.IntN(5), time.Duration(r.IntN(5000))*time.Microsecond, append(args, "killed")...) {
			killed++
		}
	}
	b.must(0, append(args, "killed")...)
	want, got := b.page("whole"), b.page("killed")
	for name, text := range want {
		expect.Equal(t, got[name], text, name)
	}
	expect.Equal(t, len(got), len(want), "files")
	left, _ := os.ReadDir(b.path("killed/trials"))
	expect.Equal(t, len(left), 4, "trials, want 4", left)
}

func TestAQuickLookIsTrainedForTheEpochsAskedForAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	b.must(0, "reproduce", "table1", "--epochs", "2", "--set", "train.seed=7", "--svm=false", "--out", "look")
	files := b.page("look")
	b.contains("the page", files["README.md"], "**A quick trial, not a reproduction**: made with `--set train.seed=7 --epochs 2`", "| small | 0.2 | 0.001 | 2 | 1 of 1 |")
	b.contains("the timings", b.read("look/timings.csv"), ",2,") // of the auto-encoder and of the factorisation
	expect.Equal(t, strings.Count(b.read("look/timings.csv"), ",2,"), 2, "trials of 2 epochs or iterations")
}

func TestFigure8IsDrawnWithoutItsModels(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	b.must(0, "reproduce", "figure8", "--epochs", "1")
	files := b.page("sweeps/figure8")
	if len(files) != 6 || files["curves.png"] == "" || files["atoms.png"] != "" {
		t.Errorf("%d files", len(files))
	}
	b.contains("the page", files["README.md"], "| small | 0.1 | 0.001 | 1 | 1 of 1 |", "| small | 0.3 | 0.01 | 1 | 1 of 1 |", "0 of 32 published rows")
}

func TestAReproductionWithFailedTrialsIsWrittenAndEndsWithExitCode8(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	r := b.must(exitSweep, "reproduce", "table2", "--svm=false")
	b.contains("standard error", r.stderr, `sweep "table2": 1 of 2 trials failed`)
	b.contains("the page", b.page("sweeps/table2")["README.md"], "## Trials that failed", "diverged at step")
}

func TestAModelThatTheEpochsMakeInvalidDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	reason := `hook.prune: from: the phase begins after epoch 3, but the run ends after epoch 1`
	r := b.must(exitSweep, "reproduce", "mnist", "--epochs", "1", "--out", "one")
	b.contains("standard error", r.stderr, `warning: model "late" has no trial with --epochs 1: `+reason,
		`sweep "mnist": no trial failed, but a model or setting has no trial`, `model "late" has no trial: `+reason)
	b.contains("the page", b.page("one")["README.md"], "| small | 0.2 | 0.001 | 1 | 1 of 1 |", "## Models without a trial\n\n- `late`: "+reason)
	r = b.must(0, "sweep", "mnist", "--epochs", "1", "--out", "one", "--dry-run")
	b.contains("standard error of a dry run", r.stderr, reason)
	b.contains("a dry run", r.stdout, "small", "done")
	r = b.must(exitSweep, "sweep", "later", "--epochs", "1")
	b.contains("standard error", r.stderr, `warning: model "late" has no trial with --epochs 1 and hook.prune.from=3: `+reason,
		`model "late" has no trial with hook.prune.from=3: `+reason)
}

func TestMistakesOfAReproductionAreUsage(t *testing.T) {
	t.Parallel()
	b := newStudyBench(t)
	for args, says := range map[string]string{
		"reproduce tabel1":                                         `did you mean "table1"?`,
		"reproduce table1 --seeds 1,1":                             "--seeds: got 1 twice, want different seeds",
		"reproduce table1 --seeds 1 --set train.seed=2":            "--seeds: --set train.seed sets the seed too",
		"reproduce table1 --seeds 1 --set train={epochs=1,seed=2}": "--seeds: --set train.seed sets the seed too",
	} {
		b.contains("tessera "+args, b.must(exitUsage, strings.Fields(args)...).stderr, says)
	}
	if help := b.must(0, "sweep", "--help").stdout; strings.Contains(help, "[]") {
		t.Errorf("help shows an empty list:\n%s", help)
	}
	r := b.must(0, "reproduce", "table1", "--dry-run")
	if strings.Count(r.stdout, "waiting") != 4 || b.exists("sweeps") {
		t.Errorf("a dry run did something:\n%s", r.stdout)
	}
	b.must(0, "reproduce", "table1", "--epochs", "1", "--svm=false")
	fatal.If(t, os.RemoveAll(b.path("sweeps/table1/page")))
	b.write("sweeps/table1/page", "in the way")
	b.must(exitWrite, "reproduce", "table1", "--epochs", "1", "--svm=false")
}
