package graph_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/tensor"
	"tessera/attack"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
)

var _ attack.Target = (*graph.Coder)(nil)

// attacked declares a model with noise, which an attack ignores, a normalisation layer with state, two reconstruction
// terms and other terms.
const attacked = `
[model.attacked]
encoder = [{ kind = "gaussian_noise" }, { kind = "dense", units = 5 }, { kind = "batch_norm" }, { kind = "sigmoid" }]
decoder = [{ kind = "dense", activation = "sigmoid" }]
loss = [{ kind = "mse", weight = 2.0 }, { kind = "kl", weight = 3.0 }, { kind = "bce", weight = 0.5 }]
`

// reconstruction computes 2 mse + 0.5 bce of the model's outputs for images in inference mode, by plain loops.
func reconstruction(t *testing.T, m *graph.Model, images, clean []float64) float64 {
	t.Helper()
	h := dense(t, m, "encoder.1", images, func(x float64) float64 { return x })
	for i := range h {
		at := func(name string) float64 { p, _ := m.Parameter("encoder.2." + name); return float64(p.Data[i%5]) }
		normed := at("scale")*(h[i]-at("running_mean"))/math.Sqrt(at("running_variance")+1e-3) + at("shift")
		h[i] = 1 / (1 + math.Exp(-normed))
	}
	y := dense(t, m, "decoder.0", h, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) })
	sum := 0.0
	for i, v := range y {
		sum += 2*(v-clean[i])*(v-clean[i]) - 0.5*(clean[i]*math.Log(v)+(1-clean[i])*math.Log(1-v))
	}
	return sum / float64(len(y))
}

func float64s(values []float32) []float64 {
	list := lists.Map(values, func(v float32) float64 { return float64(v) })
	return list
}

func TestInputGradientUsesOnlyReconstructionTerms(t *testing.T) {
	m := model(t, attacked, "attacked", 3, 4)
	variance, _ := m.Parameter("encoder.2.running_variance")
	for i := range variance.Data {
		variance.Data[i] = 0.3 + 0.1*float32(i)
	}
	const n = 3
	clean := noise(n * 12)
	images := slices.Clone(clean)
	slices.Reverse(images)
	p, err := m.Program(graph.Request{Batch: n, Want: []string{graph.InputGradient}, Dtype: tensor.Float64})
	fatal.If(t, err)
	if len(p.Inputs) != 2 || p.Inputs[1].Name != graph.Target || len(p.Updates) > 0 {
		t.Fatalf("inputs %v, updates %v", p.Inputs, p.Updates)
	}
	r, err := tape.Compile[float64](p)
	fatal.If(t, err)
	defer r.Close()
	x, target := float64s(images), float64s(clean)
	for i, values := range [][]float64{x, target} {
		fatal.If(t, r.Bind(i, values))
	}
	fatal.If(t, r.Run())
	want := slices.Clone(r.Tap(0))
	for i := range x {
		const h = 1e-6
		up, down := slices.Clone(x), slices.Clone(x)
		up[i] += h
		down[i] -= h
		numeric := (reconstruction(t, m, up, target) - reconstruction(t, m, down, target)) / (2 * h)
		expect.Near(t, want[i], numeric, 1e-7, "pixel", i, "gradient", want[i], "central difference")
	}
	team := team.New(2)
	defer team.Close()
	for name, backend := range map[string]ir.Backend{"engine": engine.Backend{Team: team}, "tape": tape.Backend{}} {
		coder := graph.NewCoder(m, backend)
		got, err := coder.InputGradient(images, clean)
		fatal.If(t, err)
		for i, g := range got {
			expect.Near(t, float64(g), want[i], 1e-5*math.Abs(want[i])+1e-7, name, "pixel", i)
		}
		expect.Error(t, expect.Err(coder.InputGradient(images, clean[:12])), "equal numbers", name, "other numbers of images")
		expect.NoError(t, coder.Close())
	}
}

// Adversarial training encodes the adversarial examples and reconstructs the clean images.
func TestAdversarialProgramsCompareWithTheCleanImages(t *testing.T) {
	const text = `
[model.twin]
encoder = [{ kind = "dense", units = 5, activation = "sigmoid" }]
[model.twin.hook.adversarial]
epsilon = 0.1
`
	m := model(t, text, "twin", 3, 4)
	p, err := m.Program(graph.Request{Batch: 2, Training: true})
	fatal.If(t, err)
	if len(p.Inputs) != 2 || p.Inputs[1].Name != graph.Target {
		t.Fatalf("inputs %v", p.Inputs)
	}
	r, err := tape.Backend{}.Compile(p)
	fatal.If(t, err)
	defer r.Close()
	clean, images := noise(24), make([]float32, 24)
	for i, values := range [][]float32{images, clean} {
		fatal.If(t, r.Bind(i, values))
	}
	fatal.If(t, r.Run())
	zero := func(x float64) float64 { return x }
	h := dense(t, m, "encoder.0", float64s(images), func(x float64) float64 { return 1 / (1 + math.Exp(-x)) })
	want := 0.0
	for i, y := range dense(t, m, "decoder.0", h, zero) {
		want += (y - float64(clean[i])) * (y - float64(clean[i])) / 24
	}
	for i, tap := range p.Taps {
		if tap.Name == "loss" && math.Abs(float64(r.Tap(i)[0])-want) > 1e-5*want {
			t.Errorf("loss: got %v, want %v", r.Tap(i)[0], want)
		}
	}
	inference, err := m.Program(graph.Request{Batch: 2})
	if err != nil || len(inference.Inputs) != 1 {
		t.Errorf("inference reads %d inputs (%v), want the images alone", len(inference.Inputs), err)
	}
}
