package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/fatal"
)

// Each of these is a wrong first step. The message says what to do; the test does it, and it works.

// within runs the command in a sub-folder.
func (b *bench) within(folder string, code int, args ...string) result {
	b.Helper()
	inner := *b
	inner.dir = b.path(folder)
	fatal.If(b, os.MkdirAll(inner.dir, 0o700))
	return inner.must(code, args...)
}

func TestFirstStepInTheWrongFolder(t *testing.T) {
	b := newBench(t)
	b.ownImages()
	r := b.within("wrong", exitUsage, "train", "own", "--epochs", "1")
	b.contains("no models.toml", r.stderr, `unknown model "own"`, "there is no models.toml in "+b.path("wrong"), "--file")
	r = b.within("wrong", exitData, "train", "own", "--epochs", "1", "--file", "../models.toml")
	b.contains("images elsewhere", r.stderr, "pics/x.npy: not found", "paths are relative to the folder in which the command is run")
	b.must(0, "train", "own", "--epochs", "1")

	r = b.within("wrong", exitUsage, "eval", "runs/own")
	b.contains("no runs", r.stderr, "runs/own: no such folder", b.path("wrong")+", has no runs: change to the folder where the run was trained, or write its whole path")
	b.within("wrong", 0, "eval", b.path("runs/own"))
	b.contains("another name", b.must(exitUsage, "eval", "runs/owl").stderr, "`tessera runs` lists the runs")
	b.contains("the list", b.must(0, "runs").stdout, "runs/own ")
	b.contains("without runs/", b.must(exitUsage, "eval", "own").stderr, `did you mean "runs/own"?`)
	b.must(0, "eval", "runs/own")
}

func TestFirstStepWithoutData(t *testing.T) {
	b := newBench(t)
	r := b.must(exitData, "train", "clothes", "--epochs", "1")
	b.contains("the message", r.stderr, `run "tessera data get fashion-mnist"`, "point --data or TESSERA_DATA at the folder that holds fashion-mnist/")
	if folder := os.Getenv(data.EnvDir); folder != "" {
		b.must(0, "train", "clothes", "--epochs", "1", "--set", "dataset.limit=300", "--data", folder)
	}
	b.write("models.toml", ownModel)
	b.contains("one's files", b.must(exitData, "train", "own", "--epochs", "1").stderr, "pics/x.npy: not found", "paths are relative to the folder in which the command is run")
	b.ownImages()
	b.must(0, "train", "own", "--epochs", "1")
}

func TestFirstStepWithAnUnknownModel(t *testing.T) {
	b := newBench(t)
	r := b.must(exitUsage, "train", "smal")
	found := regexp.MustCompile(`did you mean "(\w+)"\?`).FindStringSubmatch(r.stderr)
	if found == nil {
		t.Fatalf("no suggestion: %s", r.stderr)
	}
	b.must(0, "train", found[1], "--epochs", "1")
	b.shipped()
	r = b.must(exitUsage, "train", "clothes-of-mine")
	b.contains("the message", r.stderr, "`tessera list models` shows all ", "there is no models.toml in ")
	b.contains("the list", b.must(0, "list", "models").stdout, "swimmer-parts")
	b.must(0, "train", "swimmer-parts", "--epochs", "1")
}

func TestFirstStepAfterAnInterruption(t *testing.T) {
	b := newBench(t)
	cmd := b.command("train", "small", "--set", "train.epochs=100000", "--quiet")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	ended := b.start(cmd)
	b.until(func() bool { return b.measured("runs/small") > 0 }, ended)
	fatal.If(t, cmd.Process.Signal(os.Interrupt))
	<-ended
	done := b.runs()[0].Epoch + 1
	short := fmt.Sprintf("epochs = %d\n", done)
	b.write("runs/small/config.toml", strings.Replace(b.read("runs/small/config.toml"), "epochs = 100000\n", short, 1)) // to be finished soon
	remedies := map[string]string{
		"train that was stopped": stderr.String(),
		"another train":          b.must(0, "train", "small", "--epochs", "1").stderr,
		"eval":                   b.must(0, "eval", "runs/small").stderr,
	}
	for what, text := range remedies {
		b.contains(what, text, "`tessera resume runs/small` continues")
	}
	b.must(0, "resume", "runs/small")
	if r := b.runs("runs/small")[0]; r.State != "finished" || r.Epoch != done {
		t.Errorf("got %+v", r)
	}
}
