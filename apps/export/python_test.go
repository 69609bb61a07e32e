package export_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/apps/export"
	"tessera/config"
	"tessera/data"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/volume"
	"tessera/layers"
)

const pythonPage = "../../docs/python.md"

// pythonModels declares the models with which docs/python.md is tested, on the data set swimmer.
const pythonModels = `
[model.dense]
dataset = "swimmer"
encoder = [
  { kind = "gaussian_noise", stddev = 0.1 }, { kind = "dense", units = 30, activation = "relu" }, { kind = "dense", units = 8, activation = "sigmoid" }
]
train   = { epochs = 1 }

[model.one]
extends = "dense"
encoder = [{ kind = "dense", units = 8, activation = "sigmoid" }]

[model.convolutional]
extends = "dense"
encoder = [
  { kind = "conv2d", filters = 6, kernel = 4, stride = 2, activation = "leaky_relu" },
  { kind = "conv2d", filters = 8, kernel = 4, stride = 2 }, { kind = "batch_norm" }, { kind = "leaky_relu" },
  { kind = "dense", units = 12 }, { kind = "batch_norm" }, { kind = "leaky_relu", slope = 0.3 },
  { kind = "dense", units = 8, activation = "sigmoid" },
]

[model.grouped]
extends = "dense"
encoder = [
  { kind = "conv2d", filters = 6, kernel = 3, kernel_width = 4, stride = 2, stride_width = 1, dilation = 2 },
  { kind = "conv2d", filters = 4, kernel = 3, stride = 2, groups = 2, padding = "valid" },
  { kind = "conv2d", filters = 4, kernel = 2, stride = 3, padding = 1, bias = false },
  { kind = "dense", units = 8, activation = "tanh" },
]

[model.attention]
extends = "dense"
encoder = [
  { kind = "patches", size = 8 }, { kind = "token_dense", units = 16 }, { kind = "position" },
  { kind = "residual", layers = [{ kind = "layer_norm" }, { kind = "attention", heads = 4 }] },
  { kind = "residual", layers = [
    { kind = "layer_norm" }, { kind = "token_dense", units = 20, activation = "relu" }, { kind = "token_dense", units = 16 },
  ] },
  { kind = "attention", heads = 2, bias = true }, { kind = "layer_norm" }, { kind = "dense", units = 8, activation = "sigmoid" },
]

[model.relative]
extends = "dense"
encoder = [{ kind = "relative", layers = [{ kind = "dense", units = 12, activation = "relu" }, { kind = "dense", units = 8, activation = "relu" }] }]

[model.unrolled]
extends = "dense"
encoder = [{ kind = "relative", layers = [{ kind = "unrolled", units = 8, steps = 5 }] }]
decoder = [{ kind = "tied", weight = "encoder.0.0.weight", bias = false }]

[model.splitting]
extends = "unrolled"
encoder = [{ kind = "relative", layers = [{ kind = "unrolled", units = 8, steps = 5, method = "splitting", rho = 0.5 }] }]

[model.scaled]
extends = "dense"
dataset = { name = "npy", images = "VECTORS", scale = "minmax" }

[model.stopped]
extends   = "dense"
dataset   = { name = "npy", images = "VECTORS", scale = "standardise", validation = 0.5 }
optimizer = { kind = "adam", learning_rate = 0.1 }
train     = { epochs = 100, batch = 5 }
hook.early_stopping = { patience = 3 }

[model.standardised]
extends = "dense"
dataset = { name = "npy", images = "VECTORS", scale = "standardise" }

[model.transcoder]
extends       = "standardised"
column.target = { kind = "constant", like = "images" }
loss          = [{ kind = "mse", against = "target" }]

[model.whitened]
extends = "dense"
dataset = { name = "npy", images = "VECTORS", scale = "whiten" }

[model.clipped]
extends = "dense"
dataset = { name = "npy", images = "COUNTS", scale = ["log1p", "minmax"] }

[model.weighted]
extends = "dense"
dataset = { name = "npy", images = "COUNTS", scale = [{ kind = "tfidf", sublinear = true, norm = "l1" }, { kind = "rows", norm = "l2", to = 0.0 }] }

[model.pointwise]
extends = "dense"
dataset = { name = "npy", images = "COUNTS", scale = [{ kind = "rows", norm = "max", to = 1e3 }, { kind = "ppmi", smoothing = 0.75, shift = 0.5 }] }

[model.nmf]
dataset    = "swimmer"
kind       = "nmf"
components = 8
iterations = 5

[model.pca]
dataset    = { name = "npy", images = "VECTORS" }
kind       = "pca"
components = 4

[model.divergence]
extends = "nmf"
solver  = "mu"
loss    = "kl"

[model.penalised]
extends  = "nmf"
l1_codes = 0.01
l1_atoms = 0.01

[model.crossed]
extends = "dense"
encoder = [
  { kind = "patches", size = 8 }, { kind = "token_dense", units = 16 }, { kind = "attention", heads = 4, keys = "encoder.0" },
  { kind = "dense", units = 8 },
]

[model.skipping]
extends = "dense"
encoder = [{ kind = "dense", units = 8 }, { kind = "dense", units = 8, from = ["previous", "images"] }]
`

