package train

import (
	_ "embed"
	"encoding/json"
	"math"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/volume"
)

// torch_models.json contains results of PyTorch for models in float64, written by torch_models.py.
//
//go:embed testdata/torch_models.json
var torchModels []byte

// torchFixture is the contents of torch_models.json.
type torchFixture struct {
	Steps, Images, Side, Classes int

	// Values of the random formulas, to check that both languages compute the same.
	Uniform   []float64 // values of stream 7
	Labels    []int     // labels of stream 200
	FewLabels [][]int   `json:"few_labels"` // labels of streams 400, 401, ..., by step

	Models []torchModel
}

// torchModel is one model after five steps of Adam with a learning rate of 0.01.
type torchModel struct {
	Name       string
	Inputs     map[string]int // stream of each input at the first step; step s reads the s-th stream after it
	Losses     []map[string]float64
	Parameters []torchParameter
}

// torchParameter describes a parameter: its initial values shift + (2 u - 1) scale, where u is from its stream, and its values
// after the last step.
type torchParameter struct {
	Path   string
	Shape  []int
	Stream int
	Scale  float64
	Shift  float64
	Values []float64
}

func readTorchModels(t *testing.T) torchFixture {
	t.Helper()
	var f torchFixture
	fatal.If(t, json.Unmarshal(torchModels, &f))
	return f
}

// drawn returns n values in [0,1), equal to those of uniform in torch_models.py.
func drawn(stream, n int) []float64 {
	const prime = 1<<31 - 1
	values := make([]float64, n)
	for i := range values {
		x := (int64(i)*7919 + int64(stream)*104729 + 12345) % prime
		x = x * x % prime
		values[i] = float64(x*48271%prime) / prime
	}
	return values
}

// start returns the initial values of a parameter.
func (p torchParameter) start() []float64 {
	values := drawn(p.Stream, volume.Of(p.Shape))
	for i, u := range values {
		values[i] = p.Shift + (2*u-1)*p.Scale
	}
	return values
}

// labels returns the labels of a stream.
func (f torchFixture) labels(stream int) []int {
	labels := make([]int, f.Images)
	for i, u := range drawn(stream, f.Images) {
		labels[i] = int(u * float64(f.Classes))
	}
	return labels
}

// fewLabels returns the labels of a stream, about a tenth of them known, including the label of image number step.
func (f torchFixture) fewLabels(stream, step int) []int {
	labels := f.labels(stream)
	for i, u := range drawn(stream+1000, f.Images) {
		if u >= 0.1 && i != step {
			labels[i] = data.UnknownLabel
		}
	}
	return labels
}

func TestGoAndPythonMakeTheSameBatches(t *testing.T) {
	f := readTorchModels(t)
	expect.Slice(t, drawn(7, len(f.Uniform)), f.Uniform, "stream 7")
	expect.Slice(t, f.labels(200), f.Labels, "labels")
	for step, want := range f.FewLabels {
		expect.Slice(t, f.fewLabels(400+step, step), want, "step", step, "known labels")
	}
	for _, p := range f.Models[1].Parameters { // frozen parameters keep their initial values
		for i, v := range p.start() {
			if p.Path[:8] == "encoder." && math.Abs(v-p.Values[i]) > 1e-11 {
				t.Errorf("%s: value %d starts at %v, in Python at %v", p.Path, i, v, p.Values[i])
			}
		}
	}
}
