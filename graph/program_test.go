package graph_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/config"
	"tessera/config/part"
	"tessera/graph"
	"tessera/graph/ops"
	"tessera/graph/tape"
	"tessera/internal/engine/ir"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
	"tessera/losses"
)

// viewed declares a model whose terms read views, a head and images.
const viewed = `
[model.viewed]
encoder = [{ kind = "dense", units = 4, activation = "sigmoid" }]
view = [{ augment = [] }]
head.h.layers = [{ kind = "dense", units = 3 }]
loss = [{ kind = "mse" }, { kind = "nt_xent", on = "h" }]
`

// termOf is a loss term whose Build is a function of the test.
type termOf struct {
	reads losses.Reads
	on    string
	build func(v losses.Values) (*gorgonia.Node, error)
}

func (t termOf) On() string                                    { return t.on }
func (t termOf) Reads() losses.Reads                           { return t.reads }
func (t termOf) Build(v losses.Values) (*gorgonia.Node, error) { return t.build(v) }

// alone builds the program of a training step of two images with the single term l.
func alone(t *testing.T, l losses.Loss) (*graph.Program, error) {
	t.Helper()
	m := model(t, viewed, "viewed", 4, 4)
	m.Spec.Losses = m.Spec.Losses[:1]
	m.Spec.Losses[0].Loss, m.Spec.Losses[0].On = l, l.On()
	return m.Program(graph.Request{Batch: 2, Want: []string{graph.Loss}})
}

func inputs(p *graph.Program) (names []string) {
	for _, in := range p.Inputs {
		names = append(names, fmt.Sprint(in.Name, in.Shape))
	}
	return names
}

// mean returns the mean of nodes of any shapes.
func mean(of ...func() (*gorgonia.Node, error)) (sum *gorgonia.Node, err error) {
	var c ops.Chain
	for _, f := range of {
		if m := c.Mean(c.Do("read", f)); sum == nil {
			sum = m
		} else {
			sum = c.Add(sum, m)
		}
	}
	return sum, c.Err()
}

// A term may compare values of the views with the images, which need not be encoded.
func TestATermReadsViewsAndImages(t *testing.T) {
	p, err := alone(t, termOf{losses.Reads{Per: losses.Batch, On: true, Views: true, Against: losses.Images}, "output",
		func(v losses.Values) (*gorgonia.Node, error) { return mean(v.On, v.Against) }})
	fatal.If(t, err)
	expect.Equal(t, fmt.Sprint(inputs(p)), "[input[2 4 4] views[4 4 4]]", "the inputs")
}

// The Jacobian of a value of the views is taken with respect to the views. The penalty of both views is the mean of the
// penalties of the single views.
func TestTheJacobianOfAValueOfViewsIsWithRespectToTheViews(t *testing.T) {
	contractive := &losses.Contractive{Probes: 1}
	value := func(views bool, images []float32) float64 {
		p, err := alone(t, termOf{losses.Reads{On: true, Jacobian: true, Views: views}, "code", contractive.Build})
		fatal.If(t, err)
		r, err := tape.Backend{}.Compile(p)
		fatal.If(t, err)
		defer r.Close()
		fatal.If(t, r.Bind(0, images))
		fatal.If(t, r.Run())
		for i, tap := range p.Taps {
			if tap.Name == graph.Loss {
				return float64(r.Tap(i)[0])
			}
		}
		t.Fatal("no loss")
		return 0
	}
	images := lists.Of(4*16, func(i int) float32 { return float32(i%7) / 7 })
	want := (value(false, images[:32]) + value(false, images[32:])) / 2
	expect.Near(t, value(true, images), want, 1e-6*want)
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	m := model(t, viewed, "viewed", 4, 4)
	for want, r := range map[string]graph.Request{
		"batch: got 0":                            {},
		"of: got -3, want >= 2":                   {Batch: 2, Of: -3, Want: []string{graph.Loss}},
		"of: got 1, want >= 2":                    {Batch: 2, Of: 1, Want: []string{graph.Loss}},
		"want: got both \"loss\" and":             {Batch: 2, Want: []string{graph.Loss, graph.InputGradient}},
		"has no value \"first\"":                  {Batch: 2, Want: []string{"second", "third", "first"}},
		"given: the model has no value \"first\"": {Batch: 2, Given: []string{"first"}, Want: []string{"output"}},
	} {
		expect.Error(t, expect.Err(m.Program(r)), want, r)
	}
}

