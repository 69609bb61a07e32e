//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// stacked declares an auto-encoder that is trained layer by layer.
const stacked = `[model.first]
dataset = { name = "bars", count = 120, validation = 0.25 }
encoder = [{ kind = "dense", units = 12, activation = "relu" }]
train   = { epochs = 30, checkpoint_seconds = 0 }

[model.second]
extends = "first"
encoder = [{ kind = "dense", units = 12, activation = "relu" }, { kind = "dense", units = 6, activation = "relu" }]
start   = { run = "runs/first", on = "encoder.0.*" }
freeze  = ["encoder.0.*"]

[model.third]
extends = "second"
decoder = [{ kind = "dense", units = 12, activation = "relu" }, { kind = "dense" }]
start   = { run = "runs/second", on = "encoder.*" }
freeze  = []
`

// One command trains what three do, also if it is killed in each of its trainings: the same bytes.
func TestAChainIsItsTrainings(t *testing.T) {
	whole, b := benchOf(t), newBench(t)
	names := []string{"first", "second", "third"}
	for _, b := range []*bench{whole, b} {
		b.write("models.toml", stacked)
	}
	for _, name := range names {
		whole.must(0, "train", name, "--seed", "3")
	}
	command, killed := []string{"train", "third", "--chain", "--seed", "3"}, 0
	for _, name := range names {
		if b.killWhen(func() bool { return b.measured("runs/"+name) >= 5 }, 0, command...) {
			killed++
		}
	}
	if killed == 0 {
		t.Log("every training was over before it was killed")
	}
	b.must(0, command...)
	for _, name := range names {
		run := "runs/" + name
		for _, file := range []string{"model.safetensors", "state.safetensors", "config.toml"} {
			if whole.read(run+"/"+file) != b.read(run+"/"+file) {
				t.Errorf("%s/%s differs", run, file)
			}
		}
	}
	if runs, err := filepath.Glob(b.path("runs/*")); err != nil || len(runs) != len(names) {
		t.Errorf("got the runs %q (%v), want one of each model", runs, err)
	}

	again := b.must(0, command...)
	for _, name := range names {
		b.contains("a finished chain", again.stderr, "runs/"+name+" is finished")
	}
	if strings.Contains(again.stderr, "epoch") {
		t.Errorf("a finished chain trains again: %s", again.stderr)
	}
	b.must(0, append(command, "--set", "train.checkpoint_seconds=9")...) // changes no result
	b.contains("other settings", b.must(2, "train", "third", "--chain", "--seed", "4").stderr, "runs/first", "train.seed: got 3, want 4")
	b.contains("--force", b.must(2, "train", "third", "--chain", "--force", "--out", "runs/third").stderr, "--chain")
	b.must(0, "train", "third", "--chain", "--seed", "3", "--out", "other")
	expect.Equal(t, b.read("other/model.safetensors"), b.read("runs/third/model.safetensors"), "--out: another model")
}

func TestAChainNeedsABeginning(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", strings.Replace(stacked, "freeze  = []", "", 1)+`
[model.first.start]
run = "runs/third"
on  = "encoder.0.*"
`)
	b.contains("a cycle", b.must(2, "train", "third", "--chain").stderr, "needs a beginning")
	b.write("models.toml", strings.ReplaceAll(stacked, "runs/first", "elsewhere/run"))
	b.contains("a run that is missing", b.must(3, "train", "third", "--chain").stderr, "elsewhere/run")
	if b.exists("runs") {
		t.Error("something was trained")
	}
}

// What a chain cannot use is an error before anything is trained.
func TestAChainRefusesBeforeItTrains(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", strings.Replace(stacked, "epochs = 30", "epochs = 2", 1))
	chain := []string{"train", "third", "--chain"}
	b.must(0, "train", "first")
	b.must(0, "train", "second")
	refused := func(what string, code int, args []string, want ...string) {
		t.Helper()
		b.contains(what, b.must(code, args...).stderr, want...)
		if b.exists("runs/first") || b.exists("runs/third") {
			t.Errorf("%s: something was trained", what)
		}
	}
	fatal.If(t, os.Rename(b.path("runs/first"), b.path("first")))
	refused("a run whose start is missing", exitUsage, chain, "runs/second exists, but runs/first", "remove runs/second")
	b.remove("runs/second/state.safetensors")
	refused("a run without a state", exitCheckpoint, chain, "runs/second/state.safetensors: is missing")
	b.remove("runs/second")
	b.write("runs/second/notes.txt", "mine")
	refused("a folder that is no run", exitUsage, chain, "runs/second: is not a run")
	b.remove("runs/second")
	refused("--out is a run of the chain", exitUsage, append(chain, "--out", "./runs/second/"), "--out: ./runs/second/ is the run of model \"second\"")
	refused("--out is the beginning", exitUsage, append(chain, "--out", b.path("runs/first")), "is the run of model \"first\"")

	fatal.If(t, os.Rename(b.path("first"), b.path("runs/first")))
	b.remove("runs/first/atoms.png") // a kill after the last checkpoint
	b.must(0, chain...)
	if !b.exists("runs/first/atoms.png") {
		t.Error("the atoms of a run that was finished but not drawn are missing")
	}
}

// A run that has started from what its predecessor no longer is belongs to no chain.
func TestAChainNoticesARunTrainedAgain(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", strings.NewReplacer("epochs = 30", "epochs = 2", `{ name = "bars", count = 120, validation = 0.25 }`, `{ name = "csv", file = "d.csv" }`).Replace(stacked))
	b.write("d.csv", "a,b\n1,2\n3,4\n5,6\n7,8\n9,1\n2,3\n4,5\n6,7\n8,9\n1,1\n")
	chain := []string{"train", "third", "--chain"}
	b.must(0, "train", "second", "--chain")
	b.must(0, "train", "first", "--out", "runs/first", "--force") // the same bytes
	b.must(0, chain...)
	b.remove("runs/third")
	b.write("d.csv", "a,b\n9,2\n3,4\n5,6\n7,8\n9,1\n2,3\n4,5\n6,7\n8,9\n1,1\n")
	b.must(0, "train", "first", "--out", "runs/first", "--force")
	b.contains("a run trained again", b.must(exitUsage, chain...).stderr, "runs/second has started from other parameters than runs/first has now")
	if b.exists("runs/third") {
		t.Error("the chain was continued")
	}
}

// An interrupted chain goes on with the command, not with the resume of one run.
func TestAnInterruptedChainSaysHowToGoOn(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", stacked)
	r := b.interrupted("runs/first", "", "train", "third", "--chain", "--set", "train.epochs=1000000")
	b.contains("an interrupted chain", r.stderr, "runs/first: interrupted at step", "run the same command again to continue the chain")
	if r.code != exitInterrupted || strings.Contains(r.stderr, "tessera resume") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}
}
