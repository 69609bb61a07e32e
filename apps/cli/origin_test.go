package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

const ownModel = smallModels + "\n[model.own]\nextends = \"small\"\ndataset = { name = \"npy\", images = \"pics/x.npy\", test_images = \"pics/t.npy\", validation = 0.0 }\n"

// ownImages writes the data files of ownModel.
func (b *bench) ownImages() {
	b.Helper()
	b.write("models.toml", ownModel)
	b.write("pics/README", "pictures")
	for name, n := range map[string]int{"pics/x.npy": 60, "pics/t.npy": 20} {
		fatal.If(b, data.WriteImages(b.path(name), []int{32, 32}, swimmer(b.T)[n*1024:2*n*1024]))
	}
}

// elsewhere runs the command in another folder.
func (b *bench) elsewhere(code int, args ...string) result {
	b.Helper()
	cmd := b.command(args...)
	if cmd.Dir = filepath.Join(b.dir, "elsewhere"); os.MkdirAll(cmd.Dir, 0o700) != nil {
		b.Fatal("no folder")
	}
	r := b.finish(cmd)
	if r.code != code {
		b.Fatalf("tessera %s: exit code %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

func TestARunFindsItsDataFromAnyFolder(t *testing.T) {
	b := newBench(t)
	b.ownImages()
	b.must(0, "train", "own", "--epochs", "2", "--out", "whole")
	b.must(0, "train", "own", "--epochs", "1", "--out", "longer")
	here := b.must(0, "eval", "whole").stdout
	b.write("elsewhere/pics/x.npy", "other data of the same name")
	expect.Equal(t, strings.ReplaceAll(b.elsewhere(0, "eval", "../whole").stdout, "../whole", "whole"), here, "from another folder")
	b.elsewhere(0, "figure", "reconstructions", "../whole", "--images", "0,1", "--out", "r.png")
	b.elsewhere(0, "resume", "../longer", "--epochs", "2")
	b.sameRun("whole", "longer")
	b.contains("env.json", b.read("whole/env.json"), `"path": "`+b.path("pics/x.npy")+`"`, `"sha256": "`)

	moved := filepath.Join(t.TempDir(), "project")
	fatal.If(t, os.Rename(b.dir, moved))
	b.dir = moved
	expect.Equal(t, b.must(0, "eval", "whole").stdout, here, "of a project that was moved")
}

func TestARunRemembersTheFolderOfDataFlag(t *testing.T) {
	t.Parallel()
	folder := os.Getenv(data.EnvDir)
	if folder == "" {
		t.Skip("left out: TESSERA_DATA is not set")
	}
	b := benchOf(t)
	fatal.If(t, os.Symlink(folder, b.path("sets")))
	b.must(0, "train", "clothes", "--epochs", "1", "--set", "dataset.limit=500", "--data", "sets", "--out", "run")
	b.elsewhere(0, "eval", "../run", "--metrics", "mse")
	b.elsewhere(0, "resume", "../run", "--epochs", "2")
}

func TestChangedDataAreRefused(t *testing.T) {
	b := newBench(t)
	b.ownImages()
	b.must(0, "train", "own", "--epochs", "1", "--out", "run")
	old := b.read("pics/x.npy")
	b.write("pics/x.npy", old[:len(old)-1]+"\x3f")
	r := b.must(exitData, "eval", "run", "--split", "train")
	b.contains("standard error", r.stderr, b.path("pics/x.npy")+": has changed since the run was trained (SHA-256: got ", "..., want ", "; restore it", "eval with --in")
	b.contains("the test images are the same", b.must(0, "eval", "run").stderr, "the fitted images are not measured", "has changed")
	r = b.must(exitCheckpoint, "resume", "run", "--epochs", "2")
	b.contains("standard error", r.stderr, "pics/x.npy has changed since the run was trained (SHA-256: got ", "restore them, or train a new run")
	b.must(0, "eval", "run", "--in", "pics/x.npy")
	b.write("pics/x.npy", old)
	b.must(0, "eval", "run", "--split", "train")
	b.must(0, "resume", "run", "--epochs", "2")
}

func TestAnEnvironmentThatIsDamagedOrOldChangesNoNumber(t *testing.T) {
	b := newBench(t)
	b.ownImages()
	b.must(0, "train", "own", "--epochs", "1", "--out", "run")
	want := b.must(0, "eval", "run", "--json").stdout
	text := b.read("run/env.json")
	for name, other := range map[string]string{"damaged": strings.Replace(text, "x.npy", "y.npy", 1), "cut": text[:len(text)/2], "without a checksum": `{"threads": 2, "data": []}`} {
		b.write("run/env.json", other)
		r := b.must(0, "eval", "run", "--json")
		expect.Equal(t, r.stdout, want, name)
		expect.Contains(t, r.stderr, "env.json", name)
	}
	fatal.If(t, os.Remove(b.path("run/env.json")))
	b.must(0, "eval", "run")
}
