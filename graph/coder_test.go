package graph_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/graph"
	"tessera/graph/tape"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/metrics"
)

var _ metrics.Coder = (*graph.Coder)(nil)

// deep declares a model with two dense layers on each side, from 12 pixels to 4 units.
const deep = `
[model.deep]
encoder = [{ kind = "dense", units = 7, activation = "relu" }, { kind = "dropout" }, { kind = "dense", units = 4, activation = "sigmoid" }]
decoder = [{ kind = "dense", units = 5, activation = "tanh" }, { kind = "dense" }, { kind = "leaky_relu", slope = 0.1 }]
`

func model(t *testing.T, text, name string, shape ...int) *graph.Model {
	t.Helper()
	f, err := config.Load("test.toml", []byte(text))
	fatal.If(t, err)
	spec, err := f.Model(name)
	fatal.If(t, err)
	m, err := graph.New(spec, shape)
	fatal.If(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range m.Parameters { // biases start at 0, which would hide an error
		for i := range p.Data {
			p.Data[i] = float32(r.NormFloat64()) / 2
		}
	}
	return m
}

func noise(n int) []float32 {
	r := rand.New(rand.NewPCG(3, 4))
	v := lists.Of(n, func(int) float32 { return r.Float32() })
	return v
}

// dense computes f(x W + b) by plain loops, in float64.
func dense(t *testing.T, m *graph.Model, path string, x []float64, f func(float64) float64) []float64 {
	t.Helper()
	w, err := m.Parameter(path + ".weight")
	fatal.If(t, err)
	b, err := m.Parameter(path + ".bias")
	fatal.If(t, err)
	in, out := w.Shape[0], w.Shape[1]
	y := make([]float64, len(x)/in*out)
	for i := range len(x) / in {
		for j := range out {
			sum := float64(b.Data[j])
			for k := range in {
				sum += x[i*in+k] * float64(w.Data[k*out+j])
			}
			y[i*out+j] = f(sum)
		}
	}
	return y
}

func relu(v float64) float64    { return max(v, 0) }
func sigmoid(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
func leaky(v float64) float64   { return max(v, 0.1*v) }

func wide(v []float32) []float64 {
	w := lists.Map(v, func(x float32) float64 { return float64(x) })
	return w
}

func near(t *testing.T, what string, got []float32, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(float64(got[i])-want[i]) > 1e-5 {
			t.Fatalf("%s: value %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

func TestCoderAgreesWithPlainLoopsWithoutNoise(t *testing.T) {
	m := model(t, deep, "deep", 3, 4)
	c := graph.NewCoder(m, tape.Backend{})
	for _, n := range []int{1, 3, 1000, 1003, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			images := noise(n * 12)
			codes, err := c.Encode(images)
			fatal.If(t, err)
			wantCodes := dense(t, m, "encoder.2", dense(t, m, "encoder.0", wide(images), relu), sigmoid)
			near(t, "codes", codes, wantCodes)
			outputs, err := c.Decode(codes)
			fatal.If(t, err)
			near(t, "outputs", outputs, dense(t, m, "decoder.1", dense(t, m, "decoder.0", wide(codes), math.Tanh), leaky))
		})
	}
	fatal.If(t, c.Close())
	expect.NoError(t, expect.Err(c.Encode(noise(12))), "a closed coder is used again")
}

func TestCoderIsRightAfterMoreBatchSizesThanItKeeps(t *testing.T) {
	m := model(t, deep, "deep", 3, 4)
	c := graph.NewCoder(m, tape.Backend{})
	images := noise(9 * 12)
	all, err := c.Encode(images)
	fatal.If(t, err)
	for n := 1; n <= 9; n++ {
		some, err := c.Encode(images[:n*12])
		fatal.If(t, err)
		near(t, fmt.Sprintf("%d images", n), some, wide(all[:n*4]))
	}
}

func TestCoderFollowsTheParameters(t *testing.T) {
	m := model(t, deep, "deep", 3, 4)
	c := graph.NewCoder(m, tape.Backend{})
	before, err := c.Encode(noise(12))
	fatal.If(t, err)
	before = slices.Clone(before)
	for i := range m.Parameters[0].Data {
		m.Parameters[0].Data[i] = 0
	}
	after, err := c.Encode(noise(12))
	fatal.If(t, err)
	if slices.Equal(before, after) {
		t.Error("the parameters changed, the codes did not")
	}
}

func TestAtomsAreTheLastWeightOfTheDecoder(t *testing.T) {
	m := model(t, deep, "deep", 3, 4)
	a := graph.NewCoder(m, tape.Backend{}).Atoms()
	w, _ := m.Parameter("decoder.1.weight")
	b, _ := m.Parameter("decoder.1.bias")
	if a == nil || a.Count != 5 || !slices.Equal(a.Shape, []int{3, 4}) || !slices.Equal(a.Values, w.Data) || !slices.Equal(a.Bias, b.Data) {
		t.Fatalf("got %+v, want the 5 rows of decoder.1", a)
	}
	a.Values[0], a.Bias[0] = 9, 9
	if w.Data[0] == 9 || b.Data[0] == 9 {
		t.Error("changing the copy of the atoms changed the model")
	}
}

// The weight of every layer of the encoder counts, and neither biases nor the decoder.
func TestTheWeightNormIsThatOfTheEncoder(t *testing.T) {
	m, want := model(t, deep, "deep", 3, 4), 0.0
	for i, p := range m.Parameters {
		for j := range p.Data {
			p.Data[j] = float32(i + j + 1)
			if strings.HasPrefix(p.Path, "encoder.") && strings.HasSuffix(p.Path, ".weight") {
				want += float64(p.Data[j]) * float64(p.Data[j])
			}
		}
	}
	if got := graph.NewCoder(m, tape.Backend{}).WeightNorm(); want == 0 || math.Abs(got-math.Sqrt(want)) > 1e-9*got {
		t.Errorf("got %g, want %g", got, math.Sqrt(want))
	}
}

func TestWithAtomsReplacesThemAndNothingElse(t *testing.T) {
	m := model(t, deep, "deep", 3, 4)
	c := graph.NewCoder(m, tape.Backend{})
	codes := noise(2 * 4)
	before, err := c.Decode(codes)
	fatal.If(t, err)
	expect.AnyError(t, expect.Err(c.WithAtoms(nil)), "no atoms were taken")
	a := c.Atoms()
	for i := range a.Values {
		a.Values[i] *= 2
	}
	for i := range a.Bias {
		a.Bias[i] -= 1
	}
	other, err := c.WithAtoms(a)
	fatal.If(t, err)
	got, err := other.Decode(codes)
	fatal.If(t, err)
	hidden := dense(t, m, "decoder.0", wide(codes), math.Tanh)
	plain := dense(t, m, "decoder.1", hidden, func(v float64) float64 { return v })
	b, _ := m.Parameter("decoder.1.bias")
	for i := range plain {
		bias := float64(b.Data[i%12])
		plain[i] = leaky(2*(plain[i]-bias) + bias - 1)
	}
	near(t, "outputs with other atoms", got, plain)
	after, err := c.Decode(codes)
	fatal.If(t, err)
	expect.Slice(t, before, after, "the coder that was asked has changed")
	expect.AnyError(t, expect.Err(c.WithAtoms(&metrics.Atoms{Values: a.Values[1:], Bias: a.Bias})), "atoms of another size were taken")
	expect.AnyError(t, expect.Err(c.WithAtoms(&metrics.Atoms{Values: a.Values})), "atoms without the bias were taken")
}

func TestAtomsSayWhetherTheCodesWeighThem(t *testing.T) {
	for decoder, want := range map[string]string{
		`{ kind = "dense" }`: "",
		`{ kind = "dense", bias = false }, { kind = "sigmoid" }`: "",
		`{ kind = "dense", units = 16 }, { kind = "dense" }`:     "deeper decoder", // the number of atoms equals the number of units
		`{ kind = "relu" }, { kind = "dense" }`:                  "deeper decoder",
		`{ kind = "max_plus" }`:                                  "maximum",
	} {
		m := model(t, "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 16 }]\ndecoder = ["+decoder+"]\n", "m", 8, 8)
		a := graph.NewCoder(m, tape.Backend{}).Atoms()
		if a == nil || a.Count != 16 || (want == "") != (a.Indirect == "") || !strings.Contains(a.Indirect, want) {
			t.Errorf("%s: %d atoms, %q, want %q", decoder, a.Count, a.Indirect, want)
		}
	}
}

func TestADecoderWithoutADictionaryHasNoAtoms(t *testing.T) {
	for _, c := range []struct {
		decoder    string
		atoms, has bool // has a bias
	}{
		{`{ kind = "sigmoid" }`, false, false},
		{`{ kind = "dense", bias = false }, { kind = "reshape", shape = [8, 8] }`, true, false},
		{`{ kind = "dense" }, { kind = "sigmoid" }`, true, true},
	} {
		m := model(t, "[model.m]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 64 }]\ndecoder = ["+c.decoder+"]\n", "m", 8, 8)
		a := graph.NewCoder(m, tape.Backend{}).Atoms()
		if (a != nil) != c.atoms || c.atoms && (a.Bias != nil) != c.has {
			t.Errorf("%s: got %+v", c.decoder, a)
		}
	}
}

// attentive declares a model with 1024 tokens of one feature, which have 1,048,576 attention weights per image.
const attentive = `
[model.attentive]
encoder = [{ kind = "reshape", shape = [1024, 1] }, { kind = "attention", heads = 1 }, { kind = "dense", units = 4 }]
[model.small]
encoder = [{ kind = "dense", units = 4 }]
`

// refusing is a back end that records the batch size of a program and does not compile it.
type refusing struct {
	ir.Backend
	batch int
}

func (r *refusing) Compile(p ir.Program) (ir.Runner[float32], error) {
	r.batch = p.(*graph.Program).Batch
	return nil, errors.New("compiles nothing")
}

// The attention weights of 1000 images would take 4 GB, and so would their gradients.
func TestLargeModelsAreCodedInSmallerBatches(t *testing.T) {
	for name, want := range map[string]int{"attentive": 128, "small": 1000} {
		m := model(t, attentive, name, 32, 32)
		expect.Equal(t, m.AtOnce(1000), want, name)
		images := make([]float32, 1000*m.Pixels())
		b := &refusing{}
		c := graph.NewCoder(m, b)
		if _, err := c.Encode(images); err == nil || b.batch != want {
			t.Errorf("%s: encodes %d images at once (%v), want %d", name, b.batch, err, want)
		}
		if _, err := c.InputGradient(images, images); err == nil || b.batch != want {
			t.Errorf("%s: attacks %d images at once (%v), want %d", name, b.batch, err, want)
		}
	}
}
