package train

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/tensor"
	"tessera/config"
	"tessera/data"
	"tessera/engine"
	"tessera/graph"
	"tessera/internal/volume"
	"tessera/tape"
)

// torch_models.json holds what PyTorch makes of four models in float64; torch_models.py beside it wrote it.
//
//go:embed testdata/torch_models.json
var torchModels []byte

// torchFixture is torch_models.json.
type torchFixture struct {
	Steps, Images, Side, Classes int

	// What the formulas give, to compare them in both languages.
	Uniform   []float64 // of stream 7
	Labels    []int     // of stream 200
	FewLabels [][]int   `json:"few_labels"` // of streams 400, 401, ..., by step

	Models []torchModel
}

// torchModel is one model after five steps of Adam with a learning rate of 0.01.
type torchModel struct {
	Name       string
	Inputs     map[string]int // the stream of the first step: step s reads the next ones
	Losses     []map[string]float64
	Parameters []torchParameter
}

// torchParameter is a parameter whose first values are (2 u - 1) scale with u from its stream, and those after the last step.
type torchParameter struct {
	Path   string
	Shape  []int
	Stream int
	Scale  float64
	Values []float64
}

func readTorchModels(t *testing.T) torchFixture {
	t.Helper()
	var f torchFixture
	if err := json.Unmarshal(torchModels, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// drawn returns n values in [0,1), the same as uniform in torch_models.py.
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

// start returns the first values of a parameter.
func (p torchParameter) start() []float64 {
	values := drawn(p.Stream, volume.Of(p.Shape))
	for i, u := range values {
		values[i] = (2*u - 1) * p.Scale
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

// fewLabels returns the labels of a stream of which about a tenth is known, at least that of image number step.
func (f torchFixture) fewLabels(stream, step int) []int {
	labels := f.labels(stream)
	for i, u := range drawn(stream+1000, f.Images) {
		if u >= 0.1 && i != step {
			labels[i] = data.UnknownLabel
		}
	}
	return labels
}

func TestBothLanguagesMakeTheSameBatches(t *testing.T) {
	f := readTorchModels(t)
	if got := drawn(7, len(f.Uniform)); !slices.Equal(got, f.Uniform) {
		t.Errorf("stream 7 is %v, in Python %v", got, f.Uniform)
	}
	if got := f.labels(200); !slices.Equal(got, f.Labels) {
		t.Errorf("labels are %v, in Python %v", got, f.Labels)
	}
	for step, want := range f.FewLabels {
		if got := f.fewLabels(400+step, step); !slices.Equal(got, want) {
			t.Errorf("step %d: known labels are %v, in Python %v", step, got, want)
		}
	}
	for _, p := range f.Models[1].Parameters { // frozen ones have their first values
		for i, v := range p.start() {
			if p.Path[:8] == "encoder." && math.Abs(v-p.Values[i]) > 1e-11 {
				t.Errorf("%s: value %d starts at %v, in Python at %v", p.Path, i, v, p.Values[i])
			}
		}
	}
}

// torchDeclarations are the models of torch_models.py.
const torchDeclarations = `
[model.classifier]
dataset = "fashion-mnist"
encoder = [{ kind = "dense", units = 8, activation = "sigmoid" }]
decoder = []
head    = { class = { layers = [{ kind = "dense" }] } } # as many units as there are classes
loss    = [{ kind = "cross_entropy", on = "class" }]

[model.classifier-on-parts]
extends = "classifier"
freeze  = ["encoder.*"]

[model.semi-supervised]
extends = "classifier"
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "cross_entropy", on = "class", weight = 0.5 }]

[model.simclr]
encoder = [{ kind = "conv2d", filters = 4, kernel = 3, padding = "same", activation = "relu" }, { kind = "dense", units = 8 }]
decoder = []
head    = { projection = { layers = [{ kind = "dense", units = 6, activation = "relu" }, { kind = "dense", units = 4 }] } }
view    = [{ augment = [{ kind = "flip" }] }]
loss    = [{ kind = "nt_xent", on = "projection", temperature = 0.5 }]
`

// Five steps in float64 on either back end end within 1e-9 of PyTorch's: every term of every step and every parameter.
func TestModelsAgreeWithPyTorchOverFiveSteps(t *testing.T) {
	f := readTorchModels(t)
	declared, err := config.Load("models.toml", []byte(torchDeclarations))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Models) != len(declared.Names()) {
		t.Errorf("%d models of %d are compared", len(f.Models), len(declared.Names()))
	}
	team := engine.NewTeam(1)
	defer team.Close()
	for _, want := range f.Models {
		spec, err := declared.Model(want.Name)
		if err != nil {
			t.Fatal(err)
		}
		for name, compile := range map[string]func(*graph.Program) (graph.Runner[float64], error){
			"tape": tape.Compile[float64],
			"engine": func(p *graph.Program) (graph.Runner[float64], error) {
				m, err := p.Module()
				if err != nil {
					return nil, err
				}
				return engine.Compile[float64](m, team)
			},
		} {
			t.Run(want.Name+"/"+name, func(t *testing.T) { f.compare(t, spec, want, compile) })
		}
	}
}

// compare trains a model as torch_models.py does.
func (f torchFixture) compare(t *testing.T, spec *config.Model, want torchModel, compile func(*graph.Program) (graph.Runner[float64], error)) {
	m, err := graph.New(spec, []int{f.Side, f.Side})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Program(graph.Request{Batch: f.Images, Want: []string{graph.Loss}, Dtype: tensor.Float64})
	if err != nil {
		t.Fatal(err)
	}
	r, err := compile(p)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []*torchParameter
	for _, b := range p.Parameters {
		i := slices.IndexFunc(want.Parameters, func(q torchParameter) bool { return q.Path == b.Path })
		if i < 0 || !slices.Equal(want.Parameters[i].Shape, b.Shape) {
			t.Fatalf("PyTorch has no parameter %s of shape %v", b.Path, b.Shape)
		}
		list = append(list, &want.Parameters[i])
		copy(r.Parameter(len(list)-1), list[len(list)-1].start())
	}
	if len(list) != len(want.Parameters) {
		t.Errorf("the program reads %d parameters, PyTorch's model has %d", len(list), len(want.Parameters))
	}
	moments := make([]plainAdam, len(list))
	for step, terms := range want.Losses {
		for i, in := range p.Inputs {
			if err := r.Bind(i, f.batch(t, in.Name, want, step)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		for name, value := range terms {
			i := slices.IndexFunc(p.Taps, func(tap graph.Tap) bool { return tap.Name == name })
			if i < 0 {
				t.Fatalf("the program has no %s", name)
			}
			nearTorch(t, fmt.Sprintf("step %d: %s", step+1, name), r.Tap(i), []float64{value})
		}
		for i, b := range p.Parameters {
			if b.Gradient != nil {
				moments[i].step(r.Parameter(i), r.Gradient(i), 0.01)
			}
		}
	}
	for i, q := range list {
		nearTorch(t, q.Path, r.Parameter(i), q.Values)
	}
}

// batch returns what an input of a program holds in a step.
func (f torchFixture) batch(t *testing.T, input string, m torchModel, step int) []float64 {
	images := func(name string) []float64 { return drawn(m.Inputs[name]+step, f.Images*f.Side*f.Side) }
	switch input {
	case graph.Images:
		return images("images")
	case graph.Views:
		return append(images("view.1"), images("view.2")...)
	case graph.Labels:
		labels := f.labels(m.Inputs["labels"] + step)
		if m.Name == "semi-supervised" {
			labels = f.fewLabels(m.Inputs["labels"]+step, step)
		}
		hot := make([]float64, f.Images*f.Classes)
		for i, label := range labels {
			if label != data.UnknownLabel {
				hot[i*f.Classes+label] = 1
			}
		}
		return hot
	}
	t.Fatalf("the program reads %q, which PyTorch's model does not", input)
	return nil
}

// plainAdam is Adam with PyTorch's defaults, in float64: package optim's works in float32.
type plainAdam struct {
	steps       int
	mean, power []float64
}

func (a *plainAdam) step(w, g []float64, rate float64) {
	if a.steps++; a.steps == 1 {
		a.mean, a.power = make([]float64, len(w)), make([]float64, len(w))
	}
	for i, d := range g {
		a.mean[i] = 0.9*a.mean[i] + 0.1*d
		a.power[i] = 0.999*a.power[i] + 0.001*d*d
		mean, power := a.mean[i]/(1-math.Pow(0.9, float64(a.steps))), a.power[i]/(1-math.Pow(0.999, float64(a.steps)))
		w[i] -= rate * mean / (math.Sqrt(power) + 1e-8)
	}
}

func nearTorch(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, PyTorch has %d", what, len(got), len(want))
	}
	for i, v := range got {
		if d := math.Abs(v - want[i]); !(d <= 1e-9*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: value %d is %v, PyTorch's %v: off by %.1e", what, i, v, want[i], d)
		}
	}
}
