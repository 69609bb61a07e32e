package metrics

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/posthoc"
)

func init() {
	Registry.Register("fairness", "rates of a classifier by group, with their gaps, ratios and bootstrap intervals",
		func() Metric { return &Fairness{Group: "group", Positive: 1, Resamples: 1000, Seed: 1, Least: 30} })
}

// Fairness compares the decisions of a head between the groups of a column. The decision d is 1 if the class Positive is
// predicted: by the decision thresholds stored with the model, or without thresholds by the largest logit (the first of equal
// ones). y is 1 if the class of the sample is Positive, and p is the probability of Positive. The values of a group, over its
// samples:
//
//	selection_rate       P(d = 1)            independence: equal in all groups
//	false_positive_rate  P(d = 1 | y = 0)    separation: both rates are
//	false_negative_rate  P(d = 0 | y = 1)
//	precision            P(y = 1 | d = 1)    sufficiency: both, or the calibration, are
//	false_omission_rate  P(y = 1 | d = 0)
//	group_calibration    sum_m |B_m|/n |mean of y - mean of p|, over the samples B_m with p in the m-th of 15 bins of equal width
//	group_accuracy       P(d = y)
//
// NAME_gap is the largest minus the smallest value of any group; NAME_ratio is the smallest divided by the largest. If no
// sample of a group fulfils the condition of a rate, the rate is not applicable, and the gap and the ratio ignore the group.
// The table contains all values with 95 % intervals: quantiles over Resamples bootstrap samples, drawn within each group. A
// group of fewer than Least samples has no intervals but a note; gaps and ratios include it. Samples of an unknown class or
// group are ignored; a note contains their number.
//
// Source: Barocas, Hardt, Narayanan, Fairness and machine learning, 2023, chapter 3; Efron, Bootstrap methods, 1979.
type Fairness struct {
	Group     string `toml:"group" doc:"column of the groups"`
	Positive  int    `toml:"positive" want:">= 0" doc:"the positive class"`
	Resamples int    `toml:"resamples" want:"> 0" doc:"number of bootstrap samples"`
	Seed      uint64 `toml:"seed" doc:"seed of the bootstrap"`
	Least     int    `toml:"least" want:">= 1" doc:"samples from which a group has intervals"`
}

// fairnessRates lists the values of a group, in order of output.
var fairnessRates = []struct{ name, doc string }{
	{"selection_rate", "P(d = 1), d = 1 if the decision is the positive class: independence"},
	{"false_positive_rate", "P(d = 1 | y = 0), y = 1 if the sample belongs to the positive class: separation"},
	{"false_negative_rate", "P(d = 0 | y = 1): separation"},
	{"precision", "P(y = 1 | d = 1): sufficiency"},
	{"false_omission_rate", "P(y = 1 | d = 0): sufficiency"},
	{"group_calibration", "expected calibration error of the probability of the positive class, in 15 bins: sufficiency"},
	{"group_accuracy", "P(d = y)"},
}

// Describe implements [Metric].
func (*Fairness) Describe() Description {
	d := Description{Reads: ReadsLogits | ReadsLabels, ScaleFree: true, Partial: true, OnRequest: true}
	for _, r := range fairnessRates {
		d.Measures = append(d.Measures,
			Measure{Name: r.name + "_gap", Better: Lower, Doc: "largest minus smallest value over the groups of " + escaped(r.doc) +
				". Groups are those of the column `group`, or of `--with group=NAME`; a table has the values of all groups, with intervals"},
			Measure{Name: r.name + "_ratio", Better: Higher, Doc: "smallest divided by largest value over the groups of " + escaped(r.doc)})
	}
	d.Measures = append(d.Measures, Measure{Name: "decision_accuracy", Better: Higher, Doc: "P(d = y) over the samples of all known groups"})
	return d
}

// escaped returns a formula, escaped for a table of Markdown.
func escaped(text string) string {
	var b []byte
	for i := range len(text) {
		if text[i] == '|' {
			b = append(b, '\\')
		}
		b = append(b, text[i])
	}
	return string(b)
}

// Columns implements [ColumnReader].
func (m *Fairness) Columns() []string { return []string{m.Group} }

// Start implements [Metric].
func (m *Fairness) Start(s *Subject) (Meter, error) {
	f := &fairnessMeter{Fairness: *m, names: s.Names[m.Group], of: map[int][]fairSample{}}
	if c, ok := s.Coder.(interface {
		PostHoc(head string) posthoc.Head
	}); ok {
		f.thresholds = c.PostHoc(s.Head).Thresholds
	}
	return f, nil
}

// fairSample describes one sample: whether its class is Positive, whether the decision is Positive, and the probability of
// Positive.
type fairSample struct {
	y, d bool
	p    float64
}

