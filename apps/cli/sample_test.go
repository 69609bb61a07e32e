package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
)

func TestSampleDrawsNewImages(t *testing.T) {
	b := newBench(t)
	rows := "a,b\n"
	for i := range 40 {
		rows += []string{"100,1\n", "140,3\n", "104,2\n", "142,5\n"}[i%4]
	}
	b.write("rows.csv", rows)
	b.write("models.toml", `[model.rows]
kind = "gmm"
components = 2
dataset = { name = "csv", file = "rows.csv", scale = "standardise", validation = 0 }

[model.pictures]
kind = "bmm"
components = 2
dataset = { name = "bars", count = 40 }

[model.other]
kind = "kmeans"
components = 2
dataset = { name = "bars", count = 40 }
`)
	for _, name := range []string{"rows", "pictures", "other"} {
		b.must(0, "train", name)
	}
	b.must(0, "sample", "runs/rows", "--count", "500", "-o", "x.npy")
	b.must(0, "sample", "runs/rows", "--count", "20", "-o", "few.npy")
	x, mean := b.values("x.npy", 2), 0.0
	for i := 0; i < len(x); i += 2 {
		mean += float64(x[i]) / float64(len(x)/2)
	}
	if len(x) != 1000 || mean < 115 || mean > 128 { // in the units of the file, whose mean is 121.5
		t.Errorf("%d values, mean of the first column %g", len(x), mean)
	}
	expect.Slice(t, x[:40], b.values("few.npy", 2), "fewer images are other images")
	b.must(0, "sample", "runs/rows", "--count", "20", "--seed", "2", "-o", "other.npy")
	if slices.Equal(x[:40], b.values("other.npy", 2)) {
		t.Error("another seed draws the same images")
	}
	b.must(0, "sample", "runs/rows", "--count", "3", "-o", "x.csv")
	if text := b.read("x.csv"); !strings.HasPrefix(text, "a,b\n") || strings.Count(text, "\n") != 4 {
		t.Errorf("got %q", text)
	}
	b.must(0, "sample", "runs/pictures", "--count", "2", "-o", "drawn")
	for _, run := range []string{"rows", "pictures"} {
		b.must(0, "figure", "mixture", "runs/"+run, "-o", run+".png")
		b.must(0, "report", "runs/"+run, "-o", run+".html")
		b.contains("report", b.read(run+".html"), `aria-label="Mixture"`)
	}
	b.contains("figure", b.must(exitUsage, "figure", "mixture", "runs/other").stderr, "other is no mixture")
	for text, want := range map[string]string{
		"runs/rows --count 3 -o y.png":                           "vectors of 2 values are not images",
		"runs/pictures --count 2 -o drawn":                       "drawn is a folder with files",
		"runs/rows --count 3 -o y":                               "vectors of 2 values are not images",
		"runs/pictures --count 20 --features runs/rows -o y.npy": "--features: the images of runs/rows have the shape",
	} {
		b.contains(text, b.must(exitUsage, append([]string{"sample"}, strings.Fields(text)...)...).stderr, want)
	}
}

