package tessera_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/posthoc"
	"tessera/train/checkpoint"
)

// overtrained trains a classifier of noisy labels for so long that it is certain of what it cannot know.
func overtrained(t *testing.T) (*tessera.Run, *data.Memory) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 3))
	samples := func(n int) (x []float32, labels []int) {
		for range n {
			class := r.IntN(3)
			for j := range 8 {
				v := 0.9 * r.NormFloat64()
				if j == class {
					v++
				}
				x = append(x, float32(v))
			}
			labels = append(labels, class)
		}
		return x, labels
	}
	x, labels := samples(1200)
	images, err := data.FromFloats(x, []int{8}, labels)
	if err != nil {
		t.Fatal(err)
	}
	x, labels = samples(2000)
	if images, err = images.WithTest(x, labels); err != nil {
		t.Fatal(err)
	}
	f, err := config.Load("models.toml", []byte(`
[model.m]
dataset   = { name = "memory", validation = 0.6 }
encoder   = [{ kind = "dense", units = 40, activation = "relu" }]
decoder   = []
head      = { class = { layers = [{ kind = "dense", units = 3 }] } }
loss      = [{ kind = "cross_entropy", on = "class" }]
optimizer = { kind = "adam", learning_rate = 0.02 }
train     = { epochs = 60, batch = 48 }
`))
	if err != nil {
		t.Fatal(err)
	}
	f.Extend(nil)
	m, err := f.Model("m")
	if err != nil {
		t.Fatal(err)
	}
	m.Dataset.Source = images
	run, err := tessera.Train(t.Context(), m, tessera.Options{Threads: 1, Out: filepath.Join(t.TempDir(), "run"), Images: images})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return run, images
}

// A temperature halves the calibration error of an over-trained classifier on test images, and keeps its predictions. Every way to compute the head
// has it, here and after the run is opened again.
func TestCalibrationOfAnOvertrainedClassifier(t *testing.T) {
	run, images := overtrained(t)
	raw, labels, err := run.Logits(t.Context(), data.TestSplit, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{posthoc.Isotonic, posthoc.Platt, posthoc.Temperature} {
		done, err := run.Calibrate(t.Context(), "", method)
		if err != nil {
			t.Fatal(err)
		}
		test := done.On[1]
		before, _ := test.Before.Number("ece")
		after, _ := test.After.Number("ece")
		t.Logf("%s: ece %.4f, then %.4f", done.Calibration, before, after)
		if before < 0.1 || after > before/2 || test.Split != data.TestSplit || test.Fitted || !done.On[0].Fitted {
			t.Errorf("%s: ece %v before, %v after", method, before, after)
		}
		for _, name := range []string{"nll", "brier"} {
			a, _ := test.Before.Number(name)
			if b, _ := test.After.Number(name); !(b < a) {
				t.Errorf("%s: %s %v before, %v after", method, name, a, b)
			}
		}
		if a, b := test.Before[0], test.After[0]; method == posthoc.Temperature && a != b {
			t.Errorf("accuracy %v before, %v after", a, b)
		}
	}
	c := run.Calibration("class")
	want := slices.Clone(raw)
	c.Apply(want, 3)
	opened, err := tessera.Open(run.Path, tessera.Options{Threads: 1, Images: images})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for name, r := range map[string]*tessera.Run{"calibrated": run, "opened": opened} {
		got, _, err := r.Logits(t.Context(), data.TestSplit, "class")
		if err != nil || !slices.Equal(got, want) || r.PostHoc() != "class: "+c.String() {
			t.Errorf("%s: %v; other logits, or %q", name, err, r.PostHoc())
		}
		p, err := r.Predict("", testRows(t, r))
		if err != nil || math.Abs(float64(p.Probability(0))-probability(want[:3])) > 1e-5 {
			t.Errorf("%s: %v, probability %v, want %v", name, err, p.Probability(0), probability(want[:3]))
		}
		e, err := r.Encoder(tessera.EncoderOptions{Value: "class", Sizes: []int{64}, Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		z, err := e.Encode(t.Context(), nil, testRows(t, r)[:8])
		if err != nil || math.Abs(float64(z[0]-want[0])) > 1e-5 {
			t.Errorf("%s: an encoder gives %v, %v, want %v", name, z, err, want[:3])
		}
		e.Close()
		measured, err := r.Evaluate(t.Context(), nil)
		if err != nil || measured.PostHoc != r.PostHoc() {
			t.Errorf("%s: eval says %q, %v", name, measured.PostHoc, err)
		}
	}
	rawRun, err := tessera.Open(run.Path, tessera.Options{Threads: 1, Images: images, Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rawRun.Close()
	if got, _, err := rawRun.Logits(t.Context(), data.TestSplit, ""); err != nil || !slices.Equal(got, raw) {
		t.Errorf("raw: %v, or other logits than before", err)
	}
	if len(labels) != 2000 {
		t.Errorf("%d labels", len(labels))
	}
	if err := run.RemovePostHoc(); err != nil || run.PostHoc() != "" {
		t.Errorf("%v, %q", err, run.PostHoc())
	}
	if got, _, err := run.Logits(t.Context(), data.TestSplit, ""); err != nil || !slices.Equal(got, raw) {
		t.Errorf("removed: %v, or other logits than before", err)
	}
}

// A calibration belongs to the parameters that it was fitted to, and a changed bit of its file is found.
func TestACalibrationOfOtherParametersIsRefused(t *testing.T) {
	run, images := overtrained(t)
	if _, err := run.Calibrate(t.Context(), "", posthoc.Temperature); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(run.Path, "posthoc.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(want string) {
		t.Helper()
		_, err := tessera.Open(run.Path, tessera.Options{Threads: 1, Images: images})
		var bad *checkpoint.Error
		if !errors.As(err, &bad) || bad.Path != path || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), `"samples": 7`, `"samples": 8`, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	refused("its checksum is wrong")
	if err := os.WriteFile(path, text, 0o666); err != nil {
		t.Fatal(err)
	}
	longer, err := tessera.Resume(t.Context(), run.Path, tessera.Options{Threads: 1, Images: images, Epochs: 61})
	if err != nil {
		t.Fatal(err)
	}
	longer.Close()
	refused("was fitted to other parameters")
}

// testRows are the test samples of a run.
func testRows(t *testing.T, r *tessera.Run) []float32 {
	t.Helper()
	images, err := r.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return images.Float32()
}

// probability is the largest probability of logits.
func probability(logits []float32) float64 {
	p := make([]float64, len(logits))
	posthoc.Softmax(p, logits)
	return slices.Max(p)
}