type fairnessMeter struct {
	Fairness
	names      []string
	thresholds *posthoc.Thresholds
	of         map[int][]fairSample // samples by group

	missing            string // why the metric is not applicable; "" if it is
	noGroup, noLabel   int    // numbers of samples of an unknown group and of an unknown class
	rates              [][]float64
	lows, highs        [][]float64 // bounds of the intervals: of the rates of each group, then of the gaps, then of the ratios
	gaps, ratios       []float64
	gapLows, gapHighs  []float64
	ratioLows, ratioHs []float64
}

// Add implements [Meter].
func (m *fairnessMeter) Add(b *Batch) error {
	groups, ok := b.Columns[m.Group]
	if n := len(b.Labels); !ok || n == 0 || len(groups) != n {
		m.missing = fmt.Sprintf("the samples have no column %q of one number each", m.Group)
		return nil
	}
	classes := len(b.Logits) / len(b.Labels)
	if m.Positive >= classes {
		return fmt.Errorf("metrics: fairness: positive: got class %d, the head has %d classes", m.Positive, classes)
	}
	p := make([]float64, classes)
	for i, class := range b.Labels {
		group := int(groups[i])
		switch {
		case class < 0:
			m.noLabel++
			continue
		case group < 0:
			m.noGroup++
			continue
		}
		row := b.Logits[i*classes : (i+1)*classes]
		vectors.Softmax(p, row)
		best, err := vectors.Class(row)
		if err != nil {
			m.missing = err.Error()
			return nil
		}
		decided := best == m.Positive
		if m.thresholds != nil && m.thresholds.Positive == m.Positive {
			var known bool
			if decided, known = m.thresholds.Decide(row, group); !known {
				m.noGroup++
				continue
			}
		}
		m.of[group] = append(m.of[group], fairSample{class == m.Positive, decided, p[m.Positive]})
	}
	return nil
}

// fairBins is the number of bins for the calibration of a group.
const fairBins = 15

// ratesOf returns the rates over the samples with the indices at(0), at(1), ...; NaN for a rate that is not applicable.
func ratesOf(samples []fairSample, at func(i int) int) []float64 {
	var n [2][2]float64 // numbers of samples by class and decision
	var bins [fairBins]struct{ y, p float64 }
	for i := range samples {
		s := samples[at(i)]
		bin := &bins[min(max(int(math.Ceil(s.p*fairBins))-1, 0), fairBins-1)]
		bin.p += s.p
		var y, d int
		if s.y {
			y = 1
			bin.y++
		}
		if s.d {
			d = 1
		}
		n[y][d]++
	}
	all, error := float64(len(samples)), 0.0
	for _, b := range bins {
		error += math.Abs(b.y - b.p)
	}
	return []float64{(n[0][1] + n[1][1]) / all, n[0][1] / (n[0][0] + n[0][1]), n[1][0] / (n[1][0] + n[1][1]), n[1][1] / (n[0][1] + n[1][1]),
		n[1][0] / (n[0][0] + n[1][0]), error / all, (n[0][0] + n[1][1]) / all}
}

// between returns the gap and the ratio of one rate between groups. Both are NaN if fewer than two groups have this rate.
func between(rates [][]float64, which int) (gap, ratio float64) {
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for _, r := range rates {
		if v := r[which]; !math.IsNaN(v) {
			low, high, n = min(low, v), max(high, v), n+1
		}
	}
	switch {
	case n < 2:
		return math.NaN(), math.NaN()
	case high == 0:
		return 0, 1
	}
	return high - low, low / high
}

// groups lists the groups that have samples, ascending.
func (m *fairnessMeter) groups() (list []int) {
	for g := range m.of {
		list = append(list, g)
	}
	slices.Sort(list)
	return list
}

// Values implements [Meter].
func (m *fairnessMeter) Values(ctx context.Context) (values []Value, err error) {
	groups := m.groups()
	if m.missing == "" && len(groups) == 0 {
		m.missing = "no sample has a known class and a known group"
	}
	if m.missing != "" {
		return slices.Repeat([]Value{NotApplicable(m.missing)}, 2*len(fairnessRates)+1), nil
	}
	m.rates = nil
	for _, g := range groups {
		m.rates = append(m.rates, ratesOf(m.of[g], func(i int) int { return i }))
	}
	m.gaps, m.ratios = nil, nil
	for k, r := range fairnessRates {
		gap, ratio := between(m.rates, k)
		m.gaps, m.ratios = append(m.gaps, gap), append(m.ratios, ratio)
		if math.IsNaN(gap) {
			why := fmt.Sprintf("fewer than two groups have a %s", r.name)
			if len(groups) == 1 {
				why = fmt.Sprintf("all samples are of one group, %s", nameOf(m.names, groups[0]))
			}
			values = append(values, NotApplicable(why), NotApplicable(why))
			continue
		}
		values = append(values, Number(gap), Number(ratio))
	}
	right, all := 0.0, 0.0
	for i, g := range groups {
		n := float64(len(m.of[g]))
		right, all = right+n*m.rates[i][len(fairnessRates)-1], all+n
	}
	m.bootstrap(ctx, groups)
	return append(values, Number(right/all)), ctx.Err()
}

