package sweep

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/metrics"
)

// measuredSettings returns results with one metric for each setting. values contains, for each setting, the values for
// the seeds 1, 2, ...; NaN means that the trial has not finished.
func measuredSettings(split data.Split, metric string, values ...[]float64) *Results {
	r := &Results{Split: string(split)}
	for i, list := range values {
		one := Setting{Model: fmt.Sprint("m", i)}
		for j, v := range list {
			row := Row{Trial: fmt.Sprintf("%d-%d", i, j), Seed: uint64(j + 1)}
			one.Trials = append(one.Trials, row.Trial)
			if !math.IsNaN(v) {
				one.Seeds = append(one.Seeds, row.Seed)
				row.Metrics = &metrics.Result{Dataset: "bars", Split: string(split), Images: 10, Values: metrics.Values{{Name: metric, Number: v}}}
			}
			r.Trials = append(r.Trials, row)
		}
		r.Settings = append(r.Settings, one)
	}
	return r
}

func bars(seed uint64, s data.Selection) *config.Dataset {
	return &config.Dataset{Name: "bars", Source: &data.Bars{Count: 10, Seed: seed}, Selection: s}
}

// Computed by hand: the differences over the seeds 1, 2, 4 are 0.1, 0.3, 0.2, with mean 0.2 and standard deviation 0.1.
// The 97.5 % quantile of Student's t with two degrees of freedom is 4.3027, so half the interval is 4.3027 * 0.1 / √3 =
// 0.24842.
func TestDifferencesOfSettingsArePairedBySeed(t *testing.T) {
	gone := math.NaN()
	r := measuredSettings(data.TestSplit, "mse", []float64{1, 2, 3, 4, gone}, []float64{1.1, 2.3, gone, 4.2, 9}, []float64{1, gone, gone, gone, gone})
	set := bars(1, data.Selection{})
	d := r.Differences(0, []*config.Dataset{set, set, set})
	if !slices.Equal(d.Metrics, []string{"mse"}) || !slices.Equal(d.Pairs, []int{0, 3, 1}) || d.Paired[0][0] != nil || d.Paired[2][0] != nil {
		t.Fatalf("got %+v", d)
	}
	p := d.Paired[1][0]
	if p == nil || math.Abs(p.Mean-0.2) > 1e-12 || math.Abs(p.Low+0.04842) > 1e-4 || math.Abs(p.High-0.44842) > 1e-4 || p.Shown() {
		t.Errorf("got %+v, want 0.2 in [-0.0484, 0.4484]", p)
	}
	if d = r.Differences(1, []*config.Dataset{set, set, set}); math.Abs(d.Paired[0][0].Mean+0.2) > 1e-12 {
		t.Errorf("the other way round: %+v", d.Paired[0][0])
	}
	if one := measuredSettings(data.TestSplit, "mse", []float64{1}, []float64{2}); one.Differences(0, []*config.Dataset{set, set}).Metrics != nil {
		t.Error("one seed shows a difference")
	}
	for _, from := range []int{-1, 3} {
		if d := r.Differences(from, []*config.Dataset{set, set, set}); d.Metrics != nil || !slices.Equal(d.Pairs, []int{0, 0, 0}) {
			t.Errorf("differences from setting %d of 3: %+v", from, d)
		}
	}
	if d := r.Differences(0, []*config.Dataset{set}); d.Metrics != nil {
		t.Errorf("differences with one set for three settings: %+v", d)
	}
}

func TestTheHoyerSparsityOfContributionsReplacesThatOfCodes(t *testing.T) {
	set := bars(1, data.Selection{})
	r := measuredSettings(data.TestSplit, "hoyer", []float64{0.1, 0.2}, []float64{0.2, 0.4})
	if d := r.Differences(0, []*config.Dataset{set, set}); !slices.Equal(d.Metrics, []string{"hoyer"}) {
		t.Errorf("got %q", d.Metrics)
	}
	for i := range r.Trials {
		r.Trials[i].Metrics.Set("hoyer_contribution", float64(i*i))
	}
	if d := r.Differences(0, []*config.Dataset{set, set}); !slices.Equal(d.Metrics, []string{"hoyer_contribution"}) {
		t.Errorf("got %q", d.Metrics)
	}
}

func TestTheAccuraciesOfAllHeadsAreCompared(t *testing.T) {
	set := bars(1, data.Selection{})
	r := measuredSettings(data.TestSplit, "class.accuracy", []float64{0.1, 0.2}, []float64{0.2, 0.4})
	for i := range r.Trials {
		r.Trials[i].Metrics.Set("other.accuracy", float64(i*i))
	}
	if d := r.Differences(0, []*config.Dataset{set, set}); !slices.Equal(d.Metrics, []string{"class.accuracy", "other.accuracy"}) {
		t.Errorf("got %q", d.Metrics)
	}
}

func TestTrialsOnOtherImagesAreNotPaired(t *testing.T) {
	fifth, tenth := data.Selection{Validation: data.Validation{Fraction: 0.2}}, data.Selection{Validation: data.Validation{Fraction: 0.1}}
	csv := func(scale string, s data.Selection) *config.Dataset {
		return &config.Dataset{Name: "csv", Source: &data.CSV{Scale: data.Scale{Method: scale}}, Selection: s}
	}
	limited := fifth
	limited.Limit = 10
	few := fifth
	few.Labelled = 0.5
	for _, c := range []struct {
		what        string
		split       data.Split
		first, then *config.Dataset
		pairs       int
	}{
		{"the same set", data.ValidationSplit, bars(1, fifth), bars(1, fifth), 2},
		{"fewer labels", data.ValidationSplit, bars(1, fifth), bars(1, few), 2},
		{"another fraction", data.ValidationSplit, bars(1, fifth), bars(1, tenth), 0},
		{"another fraction, on all images", data.AllSplit, bars(1, fifth), bars(1, tenth), 2},
		{"fewer fitted images, not scaled", data.TestSplit, csv("", fifth), csv("", limited), 2},
		{"fewer fitted images, scaled by them", data.TestSplit, csv("standardise", fifth), csv("standardise", limited), 0},
		{"fewer labels, scaled by the fitted images", data.AllSplit, csv("minmax", fifth), csv("minmax", few), 2},
		{"other images of one name", data.AllSplit, bars(1, fifth), bars(2, fifth), 0},
		{"an unknown set", data.AllSplit, bars(1, fifth), nil, 0},
	} {
		r := measuredSettings(c.split, "mse", []float64{1, 2}, []float64{3, 5})
		if d := r.Differences(0, []*config.Dataset{c.first, c.then}); d.Pairs[1] != c.pairs {
			t.Errorf("%s: %d pairs, want %d", c.what, d.Pairs[1], c.pairs)
		}
	}
	r := measuredSettings(data.TestSplit, "mse", []float64{1, 2}, []float64{3, 5})
	r.Trials[3].Metrics.Images = 9
	if d := r.Differences(0, []*config.Dataset{bars(1, fifth), bars(1, fifth)}); d.Pairs[1] != 1 || d.Metrics != nil {
		t.Errorf("trials on 9 and 10 images: %+v", d)
	}
}