// A coder has no views and no labels. It returns an error for values that only training programs compute.
func TestACoderRefusesUnknownValues(t *testing.T) {
	c := graph.NewCoder(model(t, viewed, "viewed", 4, 4), tape.Backend{})
	for _, name := range []string{graph.Loss, graph.InputGradient, "nothing", ""} {
		_, err := c.Value(name, make([]float32, 32))
		expect.Error(t, err, fmt.Sprintf(`got value %q, want one of "code", "output", "h"`, name), name)
	}
}

func TestAPortionRefusesLayersThatDifferBetweenEvaluations(t *testing.T) {
	file, err := config.Load("models.toml", []byte(`
[model.noisy]
encoder = [{ kind = "dropout" }, { kind = "dense", units = 4 }]
[model.normed]
encoder = [{ kind = "dense", units = 4 }, { kind = "batch_norm" }]
[model.quiet]
encoder = [{ kind = "dropout", rate = 0.0 }, { kind = "dense", units = 4 }]
[model.probed]
encoder = [{ kind = "dense", units = 6 }, { kind = "dense", units = 4 }]
loss    = [{ kind = "mse" }, { kind = "contractive" }]
`))
	fatal.If(t, err)
	for name, want := range map[string]string{"noisy": "encoder.0.noise is noise", "normed": "encoder.1.running_mean is updated", "quiet": "", "probed": ""} {
		spec, err := file.Model(name)
		fatal.If(t, err)
		m, err := graph.New(spec, []int{4, 4})
		fatal.If(t, err)
		_, err = m.Program(graph.Request{Batch: 3, Of: 10, Want: []string{graph.Loss}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
		expect.AnyError(t, expect.Err(m.Program(graph.Request{Batch: 3, Of: 2, Want: []string{graph.Loss}})), name, "3 of 2 images are taken")
		expect.AnyError(t, expect.Err(m.Program(graph.Request{Batch: 10, Given: []string{"code"}, Want: []string{graph.Loss}})), name, "there are no penalties, and yet a program of them")
	}
}

// The Jacobian of a linear layer does not depend on its bias.
const withoutGradient = `[model.m]
encoder = [{ kind = "softmax" }, { kind = "dense", units = 5, activation = "linear" }]
decoder = []
loss    = [{ kind = "contractive" }]
optimizer = { kind = "sgd" }
`

func TestAParameterWithoutAGradientIsNamed(t *testing.T) {
	f, err := config.Load("test.toml", []byte(withoutGradient))
	fatal.If(t, err)
	spec, err := f.Model("m")
	fatal.If(t, err)
	err = graph.Check(spec, []int{4, 4})
	if setting, ok := errors.AsType[part.KeyError](err); !ok || setting.Key != "loss" || !strings.Contains(err.Error(), "no gradient with respect to encoder.1.bias") {
		t.Errorf("got %v", err)
	}
	freeze, err := config.ParseSet(`freeze=["encoder.1.bias"]`)
	fatal.If(t, err)
	frozen, err := f.Model("m", freeze)
	if err == nil {
		err = graph.Check(frozen, []int{4, 4})
	}
	expect.NoError(t, err, "frozen")
}

// wrong is a layer whose Apply violates its declaration.
type wrong struct {
	How string `toml:"how"`
}

func init() {
	layers.Registry.Register("wrong", "does not do what it declares", func() layers.Layer { return &wrong{} })
}

func (*wrong) OutputShape(in []int) ([]int, error) { return in, nil }
func (*wrong) Parameters([]int) []layers.Parameter { return nil }
func (w *wrong) Apply(_ layers.Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	switch w.How {
	case "nothing":
		return nil, nil
	case "panic":
		panic("boom")
	}
	return ops.Reshape(x, x.Shape()[0], 2, 2)
}

func TestAWrongLayerIsNamed(t *testing.T) {
	for how, says := range map[string]string{
		"nothing": "encoder.1 (wrong): its Apply returns no node",
		"panic":   "encoder.1 (wrong): boom",
		"shape":   "encoder.1 (wrong): its Apply gives [3 2 2], but its OutputShape says [3 4]",
	} {
		f, err := config.Load("models.toml", []byte(`
[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }, { kind = "wrong", how = "`+how+`" }]
`))
		fatal.If(t, err)
		spec, err := f.Model("m")
		fatal.If(t, err)
		m, err := graph.New(spec, []int{8, 8})
		if err == nil {
			_, err = m.Program(graph.Request{Batch: 3})
		}
		expect.Error(t, err, says, how)
	}
}

const layered = `
[model.layered]
encoder = [{ kind = "residual", layers = [{ kind = "batch_norm" }] }, { kind = "dense", units = 4, activation = "relu" }]
decoder = [{ kind = "dense" }]
`

// Every value that a layer computes has the name of the layer, also within a block. Leaves have no layer.
func TestValuesNameTheirLayer(t *testing.T) {
	p, err := model(t, layered, "layered", 2, 3).Program(graph.Request{Batch: 5})
	fatal.If(t, err)
	m, err := p.Module()
	fatal.If(t, err)
	var order []string
	for _, v := range m.Values() {
		if _, leaf := v.Op.(ir.Leaf); leaf == (v.Layer != "") {
			t.Errorf("%v%v has the layer %q", v.Op, v.Shape, v.Layer)
		}
		if v.Layer != "" && !slices.Contains(order, v.Layer) {
			order = append(order, v.Layer)
		}
	}
	expect.Slice(t, order, []string{"encoder.0 (residual)", "encoder.1 (dense)", "decoder.0 (dense)"})
}

// The layers of a block have separate parameters, state and noise, under the path of the block.
func TestProgramsContainTheParametersOfABlock(t *testing.T) {
	f, err := config.Load("models.toml", []byte(`
[model.m]
dataset = "bars"
encoder = [
  { kind = "residual", layers = [{ kind = "dropout" }, { kind = "batch_norm" }, { kind = "dropout" }] },
  { kind = "dropout" },
  { kind = "dense", units = 4, bias = false },
]
`))
	fatal.If(t, err)
	spec, err := f.Model("m")
	fatal.If(t, err)
	m, err := graph.New(spec, []int{8, 8})
	fatal.If(t, err)
	p, err := m.Program(graph.Request{Batch: 3, Training: true})
	fatal.If(t, err)
	var inputs, parameters, moved []string
	for _, in := range p.Inputs {
		inputs = append(inputs, in.Name)
	}
	for _, b := range p.Parameters {
		parameters = append(parameters, b.Path)
	}
	for _, u := range p.Updates {
		moved = append(moved, u.Parameter.Path)
	}
	for _, c := range []struct {
		what      string
		got, want []string
	}{
		{"inputs", inputs, []string{"input", "encoder.0.noise", "encoder.0.noise.2", "encoder.1.noise"}},
		{"parameters", parameters, []string{"encoder.0.1.running_mean", "encoder.0.1.running_variance", "encoder.0.1.scale", "encoder.0.1.shift",
			"encoder.2.weight", "decoder.0.weight", "decoder.0.bias"}},
		{"updates", moved, []string{"encoder.0.1.running_mean", "encoder.0.1.running_variance"}},
	} {
		expect.Slice(t, c.got, c.want, c.what)
	}
}
