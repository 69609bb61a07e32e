package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"image/png"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
)

// evaluated contains the members of `eval --json` that the tests read.
type evaluated struct {
	Model, Dataset   string
	Images           int
	MSE              float64 `json:"mse"`
	MSEClipped       float64 `json:"mse_clipped"`
	Hoyer            float64
	NegativeWeights  int      `json:"negative_weights"`
	KL               *float64 `json:"kl"`
	MaxApprox        *float64 `json:"max_approx"`
	MaxReconstructed *float64 `json:"max_approx_reconstructed"`
}

func (b *bench) eval(args ...string) (e evaluated) {
	b.Helper()
	fatal.If(b, json.Unmarshal([]byte(b.must(0, append([]string{"eval", "--json"}, args...)...).stdout), &e))
	return e
}

func TestEvalPrintsEveryKeyOfTheContractOnce(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 2)
	keys := []string{"model", "dataset", "split", "images", "mse", "mse_clipped", "hoyer", "hoyer_atoms", "max_approx", "max_approx_clipped",
		"max_approx_bias_dilated", "max_approx_reconstructed", "dead_units", "negative_weights", "kl", "hoyer_contribution", "l0",
		"dead_units_contribution", "useful_units", "additivity_lost", "coherence", "coherence_mean", "atom_area", "atom_components",
		"atom_radius", "atom_entropy", "parts_found", "parts_cosine", "parts_absorbed", "explained_variance", "error_component", "cosine", "active_units"}
	text := b.must(0, "eval", "runs/small", "--json").stdout
	var document map[string]any
	fatal.If(t, json.Unmarshal([]byte(text), &document))
	table := b.must(0, "eval", "runs/small").stdout
	for _, key := range keys {
		if _, ok := document[key]; !ok || strings.Count(text, `"`+key+`":`) != 1 {
			t.Errorf("--json has no %s:\n%s", key, text)
		}
		if key == "dataset" { // the table says what its samples are: "data  images of swimmer"
			if !slices.ContainsFunc(strings.Split(table, "\n"), func(line string) bool {
				return strings.HasPrefix(line, "data ") && strings.HasSuffix(line, " of swimmer")
			}) {
				t.Errorf("the table does not name the data set:\n%s", table)
			}
		} else if !slices.ContainsFunc(strings.Split(table, "\n"), func(line string) bool { return strings.HasPrefix(line, key+" ") }) {
			t.Errorf("the table has no %s:\n%s", key, table)
		}
	}
	more := b.must(0, "eval", "runs/small", "--atoms", "--operator", "closing", "--radius", "2").stdout
	b.contains("what is asked for", more, "operator ", "closing", "radius ", "hoyer_atoms_dilated", "used_units", "jaccard ", "jaccard_dilated")
	further := []string{"held_out", "note", "run", "kind", "encoder", "decoder", "objective", "constraints", "data", "training", "state", "epoch", "epochs",
		"seconds", "samples_per_second", "loss", "measured_on"} // and notes, if the numbers give reason for some
	delete(document, "notes")
	expect.Slice(t, slices.Sorted(maps.Keys(document)), slices.Sorted(slices.Values(slices.Concat(keys, further))))
	if document["note"] == nil || document["model"] != "small" || document["dataset"] != "swimmer" || document["split"] != "train" || document["held_out"] != false || document["images"] != 256.0 {
		t.Errorf("got %s", text)
	}
}

func TestEvalMeasuresTheSplitThatIsAskedFor(t *testing.T) {
	b := newBench(t)
	b.must(0, "train", "small", "--epochs", "1", "--set", "dataset.validation=0.25", "--out", "held")
	images := map[string]int{}
	for _, split := range []string{"train", "validation", "test"} {
		var got struct {
			Split  string
			Images int
			MSE    float64
		}
		fatal.If(t, json.Unmarshal([]byte(b.must(0, "eval", "held", "--json", "--split", split).stdout), &got))
		images[got.Split] = got.Images
	}
	if want := map[string]int{"train": 192, "validation": 64, "all": 256}; !maps.Equal(images, want) {
		t.Errorf("measured %v, want %v", images, want)
	}
	b.contains("standard error", b.must(exitUsage, "eval", "held", "--split", "tset").stderr, `--split: got "tset", want one of train, validation, test`)
	b.must(0, "train", "small", "--epochs", "1")
	b.contains("standard error", b.must(exitData, "eval", "runs/small", "--split", "validation").stderr,
		"no images are held out: validation = 0; train with dataset.validation = 0.1")
}

