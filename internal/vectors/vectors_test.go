package vectors

import (
	"math"
	"testing"

	"tessera/internal/expect"
)

func TestVectors(t *testing.T) {
	a, b := []float32{3, 0, 4}, []float32{1, 2, 2}
	p := make([]float64, 2)
	Softmax(p, []float32{1000, 1000 + float32(math.Ln2)}) // no overflow
	for name, of := range map[string][2]float64{
		"Dot":              {Dot(a, b), 11},
		"Norm":             {Norm(a), 5},
		"Cosine":           {Cosine(a, b), 11.0 / 15},
		"Cosine with 0":    {Cosine(a, make([]float32, 3)), 0},
		"FastDot of 6":     {FastDot([]float64{1, 2, 3, 4, 5, 6}, []float64{1, 1, 1, 1, 10, 100, 9}), 660},
		"FastDot of none":  {FastDot(nil, nil), 0},
		"Wide":             {Wide([]float32{0.5, -2})[1], -2},
		"Softmax, first":   {p[0], 1.0 / 3},
		"Softmax, the sum": {p[0] + p[1], 1},
	} {
		expect.Near(t, of[0], of[1], 1e-5, name)
	}
}

func TestOnlyFiniteLogitsHaveAClass(t *testing.T) {
	if class, err := Class([]float32{-1, 2, 2, 0}); err != nil || class != 1 {
		t.Errorf("got class %d, %v, want the first of the largest, 1", class, err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for i := range 3 {
			logits := []float32{1, 2, 3}
			logits[i] = float32(bad)
			expect.Is(t, expect.Err(Class(logits)), ErrNoClass, logits)
		}
	}
}
