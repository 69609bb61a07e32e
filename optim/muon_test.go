package optim_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/optim"
)

// Five steps in float32 differ from PyTorch's in float64 by at most 2e-6 * (1+|w|).
func TestMuonAgreesWithPyTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/torch_muon.json")
	fatal.If(t, err)
	var cases []struct {
		Name      string
		Shape     []int
		Settings  map[string]any
		Start     []float64
		Gradients [][]float64
		Weights   [][]float64
	}
	fatal.If(t, json.Unmarshal(text, &cases))
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			if n, ok := c.Settings["iterations"].(float64); ok {
				c.Settings["iterations"] = int(n)
			}
			o := declared(t, "muon", c.Settings).(*optim.Muon)
			if !o.Takes(c.Shape) {
				t.Fatalf("does not take %v", c.Shape)
			}
			w := single(c.Start)
			state := [][]float32{make([]float32, len(w))}
			for step, g := range c.Gradients {
				o.UpdateWhole(w, single(g), c.Shape, state, o.LearningRate(), step+1)
				for i, want := range c.Weights[step] {
					if got := float64(w[i]); !(math.Abs(got-want) <= 2e-6*(1+math.Abs(want))) {
						t.Fatalf("step %d: weight %d is %v, PyTorch's %v", step+1, i, got, want)
					}
				}
			}
		})
	}
}

// Parameters that are not matrices are updated by adamw with a separate rate.
func TestMuonMovesVectorsByAdamW(t *testing.T) {
	muon, adamw := &optim.Muon{Rate: 0.5, OtherRate: 0.01}, &optim.AdamW{Rate: 0.01, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	for _, shape := range [][]int{nil, {7}, {1, 7}, {7, 1}} {
		if muon.Takes(shape) {
			t.Errorf("takes %v", shape)
		}
	}
	a, b := []float32{1, -2, 3}, []float32{1, -2, 3}
	s, u := [][]float32{make([]float32, 3), make([]float32, 3)}, [][]float32{make([]float32, 3), make([]float32, 3)}
	for step := 1; step <= 3; step++ {
		g := []float32{0.1, float32(step), -3}
		muon.Update(a, g, s, 0.25, step) // half of the base rate
		adamw.Update(b, g, u, 0.005, step)
	}
	expect.Slice(t, a, b)
}
