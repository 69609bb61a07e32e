package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

var (
	ln3   = float32(math.Log(3))              // a logit whose probability, against a logit of 0, is three quarters
	three = 1 / (1 + math.Exp(-float64(ln3))) // of them, up to the rounding of the logit
)

// measureOfLogits is a measure by plain loops over the probabilities and classes of images, and of known logits.
type measureOfLogits struct {
	name  string
	of    Metric
	plain func(p [][]float64, classes []int) float64
	known map[string]knownLogits
}

func measuresOfLogits() []measureOfLogits {
	return []measureOfLogits{
		{"accuracy", metricOf("accuracy"), func(p [][]float64, classes []int) (mean float64) {
			for i, row := range p {
				if slices.Index(row, slices.Max(row)) == classes[i] {
					mean += 1 / float64(len(p))
				}
			}
			return mean
		}, map[string]knownLogits{
			"one of two":        {[]float32{1, 2, 3, 1, 2, 0}, []int{2, 0}, 0.5},
			"all wrong":         {[]float32{1, 2, 3, 1, 2, 0}, []int{0, 2}, 0},
			"ties to the first": {[]float32{2, 2, 1, 1, 2, 2}, []int{0, 2}, 0.5},
			"unknown left out":  {[]float32{1, 2, 3, 1, 2, 0}, []int{2, -1}, 1},
		}},
		{"nll", metricOf("nll"), func(p [][]float64, classes []int) (mean float64) {
			for i, row := range p {
				mean -= math.Log(row[classes[i]]) / float64(len(p))
			}
			return mean
		}, map[string]knownLogits{
			"equal logits":   {[]float32{3, 3, 3, 3}, []int{2}, math.Log(4)},
			"without end":    {[]float32{1e30, 0}, []int{0}, 0},
			"far off":        {[]float32{1000, 0}, []int{1}, 1000},
			"unknown class":  {[]float32{1000, 0, 5, 5}, []int{-1, 1}, math.Ln2},
			"very negative":  {[]float32{-1e30, -1e30}, []int{1}, math.Ln2},
			"one class only": {[]float32{7}, []int{0}, 0},
		}},
		{"brier", metricOf("brier"), func(p [][]float64, classes []int) (mean float64) {
			for i, row := range p {
				for j, p := range row {
					if j == classes[i] {
						p--
					}
					mean += p * p
				}
			}
			return mean / float64(len(p))
		}, map[string]knownLogits{
			"equal logits":      {[]float32{3, 3, 3, 3}, []int{2}, 0.75},
			"certain and right": {[]float32{1e30, 0}, []int{0}, 0},
			"certain and wrong": {[]float32{1000, 0}, []int{1}, 2},
			"unknown class":     {[]float32{1000, 0, 5, 5}, []int{-1, 1}, 0.5},
			"one class only":    {[]float32{7}, []int{0}, 0},
		}},
		{"ece", &ECE{}, plainECE(15), map[string]knownLogits{
			"sure and right":  {[]float32{1000, 0}, []int{0}, 0},
			"sure and wrong":  {[]float32{1000, 0}, []int{1}, 1},
			"three of four":   {[]float32{ln3, 0, ln3, 0, ln3, 0, ln3, 0}, []int{0, 0, 0, 1}, math.Abs(three - 0.75)},
			"one of two":      {[]float32{ln3, 0, ln3, 0}, []int{0, 1}, three - 0.5},
			"unknown classes": {[]float32{ln3, 0, ln3, 0}, []int{0, -1}, 1 - three},
		}},
		{"ece", &ECE{Bins: 1}, plainECE(1), nil},
		{"ece", &ECE{Bins: 7}, plainECE(7), nil},
	}
}

type knownLogits struct {
	logits []float32
	labels []int
	want   float64
}

// plainECE computes the calibration error by its definition, bin by bin.
func plainECE(bins int) func(p [][]float64, classes []int) float64 {
	return func(p [][]float64, classes []int) (sum float64) {
		for bin := range bins {
			low, high := float64(bin)/float64(bins), float64(bin+1)/float64(bins)
			n, right, confidence := 0.0, 0.0, 0.0
			for i, row := range p {
				if most := slices.Max(row); most > low && most <= high {
					n, confidence = n+1, confidence+most
					if slices.Index(row, most) == classes[i] {
						right++
					}
				}
			}
			if n > 0 {
				sum += n / float64(len(p)) * math.Abs(right/n-confidence/n)
			}
		}
		return sum
	}
}

func TestMeasuresOfLogitsEqualPlainLoops(t *testing.T) {
	for i, m := range measuresOfLogits() {
		r := rand.New(rand.NewPCG(uint64(i), 9))
		c, s := newHeaded(r, 5, "class"), labelledSample(r, 2*batchSize+33, 5)
		rows, classes := labelledRows(t, c, s, "class")
		for _, row := range rows { // probabilities
			sum := 0.0
			for k, x := range row {
				row[k] = math.Exp(x)
				sum += row[k]
			}
			for k := range row {
				row[k] /= sum
			}
		}
		result, err := Evaluate(context.Background(), c, s, Selection{{Metric: m.of}})
		fatal.If(t, err)
		close6(t, m.name, number(t, result, m.name), m.plain(rows, classes))
	}
}

func TestMeasuresOfKnownLogits(t *testing.T) {
	for _, m := range measuresOfLogits() {
		for name, c := range m.known {
			got := added(t, m.of, Subject{}, Batch{Logits: c.logits, Labels: c.labels})[0]
			close6(t, m.name+", "+name, got.Number, c.want)
			expect.Equal(t, got.Missing, "", m.name, name, got)
		}
		if got := added(t, m.of, Subject{}, Batch{Logits: []float32{1, 2}, Labels: []int{-1}})[0]; got.Missing == "" {
			t.Errorf("%s without a label: %+v", m.name, got)
		}
	}
	nan := float32(math.NaN())
	if got := added(t, &ECE{}, Subject{}, Batch{Logits: []float32{nan, nan}, Labels: []int{0}})[0]; !math.IsNaN(got.Number) {
		t.Errorf("ece of NaN: %+v", got)
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
		expect.Equal(t, strings.Join(got, " "), want, "heads", names)
	}
	unlabelled := measured(t, newHeaded(r, 3, "class"), s.Images)
	if v, ok := unlabelled.Find("accuracy"); !ok || v.Missing != "the samples have no labels" || len(unlabelled.Shown()) == len(unlabelled.Values) {
		t.Errorf("without labels: %+v", v)
	}
}
