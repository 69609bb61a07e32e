package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/data"
	"tessera/report"
	"tessera/study"
	"tessera/sweep"
	"tessera/train/folder"
)

// sweepPoints adds one point for each setting of a sweep with a finished trial: means over seeds.
func sweepPoints(path string, add func(p report.Point, dataset string) error) error {
	r, err := sweep.Read(path)
	if err != nil {
		return err
	}
	for _, s := range r.Settings {
		i := slices.IndexFunc(r.Trials, func(t sweep.Row) bool { return t.Metrics != nil && slices.Contains(s.Trials, t.Trial) })
		if i < 0 {
			continue
		}
		p, err := sweepPoint(path, s)
		if err != nil {
			return err
		}
		p.Label = settingLabel(r, s)
		if err := add(p, r.Trials[i].Metrics.Dataset); err != nil {
			return err
		}
	}
	return nil
}

// sweepPoint is the point of a setting: the means, and the penalty from the configuration of one of its trials.
func sweepPoint(path string, s sweep.Setting) (report.Point, error) {
	models, err := tessera.Load(filepath.Join(sweep.TrialPath(path, s.Trials[0]), folder.Config))
	if err != nil {
		return report.Point{}, err
	}
	m, err := models.Model(s.Model)
	if err != nil {
		return report.Point{}, err
	}
	p := report.Point{Values: s.Mean, AllImages: !data.HasTest(m.Dataset.Source)}
	p.P, p.Beta = study.Penalty(m)
	return p, nil
}

// settingLabel names a setting by its values, and by its model if there are several.
func settingLabel(r *sweep.Results, s sweep.Setting) string {
	parts := []string{s.Model}
	if !slices.ContainsFunc(r.Settings, func(other sweep.Setting) bool { return other.Model != s.Model }) && len(r.Keys) > 0 {
		parts = nil
	}
	for i, text := range s.Texts(r.Keys) {
		parts = append(parts, r.Keys[i]+"="+text)
	}
	return strings.Join(parts, " ")
}
