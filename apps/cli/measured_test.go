package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
)

// spaced replaces every sequence of blanks by one blank.
func spaced(text string) string { return regexp.MustCompile(`[ ]+`).ReplaceAllString(text, " ") }

func TestHeldOutImagesComeFirstAndFittedOnesNextToThem(t *testing.T) {
	b := newBench(t)
	trained := b.must(0, "train", "small", "--epochs", "2", "--set", "dataset.validation=0.25", "--set", "dataset.limit=200")
	b.contains("the table of train", spaced(trained.stdout), "\nsplit validation train (fitted)\nimages 50 150\nmse 0.", "\ndead_units ", "\nuseful_units ")
	table := b.must(0, "eval", "runs/small").stdout
	b.contains("the table of eval", spaced(table), "\nsplit validation train (fitted)\nimages 50 150\nmse 0.")
	if lines := regexp.MustCompile(`(?m)^dead_units .*\nuseful_units .*\n`).FindString(table); lines == "" {
		t.Errorf("useful_units do not follow dead_units:\n%s", table)
	}
	var both struct {
		Split   string
		HeldOut bool    `json:"held_out"`
		MSE     float64 `json:"mse"`
		Fitted  struct {
			Of, Images int
			Split      string
			MSE        float64  `json:"mse"`
			Area       *float64 `json:"atom_area"`
		}
	}
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "eval", "runs/small", "--json").stdout), &both))
	first, beside := b.eval("runs/small", "--split", "validation"), b.eval("runs/small", "--split", "train")
	if both.Split != "validation" || !both.HeldOut || both.MSE != first.MSE || both.Fitted.Split != "train" || both.Fitted.MSE != beside.MSE ||
		both.Fitted.Of != 150 || both.Fitted.Images != 150 || first.MSE == beside.MSE {
		t.Errorf("got %+v, want mse %v, and %v of the fitted images", both, first.MSE, beside.MSE)
	}
	if both.Fitted.Area != nil {
		t.Error("a metric of the atoms alone was measured twice")
	}
}

func TestNumbersOfFittedImagesSayThatTheyAre(t *testing.T) {
	b := newBench(t)
	for _, table := range []string{b.must(0, "train", "small", "--epochs", "2").stdout, b.must(0, "eval", "runs/small").stdout} {
		b.contains("the table", spaced(table), "\nsplit train (fitted to these samples, none are held out)\nimages 256\n")
	}
	b.contains("with --split test", spaced(b.must(0, "eval", "runs/small", "--split", "test").stdout), "\nsplit all (the fitted samples among them)\n")
}

func TestEvalMeasuresFilesOfOnesOwn(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 2)
	images := swimmer(t)
	half := len(images) / 2
	for name, values := range map[string][]float32{"a.npy": images[:half], "b.npy": images[half:]} {
		fatal.If(t, data.WriteImages(b.path(name), []int{32, 32}, values))
	}
	b.contains("the table", spaced(b.must(0, "eval", "runs/small", "--in", "a.npy").stdout), "\ndataset a.npy\n", "\nsplit given (not of the data set)\nimages 128\n")
	if got, want := b.eval("runs/small", "--in", "a.npy", "--in", "b.npy"), b.eval("runs/small"); got.MSE != want.MSE || got.Dataset != "a.npy b.npy" || *got.KL != *want.KL {
		t.Errorf("got %+v, want the numbers of %+v", got, want)
	}
	b.contains("standard error", b.must(exitUsage, "eval", "runs/small", "--in", "a.npy", "--split", "train").stderr, "--in and --split cannot be given together")
	b.contains("standard error", b.must(exitData, "eval", "runs/small", "--in", "none.npy").stderr, "none.npy")
	b.contains("standard error", b.must(exitData, "eval", "runs/small", "--in", "a.npy", "--svm").stderr, "a.npy: its samples have no labels")
}

func TestTrainAndEvalWarnOfUselessUnits(t *testing.T) {
	b := newBench(t)
	trained := b.must(0, "train", "small", "--epochs", "1", "--quiet")
	var e struct {
		Useful int `json:"useful_units"`
	}
	fatal.If(t, json.Unmarshal([]byte(b.must(0, "eval", "runs/small", "--json").stdout), &e))
	if e.Useful > 2 {
		t.Fatalf("the model is too good for this test: %d units of 6 are useful", e.Useful)
	}
	for what, stderr := range map[string]string{"train": trained.stderr, "eval": b.must(0, "eval", "runs/small").stderr} {
		b.contains(what, stderr, fmt.Sprintf("warning: %d of 6 units are useless", 6-e.Useful), "what helps: raise train.epochs")
	}
	good := b.must(0, "train", "small", "--quiet", "--set", "optimizer.learning_rate=0.1", "--set", "train.epochs=40")
	if strings.Contains(good.stderr, "useless") {
		t.Errorf("what the warning advises does not help:\n%s%s", good.stdout, good.stderr)
	}
}
