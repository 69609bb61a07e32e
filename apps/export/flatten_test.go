package export_test

import (
	"fmt"
	"io"
	"testing"

	"tessera/apps/export"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
)

// exported returns the tensor with the given path from the file for PyTorch.
func exported(t *testing.T, r *export.Run, path string) []float32 {
	t.Helper()
	f, err := checkpoint.Decode(written(t, r, "safetensors", ""))
	fatal.If(t, err)
	tensor, ok := f.Tensor(path)
	if !ok {
		t.Fatalf("no tensor %q", path)
	}
	return tensor.Data
}

// parameter returns the data of the parameter with the given path.
func parameter(t *testing.T, r *export.Run, path string) []float32 {
	t.Helper()
	p, err := r.Model.Parameter(path)
	fatal.If(t, err)
	return p.Data
}

// A dense layer on an image with channels has the same weights in PyTorch, whether or not a flatten is declared before
// it.
func TestAFlattenBeforeADenseLayerChangesNothingForPyTorch(t *testing.T) {
	const conv, dense, decoder = `{ kind = "conv2d", filters = 3, kernel = 3 }`, `{ kind = "dense", units = 5 }`, `{ kind = "dense" }`
	without := layered(t, "without", conv+", "+dense, decoder)
	with := layered(t, "with", conv+`, { kind = "flatten" }, { kind = "batch_norm" }, { kind = "relu" }, `+dense, decoder)
	copy(parameter(t, with, "encoder.4.weight"), parameter(t, without, "encoder.1.weight"))
	expect.Slice(t, exported(t, with, "encoder.4.weight"), exported(t, without, "encoder.1.weight"), "other weights after a flatten")
	own, scale := parameter(t, with, "encoder.2.scale"), exported(t, with, "encoder.2.weight")
	const channels = 3
	area := len(own) / channels
	for i, v := range scale {
		if want := own[i%area*channels+i/area]; v != want {
			t.Fatalf("batch_norm after flatten: value %d: got %v, want %v", i, v, want)
		}
	}
	for i, encoder := range []string{dense, `{ kind = "flatten" }, ` + dense} {
		tied := layered(t, "tied", encoder, fmt.Sprintf(`{ kind = "tied", weight = "encoder.%d.weight" }`, i))
		own, bias := parameter(t, tied, "decoder.0.bias"), exported(t, tied, "decoder.0.bias")
		for i, v := range bias {
			if want := own[i%48*4+i/48]; v != want { // images of 6x8 pixels with 4 channels
				t.Fatalf("%s: bias of the tied decoder: value %d: got %v, want %v", encoder, i, v, want)
			}
		}
	}
	mixed := layered(t, "mixed", conv+`, { kind = "flatten" }, { kind = "max_plus", units = 4 }, `+dense, decoder)
	expect.Error(t, export.Write(io.Discard, mixed, "safetensors", ""), "encoder.2", "max_plus after flatten")
	code := layered(t, "code", conv+`, { kind = "flatten" }`, decoder)
	expect.Slice(t, exported(t, code, "decoder.0.bias"), parameter(t, code, "decoder.0.bias"), "a flatten at the end of the encoder changes the decoder")
}
