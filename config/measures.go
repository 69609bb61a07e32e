package config

import (
	"slices"

	"tessera/losses"
)

// usual are the metrics in the table of a training of any other model.
var usual = []string{"accuracy", "mse", "explained_variance", "hoyer", "dead_units", "useful_units", "negative_weights"}

// FirstMeasures lists the metrics by which the model is judged, most important first: those that its kind declares, or the error of
// a model that reconstructs its samples, and those that its loss terms declare. It is the only such list: train and eval
// measure these metrics in addition to the usual ones.
func (m *Model) FirstMeasures() (names []string) {
	if m.Baseline != nil {
		if names = m.Baseline.Describe().Measures; names == nil {
			names = []string{"mse"}
		}
		return names
	}
	latent := false
	for _, l := range m.Losses {
		if declared, ok := l.Loss.(losses.Measured); ok {
			names = append(names, declared.Measures()...)
			_, diverges := l.Loss.(losses.Divergence)
			latent = latent || diverges
		}
	}
	if m.Reconstructs() == nil && !latent {
		names = append([]string{"mse"}, names...)
	}
	return slices.Compact(names)
}

// Measures lists the metrics in the table of a training: [Model.FirstMeasures], and those of every model.
func (m *Model) Measures() []string {
	names := slices.Clone(m.FirstMeasures())
	if m.Baseline != nil && m.Baseline.Describe().Measures != nil {
		return names
	}
	for _, name := range usual {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if m.Reconstructs() != nil && len(m.ClassHeads()) == 0 {
		names = append(names, "loss")
	}
	return names
}
