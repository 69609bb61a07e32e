package train

import (
	"context"
	"errors"
	"testing"

	"tessera/data"
	"tessera/graph"
	"tessera/metrics"
	"tessera/tape"
)

// refusing says of how many images it was to compile a program.
type refusing struct{ batch int }

func (r *refusing) Compile(p *graph.Program) (graph.Runner[float32], error) {
	r.batch = p.Batch
	return nil, errors.New("compiles nothing")
}

// 4096 pixels weigh each other: 17 million weights for an image, of which 8 images fit.
func TestWhatIsLargeIsWatchedInSmallerBatches(t *testing.T) {
	spec := model(t, "[model.m]\nencoder = [{ kind = \"conv2d\", filters = 1 }, { kind = \"attention\", heads = 1 }, { kind = \"dense\", units = 4 }]\ntrain = { batch = 8 }\n")
	for side, want := range map[int]int{64: 8, 8: 500} {
		m, err := graph.New(spec, []int{side, side})
		if err != nil {
			t.Fatal(err)
		}
		images, err := data.NewBytes(m.Shape, make([]byte, 600*m.Pixels()), nil)
		if err != nil {
			t.Fatal(err)
		}
		b := &refusing{}
		if _, err := newWatcher(m, b, data.Splits{Validation: images}); err == nil || b.batch != want {
			t.Errorf("%d pixels a side: %d images at once (%v), want %d", side, b.batch, err, want)
		}
	}
}

// The oracle counts in the parameter of that path; "" where the decoder has no weight.
func TestAnEvaluationCountsTheNegativeWeightsThatMetricsOfTheRunDo(t *testing.T) {
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
		if err != nil {
			t.Fatal(err)
		}
		coder := graph.NewCoder(m.Model, tape.Backend{})
		report, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: make([]float32, 64)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		logged := lines(t, run)[0]["negative_weights"]
		counted, ok := report.Number("negative_weights")
		if path == "" {
			if logged != nil || ok {
				t.Errorf("%s: got %v and %v, want none", decoder, logged, counted)
			}
			continue
		}
		w, err := m.Parameter(path)
		if err != nil {
			t.Fatal(err)
		}
		want := negatives(w.Data)
		if want == 0 || logged != float64(want) || !ok || counted != float64(want) {
			t.Errorf("%s: the run says %v, its evaluation %v, want %d", decoder, logged, counted, want)
		}
		if err := coder.Close(); err != nil {
			t.Error(err)
		}
	}
}
