package metrics

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"tessera/internal/vectors"
)

// A table has a row for each class of a head. A number whose denominator is 0 is not applicable, and the means ignore it. Of equal logits the first
// is the prediction. Samples of an unknown class are ignored.
func init() {
	register("per_class", "precision and recall of every class", Description{
		Measures: []Measure{
			{Name: "macro_precision", Better: Higher, Doc: "mean over the classes of their precision, the share of the samples predicted as a class that belong to it. " +
				"Classes that are never predicted are left out; a table lists the classes. For heads that a loss compares with classes"},
			{Name: "macro_recall", Better: Higher, Doc: "mean over the classes of their recall, the share of the samples of a class that are predicted as it: balanced accuracy. " +
				"Classes without samples are left out"},
			{Name: "least_recall", Better: Higher, Doc: "smallest recall of a class that has samples"},
		},
		Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true, OnRequest: true,
	}, func(s *Subject) (Meter, error) { return &perClass{names: s.Classes}, nil })
}

// perClass counts images by class and prediction.
type perClass struct {
	names                   []string
	count, predicted, right []float64 // numbers of images, predictions and correct predictions of each class
}

func (m *perClass) Add(b *Batch) error {
	return b.EachLabelled(func(logits []float32, class int) {
		if m.count == nil {
			m.count, m.predicted, m.right = make([]float64, len(logits)), make([]float64, len(logits)), make([]float64, len(logits))
		}
		m.count[class]++
		best, err := vectors.Class(logits)
		if err != nil { // predicted as none of the classes
			return
		}
		m.predicted[best]++
		if best == class {
			m.right[class]++
		}
	})
}

func (m *perClass) Values(context.Context) ([]Value, error) {
	if m.count == nil {
		return []Value{NotApplicable(noLabels)}, nil
	}
	least, precision, recall := math.Inf(1), quotients{}, quotients{}
	for i, n := range m.count {
		precision.add(m.right[i], m.predicted[i])
		recall.add(m.right[i], n)
		if n > 0 {
			least = min(least, m.right[i]/n)
		}
	}
	return []Value{Number(precision.mean()), Number(recall.mean()), Number(least)}, nil
}

func (m *perClass) Tables() []*Table {
	if m.count == nil {
		return nil
	}
	t := &Table{Name: "classes", Of: "class", Columns: []string{"count", "precision", "recall"}}
	var absent, unpredicted int
	for i, n := range m.count {
		if n == 0 {
			absent++
		}
		if m.predicted[i] == 0 {
			unpredicted++
		}
		t.Rows = append(t.Rows, TableRow{nameOf(m.names, i), []float64{n, m.right[i] / m.predicted[i], m.right[i] / n}}) // 0/0 is NaN
	}
	if absent > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d of %d classes have no samples here: they have no recall", absent, len(m.count)))
	}
	if unpredicted > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d of %d classes are never predicted: they have no precision", unpredicted, len(m.count)))
	}
	return []*Table{t}
}

// quotients is a mean of quotients that ignores those with the denominator 0.
type quotients struct{ sum, n float64 }

func (q *quotients) add(a, b float64) {
	if b > 0 {
		q.sum, q.n = q.sum+a/b, q.n+1
	}
}

func (q *quotients) mean() float64 { return q.sum / q.n }

// nameOf returns the name of class i, or its number if it has no name.
func nameOf(names []string, i int) string {
	if i >= 0 && i < len(names) {
		return names[i]
	}
	return strconv.Itoa(i)
}
