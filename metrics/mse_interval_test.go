package metrics

import (
	"context"
	"math"
	"testing"

	"tessera/internal/fatal"
)

// The interval of a mean of many values is about that of the normal approximation, has the same bits again, and is a point if
// all images have the same error.
func TestTheBootstrapOfTheErrorIsAboutNormal(t *testing.T) {
	const n, pixels = 2000, 2
	b := &Batch{Images: make([]float32, n*pixels), Outputs: make([]float32, n*pixels)}
	sum, squares := 0.0, 0.0
	for i := range n {
		y := float32(i%40) / 10
		b.Outputs[i*pixels] = y // one pixel of two is wrong
		e := float64(y) * float64(y) / pixels
		sum, squares = sum+e, squares+e*e
	}
	interval := func(m *MSEInterval) (low, high float64) {
		meter, err := m.Start(&Subject{Shape: []int{pixels}})
		fatal.If(t, err)
		for _, half := range []*Batch{{Images: b.Images[:n], Outputs: b.Outputs[:n]}, {Images: b.Images[n:], Outputs: b.Outputs[n:]}} {
			fatal.If(t, meter.Add(half))
		}
		v, err := meter.Values(context.Background())
		fatal.If(t, err)
		return v[0].Number, v[1].Number
	}
	mean := sum / n
	half := 1.96 * math.Sqrt((squares/n-mean*mean)/n)
	low, high := interval(&MSEInterval{Resamples: 1000, Seed: 1})
	if math.Abs(low-(mean-half)) > 0.15*half || math.Abs(high-(mean+half)) > 0.15*half {
		t.Errorf("got [%g, %g], want about [%g, %g]", low, high, mean-half, mean+half)
	}
	if again, _ := interval(&MSEInterval{Resamples: 1000, Seed: 1}); again != low {
		t.Errorf("got %v and %v with one seed", low, again)
	}
	if other, _ := interval(&MSEInterval{Resamples: 1000, Seed: 2}); other == low {
		t.Error("the seed has no effect")
	}
	for i := range n {
		b.Outputs[i*pixels] = 2
	}
	if low, high := interval(&MSEInterval{Resamples: 10, Seed: 1}); low != 2 || high != 2 {
		t.Errorf("equal errors: [%g, %g], want [2, 2]", low, high)
	}
}
