package losses_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/losses"
)

// torch_losses.json contains results of PyTorch and SciPy in float64, written by torch_losses.py.
//
//go:embed testdata/torch_losses.json
var torchLosses []byte

// torchCase contains a loss, a batch, and the value and gradient that PyTorch computes.
type torchCase struct {
	Loss                string
	Settings            map[string]any
	Shape               []int
	Batch               int
	X, Target, Gradient []float64
	Value               float64
}

// shaped is a Values whose images have any given shape.
type shaped struct {
	losses.Values
	shape      []int
	on, images *gorgonia.Node
}

func (s shaped) On() (*gorgonia.Node, error)      { return s.on, nil }
func (s shaped) Against() (*gorgonia.Node, error) { return s.images, nil }
func (s shaped) Teacher() (*gorgonia.Node, error) { return s.images, nil }
func (s shaped) Shape() ([]int, error)            { return s.shape, nil }
func (s shaped) Counts() (losses.Counts, error)   { return losses.Counts{}, nil }

// compile builds the loss of the case.
func (c torchCase) compile(t *testing.T) *gradcheck.Graph[float64] {
	settings := map[string]any{}
	for key, v := range c.Settings {
		settings[key] = v
		number, ok := v.(json.Number)
		if !ok {
			continue
		}
		if whole, err := number.Int64(); err == nil {
			settings[key] = int(whole)
		} else if settings[key], err = number.Float64(); err != nil {
			t.Fatal(err)
		}
	}
	l := configured(t, c.Loss, settings)
	g, err := gradcheck.Compile(func(b *gradcheck.Builder[float64]) (*gorgonia.Node, error) {
		rows := []int{c.Batch, len(c.X) / c.Batch}
		return losses.Build(l, l.On(), shaped{shape: c.Shape, on: b.Leaf("x", rows, c.X, false), images: b.Leaf("target", rows, c.Target, true)})
	}, true)
	fatal.If(t, err)
	return g
}

func TestLossesAgreeWithPyTorch(t *testing.T) {
	var cases []torchCase
	d := json.NewDecoder(bytes.NewReader(torchLosses))
	d.UseNumber() // whole numbers stay whole
	fatal.If(t, d.Decode(&cases))
	for i, c := range cases {
		t.Run(fmt.Sprint(i, c.Loss, c.Settings), func(t *testing.T) {
			g := c.compile(t)
			defer g.Close()
			fatal.If(t, g.Run())
			expect.Near(t, g.Output()[0], c.Value, 1e-12)
			for k, got := range g.Leaf("x").Gradient() {
				expect.Near(t, got, c.Gradient[k], 1e-12, "gradient of element", k)
			}
		})
	}
}
