package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A message contains the problem, its location and the remedy.
func TestMessagesSayWhatToDo(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	b.write("file", "text")
	b.write("empty.toml", "")
	b.write("few.csv", "a,b\n1,2\n2,1\n")
	b.write("untested.toml", "[model.m]\ndataset = { file = \"few.csv\", test = \"none.csv\" }\nencoder = [{ kind = \"dense\", units = 2 }]\n")
	b.write("mine/note.txt", "")
	b.write("runs/small-2/config.toml", "")
	fatal.If(t, errors.Join(os.MkdirAll(b.path("folder.npy"), 0o700), os.MkdirAll(b.path("folder.png"), 0o700),
		data.WriteImages(b.path("one.npy"), []int{32}, make([]float32, 32*32)),
		data.WriteImages(b.path("codes.npy"), []int{6}, []float32{0, 1, 2, 3, 4, float32(math.Inf(1))})))
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"check small", exitUsage, []string{"small is a model, want a file", "tessera check --fill small"}},
		{"eval nowhere", exitUsage, []string{"tessera: nowhere: no such folder\n"}},
		{"eval small", exitUsage, []string{`did you mean "runs/small"?`}},
		{"resume file", exitUsage, []string{"file: is a file, not the folder of a run"}},
		{"encode file/x --in a --out b", exitUsage, []string{"file/x: no such folder"}},
		{"figure pareto sweeps/nope", exitUsage, []string{"sweeps/nope: no such folder"}},
		{"figure pareto file", exitUsage, []string{"file: is a file"}},
		{"eval mine", exitUsage, []string{"mine: is not a run"}},
		{"figure atoms EMPTY", exitUsage, []string{"figure: missing run"}},
		{"train small --out mine", exitUsage, []string{"--out mine: exists already", "give another --out: the folder contains files that tessera did not write"}},
		{"train small --out runs/small", exitUsage, []string{"--out runs/small: exists already", "or --force to replace that run"}},
		{"train small --out mine --force", exitUsage, []string{"--out mine: is not a run"}},
		{"train small --out file", exitUsage, []string{"--out file: exists already, as a file"}},
		{"train small --out .", exitUsage, []string{"tessera: --out .: is the current directory"}},
		{"train ..", exitUsage, []string{`unknown model ".."`}},
		{"summary small --set dataset.name=npy --set dataset.images=missing.npy", exitData, []string{"npy: missing.npy: not found"}},
		{"encode runs/small --in one.npy --out x.npy", exitData, []string{"each row has 32 values", "saved with the shape (1,32,32)"}},
		{"decode runs/small --in codes.npy --out x.npy", exitData, []string{"sample 0, value 5: got +Inf, want a finite number"}},
		{"decode runs/small --in codes.npy --out folder.npy", exitUsage, []string{"--out: folder.npy is a folder"}},
		{"figure atoms runs/small --out folder.png", exitUsage, []string{"--out: folder.png is a folder"}},
		{"train xyz -f shipped", exitUsage, []string{`unknown model "xyz" in the shipped models: the nearest are `, "`tessera list models -f shipped` shows all"}},
		{"train shalow -f shipped", exitUsage, []string{`in the shipped models: did you mean "shallow"?`}},
		{"train xyz", exitUsage, []string{`unknown model "xyz" in models.toml and the shipped models`, "`tessera list models` shows all"}},
		{"list lossess", exitUsage, []string{`unknown "lossess": did you mean "losses"?`}},
		{"check untested.toml", exitData, []string{"csv: none.csv: not found"}},
		{"check empty.toml", 0, []string{"tessera: empty.toml declares nothing: a model begins with [model.NAME]"}},
	} {
		args := strings.Fields(c.args)
		for i, a := range args {
			args[i] = strings.Replace(a, "EMPTY", "", 1)
		}
		r := b.must(c.code, args...)
		b.contains("tessera "+c.args, r.stderr, c.says...)
		if c.args == "train small --out mine" && strings.Contains(r.stderr, "--force") {
			t.Errorf("--force is suggested and would not help:\n%s", r.stderr)
		}
	}
}

