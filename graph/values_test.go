package graph_test

import (
	"math"
	"slices"
	"testing"

	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/metrics"
)

const valuesText = `
[model.m]
encoder = [{ kind = "dense", units = 5, activation = "tanh" }, { kind = "dense", units = 4, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "l2", on = "encoder.0", weight = 0.1 }, { kind = "l2", on = "both" }]

[model.m.head.both]
from = ["code", "encoder.0", "images"]
layers = [{ kind = "dense", units = 3 }]

[model.unet]
encoder = [{ kind = "conv2d", filters = 2, activation = "relu" }, { kind = "dense", units = 4 }]
decoder = [{ kind = "dense", units = 1024 }, { kind = "reshape", shape = [32, 32] }, { kind = "conv2d", filters = 1, from = ["previous", "encoder.0"] }]

[model.skip]
encoder = [{ kind = "dense", units = 5, activation = "tanh" }, { kind = "dense", units = 4 }]
decoder = [{ kind = "dense", from = ["code", "encoder.0"] }]
`

// A head reads the code, an earlier layer and the images, concatenated; a loss reads a layer.
func TestStacksReadTheOutputsOfLayers(t *testing.T) {
	m := model(t, valuesText, "m", 3, 4)
	expect.Slice(t, m.Layout.Named(), []string{"encoder.0", "encoder.1", "decoder.0", "head.both.0"}, "named values")
	c := graph.NewCoder(m, tape.Backend{})
	images := lists.Of(2*12, func(i int) float32 { return float32(i%7) / 7 })
	value := func(name string) []float32 {
		t.Helper()
		v, err := c.Value(name, images)
		fatal.If(t, err)
		return v
	}
	code, first, both := value("code"), value("encoder.0"), value("both")
	expect.Slice(t, code, value("encoder.1"), "the last layer of a stack gives another value than the stack")
	expect.Slice(t, both, value("head.both.0"), "the last layer of a stack gives another value than the stack")
	w, _ := m.Parameter("head.both.0.weight")
	bias, _ := m.Parameter("head.both.0.bias")
	if !slices.Equal(w.Shape, []int{4 + 5 + 12, 3}) {
		t.Fatalf("the head's weight has the shape %v", w.Shape)
	}
	for i := range 2 {
		row := slices.Concat(code[i*4:(i+1)*4], first[i*5:(i+1)*5], images[i*12:(i+1)*12])
		for j := range 3 {
			want := float64(bias.Data[j])
			for k, v := range row {
				want += float64(v) * float64(w.Data[k*3+j])
			}
			if got := float64(both[i*3+j]); got < want-1e-5 || got > want+1e-5 {
				t.Errorf("image %d, unit %d: got %v, want %v", i, j, got, want)
			}
		}
	}
	expect.NoError(t, expect.Err(m.Program(graph.Request{Batch: 3, Training: true})))
}

// A model whose decoder reads a layer of the encoder reconstructs images, but cannot decode codes.
func TestADecoderWithASkipConnectionHasNoDecode(t *testing.T) {
	m := model(t, valuesText, "unet", 32, 32)
	c := graph.NewCoder(m, tape.Backend{})
	images := make([]float32, 1024)
	out, err := c.Value("output", images)
	if err != nil || len(out) != 1024 {
		t.Fatalf("%d values, %v", len(out), err)
	}
	_, err = c.Decode(make([]float32, 4))
	expect.Error(t, err, "the output cannot be computed from the code alone: decoder.2 (conv2d) reads encoder.0")
	expect.NoError(t, expect.Err(m.Program(graph.Request{Batch: 3, Training: true})))
}

// Such a model is measured on the images themselves. Metrics that change atoms or codes are not applicable.
func TestADecoderWithASkipConnectionIsMeasured(t *testing.T) {
	for _, name := range []string{"unet", "skip"} {
		m := model(t, valuesText, name, 32, 32)
		c := graph.NewCoder(m, tape.Backend{})
		images := lists.Of(2*1024, func(i int) float32 { return float32(i%7) / 7 })
		out, err := c.Value("output", images)
		fatal.If(t, err)
		want := 0.0
		for i, v := range out {
			d := float64(v - images[i])
			want += d * d / float64(len(out))
		}
		r, err := metrics.Evaluate(t.Context(), c, metrics.Sample{Images: images}, nil)
		fatal.If(t, err, name)
		for _, v := range r.Values {
			switch {
			case v.Name == "mse" && math.Abs(v.Number-want) > 1e-6*want:
				t.Errorf("%s: mse %v, want %v", name, v.Number, want)
			case (v.Name == "useful_units" || v.Name == "max_approx") && v.Missing == "":
				t.Errorf("%s: %s is %v, want that it is not applicable", name, v.Name, v.Number)
			}
		}
	}
}

