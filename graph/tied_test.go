package graph_test

import (
	"math"
	"slices"
	"testing"

	"gorgonia.org/tensor"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// Both decoder layers are tied. The last one is tied to the first encoder layer: its atoms are the columns of
// encoder.0.weight.
const tiedText = `
[model.tied]
encoder = [{ kind = "dense", units = 5, activation = "tanh" }, { kind = "dense", units = 4, activation = "sigmoid" }]
decoder = [{ kind = "tied", weight = "encoder.1.weight", activation = "tanh" }, { kind = "tied" }, { kind = "leaky_relu", slope = 0.3 }]
loss = [{ kind = "mse" }, { kind = "max_approximation", weight = 0.5 }, { kind = "asymmetric_decay", norm = "l1", weight = 0.1 }]

[model.decayed]
extends = "tied"
loss = [{ kind = "mse" }, { kind = "weight_decay", on = "encoder.*.weight" }, { kind = "weight_decay", on = "decoder.*.weight" }, { kind = "weight_decay", on = "*.weight" }]

[model.taught]
extends = "shallow"
loss = [{ kind = "mse" }, { kind = "consistency", on = "output" }]
hook = { teacher = { decay = 0.5 } }

[model.shallow]
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
decoder = [{ kind = "tied", bias = false }]
`

// tied computes h Wᵀ + b by plain loops.
func tied(t *testing.T, m *graph.Model, weight, bias string, h []float64, f func(float64) float64) []float64 {
	t.Helper()
	w, err := m.Parameter(weight)
	fatal.If(t, err)
	b, err := m.Parameter(bias)
	fatal.If(t, err)
	pixels, units := w.Shape[0], w.Shape[1]
	var y []float64
	for at := 0; at < len(h); at += units {
		for i := range pixels {
			sum := float64(b.Data[i])
			for j := range units {
				sum += h[at+j] * float64(w.Data[i*units+j])
			}
			y = append(y, f(sum))
		}
	}
	return y
}

func TestTiedDecodersUseTheEncodersWeights(t *testing.T) {
	m := model(t, tiedText, "tied", 3, 4)
	paths := lists.Map(m.Parameters, func(p *graph.Parameter) string { return p.Path })
	if want := []string{"encoder.0.weight", "encoder.0.bias", "encoder.1.weight", "encoder.1.bias", "decoder.0.bias", "decoder.1.bias"}; !slices.Equal(paths, want) {
		t.Fatalf("parameters %q, want %q", paths, want)
	}
	c := graph.NewCoder(m, tape.Backend{})
	codes, err := c.Encode(noise(3 * 12))
	fatal.If(t, err)
	hidden := dense(t, m, "encoder.0", wide(noise(3*12)), math.Tanh)
	near(t, "codes", codes, dense(t, m, "encoder.1", hidden, sigmoid))
	outputs, err := c.Decode(codes)
	fatal.If(t, err)
	hidden = tied(t, m, "encoder.1.weight", "decoder.0.bias", wide(codes), math.Tanh)
	near(t, "outputs", outputs, tied(t, m, "encoder.0.weight", "decoder.1.bias", hidden, func(v float64) float64 { return max(v, 0.3*v) }))
}

func TestAtomsOfATiedDecoderAreTheColumnsOfTheEncodersWeight(t *testing.T) {
	m := model(t, tiedText, "tied", 3, 4)
	c := graph.NewCoder(m, tape.Backend{})
	a := c.Atoms()
	w, _ := m.Parameter("encoder.0.weight")
	b, _ := m.Parameter("decoder.1.bias")
	if a == nil || a.Count != 5 || len(a.Values) != 5*12 || !slices.Equal(a.Bias, b.Data) {
		t.Fatalf("got %+v, want 5 atoms of 12 pixels and the decoder's bias", a)
	}
	for j := range 5 {
		for i := range 12 {
			if a.Values[j*12+i] != w.Data[i*5+j] {
				t.Fatalf("pixel %d of atom %d: got %v, want %v", i, j, a.Values[j*12+i], w.Data[i*5+j])
			}
		}
	}
	if a := graph.NewCoder(model(t, tiedText, "shallow", 3, 4), tape.Backend{}).Atoms(); a == nil || a.Bias != nil {
		t.Errorf("without a bias: got %+v", a)
	}
}

func TestOtherAtomsOfATiedDecoderLeaveTheEncoderAlone(t *testing.T) {
	m := model(t, tiedText, "tied", 3, 4)
	c := graph.NewCoder(m, tape.Backend{})
	images := noise(2 * 12)
	codes, err := c.Encode(images)
	fatal.If(t, err)
	a := c.Atoms()
	clear(a.Values)
	other, err := c.WithAtoms(a)
	fatal.If(t, err)
	if got, err := other.Encode(images); err != nil || !slices.Equal(got, codes) {
		t.Errorf("codes %v (%v), want %v", got, err, codes)
	}
	got, err := other.Decode(codes)
	fatal.If(t, err)
	var want []float64
	for range 2 {
		for _, v := range a.Bias {
			want = append(want, float64(max(v, 0.3*v)))
		}
	}
	near(t, "outputs of empty atoms", got, want)
	expect.Slice(t, other.Atoms().Values, a.Values, "the other coder has other atoms than it was given")
}

// The gradient of a tied weight is the sum of its gradients in the encoder, in the decoder and as atoms.
func TestGradientsOfTiedWeightsAreDifferences(t *testing.T) {
	m := model(t, tiedText, "tied", 3, 4)
	p, err := m.Program(graph.Request{Batch: 3, Training: true, Dtype: tensor.Float64})
	fatal.If(t, err)
	r, err := tape.Compile[float64](p)
	fatal.If(t, err)
	defer r.Close()
	fatal.If(t, r.Bind(0, wide(noise(3*12))))
	loss := func() float64 {
		fatal.If(t, r.Run())
		return r.Tap(slices.IndexFunc(p.Taps, func(t graph.Tap) bool { return t.Name == "loss" }))[0]
	}
	loss()
	gradients := lists.Of(len(p.Parameters), func(i int) []float64 { return slices.Clone(r.Gradient(i)) })
	const step = 1e-6
	for i, b := range p.Parameters {
		w := r.Parameter(i)
		for j := range w {
			was := w[j]
			w[j] = was + step
			above := loss()
			w[j] = was - step
			below := loss()
			w[j] = was
			if got, want := gradients[i][j], (above-below)/(2*step); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("%s, element %d: gradient %v, difference %v", b.Path, j, got, want)
			}
		}
	}
}

