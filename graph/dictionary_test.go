package graph_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"gorgonia.org/tensor"
	"tessera/data/morph"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/metrics"
)

// onAtoms declares a model whose decoder has a layer before the layer with the atoms, and an activation after it.
const onAtoms = `
[model.dilated]
encoder = [{ kind = "dense", units = 4, activation = "relu" }]
decoder = [{ kind = "dense", units = 5, activation = "tanh" }, { kind = "dense" }, { kind = "leaky_relu", slope = 0.3 }]
loss = [{ kind = "mse" }, { kind = "max_approximation", weight = 0.5 }, { kind = "max_approximation", operator = "erosion", radius = 2 }]

[model.layered]
encoder = [{ kind = "dense", units = 4, activation = "relu" }]
decoder = [{ kind = "dense", units = 5, activation = "relu" }, { kind = "dense", units = 6 }, { kind = "relu" }, { kind = "dense" }]
loss = [
  { kind = "mse" },
  { kind = "max_approximation_layer", layer = "decoder.0", weight = 0.5 },
  { kind = "max_approximation_layer", layer = "decoder.1", relative = true },
  { kind = "max_approximation_layer" },
]

[model.noisy]
encoder = [{ kind = "dense", units = 4, activation = "relu" }]
decoder = [{ kind = "dense" }, { kind = "dropout", rate = 0.3 }]
loss = [{ kind = "mse" }, { kind = "max_approximation" }]
`

// tapped runs a training program once on the given images and returns a tap.
func tapped(t *testing.T, m *graph.Model, backend ir.Backend, images []float32, name string) float64 {
	t.Helper()
	p, err := m.Program(graph.Request{Batch: len(images) / m.Pixels(), Training: true})
	fatal.If(t, err)
	r, err := backend.Compile(p)
	fatal.If(t, err)
	defer r.Close()
	fatal.If(t, r.Bind(0, images))
	fatal.If(t, r.Run())
	for i, tap := range p.Taps {
		if tap.Name == name {
			return float64(r.Tap(i)[0])
		}
	}
	t.Fatalf("no tap %q", name)
	return 0
}

func TestMaxApproximationTermIsTheMetric(t *testing.T) {
	m := model(t, onAtoms, "dilated", 3, 4)
	images := noise(7 * 12)
	team := team.New(2)
	defer team.Close()
	for _, backend := range []ir.Backend{tape.Backend{}, engine.Backend{Team: team}} {
		coder := graph.NewCoder(m, backend)
		defer coder.Close()
		for _, term := range []struct {
			name   string
			weight float64
			metric metrics.Morphology
		}{
			{"loss.max_approximation", 0.5, metrics.Dilation()},
			{"loss.max_approximation.2", 1, metrics.Morphology{Operator: morph.Erosion, Radius: 2}},
		} {
			chosen := metrics.Selection{{Metric: &metrics.MaxApprox{Morphology: term.metric}}}
			r, err := metrics.Evaluate(context.Background(), coder, metrics.Sample{Images: images}, chosen)
			fatal.If(t, err)
			want, ok := r.Number("max_approx")
			if want *= term.weight; !ok {
				t.Fatal("max_approx was not measured")
			}
			expect.Near(t, tapped(t, m, backend, images, term.name), want, 1e-5*want, backend, term.name)
		}
	}
}

// The term of a decoder layer is that of its input and its weight, by plain loops.
func TestMaxApproximationOfDecoderLayers(t *testing.T) {
	m := model(t, onAtoms, "layered", 3, 4)
	images, rows := noise(7*12), 7
	team := team.New(1)
	defer team.Close()
	for _, backend := range []ir.Backend{tape.Backend{}, engine.Backend{Team: team}} {
		coder := graph.NewCoder(m, backend)
		defer coder.Close()
		for _, term := range []struct {
			name, input, layer string
			weight             float64
			relative           bool
		}{
			{"loss.max_approximation_layer", "code", "decoder.0", 0.5, false},
			{"loss.max_approximation_layer.2", "decoder.0", "decoder.1", 1, true},
			{"loss.max_approximation_layer.3", "decoder.2", "decoder.3", 1, false},
		} {
			h, err := coder.Value(term.input, images)
			fatal.If(t, err)
			w, err := m.Parameter(term.layer + ".weight")
			fatal.If(t, err)
			units, outputs := w.Shape[0], w.Shape[1]
			var off, squares float64
			for b := range rows {
				for n := range outputs {
					sum, largest := 0.0, math.Inf(-1)
					for j := range units {
						v := float64(h[b*units+j]) * float64(w.Data[j*outputs+n])
						sum, largest = sum+v, max(largest, v)
					}
					off, squares = off+(sum-largest)*(sum-largest), squares+sum*sum
				}
			}
			want := term.weight * off / float64(rows*outputs)
			if term.relative {
				want = off / squares
			}
			if got := tapped(t, m, backend, images, term.name); !(want > 0) || math.Abs(got-want) > 1e-5*want {
				t.Errorf("%T: %s: got %v, want %v", backend, term.name, got, want)
			}
		}
	}
}

// A layer that is applied a second time, with the operated atoms, uses the same noise.
func TestOperatedAtomsUseTheSameNoise(t *testing.T) {
	m := model(t, onAtoms, "noisy", 3, 4)
	p, err := m.Program(graph.Request{Batch: 2, Training: true, Dtype: tensor.Float64})
	fatal.If(t, err)
	names := lists.Map(p.Inputs, func(in graph.Input) string { return in.Name })
	expect.Equal(t, strings.Join(names, " "), "input decoder.1.noise", "inputs")
}
