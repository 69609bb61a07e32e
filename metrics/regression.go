package metrics

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Target is a value of a model that a loss compares with a column of numbers.
type Target struct {
	Value   string   // the value, for example a head
	Column  string   // the column
	Size    int      // numbers of the column for one sample
	Names   []string // names of these numbers; nil if they have none
	Counted []string // columns that are 0 for entries that do not count: masks, with one number for each entry or for each sample
}

// Regressor is a [Coder] with values that are compared with columns of numbers.
type Regressor interface {
	Coder
	// Targets lists these values, in the order of the loss terms.
	Targets() []Target
}

// TargetsOf lists the values of a coder that are compared with columns of numbers.
func TargetsOf(c Coder) []Target {
	r, ok := As[Regressor](c)
	if !ok {
		return nil
	}
	return r.Targets()
}

// Name returns the name of number i: that in the file, or the column, with the index if it has several numbers.
func (t Target) Name(i int) string {
	if i < len(t.Names) {
		return t.Names[i]
	}
	if t.Size == 1 {
		return t.Column
	}
	return fmt.Sprint(t.Column, ".", i)
}

// targetHeads returns the values of a coder that are compared with columns of the sample.
func targetHeads(c Coder, s *Sample) (heads []Head) {
	for _, t := range TargetsOf(c) {
		if s.Columns[t.Column] != nil {
			heads = append(heads, Head{Name: t.Value, Target: &t})
		}
	}
	return heads
}

// The measures are means over the numbers of the column, and a table has those of each. Entries that are missing, or where a mask of the
// loss is 0, do not count; weights of samples have no influence. r2 is not applicable to a number with a single value.
func init() {
	const where = ". Mean over the numbers of the column, which a table lists. For heads that `mse`, `mae` or `huber` compares with a column"
	register("regression", "errors of a head that is compared with a column of numbers", Description{
		Measures: []Measure{
			{Name: "rmse", Better: Lower, Doc: "root of the mean squared error of a head, in the unit of its target" + where},
			{Name: "mae", Better: Lower, Doc: "mean absolute error of a head, in the unit of its target" + where},
			{Name: "r2", Better: Higher, Doc: "share of the variance of the target that a head explains, R² = 1 - Σ(v - y)² / Σ(y - mean y)²: 1 for a perfect prediction, 0 for that of the mean" + where},
		},
		Reads: ReadsTargets, Ordered: true, Partial: true,
	}, func(s *Subject) (Meter, error) {
		return &regressionMeter{*s.Target, make([]errorsOf, s.Target.Size)}, nil
	})
}

// regressionMeter adds up errors of each number of a column.
type regressionMeter struct {
	Target
	each []errorsOf // one per number of the column
}

// errorsOf contains the sums over the counted entries of one number: n, of |v - y|, of (v - y)², and mean and sum of squared deviations of y,
// updated entry by entry (Welford 1962).
type errorsOf struct{ n, absolute, squared, mean, deviation float64 }

func (e *errorsOf) add(v, y float64) {
	e.n++
	e.absolute += math.Abs(v - y)
	e.squared += (v - y) * (v - y)
	d := y - e.mean
	e.mean += d / e.n
	e.deviation += d * (y - e.mean)
}

// numbers returns rmse, mae and r2, NaN for those that are not applicable.
func (e *errorsOf) numbers() [3]float64 {
	r2 := math.NaN()
	if e.deviation > 0 {
		r2 = 1 - e.squared/e.deviation
	}
	return [3]float64{math.Sqrt(e.squared / e.n), e.absolute / e.n, r2}
}

func (m *regressionMeter) Add(b *Batch) error {
	y := b.Columns[m.Column]
	if len(y) != len(b.Logits) {
		return fmt.Errorf("metrics: %s: got %d values, but %d of the column %q", m.Value, len(b.Logits), len(y), m.Column)
	}
	for i, v := range b.Logits {
		if slices.ContainsFunc(m.Counted, func(name string) bool {
			mask := b.Columns[name]
			return len(mask) > 0 && mask[i*len(mask)/len(y)] == 0
		}) {
			continue
		}
		m.each[i%m.Size].add(float64(v), float64(y[i]))
	}
	return nil
}

func (m *regressionMeter) Values(context.Context) ([]Value, error) {
	var sums, counts [3]float64
	constant := 0.0
	for _, e := range m.each {
		constant += math.Sqrt(e.deviation / max(1, e.n))
		for i, v := range e.numbers() {
			if !math.IsNaN(v) || i < 2 && e.n > 0 {
				sums[i], counts[i] = sums[i]+v, counts[i]+1
			}
		}
	}
	values := make([]Value, len(sums))
	for i, n := range counts {
		if values[i] = Number(sums[i] / n); n == 0 {
			values[i] = NotApplicable("the target has no entries, or all are equal")
		}
	}
	values[0].Constant = constant / max(1, counts[0])
	return values, nil
}

func (m *regressionMeter) Tables() []*Table {
	t := &Table{Name: "targets", Of: "target", Columns: []string{"count", "rmse", "mae", "r2"}}
	for i, e := range m.each {
		if e.n == 0 && len(m.each) > 1 { // a mask leaves it out of all samples
			continue
		}
		n := e.numbers()
		t.Rows = append(t.Rows, TableRow{m.Name(i), append([]float64{e.n}, n[:]...)})
	}
	return []*Table{t}
}