// A tied decoder of the teacher uses the transpose of the teacher's weight, not of the model's weight.
func TestATeachersTiedDecoderUsesItsOwnWeights(t *testing.T) {
	m := model(t, tiedText, "taught", 3, 4)
	for _, p := range m.Parameters {
		lent := &graph.Parameter{Path: "teacher." + p.Path, Shape: p.Shape, Data: slices.Clone(p.Data), Frozen: true}
		m.Lent = append(m.Lent, lent)
	}
	same := tapped(t, m, tape.Backend{}, noise(2*12), "loss.consistency")
	m.Lent[0].Data[0]++
	if other := tapped(t, m, tape.Backend{}, noise(2*12), "loss.consistency"); same != 0 || !(other > 0) {
		t.Errorf("distance from an equal teacher is %v, from another one %v; want 0 and more", same, other)
	}
}

// A glob that matches a tied weight under both of its names selects it once.
func TestDecayTakesATiedWeightOnce(t *testing.T) {
	m := model(t, tiedText, "decayed", 3, 4)
	want := 0.0
	for _, path := range []string{"encoder.0.weight", "encoder.1.weight"} {
		w, err := m.Parameter(path)
		fatal.If(t, err)
		for _, v := range w.Data {
			want += float64(v) * float64(v) / 2
		}
	}
	for _, name := range []string{"loss.weight_decay", "loss.weight_decay.2", "loss.weight_decay.3"} {
		expect.Near(t, tapped(t, m, tape.Backend{}, noise(2*12), name), want, 1e-5*want, name)
	}
}
