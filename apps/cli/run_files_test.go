package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train/folder"
)

func TestADamagedCheckpointIsNamedAndRefused(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 2)
	for _, name := range []string{"model.safetensors", "state.safetensors"} {
		path := "runs/small/" + name
		whole := b.read(path)
		for what, text := range map[string]string{
			"a changed bit": whole[:len(whole)-9] + string(whole[len(whole)-9]^1) + whole[len(whole)-8:],
			"cut":           whole[:len(whole)/2],
			"empty":         "",
		} {
			b.write(path, text)
			command := map[string]string{"model.safetensors": "eval", "state.safetensors": "resume"}[name]
			r := b.must(exitCheckpoint, command, "runs/small")
			b.contains(what, r.stderr, path)
			if command == "resume" {
				b.contains(what, r.stderr, "train MODEL -f runs/small/config.toml")
			}
			if command == "eval" {
				b.contains(what, r.stderr, "`tessera resume runs/small` restores the file")
				b.must(0, "resume", "runs/small")
				b.must(0, "eval", "runs/small")
			}
		}
		b.write(path, whole)
	}
	state := b.read("runs/small/state.safetensors")
	fatal.If(t, os.Remove(b.path("runs/small/state.safetensors")))
	b.contains("without a state", b.must(exitCheckpoint, "resume", "runs/small").stderr, "is missing", "train MODEL -f runs/small/config.toml")
	b.write("runs/small/state.safetensors", state)
	b.write("runs/small/config.toml", strings.Replace(b.read("runs/small/config.toml"), "units = 6", "units = 7", 1))
	r := b.must(exitCheckpoint, "eval", "runs/small")
	b.contains("standard error", r.stderr, "does not match config.toml")
}

func TestEvalSaysThatARunIsNotFinished(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 2)
	if r := b.must(0, "eval", "runs/small"); strings.Contains(r.stderr, "finished") {
		t.Errorf("of a finished run: %s", r.stderr)
	}
	b.write("runs/small/config.toml", strings.Replace(b.read("runs/small/config.toml"), "epochs = 2", "epochs = 5", 1))
	b.contains("standard error", b.must(0, "eval", "runs/small").stderr, "runs/small is not finished: epoch 2 of 5")
}

// If the operating system does not allow a file of a run to be read, or if its contents are not those that tessera wrote, the
// file is damaged: this is not an internal error. The test replaces the file by a folder, because root ignores missing
// permissions.
func TestFilesOfARunThatCannotBeReadEndWithExitCode6(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", smallModels+"[sweep.s]\nmodel = \"small\"\n")
	b.must(0, "train", "small", "--epochs", "2")
	b.must(0, "sweep", "s", "--epochs", "1")
	whole := b.read("runs/small/metrics.jsonl")
	b.write("runs/small/metrics.jsonl", whole+"{\n")
	b.contains("damaged metrics", b.must(exitCheckpoint, "figure", "training", "runs/small").stderr, "runs/small/metrics.jsonl: line 3 is damaged: ")
	b.write("runs/small/metrics.jsonl", "")
	b.contains("no metrics", b.must(exitUsage, "figure", "training", "runs/small").stderr, "no epoch has finished")
	b.write("sweeps/s/results.json", "{")
	b.contains("damaged results", b.must(exitCheckpoint, "figure", "curves", "sweeps/s").stderr, "sweeps/s/results.json: damaged: ", "run the sweep again")
	b.must(0, "sweep", "s", "--epochs", "1")
	b.must(0, "figure", "pareto", "sweeps/s")

	for _, name := range []string{"model.safetensors", "config.toml", "metrics.jsonl"} {
		fatal.If(t, errors.Join(os.Remove(b.path("runs/small/"+name)), os.Mkdir(b.path("runs/small/"+name), 0o700)))
		args := []string{"eval", "runs/small"}
		if name == "metrics.jsonl" {
			args = []string{"figure", "training", "runs/small"}
		}
		b.contains(name, b.must(exitCheckpoint, args...).stderr, "is a directory")
	}
	fatal.If(t, os.Symlink("loop", b.path("loop")))
	b.must(exitCheckpoint, "eval", "loop")
	b.must(exitCheckpoint, "resume", "loop")
}

func TestAMissingPermissionSaysWhatToDo(t *testing.T) {
	var stderr strings.Builder
	err := workError{fmt.Errorf("run: %w", &fs.PathError{Op: "open", Path: "r/config.toml", Err: fs.ErrPermission})}
	expect.Equal(t, explain(failure{err: err}, &stderr), exitCheckpoint, "exit code")
	if text := stderr.String(); !strings.Contains(text, "r/config.toml: permission") || !strings.Contains(text, "chmod") {
		t.Errorf("got %q", text)
	}
}

// A resume does not fit a calibration: the command is run again.
func TestAFullDiskSaysHowToFitACalibration(t *testing.T) {
	run := t.TempDir()
	fatal.If(t, os.WriteFile(filepath.Join(run, folder.State), nil, 0o600))
	for name, want := range map[string]string{folder.PostHoc: "run the command again", folder.Metrics: "`tessera resume"} {
		var stderr strings.Builder
		code := explain(failure{err: &folder.WriteError{Path: filepath.Join(run, name), Err: syscall.ENOSPC}}, &stderr)
		if text := stderr.String(); code != exitWrite || !strings.Contains(text, want) {
			t.Errorf("%s: exit code %d, %q, want %q", name, code, text, want)
		}
	}
}

// A run does not depend on a later file at the path of its images: the run can be opened, and other images are treated as
// other data.
func TestARunIsOpenedWhereverItsImagesAre(t *testing.T) {
	b := newBench(t)
	images := func(shape ...int) {
		t.Helper()
		pixels := lists.Of(20*shape[0]*shape[1], func(i int) float32 { return float32(i%7) / 7 })
		fatal.If(t, data.WriteImages(b.path("train.npy"), shape, pixels))
	}
	b.write("models.toml", `
[model.net]
dataset = { name = "npy", images = "train.npy" }
encoder = [{ kind = "dense", units = 3 }]
train = { epochs = 1 }
[model.factors]
kind = "nmf"
dataset = { name = "npy", images = "train.npy" }
components = 20
iterations = 2
init = "random"
`)
	images(6, 5)
	b.must(0, "train", "net")
	b.must(0, "train", "factors")
	b.must(0, "encode", "runs/net", "--in", "train.npy", "--out", "codes.npy")
	images(3, 3)
	for _, run := range []string{"runs/net", "runs/factors"} {
		b.must(0, "figure", "atoms", run)
		b.contains(run, b.must(exitData, "eval", run).stderr, "train.npy: has changed since the run was trained", "restore it, train a new run")
		b.contains(run, b.must(0, "resume", run).stderr, "is finished")
	}
	b.write("runs/net/config.toml", strings.Replace(b.read("runs/net/config.toml"), "epochs = 1\n", "epochs = 2\n", 1))
	b.contains("another shape", b.must(exitData, "resume", "runs/net").stderr, "its samples do not have the shape of the training samples (got [3 3], want [6 5])")
	images(6, 5)
	b.write("train.npy", b.read("train.npy")[:200]+"0"+b.read("train.npy")[201:])
	b.contains("other images", b.must(exitCheckpoint, "resume", "runs/net").stderr, "train.npy has changed since the run was trained (SHA-256: got ", "restore them")
	b.must(0, "decode", "runs/net", "--in", "codes.npy", "--out", "back.npy")
}
