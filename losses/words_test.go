package losses_test

import (
	"math"
	"testing"

	"tessera/internal/fatal"
	"tessera/laws/gradcheck"
	"tessera/losses"
)

// The objectives of vectors of words are those of plain loops; a pair that never occurs has no weight.
func TestObjectivesOfVectorsOfWords(t *testing.T) {
	const batch, n = 4, 6
	z, x := make([]float64, batch*n), make([]float64, batch*n)
	for i := range z {
		z[i], x[i] = 3*math.Sin(float64(i*i)), float64(i*i%11)*30
	}
	minus := func(z float64) float64 { return math.Log1p(math.Exp(z)) } // -log sigmoid(-z)
	want := map[losses.Loss]float64{}
	for _, l := range []*losses.GloVe{{XMax: 100, Alpha: 0.75}, {XMax: 20, Alpha: 0.5}} {
		for i, count := range x {
			if count > 0 {
				want[l] += math.Min(1, math.Pow(count/l.XMax, l.Alpha)) * math.Pow(z[i]-math.Log(count), 2) / (batch * n)
			}
		}
	}
	for _, l := range []*losses.NegativeSampling{{Negatives: 5}, {Negatives: 2}} {
		for i, z := range z {
			if i%n == 0 {
				want[l] += minus(-z) / batch
			} else {
				want[l] += l.Negatives / (n - 1) * minus(z) / batch
			}
		}
	}
	for l, want := range want {
		g, err := gradcheck.Compile(gradcheck.Loss(l, z, x, batch, n), true)
		fatal.If(t, err)
		defer g.Close()
		fatal.If(t, g.Run())
		if got := g.Output()[0]; differs(got, want) {
			t.Errorf("%+v: got %v, want %v", l, got, want)
		}
	}
}
