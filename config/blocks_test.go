package config

import (
	"reflect"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
)

// blocks declares a model with a block that contains another block.
const blocks = `
[[model.m.encoder]]
kind = "conv2d"
filters = 3
bias = false
[[model.m.encoder]]
kind = "residual"
[[model.m.encoder.layers]]
kind = "conv2d"
filters = 5
[[model.m.encoder.layers]]
kind = "residual"
layers = [{ kind = "batch_norm", epsilon = 0.5 }, { kind = "leaky_relu" }]
[[model.m.encoder.layers]]
kind = "conv2d"
filters = 3
init = { kind = "normal", stddev = 0.5 }
[[model.m.encoder]]
kind = "dense"
units = 4
`

func TestFilledTextKeepsBlocks(t *testing.T) {
	checkFillRoundTrip(t, model(t, load(t, blocks), "m"))
}

func TestSetReachesIntoBlocks(t *testing.T) {
	f := load(t, blocks)
	inner := func(m *Model, i int) layers.Layer { return m.Encoder[1].Layer.(*layers.Residual).Layers[i] }
	for _, c := range []struct {
		sets []string
		get  func(m *Model) any
		want any
	}{
		{[]string{"encoder.1.layers.0.filters=7"}, func(m *Model) any { return inner(m, 0).(*layers.Conv2D).Filters }, 7},
		{[]string{"encoder.1.layers.1.layers.0.epsilon=0.25"},
			func(m *Model) any { return inner(m, 1).(*layers.Residual).Layers[0] }, &layers.BatchNorm{Momentum: 0.99, Epsilon: 0.25}},
		{[]string{"encoder.1.layers.2.init.stddev=2.0"}, func(m *Model) any { return inner(m, 2).(*layers.Conv2D).Init }, &layers.Normal{Stddev: 2}},
		{[]string{"encoder.1.layers.1.kind=leaky_relu"}, func(m *Model) any { return inner(m, 1) }, &layers.LeakyRelu{Slope: 0.1}},
		{[]string{`encoder.1.layers=[{kind="relu"}]`}, func(m *Model) any { return inner(m, 0) }, &layers.Relu{}},
	} {
		m := model(t, f, "m", c.sets...)
		if got := c.get(m); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: got %+v, want %+v", c.sets, got, c.want)
		}
		checkFillRoundTrip(t, m)
	}
}

func TestParametersOfBlocksArePathsThatGlobsMatch(t *testing.T) {
	l, err := model(t, load(t, blocks), "m").Layout([]int{8, 8})
	fatal.If(t, err)
	for glob, want := range map[string][]string{
		"encoder.*.weight":  {"encoder.0.weight", "encoder.1.0.weight", "encoder.1.2.weight", "encoder.2.weight"},
		"encoder.1.*":       {"encoder.1.0.weight", "encoder.1.0.bias", "encoder.1.1.0.scale", "encoder.1.1.0.shift", "encoder.1.1.0.running_mean", "encoder.1.1.0.running_variance", "encoder.1.2.weight", "encoder.1.2.bias"},
		"encoder.1.1.0.sc*": {"encoder.1.1.0.scale"},
	} {
		expect.Slice(t, l.MatchParameters(glob), want, glob)
	}
}

// The layers of a block follow the block, and every parameter belongs to one layer.
func TestLayersOfALayoutIncludeThoseOfBlocks(t *testing.T) {
	l, err := model(t, load(t, blocks), "m").Layout([]int{8, 8})
	fatal.If(t, err)
	var got, paths []string
	for p := range l.Layers() {
		got = append(got, p.Path+" "+p.Kind+" "+shapeText(p.Out))
		for _, q := range p.Parameters {
			paths = append(paths, p.Path+"."+q.Name)
		}
	}
	want := []string{"encoder.0 conv2d 8x8x3 = 192", "encoder.1 residual 8x8x3 = 192", "encoder.1.0 conv2d 8x8x5 = 320",
		"encoder.1.1 residual 8x8x5 = 320", "encoder.1.1.0 batch_norm 8x8x5 = 320", "encoder.1.1.1 leaky_relu 8x8x5 = 320",
		"encoder.1.2 conv2d 8x8x3 = 192", "encoder.2 dense 4", "decoder.0 dense 64"}
	expect.Slice(t, got, want)
	all := lists.Map(l.Parameters(), func(p ParameterPath) string { return p.Path })
	expect.Slice(t, paths, all, "parameters of the layers")
}
