package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tessera/internal/expect"
)

func TestAdviceAboutUselessUnitsFitsTheirCause(t *testing.T) {
	b := newBench(t)
	rows := "a,b,c\n"
	for i := range 100 {
		rows += fmt.Sprintf("%d,%d,%d\n", i%3, 5000+97*(i%10), i%7)
	}
	b.write("wide.csv", rows)
	wide := smallModels + `
[model.wide]
dataset   = { name = "csv", images = "wide.csv" }
encoder   = [{ kind = "dense", units = 30 , activation = "relu" }]
train     = { epochs = 1 }
`
	b.write("models.toml", wide)
	for set, want := range map[string]string{
		"optimizer.learning_rate=1000": "what helps: lower optimizer.learning_rate: it is 1000, and the default of adam is 0.001",
		"optimizer.learning_rate=1e-9": "what helps: raise optimizer.learning_rate",
		"train.batch=100000":           "what helps: lower train.batch: it is 100000, and there are 256 fitted images",
	} {
		b.contains(set, b.must(0, "train", "small", "--epochs", "2", "--set", set, "--quiet").stderr, want)
	}
	b.write("models.toml", `
[model.machine]
dataset   = { name = "bars", side = 3, count = 100 }
encoder   = [{ kind = "rbm", units = 8 }]
decoder   = [{ kind = "tied", activation = "sigmoid", bias_of = "encoder.0.visible_bias" }]
loss      = [{ kind = "contrastive_divergence" }]
optimizer = { kind = "sgd", learning_rate = 0.05 }
train     = { epochs = 1 }
`)
	b.contains("a machine at a usual rate", b.must(0, "train", "machine", "--quiet").stderr, "what helps: raise train.epochs")
	b.write("models.toml", `
[model.spare]
extends = "parts-relative"
dataset = { name = "shapes", parts = 3, height = 8, width = 8, count = 60, seed = 1 }
encoder = [{ kind = "relative", layers = [{ kind = "unrolled", units = 30, steps = 16 }] }]
`)
	b.contains("units to spare", b.must(0, "train", "spare", "--quiet").stderr, "what helps: fewer units, if at all: 100 % of the variance is explained")
	b.write("models.toml", wide)
	b.contains("unscaled columns", b.must(0, "train", "wide", "--quiet").stderr, `what helps: write scale = "standardise"`,
		"hint: 30 units for 90 fitted samples")
}

func TestCheckReportsTheDataErrorsOfAllModelsWithTheirPlaces(t *testing.T) {
	b := newBench(t)
	b.write("good.csv", "m [mV],w,kind\n"+strings.Repeat("1,2,a\n3,5,b\n", 10))
	b.write("bad.csv", "m,w\n1,x\n")
	b.write("models.toml", `
[model.good]
dataset = { name = "csv", images = "good.csv", labels = "kind" }
encoder = [{ kind = "dense", units = 2 }]
[model.bad]
dataset = { name = "csv", images = "bad.csv" }
encoder = [{ kind = "dense", units = 2 }]
[model.unlabelled]
dataset = { name = "csv", images = "good.csv", labels = "sort" }
encoder = [{ kind = "dense", units = 2 }]
`)
	r := b.must(exitData, "check")
	b.contains("check", r.stderr, `models.toml:6:`, `model "bad": dataset: csv: bad.csv: cannot be read: line 2, column "w"`, `models.toml:9:`, `model "unlabelled": dataset: csv: good.csv`)
	columns := "2 values (m [mV], w), labels kind"
	b.contains("check", r.stdout, `model "good": 20 training samples, 2 classes (a: 10, b: 10), `+columns)
	b.contains("summary", spaced(b.must(0, "summary", "good").stdout), "data "+columns)
	b.contains("train", b.must(0, "train", "good", "--epochs", "1").stderr, "data: "+columns)
}

func TestListShowsOnePart(t *testing.T) {
	b := newBench(t)
	for args, want := range map[string]string{"layers dense": "layers\ndense: ", "dense": "layers\ndense: ", "datasets csv": "datasets\ncsv: ", "mse": "losses\nmse: "} {
		text := b.must(0, strings.Fields("list "+args)...).stdout
		if !strings.HasPrefix(text, want) || strings.Count(text, "\n") > 30 || strings.Contains(text, "keys of several") {
			t.Errorf("list %s:\n%s", args, text)
		}
	}
	var all map[string][]struct{ Name string }
	if err := json.Unmarshal([]byte(b.must(0, "list", "losses", "mse", "--json").stdout), &all); err != nil || len(all) != 1 || len(all["losses"]) != 1 {
		t.Errorf("got %v, %v", all, err)
	}
	b.contains("a typo", b.must(exitUsage, "list", "layers", "dens").stderr, `unknown "dens": did you mean "dense"?`)
	text := b.must(0, "list", "losses").stdout
	b.contains("losses", text, "also on = \"code\", weight = 1.0", "keys of several losses")
	expect.Equal(t, strings.Count(text, "factor of the term"), 1, "weight is described")
}

