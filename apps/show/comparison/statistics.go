package comparison

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/metrics"
)

// Metric is one metric of all models.
type Metric struct {
	Name   string         `json:"name"`
	Better metrics.Better `json:"better"`
	SameAs string         `json:"same_as,omitempty"` // an earlier metric with equal values of all runs, whose differences these are
	Cells  []Cell         `json:"models"`

	measure metrics.Measure
}

// Cell is one metric of one model.
type Cell struct {
	Measured  bool            `json:"measured"` // false if the metric is not applicable, or to one of the runs
	Mean      float64         `json:"mean"`     // mean over the seeds
	Deviation float64         `json:"deviation"`
	Best      bool            `json:"best"`                 // the mean is better than that of every other model on the same images, and the differences are shown
	Paired    *metrics.Paired `json:"difference,omitempty"` // difference from the model's reference over common seeds; nil for fewer than two common seeds
}

// judge fills in the rows of the table and judges their differences; every verdict of a comparison, of a report and of the page of
// a sweep is made here. only lists the metrics; nil means all that were measured.
//
// The tests of the table are the differences of all models from their references, and for each row the least significant
// difference between the best model and the others, unless it is one of these. [metrics.CorrectHolm] corrects them together.
// Rows whose runs all have the values of an earlier row are no tests.
func (t *Table) judge(reference string, only []string) error {
	t.measured(only)
	against, err := t.references(reference)
	if err != nil {
		return err
	}
	f := family{Table: t, known: map[test]*metrics.Paired{}}
	best := make([]*metrics.Paired, len(t.Metrics))
	for row := range t.Metrics {
		if t.Metrics[row].SameAs != "" {
			continue
		}
		for i, from := range against {
			f.count(row, i, from)
		}
		for i := range t.Models {
			if other := f.hardest(row, i); other >= 0 {
				best[row] = f.count(row, i, other)
				t.Metrics[row].Cells[i].Best = true
			}
		}
	}
	t.Tests = metrics.CorrectHolm(f.list)
	for row := range t.Metrics {
		m := &t.Metrics[row]
		same := slices.IndexFunc(t.Metrics, func(other Metric) bool { return other.Name == m.SameAs })
		for i := range m.Cells {
			cell := &m.Cells[i]
			if same >= 0 {
				cell.Paired, cell.Best = t.Metrics[same].Cells[i].Paired, t.Metrics[same].Cells[i].Best && m.Better == t.Metrics[same].Better
				continue
			}
			cell.Paired = f.difference(row, i, against[i])
			cell.Best = cell.Best && best[row].Shown()
		}
	}
	return nil
}

// references returns for each model the index of the model that it is compared with, -1 for a reference.
func (t *Table) references(given string) (against []int, err error) {
	order := lists.Range(0, len(t.Models))
	slices.SortStableFunc(order, func(a, b int) int { // models with several seeds first
		return min(2, len(t.Models[b].members)) - min(2, len(t.Models[a].members))
	})
	if given != "" {
		chosen, err := t.find(given)
		if err != nil {
			return nil, err
		}
		order = append([]int{chosen}, slices.DeleteFunc(order, func(i int) bool { return i == chosen })...)
	}
	t.reference = order[0]
	against = slices.Repeat([]int{-1}, len(order))
	for at, i := range order {
		for _, from := range order[:at] {
			if against[from] < 0 && t.Models[i].sameImages(t.Models[from]) {
				against[i], t.Models[i].Against = from, t.Models[from].Label
				break
			}
		}
	}
	return against, nil
}

// Reference returns the model that the others are compared with.
func (t *Table) Reference() *Model { return t.Models[t.reference] }

// find returns the index of the model that the user calls so.
func (t *Table) find(given string) (int, error) {
	var names []string
	for _, is := range []func(m *Model) bool{
		func(m *Model) bool { return m.Label == given },
		func(m *Model) bool { return slices.Contains(m.Runs, given) },
		func(m *Model) bool { return m.Name == given },
	} {
		if i := slices.IndexFunc(t.Models, is); i >= 0 {
			return i, nil
		}
	}
	for _, m := range t.Models {
		names = append(names, fmt.Sprintf("%s (%s)", m.Label, m.Name))
	}
	return 0, fmt.Errorf("%w: got %q, want one of %s", ErrUnknown, given, strings.Join(names, ", "))
}