func TestResumeSaysWhatItWroteAnewOfAFinishedRun(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	b.contains("of a whole run", b.must(0, "resume", "runs/small").stderr, "runs/small is finished: nothing was done")
	whole, picture := b.read("runs/small/model.safetensors"), b.read("runs/small/atoms.png")
	b.write("runs/small/model.safetensors", "damaged")
	b.contains("of a damaged one", b.must(0, "resume", "runs/small").stderr, "runs/small is finished: model.safetensors written again")
	expect.Equal(t, b.read("runs/small/model.safetensors"), whole, "the model is another one")
	fatal.If(t, errors.Join(os.Remove(b.path("runs/small/model.safetensors")), os.Remove(b.path("runs/small/atoms.png"))))
	b.contains("of an incomplete one", b.must(0, "resume", "runs/small").stderr, "is finished: model.safetensors written again")
	expect.Equal(t, b.read("runs/small/atoms.png"), picture, "a finished run is not complete after resume")
	expect.Equal(t, b.read("runs/small/model.safetensors"), whole, "a finished run is not complete after resume")
	b.write("runs/small/.atoms.png.abcdefghij.tmp", "half") // of a killed process
	long := time.Now().Add(-time.Hour)
	fatal.If(t, os.Chtimes(b.path("runs/small/.atoms.png.abcdefghij.tmp"), long, long))
	b.must(0, "resume", "runs/small")
	if b.exists("runs/small/.atoms.png.abcdefghij.tmp") {
		t.Error("a half-drawn picture stays")
	}
}

// The folder of --data contains damaged images. The remedy must refer to this folder.
func TestADamagedDataSetIsReplacedWhereItIs(t *testing.T) {
	b := newBench(t)
	images := []byte{0, 0, 8, 1, 0, 0, 0, 1, 7}
	for _, name := range []string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"} {
		b.write(filepath.Join("bd/mnist", name), string(images))
	}
	set := "dataset.name=mnist"
	b.contains("train", b.must(exitData, "train", "small", "--set", set, "--data", "bd").stderr, "bd/mnist/", `"tessera data get mnist" with --data=bd replaces it`)
	command := b.command("train", "small", "--set", set)
	command.Env = append(command.Env, fmt.Sprintf("%s=%s", data.EnvDir, b.path("bd")))
	if r := b.finish(command); r.code != exitData || !strings.Contains(r.stderr, `"tessera data get mnist" replaces it`) {
		t.Errorf("a folder that is the first without a flag: %d, %s", r.code, r.stderr)
	}
}

// A library names settings of a call as options; its messages never have flags, and the command prints the flag of every option.
func TestOptionsOfLibrariesArePrintedAsFlags(t *testing.T) {
	flag := regexp.MustCompile(`"[^"\n]*(^|[ (` + "`" + `])--[a-z]`)
	fatal.If(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch folder := filepath.ToSlash(path); {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"../../apps", "../../internal/tools", "../../.git", "../../docs", "../../python"}, folder):
			return fs.SkipDir
		case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for n, line := range strings.Split(string(text), "\n") {
			// A whole command is one that can be given; docs of metrics and the arguments of other programs are no messages.
			message := strings.Contains(line, "rrorf(") || strings.Contains(line, "setupf(") || strings.Contains(line, "refuse(") || strings.Contains(line, "Hint:") || strings.Contains(line, "Problem:")
			if message && flag.MatchString(line) && !strings.Contains(line, "`tessera ") && !strings.Contains(line, "srun") {
				t.Errorf("%s:%d: write \"the option NAME\": %s", path, n+1, strings.TrimSpace(line))
			}
		}
		return err
	}))
	expect.Equal(t, worded("train without the option shard_optimizer, with the option backend=engine"), "train without --shard-optimizer, with --backend=engine")
}
