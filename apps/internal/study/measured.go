package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config"
	"tessera/show/figures"
	"tessera/sweep"
)

// shown is one setting of a sweep: its measured values, and the trial that represents it in figures.
type shown struct {
	figures.Measured
	model *config.Model
	row   *sweep.Row // the first of its trials that is done, nil where none is
}

// settings takes the settings of a sweep that was run. Results of another sweep are an error.
func settings(s *sweep.Sweep, r *sweep.Results) (all []shown, err error) {
	for _, setting := range r.Settings {
		i := slices.IndexFunc(s.Trials, func(t *sweep.Trial) bool { return slices.Contains(setting.Trials, t.ID) })
		if i < 0 {
			return nil, fmt.Errorf("study: the results are not of this sweep: it has no trial of the setting %q; take those that its Run returned",
				strings.TrimSpace(setting.Model+" "+values(r.Keys, setting)))
		}
		m := s.Trials[i].Model
		one := shown{model: m, Measured: figures.Measured{Model: setting.Model, Values: values(r.Keys, setting), Dataset: m.Dataset.Name, Split: r.Split,
			Done: len(setting.Seeds), Trials: len(setting.Trials), Mean: setting.Mean, Deviation: setting.Deviation}}
		one.P, one.Beta = Penalty(m)
		if m.Baseline == nil {
			one.Epochs = m.Train.Epochs
		}
		for j, row := range r.Trials {
			if row.Metrics != nil && slices.Contains(setting.Trials, row.Trial) {
				one.row = &r.Trials[j]
				break
			}
		}
		all = append(all, one)
	}
	if told(all) {
		for i := range all {
			all[i].Values = ""
		}
	}
	return all, nil
}

// Penalty returns target and weight of a model's first KL term, NaN where it has none.
func Penalty(m *config.Model) (p, beta float64) {
	if p, beta, ok := m.KL(); ok {
		return p, beta
	}
	return math.NaN(), math.NaN()
}

// values are the swept settings in words.
func values(keys []string, s sweep.Setting) string {
	var parts []string
	for i, text := range s.Texts(keys) {
		if text != "" { // else the key is not of this model
			parts = append(parts, keys[i]+"="+text)
		}
	}
	return strings.Join(parts, " ")
}

// told reports whether model, p and beta distinguish all settings.
func told(all []shown) bool {
	type key struct {
		model   string
		p, beta uint64 // NaN equals itself as bits
	}
	seen := map[key]bool{}
	for _, s := range all {
		k := key{s.Model, math.Float64bits(s.P), math.Float64bits(s.Beta)}
		if seen[k] {
			return false
		}
		seen[k] = true
	}
	return true
}
