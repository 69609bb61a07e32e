package gradcheck

import (
	_ "embed"
	"encoding/json"
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/layers"
	"tessera/losses"
)

// peer.json contains results of PyTorch, written by peer.py.
//
//go:embed testdata/peer.json
var peerJSON []byte

type peerCase struct{ X, Seed, Target, Value, Gradient []float64 }

type peerFile struct {
	Rows, Columns       int
	Activations, Losses map[string]peerCase
}

// wantPeer compares the value of a scalar expression, and its gradient with respect to the first leaf, with expected ones.
func wantPeer(t *testing.T, e Expression[float64], value float64, gradient []float64) {
	t.Helper()
	g, err := Compile(e, true)
	fatal.If(t, err)
	defer g.Close()
	fatal.If(t, g.Run())
	expect.Near(t, g.Output()[0], value, 1e-8*(1+math.Abs(value)))
	for i, got := range g.Leaves[0].Gradient() {
		expect.Near(t, got, gradient[i], 1e-8*(1+math.Abs(gradient[i])), "derivative", i)
	}
}

func TestActivationsAndLossesAgreeWithPyTorch(t *testing.T) {
	var peer peerFile
	fatal.If(t, json.Unmarshal(peerJSON, &peer))
	for name, c := range peer.Activations {
		t.Run(name, func(t *testing.T) {
			want := 0.0
			for i, v := range c.Value {
				want += v * c.Seed[i]
			}
			wantPeer(t, func(b *Builder[float64]) (*gorgonia.Node, error) {
				a, err := layers.ActivationName(name).Activation()
				if err != nil {
					return nil, err
				}
				shape := []int{peer.Rows, peer.Columns}
				y, err := a.Activate(b.Leaf("x", shape, c.X, false))
				if err != nil {
					return nil, err
				}
				var chain ops.Chain
				return chain.Sum(chain.Mul(y, b.Leaf("seed", shape, c.Seed, true))), chain.Err()
			}, want, c.Gradient)
		})
	}
	for name, c := range peer.Losses {
		t.Run(name, func(t *testing.T) {
			e, ok := losses.Registry.Lookup(name)
			if !ok {
				t.Fatal("is not registered")
			}
			wantPeer(t, Loss(e.New(), c.X, c.Target, peer.Rows, peer.Columns), c.Value[0], c.Gradient)
		})
	}
}