func TestNamesStayInTheirLine(t *testing.T) {
	b := newBench(t)
	b.contains("eval", b.must(exitUsage, "eval", "x\ny").stderr, "tessera: x\\u000ay: no such folder\n")
}

func TestWordsOfOtherProgramsAreUnderstood(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	for args, want := range map[string]string{
		"train small --lr 0.1":     "--set optimizer.learning_rate=",
		"train small --gpu":        "models run on the CPU",
		"train small --resume":     "`tessera resume RUN` continues a run",
		"train other.toml":         "as in `tessera train MODEL -f other.toml`",
		"train small --batch-size": "--set train.batch=",
	} {
		b.contains(args, b.must(exitUsage, strings.Fields(args)...).stderr, want)
	}
	for _, name := range []string{"pytorch", "torch", "numpy"} {
		b.must(0, "export", "runs/small", "--to", name, "-o", name)
	}
	if b.read("torch") != b.read("pytorch") || !b.exists("numpy") {
		t.Error("aliases write other files")
	}
	b.contains("rank", b.must(0, "rank", "nmf", "-f", "shipped", "--ranks", "2,4", "--set", "dataset=bars").stdout, "components")
}

func TestEvalOfAClassifierShowsWhatApplies(t *testing.T) {
	b := newBench(t)
	b.flowers()
	trained := b.must(0, "train", "flowers").stdout
	measured := b.must(0, "eval", "runs/flowers").stdout
	for what, text := range map[string]string{"train": trained, "eval": measured} {
		if strings.Contains(text, "mse") || strings.Contains(text, " -") || strings.Index(text, "accuracy") > strings.Index(text, "hoyer") {
			t.Errorf("%s:\n%s", what, text)
		}
	}
	b.contains("a metric that was named", b.must(0, "eval", "runs/flowers", "--metrics", "mse,accuracy").stdout, "\nmse ", "\naccuracy ")
}

// A training that a hook has ended is finished, although it has fewer epochs than the declaration.
func TestARunThatAHookEndedIsFinished(t *testing.T) {
	b := newBench(t)
	b.must(0, "train", "small", "--epochs", "40", "--quiet", "--out", "runs/ended", "--set", "hook.early_stopping.patience=1", "--set", "hook.early_stopping.min_delta=1000")
	runs := b.runs()
	if len(runs) != 1 || runs[0].State != "finished" || runs[0].Epoch >= runs[0].Epochs {
		t.Fatalf("got %+v, want a run that ended early", runs)
	}
	if text := b.must(0, "eval", "runs/ended").stderr; strings.Contains(text, "is not finished") {
		t.Errorf("eval says %s", text)
	}
	b.contains("the epoch that was kept", b.must(0, "eval", "runs/ended", "--json").stdout, `"best_epoch": 1,`)
	b.contains("resume", b.must(0, "resume", "runs/ended").stderr, "finished")
}

// The summary of a model has a line for each of its hooks.
func TestSummaryListsEveryHook(t *testing.T) {
	b := newBench(t)
	b.must(0, "check")
	text := b.must(0, "summary", "small", "--set", "hook.average.decay=0.9", "--set", "hook.prune.fraction=0.1", "--set", "hook.early_stopping.patience=3",
		"--set", "hook.plateau.patience=2", "--set", "hook.slow={kind=\"teacher\",decay=0.9}").stdout
	b.contains("summary", spaced(text), "\nhook average decay = 0.9", "\nhook prune fraction = 0.1", "\nhook early_stopping ", "patience = 3", "\nhook plateau ", "\nhook slow decay = 0.9")
}

// A report of a dead run shows the warning of train and eval, and no praise of what atoms add.
func TestReportsOfDeadRunsShowTheWarning(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `
[model.dead]
dataset    = { name = "bars", count = 60 }
encoder    = [{ kind = "dense", units = 6, activation = "relu" }]
decoder    = [{ kind = "dense", bias = false }]
loss       = [{ kind = "mse" }, { kind = "l1" }]
constraint = [{ kind = "nonneg" }, { kind = "unit_norm" }]
optimizer  = { learning_rate = 2.0 }
train      = { epochs = 2, batch = 20 }
`)
	const warning = "all 6 units are dead: no sample activates any of them"
	b.contains("train", b.must(0, "train", "dead", "--quiet").stderr, "warning: epoch 1: "+warning, "lower optimizer.learning_rate")
	b.contains("eval", b.must(0, "eval", "runs/dead").stderr, "warning: "+warning)
	b.must(0, "report", "runs/dead", "-o", "dead.html")
	page := b.read("dead.html")
	b.contains("report", page, warning)
	if strings.Contains(page, "of what atoms add remains") {
		t.Error("the report praises atoms that add nothing")
	}
}
