package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"tessera/apps/show/doc"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train"
	"tessera/metrics"
)

// listed describes a run in the output of `tessera runs --json`.
type listed struct {
	Run, State, Problem, Model string
	Epoch, Epochs              int
	Metrics                    map[string]any
	Differs                    []string
}

func (b *bench) runs(args ...string) (runs []listed) {
	b.Helper()
	fatal.If(b, json.Unmarshal([]byte(b.must(0, append([]string{"runs", "--json"}, args...)...).stdout), &runs))
	return runs
}

func TestRunsListsStatesSettingsAndMetrics(t *testing.T) {
	b := newBench(t)
	b.contains("without runs", b.must(exitUsage, "runs").stderr, "runs: no such folder; train a model with `tessera train MODEL`")
	b.trained("runs/small", 2)
	b.must(0, "train", "small", "--epochs", "2", "--seed", "7", "--set", "optimizer.kind=sgd")
	b.trained("runs/deep/er", 12)
	b.write("runs/small-10/config.toml", strings.Replace(b.read("runs/small/config.toml"), "epochs = 2", "epochs = 5", 1))
	for _, file := range []string{"state.safetensors", "metrics.jsonl"} {
		b.write("runs/small-10/"+file, b.read("runs/small/"+file))
	}
	for name, text := range map[string]string{"a": "no toml", "b": b.read("runs/small/config.toml"), "c": b.read("runs/small/config.toml")} {
		b.write("runs/bad-"+name+"/config.toml", text)
	}
	state := b.read("runs/small/state.safetensors")
	b.write("runs/bad-c/state.safetensors", state[:len(state)-4])
	b.write("runs/notes/todo.txt", "no run")

	runs := b.runs()
	names := lists.Map(runs, func(r listed) string { return strings.TrimPrefix(r.Run, "runs/") })
	if want := []string{"bad-a", "bad-b", "bad-c", "deep/er", "small", "small-2", "small-10"}; !slices.Equal(names, want) {
		t.Fatalf("got %q, want %q", names, want)
	}
	for i, want := range []struct{ state, problem, differs string }{
		{"damaged", "runs/bad-a/config.toml: is not the declaration of one model", ""},
		{"damaged", "runs/bad-b/state.safetensors: is missing", "train.epochs=2"},
		{"damaged", "the file is cut off", "train.epochs=2"},
		{"finished", "", ""},
		{"finished", "", "train.epochs=2"},
		{"finished", "", `optimizer.kind="sgd" optimizer.learning_rate=0.001 optimizer.momentum=0.0 optimizer.nesterov=false train.epochs=2 train.seed=7`},
		{"interrupted", "", "train.epochs=5"},
	} {
		r := runs[i]
		if r.State != want.state || !strings.Contains(r.Problem, want.problem) || strings.Join(r.Differs, " ") != want.differs {
			t.Errorf("%s: got %+v, want %+v", r.Run, r, want)
		}
	}
	last := runs[6]
	if last.Epoch != 2 || last.Epochs != 5 || last.Model != "small" || last.Metrics["epoch"] != 2.0 || last.Metrics["code_hoyer"] == nil {
		t.Errorf("got %+v", last)
	}
	b.contains("the table", spaced(b.must(0, "runs").stdout), "run state model loss code_hoyer dead_units age differs\n", "\nruns/small-10 interrupted at 2 of 5 small 0.", " train.epochs=5\n")
	b.must(0, "resume", "runs/small-10")
	if r := b.runs("runs/small-10"); len(r) != 1 || r[0].State != "finished" {
		t.Errorf("after the resume: %+v", r)
	}
	b.write("models.toml", "[model.other]\n")
	for i, want := range map[int]string{3: "train.epochs=12", 4: ""} {
		expect.Equal(t, strings.Join(b.runs("runs")[i].Differs, " "), want, "without a declaration, beside the first run")
	}
}

func TestARunInTrainingIsListedAsSuch(t *testing.T) {
	b := newBench(t)
	cmd := b.command("train", "small", "--epochs", "1000000000", "--quiet")
	ended := b.start(cmd)
	b.until(func() bool { return b.measured("runs/small") > 0 }, ended)
	r := b.runs()
	fatal.If(t, cmd.Process.Signal(os.Interrupt))
	<-ended
	if len(r) != 1 || r[0].State != "training" || r[0].Epochs != 1000000000 {
		t.Errorf("got %+v", r)
	}
	r = b.runs()
	if len(r) != 1 || r[0].State != "interrupted" || r[0].Epoch < 1 {
		t.Errorf("after Ctrl-C: %+v", r)
	}
}

func TestTrainSaysThatAnUnfinishedRunCanBeResumed(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	if r := b.must(0, "train", "small", "--epochs", "1", "--quiet"); strings.Contains(r.stderr, "unfinished") {
		t.Errorf("both are finished: %s", r.stderr)
	}
	b.write("runs/small/config.toml", strings.Replace(b.read("runs/small/config.toml"), "epochs = 1\n", "epochs = 3\n", 1))
	r := b.must(0, "train", "small", "--epochs", "1")
	b.contains("standard error", r.stderr, "runs/small is an unfinished run of this model, interrupted at 1 of 3: `tessera resume runs/small` continues it")
	b.must(0, "resume", "runs/small")
	if r := b.must(0, "train", "small", "--epochs", "1", "--quiet"); strings.Contains(r.stderr, "unfinished") {
		t.Errorf("it was resumed: %s", r.stderr)
	}
}

// The table has the accuracy of classifiers, and of each head of a model with several.
func TestRunsShowsAccuracies(t *testing.T) {
	run := func(name string, values ...metrics.Value) listedRun {
		return listedRun{Status: train.Status{Run: name, Metrics: values}}
	}
	var out strings.Builder
	d := &doc.Document{Blocks: []doc.Block{runsTable([]listedRun{
		run("runs/one", metrics.Value{Name: "val_accuracy", Number: 0.75}),
		run("runs/two", metrics.Value{Name: "val_sex.accuracy", Number: 0.5}, metrics.Value{Name: "val_sex.nll", Number: 1}),
	}, time.Now())}}
	fatal.If(t, d.Text(&out, doc.Screen{}))
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	head, differs, _ := strings.Cut(got[0], " age")
	expect.Equal(t, differs, "", "a column without values")
	if head != "run state model val_accuracy val_sex.accuracy" || !strings.Contains(got[1], " 0.75 - ") || !strings.Contains(got[2], " - 0.5 ") {
		t.Errorf("got\n%s", out.String())
	}
}

// A run that was killed after an epoch without a checkpoint shows the loss of the epoch that it continues from.
func TestRunsShowsTheEpochThatIsKept(t *testing.T) {
	b := newBench(t)
	b.trained("runs/killed", 2)
	b.trained("further", 3)
	loss := func() any {
		runs := b.runs()
		if len(runs) != 1 || runs[0].Epoch != 2 || runs[0].Metrics["epoch"] != 2.0 {
			t.Fatalf("%+v", runs)
		}
		return runs[0].Metrics["loss"]
	}
	kept := loss()
	b.write("runs/killed/config.toml", strings.Replace(b.read("runs/killed/config.toml"), "epochs = 2", "epochs = 3", 1))
	b.write("runs/killed/metrics.jsonl", b.read("further/metrics.jsonl"))
	expect.Equal(t, loss(), kept)
}
