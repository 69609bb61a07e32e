package cli

import (
	"path/filepath"
	"slices"

	"tessera"
	"tessera/apps/internal/study"
	"tessera/show/figures"
	"tessera/sweep"
	"tessera/train/folder"
)

// sweepPoints adds one point for each setting of a sweep with a finished trial: means over seeds.
func sweepPoints(path string, add func(p figures.Point, dataset string) error) error {
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
		p.Label, p.Split = r.Labels().Setting(s), r.Trials[i].Metrics.Split
		if err := add(p, r.Trials[i].Metrics.Dataset); err != nil {
			return err
		}
	}
	return nil
}

// sweepPoint is the point of a setting: the means, and the penalty from the configuration of one of its trials.
func sweepPoint(path string, s sweep.Setting) (figures.Point, error) {
	models, err := tessera.Load(filepath.Join(sweep.TrialPath(path, s.Trials[0]), folder.Config))
	if err != nil {
		return figures.Point{}, err
	}
	m, err := models.Model(s.Model)
	if err != nil {
		return figures.Point{}, err
	}
	p := figures.Point{Values: s.Mean}
	p.P, p.Beta = study.Penalty(m)
	return p, nil
}

// shownRun is a run with its name in a figure.
type shownRun struct{ path, label string }

// shown lists the runs of a figure. A sweep stands for the first finished trial of each of its settings.
func (w *figureWork) shown() (list []shownRun, err error) {
	for _, path := range w.runs {
		if !sweep.Is(path) {
			list = append(list, shownRun{path, labelOf(path)})
			continue
		}
		r, err := sweep.Read(path)
		if err != nil {
			return nil, err
		}
		runs, labels := r.Shown(path)
		if len(runs) == 0 {
			return nil, usagef("%s: no trial of this sweep has finished", path)
		}
		for i, run := range runs {
			list = append(list, shownRun{run, labels[i]})
		}
	}
	return list, nil
}

// labelOf names a run by its folder, and a trial of a sweep by its settings.
func labelOf(run string) string {
	if label, ok := sweep.LabelOf(run); ok {
		return label
	}
	return filepath.Base(filepath.Clean(run))
}