// plain is a dense sigmoid encoder and a dense decoder, computed by plain loops in float64.
type plain struct{ w, b, v, c []float32 }

func readPlain(b *bench, run, encoder string) plain {
	b.Helper()
	f, err := checkpoint.Read(b.path(run + "/model.safetensors"))
	fatal.If(b, err)
	tensor := func(name string) []float32 {
		t, ok := f.Tensor(name)
		if !ok {
			b.Fatalf("no %s", name)
		}
		return t.Data
	}
	return plain{tensor(encoder + ".weight"), tensor(encoder + ".bias"), tensor("decoder.0.weight"), tensor("decoder.0.bias")}
}

// code returns sigmoid(x W + b).
func (p plain) code(x []float32) []float64 {
	h := make([]float64, len(p.b))
	for j := range h {
		sum := float64(p.b[j])
		for i, v := range x {
			sum += float64(v) * float64(p.w[i*len(h)+j])
		}
		h[j] = 1 / (1 + math.Exp(-sum))
	}
	return h
}

func (p plain) output(h []float64, slope float64) []float64 {
	y := make([]float64, len(p.c))
	for i := range y {
		y[i] = float64(p.c[i])
		for j, v := range h {
			y[i] += v * float64(p.v[j*len(y)+i])
		}
		y[i] = max(y[i], slope*y[i])
	}
	return y
}

// errors returns the mean squared error and the mean Hoyer sparsity over images.
func (p plain) errors(images []float32, slope float64) (mse, hoyer float64) {
	pixels := len(p.c)
	n := len(images) / pixels
	for i := range n {
		x := images[i*pixels : (i+1)*pixels]
		h := p.code(x)
		for k, y := range p.output(h, slope) {
			d := y - float64(x[k])
			mse += d * d / float64(len(images))
		}
		var l1, l2 float64
		for _, v := range h {
			l1, l2 = l1+math.Abs(v), l2+v*v
		}
		root := math.Sqrt(float64(len(h)))
		hoyer += (root - l1/math.Sqrt(l2)) / (root - 1) / float64(n)
	}
	return mse, hoyer
}

func swimmer(t *testing.T) []float32 {
	t.Helper()
	set, err := new(data.Swimmer).Load(context.Background(), nil, data.Both)
	fatal.If(t, err)
	return set.Train.Float32()
}

func TestEvalAgreesWithPlainLoops(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 12)
	mse, hoyer := readPlain(b, "runs/small", "encoder.2").errors(swimmer(t), 1)
	e := b.eval("runs/small")
	if math.Abs(e.MSE-mse) > 1e-5*mse || math.Abs(e.Hoyer-hoyer) > 1e-5*hoyer || e.NegativeWeights != 0 {
		t.Errorf("eval says mse %g, hoyer %g, %d negative weights; plain loops %g, %g, 0", e.MSE, e.Hoyer, e.NegativeWeights, mse, hoyer)
	}
}

// values reads the values of an output file of the command.
func (b *bench) values(name string, shape ...int) []float32 {
	b.Helper()
	images, err := data.ReadImages(context.Background(), b.path(name), shape)
	fatal.If(b, err)
	return images.Float32()
}

