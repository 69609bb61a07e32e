package export_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tessera/data"
	"tessera/internal/engine"
	"tessera/internal/fatal"
	"tessera/internal/parallel/team"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
)

// pytorchLayers lists layers that exist as PyTorch modules, with their settings.
var pytorchLayers = [][2]string{
	{"dense", `units = 5`}, {"token_dense", `units = 3`}, {"batch_norm", ""}, {"instance_norm", ""}, {"layer_norm", ""},
	{"recurrent", `units = 3`}, {"recurrent", `units = 3, cell = "lstm"`}, {"attention", `heads = 2`}, {"attention", `heads = 2, bias = true`},
	{"conv2d", `filters = 6, kernel = 4, stride = 2`}, {"conv2d", `filters = 4, kernel = 2, dilation = 2, groups = 2, padding = "valid"`},
	{"conv2d_transpose", `filters = 6, kernel = 4, stride = 2`},
	{"conv2d_transpose", `filters = 4, kernel = 2, dilation = 2, groups = 2, padding = "valid"`},
}

// PyTorch's module loads the exported tensors of a layer, with exactly the names and shapes that it expects, and gives
// the same outputs.
func TestExportedTensorsFitPyTorchsModules(t *testing.T) {
	python := pythonWith(t, "torch")
	threads := team.New(1)
	defer threads.Close()
	folder := t.TempDir()
	images := filepath.Join(folder, "images.npy")
	args, expected := []string{"testdata/pytorch_layers.py", images}, map[string][]float32{}
	var x []float32
	for i, c := range pytorchLayers {
		r := oneLayer(t, c[0], c[1])
		x = uniform(8, 3*volume.Of(r.Shape()))
		coder := r.Coder(engine.Backend{Team: threads})
		y, err := coder.(metrics.ValueCoder).Value(losses.Code, x)
		fatal.If(t, err)
		name := fmt.Sprintf("%d-%s", i, c[0])
		model, result := filepath.Join(folder, name+".safetensors"), filepath.Join(folder, name+".npy")
		fatal.If(t, os.WriteFile(model, written(t, r, "safetensors", ""), 0o666))
		args, expected[result] = append(args, model, result), y
		fatal.If(t, data.WriteImages(images, r.Shape(), x))
	}
	if text, err := exec.Command(python, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for result, want := range expected {
		got, err := data.ReadImages(t.Context(), result, []int{len(want) / 3})
		fatal.If(t, err)
		if d := difference(got.Float32(), want); !(d <= tolerance) {
			t.Errorf("%s: differs by %g", filepath.Base(result), d)
		}
	}
}
