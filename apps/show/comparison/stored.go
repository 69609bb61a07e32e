package comparison

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"tessera"
	"tessera/config"
	"tessera/data"
	"tessera/internal/sweep"
	"tessera/internal/train"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// Trial is what a comparison of stored results needs to know of a trial beside them.
type Trial struct {
	Dataset    *config.Dataset
	Parameters string // checksum of the trained parameters, "" for unknown
	Counted    string // "images" or "samples"
	Note       string // a caveat about the measured images, as in [evaluation.Report]
}

// TrialOf returns it of an open trial. The trial's results may be nil.
func TrialOf(path string, run *tessera.Run, r *metrics.Result) Trial {
	set := run.Model.Dataset // not the whole model, of which there may be thousands
	t := Trial{Dataset: &set, Parameters: Parameters(path), Counted: "images", Note: evaluation.ReportOf(run.Model, r).Note}
	if len(run.Shape()) == 1 {
		t.Counted = "samples"
	}
	return t
}

// Parameters returns the checksum of the parameters of a run, "" if they cannot be read.
func Parameters(path string) string {
	parameters, err := train.ParametersOf(path)
	if err != nil {
		return ""
	}
	return parameters.SHA256
}

// OfSweep compares the settings of a sweep by its stored results. It measures nothing and opens nothing. trials contains the trials
// by their names; a setting of which no trial is known has no images in common with any other. only lists the compared metrics, nil
// for all. The error is [ErrUnknown] for an unknown reference.
func OfSweep(r *sweep.Results, path string, trials map[string]Trial, reference string, only []string) (*Table, error) {
	rows, t := map[string]sweep.Row{}, &Table{}
	for _, row := range r.Trials {
		rows[row.Trial] = row
	}
	settings := make([]Setting, len(r.Keys))
	for _, one := range r.Settings {
		m := &Model{Name: one.Model, stored: &config.Dataset{}}
		for _, name := range one.Trials {
			row, known := rows[name], trials[name]
			if row.Metrics == nil {
				continue
			}
			if m.stored.Source == nil && known.Dataset != nil {
				m.stored, m.Counted, m.Note = known.Dataset, known.Counted, known.Note
			}
			m.first = row.First
			m.members = append(m.members, member{path: sweep.TrialPath(path, name), seed: row.Seed, result: row.Metrics, parameters: known.Parameters,
				images: fmt.Sprintf("%s, %s, %d", row.Metrics.Dataset, row.Metrics.Split, row.Metrics.Images)})
		}
		if len(m.members) == 0 {
			continue
		}
		first := m.members[0].result
		m.Dataset, m.Split, m.Images = first.Dataset, first.Split, first.Images
		t.Models = append(t.Models, m)
		for i, text := range one.Texts(r.Keys) {
			settings[i].Key, settings[i].Values = r.Keys[i], append(settings[i].Values, text)
		}
	}
	if len(t.Models) == 0 {
		return t, nil
	}
	t.Settings = settings
	t.label()
	return t, t.judge(reference, only)
}

// compareStored compares the stored results of a sweep, and the atoms of its trials.
func compareStored(ctx context.Context, path string, o Options) (*Table, error) {
	results, err := sweep.Read(path)
	if err != nil {
		return nil, err
	}
	trials, opened := map[string]Trial{}, map[string]member{}
	for _, row := range results.Trials {
		if row.Metrics == nil {
			continue
		}
		one := member{path: sweep.TrialPath(path, row.Trial)}
		if trials[row.Trial], err = one.open(ctx, row.Metrics, o); err != nil {
			return nil, fmt.Errorf("%s: %w", one.path, err)
		}
		opened[one.path] = one
	}
	if err := enough(len(opened)); err != nil {
		return nil, err
	}
	t, err := OfSweep(results, path, trials, o.Reference, nil)
	if err != nil {
		return nil, err
	}
	for _, m := range t.Models {
		for i := range m.members {
			one := opened[m.members[i].path]
			m.members[i].atoms, m.members[i].used = one.atoms, one.used
		}
	}
	return t, t.agreements()
}

// open reads the atoms of a trial, which contribute to the measured images, and what a comparison needs to know of it.
func (m *member) open(ctx context.Context, r *metrics.Result, o Options) (Trial, error) {
	run, err := tessera.Open(m.path, o.Open)
	if err != nil {
		return Trial{}, err
	}
	defer run.Close()
	if run.Atoms() != nil {
		split := data.Split(r.Split)
		if split == data.AllSplit { // the test split of a data set without test images
			split = data.TestSplit
		}
		sample, err := run.Sample(ctx, split)
		if err != nil {
			return Trial{}, err
		}
		if err := m.inspect(ctx, run, sample.Images); err != nil {
			return Trial{}, err
		}
	}
	return TrialOf(m.path, run, r), nil
}

// SameImages reports whether two trials with the same seed and the data sets a and b are measured on the same images of a
// split, with the same values. The images of a set without a source are unknown and differ from all others.
func SameImages(a, b *config.Dataset, split data.Split) bool {
	if a == nil || b == nil || a.Source == nil || !reflect.DeepEqual(a.Source, b.Source) {
		return false
	}
	if split != data.TrainSplit && split != data.ValidationSplit && !data.ScaleIsFitted(a.Source) {
		return true
	}
	one, other := a.Selection, b.Selection
	one.Labelled, other.Labelled = 0, 0 // this setting removes labels, not images
	return one == other
}

// Title returns the name of a model with the values of the settings that it has: "shallow (encoder.0.units = 16)".
func (t *Table) Title(model int) string {
	var parts []string
	for _, s := range t.Settings {
		if s.Values[model] != "" {
			parts = append(parts, s.Key+" = "+s.Values[model])
		}
	}
	if len(parts) == 0 {
		return t.Models[model].Name
	}
	return fmt.Sprintf("%s (%s)", t.Models[model].Name, strings.Join(parts, ", "))
}