func TestEncodeAndDecodeGoThroughFilesInEveryFormat(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 12)
	images := swimmer(t)
	var first []float32
	for _, in := range []string{"images.npy", "images.idx", "images.idx.gz", "images"} {
		fatal.If(t, data.WriteImages(b.path(in), []int{32, 32}, images))
		b.must(0, "encode", "runs/small", "--in", in, "--out", "codes.npy")
		codes := b.values("codes.npy", 6)
		if first == nil {
			first = codes
		}
		expect.Slice(t, first, codes, in, "has other codes than images.npy")
	}
	b.must(0, "encode", "runs/small", "--in", "images.npy", "--value", "output", "--out", "shaped.npy")
	expect.Contains(t, b.read("shaped.npy")[:128], "(256, 32, 32", "an output of (32, 32) was written as")
	p := readPlain(b, "runs/small", "encoder.2")
	for i, want := range p.code(images[:1024]) {
		expect.Near(t, float64(first[i]), want, 1e-5, "unit", i, "of the first image is", first[i], "plain loops say")
	}
	b.must(0, "decode", "runs/small", "--in", "codes.npy", "--out", "outputs.npy")
	mse := 0.0
	for i, v := range b.values("outputs.npy", 32, 32) {
		d := float64(v - images[i])
		mse += d * d / float64(len(images))
	}
	if e := b.eval("runs/small"); math.Abs(mse-e.MSE) > 1e-5*e.MSE {
		t.Errorf("the decoded images have mse %g, eval says %g", mse, e.MSE)
	}
	b.must(0, "decode", "runs/small", "--in", "codes.npy", "--out", "outputs")
	b.contains("standard error", b.must(exitUsage, "decode", "runs/small", "--in", "codes.npy", "--out", "outputs").stderr, "outputs is a folder with files")
	f, err := os.Open(b.path("outputs/00255.png"))
	fatal.If(t, err)
	defer f.Close()
	if picture, err := png.Decode(f); err != nil || picture.Bounds().Dx() != 32 {
		t.Errorf("the last picture: %v", err)
	}
}

func TestEncodeRefusesWhatDoesNotFit(t *testing.T) {
	b := newBench(t)
	b.trained("runs/small", 1)
	fatal.If(t, data.WriteImages(b.path("small.npy"), []int{4, 4}, make([]float32, 32)))
	fatal.If(t, os.Mkdir(b.path("empty"), 0o700))
	b.write("empty/config.toml", b.read("runs/small/config.toml"))
	for _, c := range []struct {
		code int
		args string
		says string
	}{
		{exitData, "encode runs/small --in small.npy --out codes.npy", "4x4, want 32x32"},
		{exitData, "encode runs/small --in none.npy --out codes.npy", "none.npy"},
		{exitUsage, "encode runs/small --in small.npy --out codes.txt", "codes are vectors: write them to a name that ends in .npy, .npz or .csv"},
		{exitData, "eval runs/small --data none", "none: no such folder; --data is the folder"},
		{exitData, "data verify --data small.npy", "small.npy: no such folder"},
		{exitUsage, "eval small.npy", "small.npy: is a file, not the folder of a run"},
		{exitUsage, "resume small.npy", "small.npy: is a file, not the folder of a run"},
		{exitUsage, "figure training nosuch", "nosuch: no such folder"},
		{exitUsage, "figure training empty", "no metrics.jsonl to draw"},
		{exitUsage, "encode nothing --in small.npy --out codes.npy", "nothing: no such folder"},
	} {
		r := b.must(c.code, strings.Fields(c.args)...)
		b.contains("standard error", r.stderr, c.says)
		expect.Equal(t, r.stdout, "", c.args)
	}
	fatal.If(t, data.WriteImages(b.path("images.npy"), []int{32, 32}, swimmer(t)))
	b.must(exitWrite, "encode", "runs/small", "--in", "images.npy", "--out", "no/such/codes.npy")
	before := b.read("images.npy")
	r := b.must(exitUsage, "encode", "runs/small", "--in", "images.npy", "--out", "./images.npy")
	b.contains("standard error", r.stderr, "is also the input (")
	expect.Equal(t, b.read("images.npy"), before, "encode overwrote its input")
	if r := b.must(0, "encode", "runs/small", "--in", "images.npy", "--out", "codes.npy"); r.stderr != "" || r.stdout != "codes.npy\n" {
		t.Errorf("images in [0,1] are warned of: %s", r.stderr)
	}
	large := make([]float32, 1024)
	large[5] = 255
	fatal.If(t, data.WriteImages(b.path("large.npy"), []int{32, 32}, large))
	r = b.must(0, "encode", "runs/small", "--in", "large.npy", "--out", "codes.npy")
	b.contains("standard error", r.stderr, "values from 0 to 255", "uint8, or divide them by 255")
	if r := b.run("encode", "runs/small", "--in", "images.npy", "--out", "codes.idx"); r.code != exitUsage {
		t.Errorf("codes as IDX: exit code %d: %s", r.code, r.stderr)
	}
}

