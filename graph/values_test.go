package graph_test

import (
	"slices"
	"strings"
	"testing"

	"tessera/graph"
	"tessera/graph/tape"
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
`

// A head reads the code, an earlier layer and the images in one row; a loss reads a layer.
func TestStacksReadTheOutputsOfLayers(t *testing.T) {
	m := model(t, valuesText, "m", 3, 4)
	if got := m.Layout.Named(); !slices.Equal(got, []string{"encoder.0", "encoder.1", "decoder.0", "head.both.0"}) {
		t.Errorf("named values: %q", got)
	}
	c := graph.NewCoder(m, tape.Backend{})
	images := make([]float32, 2*12)
	for i := range images {
		images[i] = float32(i%7) / 7
	}
	value := func(name string) []float32 {
		t.Helper()
		v, err := c.Value(name, images)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	code, first, both := value("code"), value("encoder.0"), value("both")
	if !slices.Equal(code, value("encoder.1")) || !slices.Equal(both, value("head.both.0")) {
		t.Error("the last layer of a stack gives another value than the stack")
	}
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
	if _, err := m.Program(graph.Request{Batch: 3, Training: true}); err != nil {
		t.Error(err)
	}
}

// A decoder that reads a layer of the encoder reconstructs images, but decodes no codes.
func TestADecoderWithASkipConnectionHasNoDecode(t *testing.T) {
	m := model(t, valuesText, "unet", 32, 32)
	c := graph.NewCoder(m, tape.Backend{})
	images := make([]float32, 1024)
	out, err := c.Value("output", images)
	if err != nil || len(out) != 1024 {
		t.Fatalf("%d values, %v", len(out), err)
	}
	_, err = c.Decode(make([]float32, 4))
	if want := "the model has no decode from the code alone: decoder.2 (conv2d) reads encoder.0"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if _, err := m.Program(graph.Request{Batch: 3, Training: true}); err != nil {
		t.Error(err)
	}
}
