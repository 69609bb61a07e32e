package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"tessera/config/part/table"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
)

func TestAsymmetricEncoderHas6742132ParametersAnd2304OfThemAreState(t *testing.T) {
	l, err := model(t, load(t, string(shipped(t))), "asym").Layout([]int{28, 28})
	fatal.If(t, err)
	total, state := 0, 0
	for _, p := range l.Parameters() {
		total += product(p.Shape)
		if p.State {
			state += product(p.Shape)
		}
	}
	expect.Equal(t, total, 6742132)
	expect.Equal(t, state, 2304)
}

func TestLayoutOfTheStudysModelHas157684Parameters(t *testing.T) {
	m := model(t, load(t, string(shipped(t))), "shallow")
	l, err := m.Layout([]int{28, 28})
	fatal.If(t, err)
	total := 0
	for _, p := range l.Parameters() {
		total += product(p.Shape)
	}
	expect.Equal(t, total, 157684)
	if !reflect.DeepEqual(l.Code, []int{100}) || !reflect.DeepEqual(l.Decoder[0].Out, []int{784}) {
		t.Errorf("code %v, output %v", l.Code, l.Decoder[0].Out)
	}
	expect.Equal(t, l.Decoder[1].Path, "decoder.1", l.Decoder[1])
	expect.Equal(t, l.Decoder[1].Kind, "leaky_relu", l.Decoder[1])
}

// TestOpenUnitsFollowTheInput checks that layouts of one model can be computed for several shapes, one after the other.
func TestOpenUnitsFollowTheInput(t *testing.T) {
	m := model(t, load(t, "[[model.m.encoder]]\nkind = \"dense\"\nunits = 3\n"), "m")
	for _, shape := range [][]int{{32, 32}, {5, 4, 3}, {7}} {
		l, err := m.Layout(shape)
		fatal.If(t, err)
		expect.Equal(t, l.Decoder[0].Out[0], product(shape), shape)
	}
}

// TestGivenUnitsAreNeverChanged checks that only numbers of outputs that the declaration omits depend on the input.
func TestGivenUnitsAreNeverChanged(t *testing.T) {
	m := model(t, load(t, `
[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 3 }]
decoder = [{ kind = "dense", units = 64 }]
`), "m")
	_, err := m.Layout([]int{28, 28})
	if all, ok := errors.AsType[*table.Diagnostics](err); !ok || len(all.List) != 1 {
		t.Fatalf("got %v", err)
	}
	want := `models.toml:5:38: model "m": decoder[0] (dense): the decoder gives 64 values, but the images have 28x28 = 784`
	if got, _, _ := strings.Cut(err.Error(), "\n"); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestLayoutOfAModelMadeInGo(t *testing.T) {
	m := &Model{Name: "m", Kind: Autoencoder,
		Encoder: []Layer{{Kind: "dense", Layer: &layers.Dense{Units: 3, Activation: "relu", Init: &layers.GlorotUniform{}}}},
		Decoder: []Layer{{Kind: "dense", Layer: &layers.Dense{Activation: "linear", Bias: true, Init: &layers.GlorotUniform{}}}},
	}
	l, err := m.Layout([]int{2, 2})
	fatal.If(t, err)
	got := lists.Map(l.Parameters(), func(p ParameterPath) string { return fmt.Sprint(p.Path, p.Shape) })
	want := []string{"encoder.0.weight[4 3]", "decoder.0.weight[3 4]", "decoder.0.bias[4]"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	m.Encoder[0].Layer = &layers.Dense{Activation: "relu", Init: &layers.GlorotUniform{}}
	if _, err := m.Layout([]int{2, 2}); err == nil || err.Error() != `model "m": encoder[0] (dense): missing key "units"`+"\n    give the number of outputs" {
		t.Errorf("got %v", err)
	}
}

func TestGlobsMatchParameterPaths(t *testing.T) {
	for _, c := range []struct {
		glob, path string
		want       bool
	}{
		{"decoder.*.weight", "decoder.0.weight", true},
		{"decoder.*.weight", "decoder.12.weight", true},
		{"decoder.*.weight", "encoder.0.weight", false},
		{"decoder.*.weight", "decoder.0.bias", false},
		{"*.weight", "encoder.3.weight", true},
		{"decoder.*.weight", "decoder.0.layers.1.weight", true},
		{"encoder.0.weight", "encoder.0.weight", true},
		{"encoder.?.weight", "encoder.10.weight", false},
		{"encoder.[01].*", "encoder.1.bias", true},
		{"encoder.[01", "encoder.1.bias", false},
	} {
		expect.Equal(t, MatchPath(c.glob, c.path), c.want, c.glob, "on", c.path)
	}
	l, err := model(t, load(t, string(shipped(t))), "deep-dense").Layout([]int{28, 28})
	fatal.If(t, err)
	want := []string{"encoder.0.weight", "encoder.1.weight", "encoder.2.weight", "decoder.0.weight"}
	if got := l.MatchParameters("*.weight"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTermNamesCountRepeatedKinds(t *testing.T) {
	m := &Model{Losses: []Loss{{Kind: "mse"}, {Kind: "l1"}, {Kind: "mse"}, {Kind: "mse"}}}
	got := lists.Of(len(m.Losses), func(i int) string { return m.TermName(i) })
	if want := []string{"mse", "l1", "mse.2", "mse.3"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnknownShapesAreNotJudged checks that, without the files of a data set, exactly the checks that depend on them
// are skipped.
func TestUnknownShapesAreNotJudged(t *testing.T) {
	f := load(t, `
[model.m]
dataset = { name = "png", images = "no such folder" }
encoder = [{ kind = "reshape", shape = [9, 9] }, { kind = "dense", units = 5 }]
[[model.m.constraint]]
kind = "nonneg"
`)
	m := model(t, f, "m")
	if strings.Contains(string(m.Text()), "units = 0") {
		t.Errorf("units that are open are written out:\n%s", m.Text())
	}
	checkFillRoundTrip(t, m)
	expect.NoError(t, expect.Err(m.Layout([]int{9, 9})))
	expect.AnyError(t, expect.Err(m.Layout([]int{9, 8})), "81 values out of 72")
}

// The layer that decides the size of a decoder's output is named, also if it has filters and no units.
func TestAWrongSizeIsThatOfTheLayerThatDecidesIt(t *testing.T) {
	f := load(t, `
[model.m]
dataset = "bars"
encoder = [{ kind = "dense", units = 4 }]
decoder = [{ kind = "dense", units = 32 }, { kind = "reshape", shape = [4, 4, 2] }, { kind = "conv2d_transpose", filters = 3, stride = 3 }]
`)
	expect.Error(t, f.Check(), "decoder[2] (conv2d_transpose): the decoder gives 12x12x3 = 432 values", "of a layer without units")
}