func TestEvalWithTheSVMSaysWhichImagesDoNotDo(t *testing.T) {
	b := newBench(t)
	const n = 40
	fatal.If(t, data.WriteImages(b.path("x.npy"), []int{4, 4}, make([]float32, n*16)))
	for says, few := range map[string]int{
		"tessera: npy: svm: a class is too small: only 1 of its samples are left": 3,
		"tessera: npy: svm: 1 classes, want at least 2":                           0,
	} {
		labels := make([]byte, n)
		for i := range few {
			labels[i] = 1
		}
		b.write("y.idx", "\x00\x00\x08\x01\x00\x00\x00"+string(rune(n))+string(labels))
		b.write("models.toml", smallModels+"[model.own]\nextends = \"small\"\ndataset = { name = \"npy\", images = \"x.npy\", labels = \"y.idx\" }\n")
		out := fmt.Sprint("runs/own", few)
		b.must(0, "train", "own", "--epochs", "1", "--out", out)
		b.contains("standard error", b.must(exitData, "eval", out, "--svm", "--split", "test").stderr, says, "measure without")
	}
}

func TestMissingDataEndWithExitCode4AndSayWhatToDo(t *testing.T) {
	b := newBench(t)
	b.contains("standard error", b.must(exitData, "train", "clothes", "--data", "here").stderr, "here: no such folder", "tessera data get NAME --data here")
	fatal.If(t, os.Mkdir(b.path("here"), 0o777))
	r := b.must(exitData, "train", "clothes", "--data", "here")
	b.contains("standard error", r.stderr, "train-images-idx3-ubyte", "here/fashion-mnist", "tessera data get fashion-mnist", "TESSERA_DATA")
	if b.exists("runs") {
		t.Error("a run was made")
	}
	r = b.must(exitData, "data", "verify", "mnist")
	if n := strings.Count(r.stdout, "missing"); n != 4 || strings.Count(r.stdout, "\n") != 4 {
		t.Errorf("verify should have one short line per missing file:\n%s", r.stdout)
	}
	b.contains("standard error", b.must(0, "data", "verify").stderr, "nothing to verify")
}

func TestRealImages(t *testing.T) {
	t.Parallel()
	folder := os.Getenv(data.EnvDir)
	if folder == "" {
		t.Skip("left out: TESSERA_DATA is not set")
	}
	b := benchOf(t)
	b.shipped()
	training := b.command("train", "shallow-nonneg-kl", "--data", folder, "--epochs", "2", "--set", "optimizer.kind=adam")
	training.Env = append(training.Env, "GOGC=100")
	forgetPeak()
	trained := b.alone(training)
	if trained.code != 0 {
		t.Fatalf("%+v", trained)
	}
	e := b.eval("runs/shallow-nonneg-kl", "--data", folder)
	if e.Images != 10000 || e.MSE > 0.040 || e.NegativeWeights != 0 || e.KL == nil {
		t.Errorf("got %+v, want 10000 images, mse <= 0.040, no negative weight, a KL", e)
	}
	images, err := testImages(folder)
	fatal.If(t, err)
	mse, hoyer := readPlain(b, "runs/shallow-nonneg-kl", "encoder.0").errors(images, 0.1)
	expect.Near(t, e.MSE, mse, 1e-5*mse, "eval says mse")
	expect.Near(t, e.Hoyer, hoyer, 1e-5*hoyer, "eval says mse")
	b.must(0, "data", "verify", "fashion-mnist", "--data", folder)
	memory := maxResident(training.ProcessState)
	if memory > 500<<20 {
		t.Errorf("the training held %d MB, want < 500", memory>>20)
	}
	t.Logf("%s\nit held %d MB", trained.stdout, memory>>20)
}

// testImages returns the test images of Fashion-MNIST.
func testImages(folder string) ([]float32, error) {
	entry, ok := data.Registry.Lookup("fashion-mnist")
	if !ok {
		return nil, fmt.Errorf("fashion-mnist is not registered")
	}
	set, err := entry.New().Load(context.Background(), data.Dirs{folder}, data.Need{Test: true})
	if err != nil {
		return nil, err
	}
	return set.Test.Float32(), nil
}
