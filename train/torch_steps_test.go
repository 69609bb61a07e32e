package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/tensor"
	"tessera/config"
	"tessera/engine"
	"tessera/engine/ir"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/volume"
	"tessera/parallel/team"
)

// torchDeclared are the models of torch_models.py. Images and labels are given by the test.
const torchDeclared = `
[model.classifier]
dataset = { name = "npy", images = "none.npy", labels = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "sigmoid" }]
decoder = []
loss    = [{ kind = "cross_entropy" }]
head.class.layers = [{ kind = "dense", units = 5 }]

[model.classifier-on-parts]
extends = "classifier"
freeze  = ["encoder.*"]

[model.semi-supervised]
extends = "classifier"
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "cross_entropy", weight = 0.5 }]

[model.simclr]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "conv2d", filters = 4, kernel = 3, padding = "same", activation = "relu" }, { kind = "dense", units = 8 }]
decoder = []
view    = [{ augment = ["flip"] }]
loss    = [{ kind = "nt_xent", temperature = 0.5 }]
head.projection.layers = [{ kind = "dense", units = 6, activation = "relu" }, { kind = "dense", units = 4 }]

[model.unrolled]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "unrolled", units = 8, steps = 4 }]
decoder = [{ kind = "tied", bias = false }]
loss    = [{ kind = "mse" }, { kind = "hoyer", weight = 0.1, target = 0.6 }]

[model.players]
extends = "classifier"
decoder = [{ kind = "dense" }]
loss    = [{ kind = "mse" }, { kind = "l1", on = "class", name = "fool", weight = 0.1 }, { kind = "cross_entropy", name = "verdict" }]
player.coder = { trains = ["encoder.*", "decoder.*"], losses = ["mse", "fool"] }
player.judge = { trains = "head.class.*", losses = "verdict" }

[model.vae]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "tanh" }, { kind = "gaussian", units = 3 }]
loss    = [{ kind = "mse" }, { kind = "gaussian_kl", weight = 0.1 }]

[model.skip]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "conv2d", filters = 2, kernel = 3, padding = "same", activation = "tanh" }, { kind = "dense", units = 4 }]
decoder = [{ kind = "dense", units = 36 }, { kind = "reshape", shape = [6, 6] }, { kind = "conv2d", filters = 1, kernel = 3, padding = "same", from = ["previous", "encoder.0"] }]

[model.jump]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8 }, { kind = "jump_relu", width = 0.5 }]
loss    = [{ kind = "mse" }, { kind = "l0", weight = 0.01 }]

[model.two-encoders]
dataset = { name = "npy", images = "none.npy" }
encoder = [{ kind = "dense", units = 8, activation = "tanh" }]
decoder = []
loss    = [{ kind = "contrastive", on = "first", with = "second", temperature = 0.5 }]
head.first.layers = [{ kind = "dense", units = 4 }]
head.second = { from = "images", layers = [{ kind = "dense", units = 8, activation = "sigmoid" }, { kind = "dense", units = 4, share = "head.first.0" }] }
`

// Five steps of ten models agree with PyTorch in float64, on both back ends: losses, terms and parameters.
func TestModelsAgreeWithPyTorchOverFiveSteps(t *testing.T) {
	f := readTorchModels(t)
	file, err := config.Load("models.toml", []byte(torchDeclared))
	if err != nil {
		t.Fatal(err)
	}
	workers := team.New(2)
	defer workers.Close()
	backends := map[string]func(p *graph.Program) (ir.Runner[float64], error){
		"tape": func(p *graph.Program) (ir.Runner[float64], error) { return tape.Compile[float64](p) },
		"engine": func(p *graph.Program) (ir.Runner[float64], error) {
			m, err := p.Module()
			if err != nil {
				return nil, err
			}
			return engine.Compile[float64](m, workers)
		},
	}
	for _, want := range f.Models {
		for name, compile := range backends {
			t.Run(want.Name+" on the "+name, func(t *testing.T) {
				spec, err := file.Model(want.Name)
				if err != nil {
					t.Fatal(err)
				}
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
				want.compare(t, f, p, r)
			})
		}
	}
}