// measured lists the metrics with the means of the models, those by which they are judged first. Variants of metrics are left out unless
// they were chosen.
func (t *Table) measured(only []string) {
	var names, first []string
	for _, m := range t.Models {
		first = append(first, m.first...)
		for _, v := range m.members[0].result.Shown() {
			if !slices.Contains(names, v.Name) && (only == nil || slices.Contains(only, v.Name)) {
				names = append(names, v.Name)
			}
		}
	}
	for _, name := range slices.Clone(names) { // of a mean over splits, the single splits are pairs, not metrics
		splits, _, _ := metrics.Splits(name)
		names = slices.DeleteFunc(names, func(one string) bool { return slices.Contains(splits, one) })
	}
	if !t.asked {
		names = slices.DeleteFunc(names, func(name string) bool { return only == nil && metrics.IsVariant(name) && !slices.Contains(first, name) })
		rank := func(name string) int {
			if i := slices.Index(first, name); i >= 0 {
				return i
			}
			return len(first)
		}
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	}
	for _, name := range names {
		row := Metric{Name: name, Better: metrics.Neither}
		if measure, ok := metrics.MeasureOf(name); ok {
			row.Better, row.measure = measure.Better, measure
		}
		for _, m := range t.Models {
			row.Cells = append(row.Cells, m.cell(name))
		}
		lacks := func(c Cell) bool { return !c.Measured }
		if !slices.ContainsFunc(row.Cells, func(c Cell) bool { return c.Measured }) || only == nil && !t.asked && row.Better == metrics.Neither && slices.ContainsFunc(row.Cells, lacks) {
			continue // a number that is neither better nor shared, such as kl of one model, compares nothing
		}
		if i := slices.IndexFunc(t.Metrics, func(other Metric) bool { return other.SameAs == "" && t.equal(other.Name, name) }); i >= 0 {
			row.SameAs = t.Metrics[i].Name
		}
		t.Metrics = append(t.Metrics, row)
	}
}

// equal reports whether two metrics have equal values in all runs, up to rounding.
func (t *Table) equal(a, b string) bool {
	for _, m := range t.Models {
		for _, one := range m.members {
			if !metrics.EqualUpToRounding(one.number(a), one.number(b)) {
				return false
			}
		}
	}
	return true
}

// number returns a metric of the run, NaN if it has none.
func (m *member) number(name string) float64 {
	if v, ok := m.result.Number(name); ok {
		return v
	}
	return math.NaN()
}

func (m *Model) cell(name string) Cell {
	var all []float64
	for _, one := range m.members {
		if v, ok := one.result.Number(name); ok {
			all = append(all, v)
		}
	}
	switch {
	case len(all) < len(m.members): // the mean over the others would not be comparable
		return Cell{}
	case len(all) == 1:
		return Cell{Measured: true, Mean: all[0]}
	}
	mean, deviation := stat.MeanStdDev(all, nil)
	return Cell{Measured: true, Mean: mean, Deviation: deviation}
}

// test identifies the difference of a metric between two models, the second of which comes first in the table.
type test struct{ row, model, from int }

// family contains the differences of a table.
type family struct {
	*Table
	known map[test]*metrics.Paired // all that were computed; nil for models without pairs
	list  []*metrics.Paired        // those that are corrected together
}

// of returns the difference of a test.
func (f *family) of(k test) *metrics.Paired {
	p, ok := f.known[k]
	if !ok {
		p = f.Models[k.model].difference(f.Metrics[k.row].measure, f.Metrics[k.row].Name, f.Models[k.from])
		f.known[k] = p
	}
	return p
}

// difference returns the difference between any two models, nil for fewer than two pairs, or if from is negative.
func (f *family) difference(row, model, from int) *metrics.Paired {
	if from < 0 || model == from {
		return nil
	}
	p := f.of(test{row, max(model, from), min(model, from)})
	if p == nil || model > from {
		return p
	}
	reversed := p.Minus()
	return &reversed
}

// count adds a difference to those that are corrected together, and returns it.
func (f *family) count(row, model, from int) *metrics.Paired {
	if from < 0 {
		return nil
	}
	p := f.of(test{row, max(model, from), min(model, from)})
	if p != nil && !slices.Contains(f.list, p) {
		f.list = append(f.list, p)
	}
	return p
}

// hardest returns the model on the same images whose difference from the best one has the largest p-value; -1 if the model is not
// better in the mean than all of them, or has a difference from none.
func (f *family) hardest(row, best int) (other int) {
	other, better := -1, f.Metrics[row].Better
	if better == metrics.Neither {
		return -1
	}
	for i, c := range f.Metrics[row].Cells {
		if i == best || !c.Measured || !f.Models[i].sameImages(f.Models[best]) {
			continue
		}
		p := f.difference(row, best, i)
		if p == nil || p.Mean == 0 || (p.Mean > 0) != (better == metrics.Higher) {
			return -1
		}
		if other < 0 || p.P > f.difference(row, best, other).P {
			other = i
		}
	}
	return other
}