// blocks returns the blocks of code of the page that begin with the given fence, concatenated; those of "python" are the module.
func blocks(t *testing.T, fence string) string {
	t.Helper()
	file := pythonPage
	if fence == "python" {
		file = "tessera.py"
	}
	page, err := os.ReadFile(file)
	fatal.If(t, err)
	if fence == "python" {
		return string(page)
	}
	var all strings.Builder
	for _, piece := range strings.Split(string(page), "```"+fence+"\n")[1:] {
		code, _, _ := strings.Cut(piece, "```")
		all.WriteString(code + "\n")
	}
	return all.String()
}

// pythonWith returns the path of a Python that has a module. It skips the test if there is none, and with -short.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts Python")
	}
	for _, python := range []string{"python3", "/usr/bin/python3"} {
		find := "import tomllib, importlib.util as u, sys; sys.exit(u.find_spec('" + module + "') is None)"
		if exec.Command(python, "-c", find).Run() == nil {
			return python
		}
	}
	t.Skipf("left out: needs Python 3.11 with %s", module)
	return ""
}

// pythonRuns trains the named models, each in a folder next to its exported file, and returns the parent of the
// folders.
func pythonRuns(t *testing.T, names ...string) string {
	t.Helper()
	parent := t.TempDir()
	vectors := filepath.Join(parent, "vectors.npy")
	signed := uniform(6, 50*12)
	for i := range signed {
		signed[i] = 9*signed[i] - 3
	}
	fatal.If(t, data.WriteImages(vectors, []int{12}, signed))
	counts := filepath.Join(parent, "counts.npy")
	fatal.If(t, data.WriteImages(counts, []int{12}, lists.Map(uniform(8, 50*12), func(v float32) float32 { return float32(int(3 * v * v)) })))
	f, err := config.Load("models of the test", []byte(strings.NewReplacer("VECTORS", filepath.ToSlash(vectors), "COUNTS", filepath.ToSlash(counts)).Replace(pythonModels)))
	fatal.If(t, err)
	for _, name := range names {
		m, err := f.Model(name)
		fatal.If(t, err)
		folder := filepath.Join(parent, name)
		run, err := tessera.Train(t.Context(), m, tessera.Options{Out: folder, Threads: 1})
		fatal.If(t, err)
		fatal.If(t, run.Close())
		r, err := export.Open(folder)
		fatal.If(t, err)
		fatal.If(t, os.WriteFile(folder+".safetensors", written(t, r, "safetensors", ""), 0o666))
	}
	return parent
}

