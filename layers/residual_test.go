package layers_test

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// blockOf returns the settings of a block with these layers. Each layer is a table with its kind and settings.
func blockOf(t *testing.T, list ...map[string]any) map[string]any {
	block := make([]layers.Layer, len(list))
	for i, keys := range list {
		own := map[string]any{}
		for key, value := range keys {
			if key != "kind" {
				own[key] = value
			}
		}
		block[i] = fresh(t, keys["kind"].(string), own)()
	}
	return map[string]any{"layers": block}
}

func init() {
	conv := func(filters int, bias bool) layers.Layer {
		return &layers.Conv2D{Filtering: layers.Filtering{Filters: filters, Kernel: 2, Stride: 1, Padding: layers.Padding{Same: true}, Dilation: 1,
			Groups: 1, Activation: "tanh", Bias: bias, Init: &layers.HeNormal{}}}
	}
	dense := func(units int, bias bool) layers.Layer {
		return &layers.Dense{Units: units, Activation: "linear", Bias: bias, Init: &layers.HeNormal{}}
	}
	norm := func() layers.Layer { return &layers.BatchNorm{Momentum: 0.5, Epsilon: 0.1} }
	for _, block := range [][]layers.Layer{
		{&layers.Sigmoid{}},
		{dense(3, false), norm(), &layers.Tanh{}, dense(6, true)}, // a bias before a norm has no gradient
		{conv(3, true), norm(), conv(2, false)},
		{conv(2, true), conv(1, true)}, // an image (height, width) has one channel
		{&layers.Residual{Layers: []layers.Layer{&layers.Tanh{}, &layers.LayerNorm{Epsilon: 0.1}}}, &layers.Sigmoid{}},
	} {
		settings["residual"] = append(settings["residual"], map[string]any{"layers": block})
	}
	for _, block := range [][]layers.Layer{
		{&layers.Sigmoid{}},
		{dense(2, false), norm(), &layers.Tanh{}, dense(1, true)},
		{conv(3, true), norm(), conv(1, false)},
		{&layers.Concat{Layers: []layers.Layer{conv(2, true)}}, conv(2, true)},
	} {
		settings["concat"] = append(settings["concat"], map[string]any{"layers": block})
		settings["relative"] = append(settings["relative"], map[string]any{"layers": block})
	}
}

func TestResidualAddsTheOutputOfItsBlock(t *testing.T) {
	x := []float64{-2, -1, 0, 1, 2, 3}
	keys := blockOf(t, map[string]any{"kind": "tanh"}, map[string]any{"kind": "leaky_relu", "slope": 0.5})
	want := make([]float64, len(x))
	for i, v := range x {
		y := math.Tanh(v)
		want[i] = v + max(y, y/2)
	}
	wantNear(t, "residual", apply(t, fresh(t, "residual", keys)(), x, 2, []int{3}, true), want, 1e-12)
}

func TestResidualNamesTheParametersOfItsBlockByIndex(t *testing.T) {
	inner := fresh(t, "residual", blockOf(t, map[string]any{"kind": "dense", "units": 3, "bias": false}))()
	r := &layers.Residual{Layers: []layers.Layer{&layers.Relu{}, fresh(t, "dense", map[string]any{"units": 3})(), fresh(t, "batch_norm", nil)(), inner}}
	var names, states []string
	for _, p := range r.Parameters([]int{3}) {
		names = append(names, p.Name)
		if p.State {
			states = append(states, p.Name)
		}
	}
	expect.Slice(t, names, []string{"1.weight", "1.bias", "2.scale", "2.shift", "2.running_mean", "2.running_variance", "3.0.weight"})
	expect.Slice(t, states, []string{"2.running_mean", "2.running_variance"}, "state")
}

// The block runs in the mode of the model: noise and batch statistics are used in training only.
func TestTheBlockOfAResidualFollowsTheModeOfTheModel(t *testing.T) {
	keys := blockOf(t, map[string]any{"kind": "batch_norm", "momentum": 0.0}, map[string]any{"kind": "dropout", "rate": 0.5})
	x := []float64{1, 2, 3, 5}
	for _, training := range []bool{false, true} {
		g, err := gradcheck.Compile(gradcheck.Layer(fresh(t, "residual", keys)(), x, 4, []int{1}, training), false)
		fatal.If(t, err)
		fatal.If(t, g.Run())
		expect.Equal(t, g.Leaf("noise.1") != nil, training, "training", training, "noise")
		moved := g.Update("0.running_mean")
		if training != (moved != nil) || training && math.Abs(moved[0]-2.75) > 1e-12 {
			t.Errorf("training %v: the running mean becomes %v, want the batch's 2.75 in training", training, moved)
		}
		fatal.If(t, g.Close())
	}
}

func TestResidualBoundsItsOutputs(t *testing.T) {
	r := fresh(t, "residual", blockOf(t, map[string]any{"kind": "sigmoid"}))()
	expect.Equal(t, layers.OutputRange(r, layers.Interval{Low: -2, High: 3}), (layers.Interval{Low: -2, High: 4}))
}

func TestResidualNamesWhatDoesNotFit(t *testing.T) {
	conv := map[string]any{"kind": "conv2d", "filters": 3}
	for _, c := range []struct {
		keys map[string]any
		in   []int
		want string
	}{
		{nil, []int{4}, "layers: got none, want at least one"},
		{blockOf(t, conv), []int{4, 4, 2}, "layers: the block turns shape [4 4 2] into [4 4 3], want the same"},
		{blockOf(t, conv, map[string]any{"kind": "max_pool", "kernel": 9}), []int{4, 4, 3}, "layers[1]: kernel: "},
		{map[string]any{"layers": []layers.Layer{nil}}, []int{4}, "layers[0]: "},
	} {
		r := fresh(t, "residual", c.keys)()
		shape, err := r.OutputShape(c.in)
		expect.Error(t, err, c.want, c.in, "shape", shape, "and error")
	}
}

// Tokens are interpreted as images of one channel. The error of concat says how to join their features.
func TestConcatNamesTokensThatDoNotFit(t *testing.T) {
	c := fresh(t, "concat", blockOf(t, map[string]any{"kind": "token_dense", "units": 12}))()
	const want = "layers: the block turns shape [4 16] into [4 12]; both are read as images of one channel: to join tokens, reshape them to [4 1 16] first"
	if shape, err := c.OutputShape([]int{4, 16}); err == nil || err.Error() != want {
		t.Errorf("got shape %v and error %v, want %q", shape, err, want)
	}
	if shape, err := c.OutputShape([]int{4, 1, 16}); err != nil || !slices.Equal(shape, []int{4, 1, 28}) {
		t.Errorf("got shape %v (%v), want [4 1 28]", shape, err)
	}
}
