package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// outputs are the commands that write one file to a path of the user, up to --out.
var outputs = map[string]string{
	"export runs/vae --to npz -o":         ".npz",
	"report runs/vae -o":                  ".html",
	"compare runs/vae runs/other -o":      ".html",
	"figure training runs/vae -o":         ".png",
	"encode runs/vae --in in.npy -o":      ".npy",
	"decode runs/vae --in codes.npy -o":   ".npy",
	"sample runs/vae --count 2 -o":        ".png",
	"traverse runs/vae -o":                ".png",
	"interpolate runs/vae -o":             ".npy",
	"predict runs/classes --in f.csv -o":  ".csv",
	"complete runs/vae --in holes.npy -o": ".npy",
	"rank pca --ranks 1,2 --figure":       ".png",
}

// What stands at the path of an output is never lost: a pipe stays a pipe and receives the output, a folder and the files of a run are
// refused, and so are inputs.
func TestOutputsReplaceFilesOnly(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `[model.vae]
dataset = { name = "bars", count = 40 }
encoder = [{ kind = "gaussian", units = 2 }]
loss    = [{ kind = "mse" }, { kind = "gaussian_kl", weight = 0.001 }]
train   = { epochs = 1 }
[model.other]
extends = "vae"
train.seed = 2
[model.classes]
dataset    = { name = "csv", file = "f.csv", labels = "y" }
encoder    = [{ kind = "dense", units = 2 }]
head.class = { layers = [{ kind = "dense" }] }
loss       = [{ kind = "mse" }, { kind = "cross_entropy", on = "class" }]
train      = { epochs = 1 }
[model.pca]
kind = "pca"
components = 2
dataset = { name = "bars", count = 40 }
`)
	b.write("f.csv", "a,b,y\n"+strings.Repeat("0.1,0.2,ill\n0.3,0.2,well\n", 10))
	for _, name := range []string{"vae", "other", "classes"} {
		b.must(0, "train", name, "--quiet")
	}
	b.must(0, "sample", "runs/vae", "--count", "3", "-o", "in.npy")
	b.must(0, "encode", "runs/vae", "--in", "in.npy", "-o", "codes.npy")
	holes := []byte(b.read("in.npy"))
	copy(holes[len(holes)-4:], "\x00\x00\xc0\x7f") // NaN
	b.write("holes.npy", string(holes))

	for command, ending := range outputs {
		words := func(out string) []string { return append(strings.Fields(command), out) }
		pipe := "pipe" + ending
		_ = os.Remove(b.path(pipe))
		fatal.If(t, syscall.Mkfifo(b.path(pipe), 0o600))
		reader, err := os.OpenFile(b.path(pipe), os.O_RDWR, 0)
		fatal.If(t, err)
		received := make(chan int64)
		go func() { // until the pipe is closed
			n, _ := io.Copy(io.Discard, reader)
			received <- n
		}()
		b.must(0, words(pipe)...)
		info, err := os.Lstat(b.path(pipe))
		if err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			t.Errorf("%s: the pipe is %v (%v)", command, info.Mode(), err)
		}
		fatal.If(t, reader.Close())
		if n := <-received; n == 0 {
			t.Errorf("%s: nothing came through the pipe", command)
		}
		fatal.If(t, errors.Join(os.MkdirAll(b.path("folder"+ending), 0o700), os.RemoveAll(b.path("link"+ending)), os.Symlink("runs/vae/model.safetensors", b.path("link"+ending))))
		b.contains(command, b.must(exitUsage, words("folder"+ending)...).stderr, "is a folder")
		b.contains(command, b.must(exitUsage, words("link"+ending)...).stderr, "is a file of the run")
	}
	state := b.read("runs/vae/model.safetensors")
	for _, name := range []string{"model.safetensors", "posthoc.json"} { // there is no posthoc.json yet
		b.contains(name, b.must(exitUsage, "export", "runs/vae", "--to", "npz", "-o", "runs/vae/"+name).stderr, "is a file of the run runs/vae")
	}
	expect.Equal(t, b.read("runs/vae/model.safetensors"), state, "a file of the run was replaced")
	b.must(0, "export", "runs/classes", "--to", "csv", "--part", "atoms", "-o", "atoms.csv")
	if text := b.read("atoms.csv"); !strings.HasPrefix(text, "unit,a,b\n0,") {
		t.Errorf("atoms without the names of the columns: %q", text)
	}
	b.write("given.csv", "row,column\n")
	b.contains("predict", b.must(exitUsage, "predict", "runs/vae", "--in", "in.npy", "--given", "given.csv", "-o", "given.csv").stderr, "is also the input")
	b.write("pipe", "")
	b.contains("sample", b.must(exitUsage, "sample", "runs/vae", "--count", "2", "-o", "pipe").stderr, "pipe is not a folder")
}

// A run may come from somebody else: resume does not write to where a link in it leads.
func TestResumeRefusesALinkedFile(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 2)
	b.write("victim", "one line\n")
	fatal.If(t, errors.Join(os.Remove(b.path("runs/small/metrics.jsonl")), os.Symlink("../../victim", b.path("runs/small/metrics.jsonl"))))
	b.contains("resume", b.must(exitCheckpoint, "resume", "runs/small", "--epochs", "4").stderr, "runs/small/metrics.jsonl: is a symbolic link")
	expect.Equal(t, b.read("victim"), "one line\n", "the victim holds")
}
