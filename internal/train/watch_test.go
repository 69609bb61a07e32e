package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"tessera/data"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/metrics"
)

// refusing is a back end that records the batch size of the program and does not compile it.
type refusing struct {
	ir.Backend
	batch int
}

func (r *refusing) Compile(p ir.Program) (ir.Runner[float32], error) {
	r.batch = p.(*graph.Program).Batch
	return nil, errors.New("compiles nothing")
}

// Attention over 4096 pixels has 17 million weights per image. A batch of 8 images fits into memory.
func TestLargeModelsAreWatchedInSmallerBatches(t *testing.T) {
	spec := model(t, "[model.m]\nencoder = [{ kind = \"conv2d\", filters = 1 }, { kind = \"attention\", heads = 1 }, { kind = \"dense\", units = 4 }]\ntrain = { batch = 8 }\n")
	for side, want := range map[int]int{64: 8, 8: 500} {
		m, err := graph.New(spec, []int{side, side})
		fatal.If(t, err)
		images, err := data.NewBytes(m.Shape, make([]byte, 600*m.Pixels()), nil)
		fatal.If(t, err)
		b := &refusing{}
		if _, err := newWatcher(m, nil, b, data.Splits{Validation: images}); err == nil || b.batch != want {
			t.Errorf("%d pixels a side: %d images at once (%v), want %d", side, b.batch, err, want)
		}
	}
}

// The expected number is counted in the parameter at the given path; "" if the decoder has no weight.
func TestRunsAndEvaluationsCountTheSameNegativeWeights(t *testing.T) {
	const filters = `{kind="conv2d_transpose",filters=1,kernel=3,padding="same"}`
	for decoder, path := range map[string]string{
		`{kind="dense",units=5},{kind="dense"},{kind="sigmoid"}`:                        "decoder.1.weight",
		`{kind="reshape",shape=[8,8,1]},` + filters:                                     "decoder.1.weight",
		`{kind="reshape",shape=[8,8,1]},{kind="residual",layers=[` + filters + `]}`:     "decoder.1.0.weight",
		`{kind="dense",units=64},{kind="reshape",shape=[8,8,1]},{kind="instance_norm"}`: "decoder.0.weight",
		`{kind="tied"}`:    "encoder.0.weight",
		`{kind="sigmoid"}`: "",
	} {
		text := "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 64 }]\ndecoder = [" + decoder + "]\ntrain = { epochs = 1 }\n"
		run := trained(t, model(t, text), Options{}).Run
		m, err := Open(run)
		fatal.If(t, err)
		coder := graph.NewCoder(m.Model, tape.Backend{})
		report, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: make([]float32, 64)}, nil)
		fatal.If(t, err)
		logged := lines(t, run)[0]["negative_weights"]
		counted, ok := report.Number("negative_weights")
		if path == "" {
			if logged != nil || ok {
				t.Errorf("%s: got %v and %v, want none", decoder, logged, counted)
			}
			continue
		}
		w, err := m.Parameter(path)
		fatal.If(t, err)
		want := negatives(w.Data)
		if want == 0 || logged != float64(want) || !ok || counted != float64(want) {
			t.Errorf("%s: the run says %v, its evaluation %v, want %d", decoder, logged, counted, want)
		}
		expect.NoError(t, coder.Close())
	}
}

// labelledFiles writes images of two classes, bright in the upper or in the lower half, and their labels. It returns the table
// of their data set.
func labelledFiles(t *testing.T, n int) string {
	t.Helper()
	images, labels := []byte{0, 0, 8, 3, 0, 0, 0, byte(n), 0, 0, 0, 4, 0, 0, 0, 4}, []byte{0, 0, 8, 1, 0, 0, 0, byte(n)}
	r := rand.New(rand.NewPCG(4, 4))
	for i := range n {
		class := i % 2
		for p := range 16 {
			images = append(images, byte(r.IntN(100)+100*((p/8+class)%2)))
		}
		labels = append(labels, byte(class))
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"images": images, "labels": labels} {
		fatal.If(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return fmt.Sprintf("{ name = \"idx\", images = %q, labels = %q, validation = 0.25 }", filepath.Join(dir, "images"), filepath.Join(dir, "labels"))
}

// The validation metrics of an epoch equal those of an evaluation on the same images.
func TestHeadsThatAreComparedWithLabelsAreWatched(t *testing.T) {
	text := "[model.m]\ndataset = " + labelledFiles(t, 120) + `
encoder = [{ kind = "dense", units = 5, activation = "relu" }]
decoder = []
head.class = { layers = [{ kind = "dense" }] }
loss = [{ kind = "cross_entropy", on = "class" }]
train = { epochs = 3, batch = 16 }
`
	spec := model(t, text)
	run := trained(t, spec, Options{}).Run
	m, err := Open(run)
	fatal.If(t, err)
	set, err := spec.Dataset.Source.Load(context.Background(), nil, data.Both)
	fatal.If(t, err)
	splits, err := set.Split(spec.Dataset.Selection, spec.Train.Seed)
	fatal.If(t, err)
	coder := graph.NewCoder(m.Model, tape.Backend{})
	defer coder.Close()
	want, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: splits.Validation.Float32(), Labels: splits.Validation.Labels()}, nil)
	fatal.If(t, err)
	last := lines(t, run)[2]
	for key, name := range map[string]string{"val_accuracy": "accuracy", "val_nll": "nll", "code_hoyer": "hoyer", "dead_units": "dead_units"} {
		v, ok := want.Number(name)
		if got, is := last[key].(float64); !ok || !is || math.Abs(got-v) > 1e-6*math.Max(1, v) {
			t.Errorf("%s is %v, the evaluation says %v", key, last[key], v)
		}
	}
	if v, is := last["val_mse"]; !is || v != nil {
		t.Errorf("without a decoder val_mse is %v", v)
	}
	if accuracy, _ := want.Number("accuracy"); accuracy < 0.6 {
		t.Errorf("accuracy %v of classes that are easy to tell", accuracy)
	}
}

// An encoder may read columns instead of the samples. With parameters that hardly change the output is the column times 0.5 in every value.
func TestTheErrorIsThatOfTheSamplesWhereTheEncoderReadsAColumn(t *testing.T) {
	const n = 60
	file := filepath.Join(t.TempDir(), "table.csv")
	text := "a,b,c,w\n"
	r := rand.New(rand.NewPCG(5, 5))
	values, w := make([][3]float64, n), make([]float64, n)
	for i := range n {
		values[i], w[i] = [3]float64{r.Float64(), r.Float64(), r.Float64()}, r.Float64()
		text += fmt.Sprintln(values[i][0], ",", values[i][1], ",", values[i][2], ",", w[i])
	}
	fatal.If(t, os.WriteFile(file, []byte(text), 0o600))
	run := trained(t, model(t, fmt.Sprintf(`[model.m]
dataset = { file = %[1]q, test = %[1]q, validation = "test", columns = { w = "w" } }
encoder = [{ kind = "dense", units = 1, from = "w", bias = false, init = { kind = "constant", value = 0.5 } }]
decoder = [{ kind = "dense", bias = false, init = { kind = "constant", value = 1.0 } }]
optimizer = { kind = "sgd", learning_rate = 1e-12 }
train   = { epochs = 1 }
`, file)), Options{}).Run
	want := 0.0
	for i := range n {
		for _, v := range values[i] {
			want += (v - w[i]/2) * (v - w[i]/2) / (3 * n)
		}
	}
	if got := lines(t, run)[0]["val_mse"].(float64); math.Abs(got-want) > 1e-6 {
		t.Errorf("val_mse is %v, want %v", got, want)
	}
}
