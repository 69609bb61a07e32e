package layers_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/laws/gradcheck"
	"tessera/layers"
)

// torch_layers.json contains results of PyTorch in float32, torch_layers64.json in float64, both written by torch_layers.py.
//
//go:embed testdata/torch_layers.json
var torchLayers []byte

//go:embed testdata/torch_layers64.json
var torchLayers64 []byte

// torchCase contains a layer, a batch, and PyTorch's output and derivatives of sum(y*seed).
type torchCase[T ops.Float] struct {
	Layer      string
	Settings   map[string]json.RawMessage
	Shape      []int
	Batch      int
	Training   bool
	X, Y, Seed []T
	Parameters map[string][]T
	Gradients  map[string][]T
	Updates    map[string][]T
}

func TestLayersAgreeWithPyTorch(t *testing.T) {
	t.Run("float32", func(t *testing.T) { compareLayers[float32](t, torchLayers) })
	t.Run("float64", func(t *testing.T) { compareLayers[float64](t, torchLayers64) })
}

func compareLayers[T ops.Float](t *testing.T, text []byte) {
	t.Helper()
	var cases []torchCase[T]
	fatal.If(t, json.Unmarshal(text, &cases))
	if len(cases) == 0 {
		t.Fatal("there are no cases")
	}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%d/%s", i, c.Layer), func(t *testing.T) {
			c.compare(t, fresh(t, c.Layer, settingsOf(t, c.Settings))())
		})
	}
}

// settingsOf reads a table of settings. The settings of a block are layers, each a table with its kind.
func settingsOf(t *testing.T, table map[string]json.RawMessage) map[string]any {
	t.Helper()
	keys := map[string]any{}
	for key, text := range table {
		var block []map[string]json.RawMessage
		if key != "layers" {
			keys[key] = setting(t, text)
		} else if err := json.Unmarshal(text, &block); err != nil {
			t.Fatal(err)
		}
		list := lists.Map(block, func(one map[string]json.RawMessage) map[string]any { return settingsOf(t, one) })
		if list != nil {
			keys[key] = blockOf(t, list...)[key]
		}
	}
	return keys
}

// setting converts a JSON value to the type of the TOML value.
func setting(t *testing.T, text json.RawMessage) any {
	t.Helper()
	var whole int
	if json.Unmarshal(text, &whole) == nil {
		return whole
	}
	var value any
	fatal.If(t, json.Unmarshal(text, &value))
	return value
}

func (c torchCase[T]) compare(t *testing.T, l layers.Layer) {
	build := gradcheck.Layer(l, c.X, c.Batch, c.Shape, c.Training)
	var y gorgonia.Value
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[T]) (*gorgonia.Node, error) {
		n, err := build(b)
		if err != nil {
			return nil, err
		}
		gorgonia.Read(n, &y)
		var chain ops.Chain
		return chain.Sum(chain.Mul(n, b.Leaf("seed", n.Shape().Clone(), c.Seed, true))), chain.Err()
	}, true)
	fatal.If(t, err)
	defer g.Close()
	for name, values := range c.Parameters {
		if n := copy(g.Leaf(name).Values, values); n != len(g.Leaf(name).Values) {
			t.Fatalf("%s has %d values, want %d", name, len(g.Leaf(name).Values), n)
		}
	}
	input := g.Leaf(gradcheck.Input).Values
	for run := range 3 { // the second sees black images
		if copy(input, c.X); run == 1 {
			clear(input)
		}
		fatal.If(t, g.Run())
		if run != 1 {
			c.wantRun(t, g, y.Data().([]T), l.Parameters(c.Shape))
		}
	}
}

// wantRun compares the results of a run with those of PyTorch.
func (c torchCase[T]) wantRun(t *testing.T, g *gradcheck.Graph[T], y []T, parameters []layers.Parameter) {
	t.Helper()
	wantClose(t, "output", y, c.Y)
	for name, want := range c.Gradients {
		if name == "input" {
			name = gradcheck.Input
		}
		wantClose(t, "gradient of "+name, g.Leaf(name).Gradient(), want)
	}
	for name, want := range c.Updates {
		wantClose(t, "next "+name, g.Update(name), want)
	}
	for _, p := range parameters {
		if _, ok := c.Parameters[p.Name]; !ok {
			t.Errorf("PyTorch's layer has no %q", p.Name)
		}
		if _, moves := c.Updates[p.Name]; moves != (g.Update(p.Name) != nil) {
			t.Errorf("%s: moved in PyTorch: %v", p.Name, moves)
		}
	}
}

// wantClose compares values with a tolerance relative to the largest expected value. Rounding is below 1e-5 of this value in
// float32, and below 1e-12 in float64.
func wantClose[T ops.Float](t *testing.T, what string, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	unit, tolerance := 0.0, 1e-5
	if _, ok := any(want).([]float64); ok {
		tolerance = 1e-12
	}
	for _, v := range want {
		unit = max(unit, math.Abs(float64(v)))
	}
	for i := range got {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= tolerance*unit) {
			t.Errorf("%s: element %d: got %v, PyTorch %v", what, i, got[i], want[i])
		}
	}
}

func TestBatchNormMovesItsAveragesInTrainingOnly(t *testing.T) {
	for _, c := range []struct {
		training       bool
		batch          int
		mean, variance []float64
	}{
		{true, 2, []float64{0.01 * 2, 0.01 * 3}, []float64{0.99 + 0.01*2, 0.99 + 0.01*8}}, // values 1, 3 and 1, 5
		{true, 1, []float64{0.01, 0.01}, nil},                                             // one value has no variance
		{false, 2, nil, nil},
	} {
		g, err := gradcheck.Compile(gradcheck.Layer(fresh(t, "batch_norm", nil)(),
			[]float64{1, 1, 3, 5}[:2*c.batch], c.batch, []int{2}, c.training), false)
		fatal.If(t, err)
		fatal.If(t, g.Run())
		for name, want := range map[string][]float64{"running_mean": c.mean, "running_variance": c.variance} {
			got := g.Update(name)
			if (got == nil) != (want == nil) || len(got) > 0 && !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
				t.Errorf("training %v, batch %d: %s becomes %v, want %v", c.training, c.batch, name, got, want)
			}
		}
		fatal.If(t, g.Close())
	}
}
