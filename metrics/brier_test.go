package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestBrierOfKnownLogits(t *testing.T) {
	for name, c := range map[string]struct {
		logits []float32
		labels []int
		want   float64
	}{
		"equal logits":      {[]float32{3, 3, 3, 3}, []int{2}, 0.75},
		"certain and right": {[]float32{1e30, 0}, []int{0}, 0},
		"certain and wrong": {[]float32{1000, 0}, []int{1}, 2},
		"unknown class":     {[]float32{1000, 0, 5, 5}, []int{-1, 1}, 0.5},
		"one class only":    {[]float32{7}, []int{0}, 0},
	} {
		close6(t, name, added(t, metricOf("brier"), Subject{}, Batch{Logits: c.logits, Labels: c.labels})[0].Number, c.want)
	}
	if got := added(t, metricOf("brier"), Subject{}, Batch{Logits: []float32{1, 2}, Labels: []int{-1}})[0]; got.Missing == "" {
		t.Errorf("without a label: %+v", got)
	}
}

func TestBrierEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	c, s := newHeaded(r, 4, "class"), labelledSample(r, batchSize+9, 4)
	rows, classes := labelledRows(t, c, s, "class")
	want := 0.0
	for i, row := range rows {
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(x)
		}
		for j, x := range row {
			p := math.Exp(x) / sum
			if j == classes[i] {
				p--
			}
			want += p * p / float64(len(rows))
		}
	}
	close6(t, "brier", number(t, ofHead(t, c, s, metricOf("brier")), "brier"), want)
}
