package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestTrainKeepsARunAndPrintsWhatCameOfIt(t *testing.T) {
	b := newBench(t)
	r := b.must(0, "train", "small")
	b.contains("standard output", r.stdout, "runs/small\n", "mse", "hoyer", "dead_units", "useful_units", "negative_weights", "trained",
		"torso", "limb", "of 16", filepath.Join("runs", "small", "atoms.png"))
	expect.Equal(t, strings.Count(r.stderr, "epoch "), 12, "lines of progress", r.stderr)
	last := strings.Split(strings.TrimSpace(r.stderr), "\n")
	b.contains("a line of progress", last[len(last)-1], "epoch 12/12", "loss ", "mse ", "kl ", "code_hoyer ", "dead ", "negative ", "left 0 s")
	for _, name := range []string{"config.toml", "env.json", "metrics.jsonl", "state.safetensors", "model.safetensors", "atoms.png"} {
		if !b.exists("runs/small/" + name) {
			t.Errorf("the run holds no %s", name)
		}
	}
	expect.NoError(t, expect.Err(png.Decode(strings.NewReader(b.read("runs/small/atoms.png")))), "atoms.png")
}

func TestMetricsHoldOneObjectPerEpochWhoseTermsSumToTheLoss(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 3)
	lines := strings.Split(strings.TrimSpace(b.read("runs/small/metrics.jsonl")), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3", len(lines))
	}
	for i, line := range lines {
		var m struct {
			Epoch, Step             int
			Loss, MSE, KL, Seconds  float64
			NegativeWeights, VALMSE *float64
		}
		fatal.If(t, json.Unmarshal([]byte(line), &m))
		if m.Epoch != i+1 || m.Step != 11*(i+1) || m.Seconds <= 0 || math.Abs(m.Loss-m.MSE-m.KL) > 1e-9 {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
}

func TestRunsAreNamedAfterTheirModelAndCounted(t *testing.T) {
	b := newBench(t)
	for _, want := range []string{"runs/small", "runs/small-2", "runs/small-3"} {
		r := b.must(0, "train", "small", "--epochs", "1")
		if !b.exists(want) || !strings.Contains(r.stdout, want+"\n") {
			t.Errorf("%s was not made:\n%s", want, r.stdout)
		}
	}
	b.must(0, "train", "small", "--epochs", "2", "--force")
	if n := b.measured("runs/small"); n != 2 || b.exists("runs/small-4") {
		t.Errorf("--force without --out: %d epochs in runs/small, runs/small-4 is %t", n, b.exists("runs/small-4"))
	}
}

func TestAnExistingRunIsRefusedWithoutForce(t *testing.T) {
	b := newBench(t)
	b.trained("mine", 1)
	before := b.read("mine/state.safetensors")
	r := b.must(exitUsage, "train", "small", "--epochs", "2", "--out", "mine")
	b.contains("standard error", r.stderr, "mine: exists already", "--force")
	expect.Equal(t, b.read("mine/state.safetensors"), before, "the refused run changed the old one")
	b.must(0, "train", "small", "--epochs", "2", "--out", "mine", "--force")
	b.write("text", "of a person")
	for _, force := range []string{"--force", "--force=false"} {
		r := b.must(exitUsage, "train", "small", "--out", "text", force)
		b.contains("standard error", r.stderr, "text: exists already, as a file", "give another --out")
		if strings.Contains(r.stderr, "replace") || b.read("text") != "of a person" {
			t.Errorf("%s: %s", force, r.stderr)
		}
	}
	if b.read("mine/state.safetensors") == before {
		t.Error("--force did not replace the run")
	}
	b.write("mine/my-notes.txt", "dear")
	r = b.must(exitUsage, "train", "small", "--epochs", "1", "--out", "mine", "--force")
	b.contains("standard error", r.stderr, "mine: contains files that tessera did not write: my-notes.txt", "nothing was replaced")
	expect.Equal(t, b.read("mine/my-notes.txt"), "dear", "--force destroyed a file that is not the run's")
}

func TestFlagsAreSettingsOfTheModel(t *testing.T) {
	b := newBench(t)
	b.must(0, "train", "small", "--epochs", "1", "--seed", "7", "--set", "train.batch=64", "--set", "loss.1.weight=0.5",
		"--set", "dataset.limit=100")
	b.contains("config.toml", b.read("runs/small/config.toml"), "epochs = 1\n", "seed = 7\n", "batch = 64\n", "weight = 0.5\n", "limit = 100\n")
	b.contains("the metrics", b.read("runs/small/metrics.jsonl"), `"step":2,`)
}

func TestAConfigOfARunTrainsItAgain(t *testing.T) {
	b := newBench(t)
	b.must(0, "train", "small", "--epochs", "2", "--seed", "3", "--out", "first")
	b.must(0, "train", "small", "-f", "first/config.toml", "--out", "again")
	b.sameRun("first", "again")
}

func TestEqualSeedsGiveEqualBytes(t *testing.T) {
	b := newBench(t)
	b.must(0, "train", "small", "--threads", "2", "--epochs", "2", "--out", "a")
	b.must(0, "train", "small", "--threads", "2", "--epochs", "2", "--out", "b")
	b.sameRun("a", "b")
	b.must(0, "train", "small", "--threads", "2", "--epochs", "2", "--seed", "2", "--out", "c")
	if b.read("a/model.safetensors") == b.read("c/model.safetensors") {
		t.Error("another seed gave the same model")
	}
}

func TestBothBackEndsLearnTheSame(t *testing.T) {
	b := newBench(t)
	var mse [2]float64
	for i, backend := range []string{"engine", "tape"} {
		b.must(0, "train", "small", "--epochs", "3", "--backend", backend, "--out", backend)
		var m struct{ MSE float64 }
		fatal.If(t, json.Unmarshal([]byte(b.must(0, "eval", backend, "--json").stdout), &m))
		mse[i] = m.MSE
	}
	if math.Abs(mse[0]-mse[1]) > 1e-5*mse[0] || mse[0] == 0 {
		t.Errorf("mse %g by the engine, %g by the tape", mse[0], mse[1])
	}
}

func TestDivergenceNamesTheStepAndTheTensorAndKeepsACheckpoint(t *testing.T) {
	b := newBench(t)
	r := b.must(exitDiverged, "train", "small", "--set", "optimizer.kind=sgd", "--set", "optimizer.learning_rate=1e38")
	b.contains("standard error", r.stderr, "runs/small: training diverged at step ", "(epoch ", " is ", "last good checkpoint is kept")
	b.must(0, "eval", "runs/small")
}

func TestTheSwimmersPartsAreFound(t *testing.T) {
	t.Parallel()
	if *seeds == 0 {
		t.Skip("left out: TestTheCommandsOfREADMEWork finds those of seed 1; `make parts` trains five seeds")
	}
	b := benchOf(t)
	b.shipped()
	for seed := 1; seed <= *seeds; seed++ {
		start := time.Now()
		r := b.must(0, "train", "swimmer-parts", "--seed", fmt.Sprint(seed))
		t.Logf("seed %d: %.1f s\n%s", seed, time.Since(start).Seconds(), r.stdout)
		b.partsOfTheSwimmer(r.stdout)
	}
}

// partsOfTheSwimmer expects the table of a training that has found the torso and all limbs.
func (b *bench) partsOfTheSwimmer(printed string) {
	b.Helper()
	b.contains("the table", strings.Join(strings.Fields(printed), " "), "torso 1 of 1 0.9", "limb 16 of 16 ")
}

// BenchmarkHelp measures the time to the first line of the command, tens of milliseconds.
func BenchmarkHelp(bm *testing.B) {
	bm.Setenv(asCommand, "1")
	for bm.Loop() {
		fatal.If(bm, exec.Command(os.Args[0], "--help").Run())
	}
}

func TestMetricsAreJSONWithoutNaN(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	line := []byte(b.read("runs/small/metrics.jsonl"))
	if !json.Valid(line) || !bytes.Contains(line, []byte(`"val_mse":null`)) {
		t.Errorf("without validation images val_mse should be null: %s", line)
	}
}

func TestALongerScheduleThatRaisesTheRateIsAWarning(t *testing.T) {
	t.Parallel()
	for kind, rises := range map[string]bool{"cosine": true, "linear": true, "one_cycle": true, "exponential": false, "constant": false} {
		b := benchOf(t)
		b.must(0, "train", "small", "--epochs", "2", "-o", "r", "--set", "optimizer.schedule.kind="+kind)
		expect.Equal(t, strings.Contains(b.must(0, "resume", "r", "--epochs", "4").stderr, "the learning rate rises from"), rises, kind, "a warning")
	}
}

// docs/run-folder.md states this property.
func TestAFinishedRunGoesOnToMoreEpochsAsIfItHadHadThemFromTheStart(t *testing.T) {
	b := newBench(t)
	b.trained("whole", 5)
	b.trained("longer", 2)
	b.write("longer/config.toml", strings.Replace(b.read("longer/config.toml"), "epochs = 2\n", "epochs = 5\n", 1))
	b.must(0, "resume", "longer")
	b.sameRun("longer", "whole")
}