// TestSampleDrawsFromGraphs draws from models of every kind that is sampled: by its prior, by a head that reads drawn columns
// alone, and by a mixture fitted to codes.
func TestSampleDrawsFromGraphs(t *testing.T) {
	b := newBench(t)
	b.write("models.toml", `[model.vae]
dataset = { name = "bars", count = 200 }
encoder = [{ kind = "gaussian", units = 4 }]
loss    = [{ kind = "mse" }, { kind = "gaussian_kl", weight = 0.001 }]
train   = { epochs = 2 }

[model.plain]
extends = "vae"
encoder = [{ kind = "dense", units = 6, activation = "relu" }]
loss    = [{ kind = "mse" }]

[model.indexed]
extends = "vae"
encoder = [{ kind = "dense", units = 8 }, { kind = "reshape", shape = [2, 2, 2] }, { kind = "vq", entries = 5 }]
loss    = [{ kind = "mse" }, { kind = "commitment", weight = 0.25 }]

[model.order]
dataset   = { run = "runs/indexed", value = "encoder.2.index" }
encoder   = [{ kind = "embedding", vocabulary = 5, units = 4 }, { kind = "position" }, { kind = "transformer", heads = 1, causal = true }]
decoder   = []
head.next = { from = "encoder.2", layers = [{ kind = "token_dense", units = 5 }] }
loss      = [{ kind = "next_token" }]
train     = { epochs = 1 }

[model.parts]
kind       = "nmf"
components = 4
dataset    = { name = "bars", count = 200 }
iterations = 5

[model.forger]
extends = "plain"
column.noise = { kind = "normal", shape = [3] }
head.forged  = { from = "noise", layers = [{ kind = "dense", units = 64 }] }
loss    = [{ kind = "mse" }, { kind = "mse", name = "forged", on = "forged" }]

[model.diffusion]
extends = "vae"
column.level = { kind = "uniform" }
column.noise = { kind = "normal", like = "images" }
encoder      = [{ kind = "diffuse", steps = 4 }, { kind = "dense", units = 6, activation = "tanh" }, { kind = "condition", by = "time" }]
head.time    = { from = "level", layers = [{ kind = "sinusoidal", units = 4 }, { kind = "dense", units = 6 }] }
loss         = [{ kind = "mse", against = "noise" }]

[model.machine]
dataset = { name = "bars", count = 200 }
encoder = [{ kind = "rbm", units = 6 }]
decoder = [{ kind = "tied", activation = "sigmoid", bias_of = "encoder.0.visible_bias" }]
loss    = [{ kind = "contrastive_divergence" }]
train   = { epochs = 1 }

[model.likes]
extends = "forger"
column.noise = { kind = "other" }

[model.skips]
extends = "vae"
decoder = [{ kind = "dense", from = ["code", "images"] }]
`)
	for _, name := range []string{"vae", "plain", "indexed", "parts", "forger", "diffusion"} {
		b.must(0, "train", name)
		b.must(0, "sample", "runs/"+name, "--count", "40", "-o", name+".npy")
		b.must(0, "sample", "runs/"+name, "--count", "3", "-o", "few.npy")
		b.must(0, "sample", "runs/"+name, "--count", "3", "--seed", "2", "-o", "other.npy")
		all := b.values(name+".npy", 8, 8)
		if few := b.values("few.npy", 8, 8); len(all) != 40*64 || !slices.Equal(all[:3*64], few) || slices.Equal(few, b.values("other.npy", 8, 8)) {
			t.Errorf("%s: the first images depend on the number, or not on the seed", name)
		}
	}
	for _, v := range b.values("parts.npy", 8, 8) {
		if v < 0 {
			t.Fatalf("parts: codes that are never negative gave the pixel %g", v)
		}
	}
	b.must(0, "train", "vae", "--set", "dataset.count=3", "--out", "runs/few") // too few test images for --features
	b.must(0, "sample", "runs/vae", "--count", "3", "--mixture", "-o", "mixed.npy")
	b.must(0, "sample", "runs/plain", "--count", "3", "--mixture", "-o", "same.npy")
	if few := b.values("few.npy", 8, 8); slices.Equal(b.values("mixed.npy", 8, 8), b.values("vae.npy", 8, 8)[:3*64]) || slices.Equal(few, b.values("same.npy", 8, 8)) ||
		!slices.Equal(b.values("plain.npy", 8, 8)[:3*64], b.values("same.npy", 8, 8)) {
		t.Error("--mixture does not draw from the mixture of codes")
	}
	b.must(0, "sample", "runs/indexed", "--count", "3", "--mixture", "-o", "codes.npy")
	if slices.Equal(b.values("codes.npy", 8, 8), b.values("indexed.npy", 8, 8)[:3*64]) {
		t.Error("--mixture does not draw from the mixture of codes of a model with a code book")
	}
	b.must(0, "train", "order")
	b.must(0, "sample", "runs/indexed", "--count", "40", "--prior", "runs/order", "-o", "ordered.npy")
	if slices.Equal(b.values("ordered.npy", 8, 8), b.values("indexed.npy", 8, 8)) {
		t.Error("--prior draws the images of the frequencies")
	}
	b.must(0, "sample", "runs/vae", "--count", "20", "-o", "grid.png")
	if size := len(b.read("grid.png")); size < 1000 {
		t.Errorf("a grid of %d bytes", size)
	}
	few := b.values("few.npy", 8, 8) // of the diffusion model
	b.must(0, "sample", "runs/diffusion", "--count", "3", "--steps", "4", "--eta", "1", "-o", "declared.npy")
	expect.Slice(t, few, b.values("declared.npy", 8, 8), "the declared steps draw other images")
	for _, flags := range [][]string{{"--steps", "5"}, {"--eta", "0"}} {
		b.must(0, append([]string{"sample", "runs/diffusion", "--count", "3", "-o", "other.npy"}, flags...)...)
		if slices.Equal(few, b.values("other.npy", 8, 8)) {
			t.Errorf("%v draws the same images", flags)
		}
	}
	b.contains("codes of noise", b.must(exitUsage, "sample", "runs/diffusion", "--count", "3", "--mixture", "-o", "mixed.npy").stderr, "no reconstruction")
	b.must(0, "traverse", "runs/diffusion", "-o", "units.npy")
	b.must(0, "interpolate", "runs/diffusion", "-o", "between.npy")
	expect.Equal(t, len(b.values("units.npy", 8, 8)), 6*9*64, "traverse")
	quality := b.must(0, "sample", "runs/vae", "--count", "20", "--features", "runs/plain", "-o", "x.npy").stdout
	b.contains("features", quality, "20 drawn and 20 test images, code of runs/plain")
	for text, want := range map[string]string{
		"runs/indexed --count 3 --prior runs/vae -o y.npy":              "runs/vae: its samples have the shape [8 8], want [4], the indices of run",
		"runs/vae --count 3 --prior runs/order -o y.npy":                "add a layer vq",
		"runs/vae --count 3 --steps 3 -o y.npy":                         "its samples are not drawn in steps",
		"runs/vae --count 20 --features no -o y.npy":                    "no",
		"runs/vae --count 20 --features runs/plain --value no -o y.npy": "--value: got \"no\", want a value of runs/plain",
		"runs/vae --count 3 --features runs/plain -o z.npy":             "--count: got 3, want more than 3 images for --features",
		"runs/few --count 9 --features runs/few -o z.npy":               "got 3 samples, want more than 3",
		"runs/vae --count 3 -o new/z.npy":                               "create the folder new, or write to another place with --out",
	} {
		if r := b.run(append([]string{"sample"}, strings.Fields(text)...)...); r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("sample %s: exit code %d and %q, want %q", text, r.code, r.stderr, want)
		}
	}
	expect.AnyError(t, expect.Err(os.Stat(filepath.Join(b.dir, "z.npy"))), "a refused command wrote z.npy")
	b.must(0, "train", "likes")
	b.must(0, "sample", "runs/likes", "--count", "3", "-o", "y.npy") // its columns cannot be drawn, so its codes are
	b.must(0, "train", "machine")
	b.contains("eta", b.must(exitUsage, "sample", "runs/machine", "--count", "3", "--steps", "3", "--eta", "0.5", "-o", "y.npy").stderr, "--eta: got 0.5")
	b.must(0, "train", "skips")
	b.contains("skips", b.must(exitUsage, "sample", "runs/skips", "--count", "3", "-o", "y.npy").stderr, `also computed from the column "images"`)
}