// compare trains by Adam with a learning rate of 0.01 and compares the losses of every step and the final parameters.
func (m torchModel) compare(t *testing.T, f torchFixture, p *graph.Program, r ir.Runner[float64]) {
	t.Helper()
	parameters := map[string]torchParameter{}
	for _, q := range m.Parameters {
		parameters[q.Path] = q
	}
	if len(p.Parameters) != len(parameters) {
		t.Errorf("the program has %d parameters, PyTorch's %d", len(p.Parameters), len(parameters))
	}
	moments := make([][2][]float64, len(p.Parameters))
	for i, b := range p.Parameters {
		q, ok := parameters[b.Path]
		if !ok || !slices.Equal(q.Shape, b.Shape) {
			t.Fatalf("%s of shape %v, PyTorch's is %v", b.Path, b.Shape, q.Shape)
		}
		copy(r.Parameter(i), q.start())
		moments[i] = [2][]float64{make([]float64, len(b.Data)), make([]float64, len(b.Data))}
	}
	for step, losses := range m.Losses {
		for i, in := range p.Inputs {
			if err := r.Bind(i, m.input(f, in, step)); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Run(); err != nil {
			t.Fatal(err)
		}
		for i, tap := range p.Taps {
			if got, want := r.Tap(i)[0], losses[tap.Name]; !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
				t.Errorf("step %d: %s is %v, PyTorch's %v", step, tap.Name, got, want)
			}
		}
		for i := range p.Parameters {
			if g := r.Gradient(i); g != nil {
				adam(r.Parameter(i), g, moments[i], step+1)
			}
		}
	}
	for i, b := range p.Parameters {
		for j, got := range r.Parameter(i) {
			if want := parameters[b.Path].Values[j]; !(math.Abs(got-want) <= 1e-6*(1+math.Abs(want))) {
				t.Fatalf("%s: value %d is %v after five steps, PyTorch's %v", b.Path, j, got, want)
			}
		}
	}
}

// input returns the values of one input of a program at a step.
func (m torchModel) input(f torchFixture, in graph.Input, step int) []float64 {
	stream := func(name string) int { return m.Inputs[name] + step }
	pixels := f.Images * f.Side * f.Side
	switch in.Name {
	case graph.Images:
		return drawn(stream("images"), pixels)
	case graph.Views:
		return slices.Concat(drawn(stream("view.1"), pixels), drawn(stream("view.2"), pixels))
	case graph.Labels:
		labels := f.labels(stream("labels"))
		if m.Name == "semi-supervised" {
			labels = f.fewLabels(stream("labels"), step)
		}
		one := make([]float64, volume.Of(in.Shape))
		for i, class := range labels {
			if class >= 0 {
				one[i*f.Classes+class] = 1
			}
		}
		return one
	}
	if _, ok := m.Inputs[in.Name]; ok { // noise
		return drawn(stream(in.Name), volume.Of(in.Shape))
	}
	panic(fmt.Sprintf("the input %s is not PyTorch's", in.Name))
}

// adam is the rule of Kingma and Ba with PyTorch's defaults.
func adam(w, g []float64, moments [2][]float64, step int) {
	const rate, beta1, beta2, epsilon = 0.01, 0.9, 0.999, 1e-8
	for i := range w {
		m, v := &moments[0][i], &moments[1][i]
		*m = beta1**m + (1-beta1)*g[i]
		*v = beta2**v + (1-beta2)*g[i]*g[i]
		mean, square := *m/(1-math.Pow(beta1, float64(step))), *v/(1-math.Pow(beta2, float64(step)))
		w[i] -= rate * mean / (math.Sqrt(square) + epsilon)
	}
}
