package cli

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// No output replaces the file of models or the data that a run was trained on.
func TestOutputsDoNotReplaceDataOrModels(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `[model.classes]
dataset    = { name = "csv", file = "f.csv", test_images = "test.csv", labels = "y" }
encoder    = [{ kind = "dense", units = 2 }]
head.class = { layers = [{ kind = "dense" }] }
loss       = [{ kind = "mse" }, { kind = "cross_entropy", on = "class" }]
train      = { epochs = 1 }
[model.pictures]
dataset = { name = "images", images = "pictures" }
encoder = [{ kind = "dense", units = 2 }]
train   = { epochs = 1 }
[model.pca]
kind = "pca"
components = 2
dataset = { name = "images", images = "pictures" }
[sweep.two]
model = "pictures"
seeds = [1]
`)
	table := "a,b,y\n" + strings.Repeat("0.1,0.2,ill\n0.3,0.2,well\n", 10)
	for _, name := range []string{"f.csv", "test.csv", "new.csv"} {
		b.write(name, table)
	}
	b.writePNGs()
	for _, name := range []string{"classes", "pictures"} {
		b.must(0, "train", name, "--quiet")
	}
	b.must(0, "sweep", "two", "--quiet")
	kept := map[string]string{}
	for _, name := range []string{"models.toml", "f.csv", "test.csv", "pictures/a/0.png"} {
		kept[name] = b.read(name)
	}
	for line, want := range map[string]string{
		"export runs/classes --to npz -o f.csv":                              "f.csv is in the data set of runs/classes and would be replaced",
		"export runs/classes --to npz -o test.csv":                           "test.csv is in the data set of runs/classes",
		"export runs/classes --to npz -o models.toml":                        "models.toml is the file of models",
		"encode runs/classes --in new.csv -o f.csv":                          "f.csv is in the data set of runs/classes",
		"predict runs/classes --in new.csv -o f.csv":                         "f.csv is in the data set of runs/classes",
		"figure atoms runs/pictures -o pictures/a/0.png":                     "pictures/a/0.png is in the data set of runs/pictures",
		"figure training sweeps/two -o pictures/a/0.png":                     "pictures/a/0.png is in the data set of sweeps/two",
		"sample runs/pictures --count 2 -o pictures/a/0.png":                 "pictures/a/0.png is in the data set of runs/pictures",
		"rank pca --ranks 1,2 --figure pictures/a/0.png":                     "pictures/a/0.png is in the data set of model pca",
		"complete runs/classes --in new.csv -o f.csv":                        "f.csv is in the data set of runs/classes",
		"traverse runs/pictures --in pictures/a/1.png -o ./pictures/a/0.png": "0.png is in the data set of runs/pictures",
	} {
		b.contains(line, b.must(exitUsage, strings.Fields(line)...).stderr, want)
	}
	for name, was := range kept {
		expect.Equal(t, b.read(name), was, name, "was replaced")
	}
	b.must(0, "export", "runs/classes", "--to", "npz", "-o", os.DevNull)
	for range 2 { // an output of an earlier command is replaced
		b.must(0, "figure", "atoms", "runs/pictures", "-o", "atoms.png")
	}
}

// check warns of a downloaded data set that is not there, and finds damaged pictures.
func TestCheckFindsWhatATrainingWouldNotRead(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", "[model.a]\ndataset = \"mnist\"\nencoder = [{ kind = \"dense\", units = 2 }]\n[model.b]\nextends = \"a\"\n")
	said := b.must(0, "check")
	b.contains("not downloaded", said.stderr, "`tessera data get mnist`")
	expect.Equal(t, strings.Count(said.stderr, "data get mnist"), 1, "the warning comes")
	b.writePNGs()
	b.write("models.toml", "[model.a]\ndataset = { name = \"images\", images = \"pictures\" }\nencoder = [{ kind = \"dense\", units = 2 }]\n")
	b.must(0, "check")
	b.write("pictures/a/1.png", b.read("pictures/a/1.png")[:60])
	b.contains("a truncated picture", b.must(exitData, "check").stderr, "1.png")
	b.write("empty.npz", "")
	b.write("models.toml", "[model.a]\ndataset = \"empty.npz\"\nencoder = [{ kind = \"dense\", units = 2 }]\n")
	b.contains("an empty file", b.must(exitData, "check").stderr, "empty.npz", "is empty")
}

// writePNGs writes 12 pictures of noise in the folder pictures.
func (b *bench) writePNGs() {
	b.Helper()
	for i := range 12 {
		m := image.NewGray(image.Rect(0, 0, 8, 8))
		for k := range m.Pix {
			m.Pix[k] = uint8(37 * (i + 1) * (k + 3))
		}
		var buffer bytes.Buffer
		fatal.If(b, errors.Join(png.Encode(&buffer, m), os.MkdirAll(b.path("pictures/a"), 0o700)))
		b.write(fmt.Sprintf("pictures/a/%d.png", i), buffer.String())
	}
}
