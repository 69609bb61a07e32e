package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestECEEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 9))
	c, s := newHeaded(r, 6, "class"), labelledSample(r, 2*batchSize+9, 6)
	rows, classes := labelledRows(t, c, s, "class")
	for _, bins := range []int{0, 1, 7, 15} {
		m := bins
		if m == 0 {
			m = 15
		}
		want := 0.0
		for bin := range m {
			low, high := float64(bin)/float64(m), float64(bin+1)/float64(m)
			n, right, confidence := 0.0, 0.0, 0.0
			for i, row := range rows {
				best, sum := 0, 0.0
				for k, x := range row {
					sum += math.Exp(x)
					if x > row[best] {
						best = k
					}
				}
				if p := math.Exp(row[best]) / sum; p > low && p <= high {
					n, confidence = n+1, confidence+p
					if best == classes[i] {
						right++
					}
				}
			}
			if n > 0 {
				want += n / float64(len(rows)) * math.Abs(right/n-confidence/n)
			}
		}
		close6(t, "ece", number(t, ofHead(t, c, s, &ECE{Bins: bins}), "ece"), want)
	}
}

func TestECEOfKnownConfidence(t *testing.T) {
	ln3 := float32(math.Log(3)) // against a logit of 0 a confidence of 3/4
	for name, c := range map[string]struct {
		logits []float32
		labels []int
		want   float64
	}{
		"sure and right":  {[]float32{1000, 0}, []int{0}, 0},
		"sure and wrong":  {[]float32{1000, 0}, []int{1}, 1},
		"three of four":   {[]float32{ln3, 0, ln3, 0, ln3, 0, ln3, 0}, []int{0, 0, 0, 1}, 0},
		"one of two":      {[]float32{ln3, 0, ln3, 0}, []int{0, 1}, 0.25},
		"unknown classes": {[]float32{ln3, 0, ln3, 0}, []int{0, -1}, 0.25},
	} {
		if got := added(t, &ECE{}, Subject{}, Batch{Logits: c.logits, Labels: c.labels})[0].Number; math.Abs(got-c.want) > 1e-7 {
			t.Errorf("%s: got %g, want %g", name, got, c.want)
		}
	}
	if got := added(t, &ECE{}, Subject{}, Batch{Logits: []float32{1, 2}, Labels: []int{-1}})[0]; got.Missing == "" {
		t.Errorf("without a label: %+v", got)
	}
	nan := float32(math.NaN())
	if got := added(t, &ECE{}, Subject{}, Batch{Logits: []float32{nan, nan}, Labels: []int{0}})[0]; !math.IsNaN(got.Number) {
		t.Errorf("of NaN: %+v", got)
	}
}
