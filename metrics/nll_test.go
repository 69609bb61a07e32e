package metrics

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestNLLEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	c, s := newHeaded(r, 4, "class"), labelledSample(r, batchSize+9, 4)
	rows, classes := labelledRows(t, c, s, "class")
	want := 0.0
	for i, row := range rows {
		sum := 0.0
		for _, x := range row {
			sum += math.Exp(x)
		}
		want -= math.Log(math.Exp(row[classes[i]])/sum) / float64(len(rows))
	}
	close6(t, "nll", number(t, ofHead(t, c, s, metricOf("nll")), "nll"), want)
}

func TestNLLOfKnownLogits(t *testing.T) {
	for name, c := range map[string]struct {
		logits []float32
		labels []int
		want   float64
	}{
		"equal logits":   {[]float32{3, 3, 3, 3}, []int{2}, math.Log(4)},
		"without end":    {[]float32{1e30, 0}, []int{0}, 0},
		"far off":        {[]float32{1000, 0}, []int{1}, 1000},
		"unknown class":  {[]float32{1000, 0, 5, 5}, []int{-1, 1}, math.Ln2},
		"very negative":  {[]float32{-1e30, -1e30}, []int{1}, math.Ln2},
		"one class only": {[]float32{7}, []int{0}, 0},
	} {
		close6(t, name, added(t, metricOf("nll"), Subject{}, Batch{Logits: c.logits, Labels: c.labels})[0].Number, c.want)
	}
	if got := added(t, metricOf("nll"), Subject{}, Batch{Logits: []float32{1, 2}, Labels: []int{-1}})[0]; got.Missing == "" {
		t.Errorf("without a label: %+v", got)
	}
}