// agree runs the code of the page on each run and compares the codes with those of Tessera.
func agree(t *testing.T, command []string, code, end string, runs string, names ...string) {
	t.Helper()
	for _, name := range names {
		folder := filepath.Join(runs, name)
		run, err := tessera.Open(folder, tessera.Options{Threads: 1})
		fatal.If(t, err)
		images := uniform(5, 5*volume.Of(run.Shape()))
		want, err1 := run.Encode(images)
		if err := run.Close(); err != nil || err1 != nil {
			t.Fatal(err, err1)
		}
		in, out := filepath.Join(runs, "images.npy"), filepath.Join(runs, "codes.npy")
		fatal.If(t, data.WriteImages(in, run.Shape(), images))
		cmd := exec.Command(command[0], append(slices.Clone(command[1:]), folder, in, out)...)
		cmd.Stdin = strings.NewReader(code + end)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
			continue
		}
		codes, err := data.ReadImages(t.Context(), out, []int{len(want) / 5})
		fatal.If(t, err)
		if d := difference(codes.Float32(), want); !(d <= tolerance*max(1, float64(slices.Max(want)))) || slices.Min(want) == slices.Max(want) {
			t.Errorf("%s: the codes differ by %g", name, d)
		} else {
			t.Logf("%s: the codes differ by at most %.1e", name, d)
		}
	}
}

// The module tessera.py computes the codes of a dense, a convolutional, an attention, an unrolled and an NMF run.
func TestThePythonPageComputesCodes(t *testing.T) {
	python := pythonWith(t, "numpy")
	names := []string{"dense", "convolutional", "grouped", "attention", "unrolled", "splitting", "nmf", "pca", "scaled", "standardised", "stopped", "whitened", "clipped", "weighted", "pointwise"}
	given := "import sys, numpy as np\nrun, images = sys.argv[1], np.load(sys.argv[2])\n"
	agree(t, []string{python, "-"}, given+blocks(t, "python"), "\nnp.save(sys.argv[3], encode(run, images).astype(np.float32))\n", pythonRuns(t, names...), names...)
	if first, _, _ := strings.Cut(blocks(t, "python"), "\n\n"); len(strings.Split(first, "\n")) > 15 {
		t.Errorf("the first lines are %d", len(strings.Split(first, "\n")))
	}
}

// A run that the module does not know, or a sample with a missing value, is an error that says why, and no array of other values.
func TestThePythonPageRefusesOtherModels(t *testing.T) {
	python := pythonWith(t, "numpy")
	refused := map[string]string{"divergence": "nmf", "penalised": "nmf", "crossed": "keys = 'encoder.0'", "skipping": "from = ['previous', 'images']"}
	names := slices.Sorted(maps.Keys(refused))
	runs := pythonRuns(t, names...)
	for _, name := range names {
		cmd := exec.Command(python, "-", filepath.Join(runs, name))
		cmd.Stdin = strings.NewReader(blocks(t, "python") + "\nimport sys; encode(sys.argv[1], np.zeros((5, 32, 32), np.float32))\n")
		text, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(text), "NotImplementedError") || !strings.Contains(string(text), refused[name]) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	cmd := exec.Command(python, "-", filepath.Join(runs, "skipping"))
	cmd.Stdin = strings.NewReader(blocks(t, "python") + "\nimport sys; encode(sys.argv[1], np.full((5, 32, 32), np.nan, np.float32))\n")
	if text, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(text), "missing values") {
		t.Errorf("of NaN: %v\n%s", err, text)
	}
}

// The exported module encodes as the run does, and decodes the run's codes.
func TestTheExportedModuleReadsRuns(t *testing.T) {
	python := pythonWith(t, "numpy")
	names := []string{"dense", "nmf", "standardised", "stopped", "whitened", "clipped", "transcoder"}
	runs := pythonRuns(t, names...)
	r, err := export.Open(filepath.Join(runs, "dense"))
	fatal.If(t, err)
	fatal.If(t, os.WriteFile(filepath.Join(runs, "tessera.py"), written(t, r, "python", ""), 0o600))
	const program = `import sys; sys.path.insert(0, %q); import tessera, numpy as np
run, images = sys.argv[1], np.load(sys.argv[2]); codes = tessera.encode(run, images)
assert tessera.decode(run, codes).shape == (len(images), images[0].size)
np.save(sys.argv[3], codes.astype(np.float32))
`
	agree(t, []string{python, "-"}, fmt.Sprintf(program, runs), "", runs, names...)
	for _, name := range []string{"standardised", "whitened", "clipped", "transcoder"} {
		coder, err := tessera.Open(filepath.Join(runs, name), tessera.Options{Threads: 1})
		fatal.If(t, err)
		defer coder.Close()
		codes := uniform(7, 2*coder.Units())
		want, err := coder.Decode(codes)
		fatal.If(t, err)
		in, out := filepath.Join(runs, "in.npy"), filepath.Join(runs, "out.npy")
		fatal.If(t, data.WriteImages(in, []int{coder.Units()}, codes))
		decode := exec.Command(python, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import tessera, numpy as np; np.save(sys.argv[4], tessera.decode(sys.argv[2], np.load(sys.argv[3])).astype(np.float32))",
			runs, filepath.Join(runs, name), in, out)
		if text, err := decode.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		got, err := data.ReadImages(t.Context(), out, coder.Shape())
		fatal.If(t, err)
		if d := difference(got.Float32(), want); !(d <= 1e-4) {
			t.Errorf("%s: the decoded samples differ by %g", name, d)
		}
	}
}

