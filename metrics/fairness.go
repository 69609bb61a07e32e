package metrics

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/internal/vectors"
	"tessera/posthoc"
)

func init() {
	Registry.Register("fairness", "rates of a classifier by group, with their gaps, ratios and bootstrap intervals",
		func() Metric { return &Fairness{Group: "group", Positive: "1", Resamples: 1000, Seed: 1, Least: 30} })
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
// A gap is at least 0, and so are the gaps of all bootstrap samples. The interval of a gap between two groups is therefore that of the
// signed difference, the larger minus the smaller measured rate, and that of the ratio likewise; of more groups it is that of the
// gap. In addition, p is the p-value of the permutation test that all groups have the same rate, with Resamples permutations of the
// groups among the samples that fulfil the condition of the rate (for group_calibration, of the same samples). Where p is at least
// 0.05, the intervals are extended to the gap 0 and the ratio 1.
//
// Source: Barocas, Hardt, Narayanan, Fairness and machine learning, 2023, chapter 3; Efron, Bootstrap methods, 1979; Phipson and
// Smyth, Permutation P-values should never be zero, 2010.
type Fairness struct {
	Group     string    `toml:"group" doc:"column of the groups"`
	Positive  ClassName `toml:"positive" doc:"the positive class, its name or its number"`
	Resamples int       `toml:"resamples" want:"> 0" doc:"number of bootstrap samples, and of permutations"`
	Seed      uint64    `toml:"seed" doc:"seed of both"`
	Least     int       `toml:"least" want:">= 1" doc:"samples from which a group has intervals"`
}

// ClassName is a class by its name, or by its number.
type ClassName string

// FromTOML sets c from a TOML value.
func (c *ClassName) FromTOML(value any) error {
	if number, is := value.(int64); !is || number < 0 {
		text, is := value.(string)
		if !is {
			return fmt.Errorf("got %v, want the name or the number of a class", value)
		}
		*c = ClassName(text)
		return nil
	}
	*c = ClassName(fmt.Sprint(value))
	return nil
}

// TOML returns the value in a declaration.
func (c ClassName) TOML() any {
	if n, err := strconv.ParseUint(string(c), 10, 31); err == nil {
		return int64(n)
	}
	return string(c)
}

// UnknownClass is the error for a class that a head does not have.
type UnknownClass string

func (e UnknownClass) Error() string { return string(e) }

// Among returns the number of the class among n classes, of which names has the names, if they are known; else an [UnknownClass].
func (c ClassName) Among(names []string, n int) (int, error) {
	if i := slices.Index(names, string(c)); i >= 0 {
		return i, nil
	}
	if i, err := strconv.ParseUint(string(c), 10, 31); err == nil && int(i) < n {
		return int(i), nil
	}
	if len(names) > 0 {
		return 0, UnknownClass(fmt.Sprintf("positive: got %q, want one of the classes: %s", c, strings.Join(names, ", ")))
	}
	return 0, UnknownClass(fmt.Sprintf("positive: got class %s, the head has %d classes", c, n))
}

// fairnessRates lists the values of a group, in order of output. A rate is the share of the samples that it counts among those of
// its condition; group_calibration is none.
var fairnessRates = []struct {
	name, doc     string
	given, counts func(fairSample) bool
}{
	{"selection_rate", "P(d = 1), d = 1 if the decision is the positive class: independence", always, decided},
	{"false_positive_rate", "P(d = 1 | y = 0), y = 1 if the sample belongs to the positive class: separation", not(positive), decided},
	{"false_negative_rate", "P(d = 0 | y = 1): separation", positive, not(decided)},
	{"precision", "P(y = 1 | d = 1): sufficiency", decided, positive},
	{"false_omission_rate", "P(y = 1 | d = 0): sufficiency", not(decided), positive},
	{"group_calibration", "expected calibration error of the probability of the positive class, in 15 bins: sufficiency", nil, nil},
	{"group_accuracy", "P(d = y)", always, func(s fairSample) bool { return s.d == s.y }},
}

func always(fairSample) bool     { return true }
func decided(s fairSample) bool  { return s.d }
func positive(s fairSample) bool { return s.y }

func not(f func(fairSample) bool) func(fairSample) bool {
	return func(s fairSample) bool { return !f(s) }
}

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

func (m *Fairness) Columns() []string { return []string{m.Group} }

func (m *Fairness) Start(s *Subject) (Meter, error) {
	f := &fairnessMeter{Fairness: *m, names: s.Names[m.Group], classes: s.Classes, of: map[int][]fairSample{}}
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
	classes    []string
	positive   int
	thresholds *posthoc.Thresholds
	of         map[int][]fairSample // samples by group

	missing          string      // why the metric is not applicable; "" if it is
	noGroup, noLabel int         // numbers of samples of an unknown group and of an unknown class
	rates            [][]float64 // by group
	spans            [][]span    // rates with their intervals, by group
	gaps             []rateGap   // by rate
}

func (m *fairnessMeter) Add(b *Batch) error {
	groups, ok := b.Columns[m.Group]
	if n := len(b.Labels); !ok || n == 0 || len(groups) != n {
		m.missing = fmt.Sprintf("the samples have no column %q of one number each", m.Group)
		return nil
	}
	classes := len(b.Logits) / len(b.Labels)
	positive, err := m.Positive.Among(m.classes, classes)
	if err != nil {
		return fmt.Errorf("metrics: fairness: %w", err)
	}
	m.positive = positive
	p := make([]float64, classes)
	for i, class := range b.Labels {
		group := int(groups[i])
		switch {
		case float32(group) != groups[i]:
			m.missing = fmt.Sprintf("the column %q is not one of groups, it has the number %g: want one whole number or text for each sample", m.Group, groups[i])
			return nil
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
		decided := best == m.positive
		if m.thresholds != nil && m.thresholds.Positive == m.positive {
			var known bool
			if decided, known = m.thresholds.Decide(row, group); !known {
				m.noGroup++
				continue
			}
		}
		m.of[group] = append(m.of[group], fairSample{class == m.positive, decided, p[m.positive]})
	}
	return nil
}

// fairBins is the number of bins for the calibration of a group.
const fairBins = 15

// ratesOf returns the rates over the samples with the indices at(0), at(1), ...; NaN for a rate that is not applicable.
func ratesOf(samples []fairSample, at func(i int) int) []float64 {
	var n [2][2]float64 // numbers of samples by class and decision
	var c calibration
	for i := range samples {
		s := samples[at(i)]
		c.add(s)
		var y, d int
		if s.y {
			y = 1
		}
		if s.d {
			d = 1
		}
		n[y][d]++
	}
	all := float64(len(samples))
	return []float64{(n[0][1] + n[1][1]) / all, n[0][1] / (n[0][0] + n[0][1]), n[1][0] / (n[1][0] + n[1][1]), n[1][1] / (n[0][1] + n[1][1]),
		n[1][0] / (n[0][0] + n[1][0]), c.error(), (n[0][0] + n[1][1]) / all}
}

// calibration sums classes and probabilities in bins of the probability.
type calibration struct {
	bins [fairBins]struct{ y, p float64 }
	n    float64
}

func (c *calibration) add(s fairSample) {
	bin := &c.bins[min(max(int(math.Ceil(s.p*fairBins))-1, 0), fairBins-1)]
	bin.p += s.p
	if s.y {
		bin.y++
	}
	c.n++
}

// error returns the expected calibration error.
func (c *calibration) error() float64 {
	sum := 0.0
	for _, b := range c.bins {
		sum += math.Abs(b.y - b.p)
	}
	return sum / c.n
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

func (m *fairnessMeter) Values(ctx context.Context) (values []Value, err error) {
	groups := m.groups()
	if m.missing == "" && len(groups) == 0 {
		m.missing = "no sample has a known class and a known group"
	}
	if m.missing != "" {
		return []Value{NotApplicable(m.missing)}, nil
	}
	m.rates = nil
	for _, g := range groups {
		m.rates = append(m.rates, ratesOf(m.of[g], func(i int) int { return i }))
	}
	for k, r := range fairnessRates {
		gap, ratio := between(m.rates, k)
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
	m.infer(ctx, groups)
	return append(values, Number(right/all)), ctx.Err()
}

func (m *fairnessMeter) Tables() []*Table {
	if m.rates == nil || m.gaps == nil {
		return nil
	}
	t := &Table{Name: "fairness", Of: "rate", Columns: []string{"value", "low", "high", "p"}}
	groups := m.groups()
	name := func(i int) string { return nameOf(m.names, groups[i]) }
	for i, g := range groups {
		t.Rows = append(t.Rows, span{float64(len(m.of[g])), math.NaN(), math.NaN()}.row("count "+name(i), math.NaN()))
	}
	for which, r := range fairnessRates {
		for i := range groups {
			t.Rows = append(t.Rows, m.spans[i][which].row(r.name+" "+name(i), math.NaN()))
		}
		t.Rows = append(t.Rows, m.gaps[which].gap.row(r.name+" gap", m.gaps[which].p), m.gaps[which].ratio.row(r.name+" ratio", math.NaN()))
	}
	if m.thresholds != nil && m.thresholds.Positive == m.positive {
		t.Notes = append(t.Notes, "decided by the thresholds that are kept with the run: "+m.thresholds.String())
	}
	switch len(groups) {
	case 1:
		t.Notes = append(t.Notes, fmt.Sprintf("all samples are of one group, %s: there is nothing to compare", name(0)))
	case 2:
		t.Notes = append(t.Notes, "intervals of gaps are those of the signed difference; p is of the permutation test that both groups have the same rate")
	default:
		t.Notes = append(t.Notes, fmt.Sprintf("p is of the permutation test that all %d groups have the same rate: where it is at least 0.05, the interval of the gap begins at 0", len(groups)))
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
