package train

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
)

// runFiles returns the files of a run in memory.
func runFiles(t *testing.T, run string, names ...string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for _, name := range names {
		b, err := os.ReadFile(run + "/" + name)
		fatal.If(t, err)
		files["runs/a/"+name] = &fstest.MapFile{Data: b}
	}
	return files
}

func TestARunOpensFromAFileSystemAndFromOneFile(t *testing.T) {
	run := trained(t, model(t, everything), Options{}).Run
	want, err := Open(run)
	fatal.If(t, err)
	same := func(what string, got *Trained, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if got.Epoch != want.Epoch || got.Step != want.Step || got.Spec.Name != want.Spec.Name || len(got.Parameters) != len(want.Parameters) {
			t.Errorf("%s: epoch %d, step %d, model %q, %d parameters", what, got.Epoch, got.Step, got.Spec.Name, len(got.Parameters))
		}
		for i, p := range got.Parameters {
			expect.Equal(t, p.Path, want.Parameters[i].Path, what, "other values of")
			expect.Slice(t, p.Data, want.Parameters[i].Data, what, "other values of")
		}
	}
	name := want.Path[len(run)+1:]
	files := runFiles(t, run, folder.Config, name)
	got, err := OpenFS(files, "runs/a")
	same("a file system", got, err)
	inside, err := files.Sub("runs/a")
	fatal.If(t, err)
	got, err = OpenFS(inside, "")
	same("its folder", got, err)
	got, err = Read("bytes", files["runs/a/"+name].Data)
	same("one file", got, err)
}

func TestABaselineOpensFromOneFile(t *testing.T) {
	run := trained(t, baseline(t, "pca"), Options{}).Run
	got, err := Read("bytes", runFiles(t, run, folder.Model)["runs/a/"+folder.Model].Data)
	if err != nil || got.Baseline == nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFilesThatHoldNoRunAreErrors(t *testing.T) {
	run := trained(t, model(t, everything), Options{}).Run
	files := runFiles(t, run, folder.Config, folder.Model)
	expect.AnyError(t, expect.Err(OpenFS(nil, "runs/a")), "no file system: opened")
	for _, dir := range []string{"", "runs", "runs/b", "../runs/a", "/"} {
		expect.AnyError(t, expect.Err(OpenFS(files, dir)), dir, "opened")
	}
	expect.Is(t, expect.Err(OpenFS(files, "runs")), folder.ErrNotRun, "a folder without a run")
	var damaged *checkpoint.Error
	whole := files["runs/a/"+folder.Model].Data
	for what, b := range map[string][]byte{"nothing": nil, "a cut file": whole[:len(whole)-5], "another byte": flipped(whole)} {
		if _, err := Read("bytes", b); !errors.As(err, &damaged) || damaged.Path != "bytes" {
			t.Errorf("%s: %v", what, err)
		}
	}
	f, err := checkpoint.Decode(whole)
	fatal.If(t, err)
	delete(f.Metadata, declarationKey)
	old, err := checkpoint.Encode(f, nil)
	fatal.If(t, err)
	if _, err := Read("bytes", old); !errors.As(err, &damaged) {
		t.Errorf("a file without a declaration: %v", err)
	}
	delete(files, "runs/a/"+folder.Model)
	if _, err := OpenFS(files, "runs/a"); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("config.toml alone: %v", err)
	}
}

func flipped(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-3] ^= 4
	return b
}
