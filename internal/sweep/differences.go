package sweep

import (
	"reflect"
	"slices"

	"tessera/config"
	"tessera/data"
	"tessera/metrics"
)

// Differences contains the paired differences between the settings of a sweep and a reference setting.
type Differences struct {
	Metrics []string            // names of the compared metrics; empty if no setting has two pairs
	Pairs   []int               // for each setting, the number of seeds that it shares with the reference and that are measured on the same images
	Paired  [][]*metrics.Paired // for each setting and metric; nil for the reference, and if there are fewer than two pairs
}

// comparedMetrics returns the metrics whose differences are shown. Each element lists alternatives, of which the first
// measured one is used. The accuracy of every head is included.
func (r *Results) comparedMetrics() [][]string {
	list, known := [][]string{{"mse"}, {"hoyer_contribution", "hoyer"}, {"max_approx"}}, map[string]bool{}
	for _, row := range r.Trials {
		if row.Metrics == nil {
			continue
		}
		for _, v := range row.Metrics.Values {
			if known[v.Name] {
				continue
			}
			known[v.Name] = true
			if m, _ := metrics.MeasureOf(v.Name); m.Name == "accuracy" {
				list = append(list, []string{v.Name})
			}
		}
	}
	return append(list, []string{"svm_accuracy"}, []string{"svm_holdout_accuracy"})
}

// Differences returns the differences between all settings and the setting with index from, paired by seed, each with
// its 95 % confidence interval; see [metrics.PairedDifference]. A difference is the value of the setting minus that of
// the reference. sets contains the data sets of the settings. Settings whose set is nil, or that are measured on other
// images, have no pairs. If from is not the index of a setting, or if the numbers of sets and settings differ, no
// setting has pairs. [metrics.CorrectHolm] corrects all differences together.
func (r *Results) Differences(from int, sets []*config.Dataset) Differences {
	d := Differences{Pairs: make([]int, len(r.Settings)), Paired: make([][]*metrics.Paired, len(r.Settings))}
	if from < 0 || from >= len(r.Settings) || len(sets) != len(r.Settings) {
		return d
	}
	measured := r.bySetting()
	one, other := make([][]*metrics.Result, len(measured)), make([][]*metrics.Result, len(measured))
	for i := range measured {
		if i != from && SameImages(sets[from], sets[i], data.Split(r.Split)) {
			one[i], other[i] = pairs(r.Settings[from].Seeds, measured[from], measured[i])
		}
		d.Pairs[i] = len(one[i])
	}
	for _, names := range r.comparedMetrics() {
		for _, name := range names {
			column, found := make([]*metrics.Paired, len(measured)), false
			for i := range column {
				column[i] = paired(one[i], other[i], name)
				found = found || column[i] != nil
			}
			if !found {
				continue
			}
			d.Metrics = append(d.Metrics, name)
			for i, p := range column {
				d.Paired[i] = append(d.Paired[i], p)
			}
			break
		}
	}
	metrics.CorrectHolm(slices.Concat(d.Paired...))
	return d
}

// bySetting returns, for every setting, the results of its finished trials by their seeds.
func (r *Results) bySetting() []map[uint64]*metrics.Result {
	rows := map[string]Row{}
	for _, row := range r.Trials {
		rows[row.Trial] = row
	}
	all := make([]map[uint64]*metrics.Result, len(r.Settings))
	for i, s := range r.Settings {
		all[i] = map[uint64]*metrics.Result{}
		for _, trial := range s.Trials {
			if row := rows[trial]; row.Metrics != nil {
				all[i][row.Seed] = row.Metrics
			}
		}
	}
	return all
}

// SameImages reports whether two trials with the same seed and the data sets a and b are measured on the same images of
// a split, with the same values. The images of a nil set are unknown and count as different from all others.
func SameImages(a, b *config.Dataset, split data.Split) bool {
	if a == nil || b == nil || !reflect.DeepEqual(a.Source, b.Source) {
		return false
	}
	if split != data.TrainSplit && split != data.ValidationSplit && !data.ScaleIsFitted(a.Source) {
		return true
	}
	one, other := a.Selection, b.Selection
	one.Labelled, other.Labelled = 0, 0 // this setting removes labels, not images
	return one == other
}

// pairs returns the results of two settings for each seed that both have.
func pairs(seeds []uint64, a, b map[uint64]*metrics.Result) (one, other []*metrics.Result) {
	for _, seed := range seeds {
		x, y := a[seed], b[seed]
		if x != nil && y != nil && x.Dataset == y.Dataset && x.Split == y.Split && x.Images == y.Images {
			one, other = append(one, x), append(other, y)
		}
	}
	return one, other
}

// paired returns the difference of one metric, nil if fewer than two pairs have the metric.
func paired(one, other []*metrics.Result, name string) *metrics.Paired {
	var a, b []float64
	for i := range one {
		x, both := one[i].Number(name)
		y, ok := other[i].Number(name)
		if both && ok {
			a, b = append(a, x), append(b, y)
		}
	}
	p, err := metrics.PairedDifference(a, b)
	if err != nil {
		return nil
	}
	return &p
}
