package page

import (
	"fmt"
	"slices"
	"strings"

	"tessera/config"
	"tessera/data"
	"tessera/metrics"
	"tessera/sweep"
)

// DifferenceTable is the settings of a sweep that are measured on the same images, each compared with the same one.
type DifferenceTable struct {
	Words   string
	Metrics []string
	Rows    []DifferenceRow
}

// DifferenceRow is one setting.
type DifferenceRow struct {
	Model  string
	Values []string          // of the keys
	Pairs  int               // seeds
	Paired []*metrics.Paired // in the order of the metrics, nil where there is no difference
}

// Open reports whether the table is short enough to be shown unasked.
func (t DifferenceTable) Open() bool { return len(t.Rows) <= 12 }

// differences compares the settings that are measured on the same images with the first selected one of them, else with the first
// one of several seeds.
func (s *Sweep) differences(r *sweep.Results) {
	sets, several := s.setsOf(r), false
	for _, i := range selectedFirst(r) {
		several = several || len(r.Settings[i].Trials) > 1
		if sets[i] == nil || len(r.Settings[i].Seeds) < 2 {
			continue
		}
		d := r.Differences(i, sets)
		if len(d.Metrics) == 0 {
			continue
		}
		s.Differences = append(s.Differences, differenceTable(r, i, d))
		sets[i] = nil
		for j, pairs := range d.Pairs {
			if pairs > 1 {
				sets[j] = nil // no other table has it
			}
		}
	}
	if len(r.Settings) > 1 && !several && len(s.Measures) > 0 {
		s.OneSeed = "One seed shows no difference between settings: give the sweep several seeds."
	}
	s.Intervals = "One in twenty such intervals does not contain the true difference."
	if len(r.Selected) > 0 {
		s.Intervals = fmt.Sprintf("The values are of the %s split, by which settings were selected: there the selected ones look too good, and "+
			"more than one in twenty of their intervals may not contain the true difference.", r.Split)
	}
}

// setsOf are the data sets of the settings, nil where no trial of a setting can be opened.
func (s *Sweep) setsOf(r *sweep.Results) []*config.Dataset {
	sets := make([]*config.Dataset, len(r.Settings))
	for i, one := range r.Settings {
		for _, trial := range one.Trials {
			if sets[i] = s.sets[trial]; sets[i] != nil {
				break
			}
		}
	}
	return sets
}

// group gives settings that are measured on the same images the same number: only among these there is a best one. Sets that are not
// known are taken for one.
func (s *Sweep) group(r *sweep.Results) {
	sets := s.setsOf(r)
	for i := range s.Settings {
		s.Settings[i].Images = slices.IndexFunc(sets[:i+1], func(set *config.Dataset) bool {
			return set == sets[i] || sweep.SameImages(set, sets[i], data.Split(r.Split))
		})
	}
}

// selectedFirst lists the indices of the settings, the selected ones first.
func selectedFirst(r *sweep.Results) (list []int) {
	selected := func(one sweep.Setting) bool {
		return slices.ContainsFunc(r.Selected, func(other sweep.Setting) bool { return slices.Equal(one.Trials, other.Trials) })
	}
	for _, wanted := range []bool{true, false} {
		for i, one := range r.Settings {
			if selected(one) == wanted {
				list = append(list, i)
			}
		}
	}
	return list
}

// differenceTable is the table of the differences from one setting.
func differenceTable(r *sweep.Results, from int, d sweep.Differences) DifferenceTable {
	first, t := r.Settings[from], DifferenceTable{Metrics: d.Metrics}
	t.Words = fmt.Sprintf("Mean differences from %s, each with its 95 %% confidence interval, paired by seed.", settingText(first, r.Keys))
	for i, one := range r.Settings {
		if d.Pairs[i] < 2 {
			continue
		}
		t.Rows = append(t.Rows, DifferenceRow{one.Model, one.Texts(r.Keys), d.Pairs[i], d.Paired[i]})
	}
	return t
}

// settingText names a setting: "shallow (encoder.0.units = 16)".
func settingText(one sweep.Setting, keys []string) string {
	var parts []string
	for i, text := range one.Texts(keys) {
		if text != "" { // else the key is not of this model
			parts = append(parts, keys[i]+" = "+text)
		}
	}
	if len(parts) == 0 {
		return one.Model
	}
	return fmt.Sprintf("%s (%s)", one.Model, strings.Join(parts, ", "))
}
