package metrics

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

func TestAccuracyIsTheShareOfLargestLogits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	c, s := newHeaded(r, 5, "class"), labelledSample(r, batchSize+33, 5)
	rows, classes := labelledRows(t, c, s, "class")
	right := 0.0
	for i, row := range rows {
		best := 0
		for k := range row {
			if row[k] > row[best] {
				best = k
			}
		}
		if best == classes[i] {
			right++
		}
	}
	if got, want := number(t, ofHead(t, c, s, metricOf("accuracy")), "accuracy"), right/float64(len(rows)); got != want || want == 0 || want == 1 {
		t.Errorf("got %g, want %g", got, want)
	}
}

func TestAccuracyOfKnownLogits(t *testing.T) {
	for name, c := range map[string]struct {
		logits []float32
		labels []int
		want   float64
	}{
		"one of two":        {[]float32{1, 2, 3, 1, 2, 0}, []int{2, 0}, 0.5},
		"all wrong":         {[]float32{1, 2, 3, 1, 2, 0}, []int{0, 2}, 0},
		"ties to the first": {[]float32{2, 2, 1, 1, 2, 2}, []int{0, 2}, 0.5},
		"unknown left out":  {[]float32{1, 2, 3, 1, 2, 0}, []int{2, -1}, 1},
	} {
		if got := added(t, metricOf("accuracy"), Subject{}, Batch{Logits: c.logits, Labels: c.labels})[0]; got.Number != c.want || got.Missing != "" {
			t.Errorf("%s: %+v, want %g", name, got, c.want)
		}
	}
	if got := added(t, metricOf("accuracy"), Subject{}, Batch{Logits: []float32{1, 2}, Labels: []int{-1}})[0]; got.Missing == "" {
		t.Errorf("without a label: %+v", got)
	}
}

// A model with labelled heads shows accuracy by default, for each head by its name if there are several. Other models do not
// show it.
func TestAccuracyIsShownWhereThereAreLabelledHeads(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	s := labelledSample(r, 50, 3)
	for want, names := range map[string][]string{"accuracy": {"class"}, "colour.accuracy shape.accuracy": {"colour", "shape"}, "": nil} {
		c := newHeaded(r, 3, names...)
		all, err := Evaluate(context.Background(), c, s, nil)
		fatal.If(t, err)
		var got []string
		for _, v := range all.Shown() {
			if m, _ := MeasureOf(v.Name); m.Name == "accuracy" {
				got = append(got, v.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("heads %v: got %v, want %s", names, got, want)
		}
	}
	unlabelled := measured(t, newHeaded(r, 3, "class"), s.Images)
	if v, ok := unlabelled.Find("accuracy"); !ok || v.Missing != "the samples have no labels" || len(unlabelled.Shown()) == len(unlabelled.Values) {
		t.Errorf("without labels: %+v", v)
	}
}