// sameImages reports whether two models were measured on the same images, regardless of the names of their data sets. Held-out
// images may depend on the seed: they must be equal for every common seed, or for all seeds if no seed is common. Stored results
// name their images by their declaration.
func (m *Model) sameImages(other *Model) bool {
	if m.Split != other.Split {
		return false
	}
	if m.stored != nil || other.stored != nil {
		return SameImages(m.stored, other.stored, data.Split(m.Split))
	}
	common, all := false, map[string]bool{}
	for _, a := range m.members {
		for _, b := range other.members {
			all[a.images], all[b.images] = true, true
			if a.seed == b.seed {
				if common = true; a.images != b.images {
					return false
				}
			}
		}
	}
	return common || len(all) == 1
}

// certain reports whether the trained model does not depend on the seed.
func (m *Model) certain() bool {
	return len(m.members) > 1 && m.members[0].parameters != "" &&
		!slices.ContainsFunc(m.members, func(one member) bool { return one.parameters != m.members[0].parameters })
}

// difference returns the difference of one metric from another model, paired by seed. With fewer than two common seeds, a
// measure that is a mean over splits is paired by split; each split has the mean over the seeds. The difference is nil if there
// are no pairs, or if the models were measured on different images.
func (m *Model) difference(measure metrics.Measure, name string, from *Model) *metrics.Paired {
	if !m.sameImages(from) {
		return nil
	}
	var is, was []float64
	for _, pair := range m.pairs(from) {
		is, was = append(is, measure.Compared(pair[0].number(name))), append(was, measure.Compared(pair[1].number(name)))
	}
	if slices.ContainsFunc(slices.Concat(is, was), math.IsNaN) { // of the others alone the difference would not be comparable
		return nil
	}
	p, err := metrics.PairedDifference(was, is)
	if err == nil && p.Low == p.High && m.certain() && from.certain() {
		p.Certain, p.P, p.Holm = p.Mean != 0, 0, 0
	}
	if splits, ratio, ok := metrics.Splits(name); ok && len(is) < 2 {
		is, was = nil, nil
		for _, split := range splits {
			is, was = append(is, m.mean(split)), append(was, from.mean(split))
		}
		p, err = metrics.PairedSplits(was, is, ratio)
	}
	if err != nil {
		return nil
	}
	return &p
}

// pairs returns the runs of two models with the same seed and images.
func (m *Model) pairs(from *Model) (list [][2]*member) {
	for i := range m.members {
		for j := range from.members {
			if a, b := &m.members[i], &from.members[j]; a.seed == b.seed && a.images == b.images {
				list = append(list, [2]*member{a, b})
			}
		}
	}
	return list
}

// Common returns the number of seeds that a model has in common with the reference, on the same images; 0 for the reference.
func (t *Table) Common(model int) int {
	m, from := t.Models[model], t.Models[t.reference]
	if m == from || !m.sameImages(from) {
		return 0
	}
	return len(m.pairs(from))
}

// mean is the mean of a metric over the seeds; NaN if one lacks it.
func (m *Model) mean(name string) float64 {
	sum := 0.0
	for i := range m.members {
		sum += m.members[i].number(name)
	}
	return sum / float64(len(m.members))
}

// Spread explains the values of a table of several seeds.
const Spread = "Values are means over the seeds, ± the standard deviation."

// Words explains the differences of the table: the reference, the correction and the verdicts.
func (t *Table) Words() string {
	if len(t.Models) == 0 {
		return ""
	}
	if !slices.ContainsFunc(t.Models, func(m *Model) bool { return len(m.members) > 1 }) {
		return "No difference is tested: intervals come from several seeds, so compare sweeps or runs of the same models with two seeds or more."
	}
	if len(t.Models) == 1 {
		return "All runs are trainings of one model: there is no difference to test. " + Spread
	}
	others := ""
	for i, m := range t.Models {
		if i != t.reference && m.Against == "" {
			others = ", those on other samples from the first of their samples"
		}
	}
	return fmt.Sprintf(Spread+" Differences are from %s%s, paired by seed, each with its 95 %% interval. A difference is shown if its p-value is below "+
		"0.05 after Holm's correction for %s; \"%s\" would be shown alone: choose metrics beforehand with --metrics. Differences by "+
		"rounding, rows equal to another one, and models that do not depend on the seed are not counted. Intervals cover the choice of the seeds, not that of "+
		"the measured samples. * marks a mean shown to be better than all others on the same samples.", t.Models[t.reference].Label, others, numeral.Of(t.Tests, "comparison"), metrics.Uncorrected)
}