func TestThePythonPageMakesAModuleOfPyTorch(t *testing.T) {
	python := pythonWith(t, "torch")
	names := []string{"dense", "convolutional"}
	given := "import sys, numpy as np\nrun, images = sys.argv[1], np.load(sys.argv[2])\n"
	agree(t, []string{python, "-"}, given+blocks(t, "python torch"), "\nnp.save(sys.argv[3], codes)\n", pythonRuns(t, names...), names...)
}

// Code with which R reads and writes NPY files in the test. The page itself does not need it.
const (
	readByR = `a <- commandArgs(TRUE); run <- a[1]; f <- file(a[2], "rb"); head <- as.integer(readBin(f, "raw", 10))
invisible(readBin(f, "raw", head[9] + 256 * head[10])); images <- matrix(readBin(f, "numeric", 1e7, size = 4), ncol = 1024, byrow = TRUE)
`
	writeByR = `f <- file(a[3], "wb"); head <- sprintf("%-117s\n", sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d)}", ncol(codes), nrow(codes)))
writeBin(c(as.raw(c(0x93, utf8ToInt("NUMPY"), 1, 0, 118, 0)), charToRaw(head)), f); writeBin(c(codes), f, size = 4)
`
)

func TestThePythonPageComputesCodesInR(t *testing.T) {
	if exec.Command("Rscript", "-e", "library(jsonlite)").Run() != nil {
		t.Skip("left out: needs R with jsonlite")
	}
	agree(t, []string{"Rscript", "-"}, readByR+blocks(t, "r"), writeByR, pythonRuns(t, "one"), "one")
}

// The section of every registered layer in docs/parts.md names all its tensors; those of inner layers are named by the layer.
func TestThePageOfPartsNamesTheTensorsOfEveryLayer(t *testing.T) {
	const partsPage = "../../docs/parts.md"
	page, err := os.ReadFile(partsPage)
	fatal.If(t, err)
	_, chapter, _ := strings.Cut(string(page), "\n## Layers and activations\n")
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	for _, kind := range layers.Registry.Names() {
		if strings.HasPrefix(kind, "zz_") || kind == "residual" || kind == "concat" || kind == "relative" { // of another test; blocks
			continue
		}
		_, section, _ := strings.Cut(chapter, "\n### "+kind+"\n")
		section, _, _ = strings.Cut(section, "\n### ")
		section, _, _ = strings.Cut(section, "\n- `")
		list := settings[kind]
		if list == nil {
			list = []string{""}
		}
		for _, s := range list {
			for _, p := range parametersOf(t, kind, s) {
				name, _, _ := strings.Cut(strings.TrimRight(p.Name, "0123456789"), ".")
				if !regexp.MustCompile(`\b` + name).MatchString(section) {
					t.Errorf("%s: the section %q does not name the tensor %s; name it with its shape in the doc comment of the layer", partsPage, kind, p.Name)
				}
			}
		}
	}
}

// parametersOf returns the parameters of a layer with the given settings, without parameters that belong to other
// layers.
func parametersOf(t *testing.T, kind, settings string) []layers.Parameter {
	t.Helper()
	for placed := range oneLayer(t, kind, settings).Layout.Stacked() {
		if placed.Kind == kind {
			return slices.DeleteFunc(slices.Clone(placed.Parameters), func(p layers.Parameter) bool { return p.Of != "" })
		}
	}
	t.Fatalf("the model of %s has no such layer", kind)
	return nil
}
