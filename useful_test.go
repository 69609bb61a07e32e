package tessera_test

import (
	"context"
	"math/bits"
	"path/filepath"
	"slices"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/layers"
)

// The greedy count of useful units of trained models is that of the best of all subsets of their units.
func TestUsefulUnitsOfTrainedModelsEqualTheBestOfAllSubsets(t *testing.T) {
	seen := map[float64]bool{}
	for _, epochs := range []int{2, 20, 100} {
		m, err := tessera.Declare(config.Model{Dataset: config.Dataset{Source: &data.Bars{Count: 300}}, Train: config.Train{Epochs: epochs},
			Encoder: []config.Layer{{Kind: "dense", Layer: &layers.Dense{Units: 8, Activation: "relu"}}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := tessera.Train(context.Background(), m, tessera.Options{Out: filepath.Join(t.TempDir(), "run"), Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		measured, err := r.Evaluate(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := measured.Number("useful_units")
		if want := leastUseful(t, r, 0.01); !ok || got != float64(want) {
			t.Errorf("after %d epochs: got %v, want %d", epochs, got, want)
		}
		seen[got] = true
		_ = r.Close()
	}
	if len(seen) < 2 {
		t.Errorf("all models have the same number: %v", seen)
	}
}

// leastUseful is the least number of units whose others can be frozen at their means, by trying every subset.
func leastUseful(t *testing.T, r *tessera.Run, rise float64) int {
	t.Helper()
	images, err := r.Images(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	x := images.Float32()
	codes, err := r.Encode(x)
	if err != nil {
		t.Fatal(err)
	}
	k := r.Units()
	means := make([]float64, k)
	for i, h := range codes {
		means[i%k] += float64(h) / float64(images.Len())
	}
	failure := func(frozen uint) (sum float64) {
		h := slices.Clone(codes)
		for i := range h {
			if frozen>>(i%k)&1 == 1 {
				h[i] = float32(means[i%k])
			}
		}
		y, err := r.Decode(h)
		if err != nil {
			t.Fatal(err)
		}
		for i := range y {
			d := float64(x[i] - y[i])
			sum += d * d
		}
		return sum
	}
	least, most := k, (1+rise)*failure(0)
	for frozen := range uint(1) << k {
		if useful := k - bits.OnesCount(frozen); useful < least && failure(frozen) <= most {
			least = useful
		}
	}
	return least
}