// bootstrap computes the confidence intervals.
func (m *fairnessMeter) bootstrap(ctx context.Context, groups []int) {
	drawn := make([][][]float64, m.Resamples) // by group and rate
	team.For(m.Resamples, 10, func(from, to int) {
		for k := from; k < to && ctx.Err() == nil; k++ {
			r := random.Stream(m.Seed, "fairness", uint64(k))
			for _, g := range groups {
				samples := m.of[g]
				drawn[k] = append(drawn[k], ratesOf(samples, func(int) int { return r.IntN(len(samples)) }))
			}
		}
	})
	if ctx.Err() != nil {
		return
	}
	interval := func(of func(k int) float64) (low, high float64) {
		var known []float64
		for k := range drawn {
			if v := of(k); !math.IsNaN(v) {
				known = append(known, v)
			}
		}
		if len(known) == 0 {
			return math.NaN(), math.NaN()
		}
		slices.Sort(known)
		return quantile(known, 0.025), quantile(known, 0.975)
	}
	rates := len(fairnessRates)
	m.lows, m.highs = make([][]float64, len(groups)), make([][]float64, len(groups))
	m.gapLows, m.gapHighs, m.ratioLows, m.ratioHs = make([]float64, rates), make([]float64, rates), make([]float64, rates), make([]float64, rates)
	for which := range rates {
		for i, g := range groups {
			low, high := math.NaN(), math.NaN()
			if len(m.of[g]) >= m.Least {
				low, high = interval(func(k int) float64 { return drawn[k][i][which] })
			}
			m.lows[i], m.highs[i] = append(m.lows[i], low), append(m.highs[i], high)
		}
		m.gapLows[which], m.gapHighs[which] = interval(func(k int) float64 { gap, _ := between(drawn[k], which); return gap })
		m.ratioLows[which], m.ratioHs[which] = interval(func(k int) float64 { _, ratio := between(drawn[k], which); return ratio })
	}
}

// Tables implements [Tabled].
func (m *fairnessMeter) Tables() []*Table {
	if m.rates == nil || m.lows == nil {
		return nil
	}
	t := &Table{Name: "fairness", Of: "rate", Columns: []string{"value", "low", "high"}}
	groups := m.groups()
	name := func(i int) string { return nameOf(m.names, groups[i]) }
	for i, g := range groups {
		t.Rows = append(t.Rows, TableRow{"count " + name(i), []float64{float64(len(m.of[g])), math.NaN(), math.NaN()}})
	}
	for which, r := range fairnessRates {
		for i := range groups {
			t.Rows = append(t.Rows, TableRow{r.name + " " + name(i), []float64{m.rates[i][which], m.lows[i][which], m.highs[i][which]}})
		}
		t.Rows = append(t.Rows, TableRow{r.name + " gap", []float64{m.gaps[which], m.gapLows[which], m.gapHighs[which]}},
			TableRow{r.name + " ratio", []float64{m.ratios[which], m.ratioLows[which], m.ratioHs[which]}})
	}
	if m.thresholds != nil && m.thresholds.Positive == m.Positive {
		t.Notes = append(t.Notes, "decided by the thresholds that are kept with the run: "+m.thresholds.String())
	}
	if len(groups) == 1 {
		t.Notes = append(t.Notes, fmt.Sprintf("all samples are of one group, %s: there is nothing to compare", name(0)))
	}
	for i, g := range groups {
		if n := len(m.of[g]); n < m.Least {
			t.Notes = append(t.Notes, fmt.Sprintf("group %s has %d samples: its rates say little and have no intervals; gaps and ratios contain it", name(i), n))
		}
	}
	for which, r := range fairnessRates {
		for i := range groups {
			if math.IsNaN(m.rates[i][which]) {
				t.Notes = append(t.Notes, fmt.Sprintf("group %s has no %s, because no sample of it fulfils the condition: the gap and the ratio leave it out", name(i), r.name))
			}
		}
	}
	if m.noGroup > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d samples are of an unknown group and left out", m.noGroup))
	}
	if m.noLabel > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d samples are of an unknown class and left out", m.noLabel))
	}
	return []*Table{t}
}