const publishedText = `
[model.vae]
encoder = [{ kind = "dense", units = 5, activation = "tanh" }, { kind = "gaussian", units = 3 }]
loss = [{ kind = "mse" }, { kind = "gaussian_kl", weight = 0.01 }, { kind = "l2", on = "encoder.1.mean", weight = 0.1 }, { kind = "l2", on = "h", weight = 0.1 }]

[model.vae.head.h]
from = "encoder.1.log_variance"
layers = [{ kind = "dense", units = 2 }]

[model.shared]
encoder = [{ kind = "dense", units = 5, activation = "tanh" }, { kind = "dense", units = 5, share = "head.h.0" }]
loss = [{ kind = "mse" }, { kind = "l2", on = "h" }]

[model.shared.head.h]
from = "encoder.0"
layers = [{ kind = "dense", units = 5 }]

[model.taught]
encoder = [{ kind = "dense", units = 3, activation = "tanh" }]
loss = [{ kind = "mse" }, { kind = "consistency" }, { kind = "consistency", teacher = "slow" }]

[model.taught.hook.teacher]
decay = { kind = "cosine", from = 0.9, to = 1.0, epochs = 3 }

[model.taught.hook.slow]
kind = "teacher"
decay = 0.999
`

// The code of a variational auto-encoder has as many values as the layer has units. In inference it is the mean.
func TestALayerPublishesValues(t *testing.T) {
	m := model(t, publishedText, "vae", 3, 4)
	if got := m.Layout.Named(); !slices.Contains(got, "encoder.1.mean") || !slices.Contains(got, "encoder.1.log_variance") || m.Units() != 3 {
		t.Fatalf("named values: %q, %d units", got, m.Units())
	}
	c := graph.NewCoder(m, tape.Backend{})
	images := lists.Of(2*12, func(i int) float32 { return float32(i%5) / 5 })
	code, err := c.Encode(images)
	fatal.If(t, err)
	if mean, err := c.Value("encoder.1.mean", images); err != nil || !slices.Equal(mean, code) {
		t.Errorf("the code is %v, the mean %v, %v", code, mean, err)
	}
	if v, err := c.Value("encoder.1.log_variance", images); err != nil || len(v) != 6 || slices.Equal(v, code) {
		t.Errorf("log variances: %v, %v", v, err)
	}
	expect.NoError(t, expect.Err(c.Decode(code)))
	p, err := m.Program(graph.Request{Batch: 2, Training: true})
	fatal.If(t, err)
	for _, b := range p.Parameters {
		if b.Gradient == nil {
			t.Errorf("%s has no gradient", b.Path)
		}
	}
}

// A layer that shares its parameters has none of its own. The gradient is the sum over both uses.
func TestLayersShareParameters(t *testing.T) {
	m := model(t, publishedText, "shared", 3, 4)
	paths := lists.Map(m.Parameters, func(p *graph.Parameter) string { return p.Path })
	expect.Slice(t, paths, []string{"encoder.0.weight", "encoder.0.bias", "decoder.0.weight", "decoder.0.bias", "head.h.0.weight", "head.h.0.bias"}, "parameters")
	c := graph.NewCoder(m, tape.Backend{})
	images := make([]float32, 12)
	images[3] = 1
	code, err := c.Encode(images)
	fatal.If(t, err)
	if h, err := c.Value("h", images); err != nil || !slices.Equal(h, code) {
		t.Errorf("one layer with one input gives %v and %v, %v", code, h, err)
	}
	expect.NoError(t, expect.Err(m.Program(graph.Request{Batch: 2, Training: true})))
}

// Each term reads the teacher whose name it declares.
func TestTermsNameTheirTeachers(t *testing.T) {
	m := model(t, publishedText, "taught", 3, 4)
	for _, name := range []string{"teacher", "slow"} {
		for _, p := range m.Parameters {
			m.Lent = append(m.Lent, &graph.Parameter{Path: name + "." + p.Path, Shape: p.Shape, Data: p.Data})
		}
	}
	p, err := m.Program(graph.Request{Batch: 2, Training: true})
	fatal.If(t, err)
	for _, want := range []string{"teacher.encoder.0.weight", "slow.encoder.0.weight"} {
		if !slices.ContainsFunc(p.Parameters, func(b graph.Binding) bool { return b.Path == want }) {
			t.Errorf("the program does not read %s", want)
		}
	}
}
