package cli

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"tessera/internal/expect"
)

const noisyModel = `
[model.noisy]
dataset   = { name = "csv", file = "noisy.csv", labels = "species", validation = 0.5 }
encoder   = [{ kind = "dense", units = 30, activation = "relu" }]
decoder   = []
head      = { class = { layers = [{ kind = "dense" }] } }
loss      = [{ kind = "cross_entropy", on = "class" }]
optimizer = { learning_rate = 0.05 }
train     = { epochs = 40, batch = 15 }
`

// noisy declares and trains a classifier of two classes that overlap.
func (b *bench) noisy() {
	b.Helper()
	r := rand.New(rand.NewPCG(4, 4))
	rows := "a,b,species\n"
	for i := range 300 {
		rows += fmt.Sprintf("%.3f,%.3f,%s\n", r.NormFloat64()+float64(i%2), r.NormFloat64(), []string{"left", "right"}[i%2])
	}
	b.write("noisy.csv", rows)
	b.write("models.toml", noisyModel)
	b.must(0, "train", "noisy", "--quiet")
}

func TestCalibrateSaysWhatItDoes(t *testing.T) {
	b := newBench(t)
	b.noisy()
	const run = "runs/noisy"
	out := b.must(0, "calibrate", run).stdout
	if !strings.HasPrefix(out, "class: temperature ") || !strings.Contains(out, ", fitted to 150 validation images\n") || !strings.Contains(out, "\nece") {
		t.Errorf("got %s", out)
	}
	var kept struct {
		Heads map[string]struct{ Calibration struct{ Temperature float64 } }
	}
	if err := json.Unmarshal([]byte(b.read(run+"/posthoc.json")), &kept); err != nil || !(kept.Heads["class"].Calibration.Temperature > 1) {
		t.Fatalf("%v: %+v", err, kept)
	}
	if out := b.must(0, "eval", run).stdout; !strings.Contains(out, "post-hoc") || !strings.Contains(out, "class: temperature") {
		t.Errorf("eval prints %s", out)
	}
	if out := b.must(0, "eval", run, "--raw").stdout; strings.Contains(out, "temperature") {
		t.Errorf("eval --raw prints %s", out)
	}
	expect.Contains(t, b.must(0, "predict", run, "--in", "noisy.csv").stderr, "fitted after the training: class: temperature", "predict says")
	b.must(0, "figure", "reliability", run, "-o", "r.png")
	b.must(0, "report", run, "-o", "r.html")
	expect.Contains(t, b.read("r.html"), "Calibrated after the training (class: temperature", "the report does not say that it is calibrated")
	b.must(0, "export", run, "--to", "onnx", "-o", "r.onnx")
	expect.Contains(t, b.read("r.onnx"), "calibration/class", "the ONNX file has no calibration")
	b.must(0, "calibrate", run, "--method", "isotonic", "--json")
	expect.Contains(t, b.must(exitUsage, "export", run, "--to", "onnx", "-o", "i.onnx").stderr, "an isotonic calibration has no ONNX form", "export says")
	b.must(0, "export", run, "--to", "onnx", "-o", "i.onnx", "--raw")
	b.must(0, "resume", run, "--epochs", "41", "--quiet")
	if got := b.must(exitCheckpoint, "eval", run); !strings.Contains(got.stderr, "fitted to other parameters") || !strings.Contains(got.stderr, "tessera calibrate RUN --remove") {
		t.Errorf("eval says %s", got.stderr)
	}
	expect.Contains(t, b.must(0, "calibrate", run).stderr, "it is replaced", "calibrate says")
	b.must(0, "calibrate", run, "--remove")
	expect.AnyError(t, expect.Err(os.Stat(b.dir+"/"+run+"/posthoc.json")), "the calibration is still there")
	b.must(0, "calibrate", run, "--remove") // nothing to remove
}

func TestCalibrateNeedsHeldOutImages(t *testing.T) {
	b := newBench(t)
	b.flowers()
	b.write("models.toml", strings.Replace(b.read("models.toml"), `scale = "standardise"`, `scale = "standardise", validation = 0`, 1))
	b.must(0, "train", "flowers", "--quiet")
	expect.Contains(t, b.must(exitData, "calibrate", "runs/flowers").stderr, "no images are held out")
}
