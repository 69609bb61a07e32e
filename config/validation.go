package config

import (
	"fmt"
	"slices"

	"tessera/metrics"
	"tessera/part/table"
)

// ObjectiveMetric is the name in train.metrics that stands for the objective and its terms.
const ObjectiveMetric = "loss"

// ValidatedTerms lists the indices of the loss terms that can be measured on validation images: see [losses.Reads.Validates].
func (m *Model) ValidatedTerms() (list []int) {
	for i, l := range m.Losses {
		if l.Loss != nil && l.Reads().Validates() {
			list = append(list, i)
		}
	}
	return list
}

// MeasuresObjective reports whether the terms of the objective are measured on the validation images after every epoch: where
// train.metrics asks for it, and where the model has no other validation error, because it has no decoder and no head that is
// compared with labels.
func (m *Model) MeasuresObjective() bool {
	return m.Dataset.Validates() && len(m.ValidatedTerms()) > 0 &&
		(slices.Contains(m.Train.Metrics, ObjectiveMetric) || len(m.Decoder) == 0 && len(m.labelled()) == 0 && !m.Opposed())
}

// SelectsOnValidation reports whether early stopping selects the epoch on validation images: by val_mse, by val_loss or by the
// negative log-likelihoods of heads. Where no images are held out, or where the model has none of these, the training loss
// selects the epoch.
func (m *Model) SelectsOnValidation() bool {
	return m.EarlyStops() && m.Dataset.Validates() && m.hasValidationError()
}

// hasValidationError reports whether the model has an error on validation images.
func (m *Model) hasValidationError() bool {
	return len(m.Decoder) > 0 || len(m.labelled()) > 0 || len(m.Losses) > 0 && len(m.ValidatedTerms()) == len(m.Losses) && !m.Opposed()
}

// noValidationError says why early stopping has no validation error, and what gives it one.
func (m *Model) noValidationError() (why, remedy string) {
	if m.hasValidationError() {
		return "no images are held out: validation = 0", "hold out images: dataset.validation = 0.1"
	}
	can, term := m.ValidatedTerms(), "it has no loss"
	if m.Opposed() {
		term = "its players minimise different terms"
	}
	for i, l := range m.Losses {
		if !slices.Contains(can, i) {
			term = fmt.Sprintf("loss[%d] (%s) cannot be measured on validation images", i, l.Kind)
			break
		}
	}
	return "the model has no decoder and no head that is compared with labels, and " + term, "add one of them"
}

// WatchedMetrics are the metrics of train.metrics, without the objective.
func (m *Model) WatchedMetrics() (metrics.Selection, error) {
	names := slices.DeleteFunc(slices.Clone(m.Train.Metrics), func(name string) bool { return name == ObjectiveMetric })
	return metrics.Select(names...)
}

// watched checks the metrics that are measured between epochs.
func (w *walk) watched() {
	m := w.model
	if len(m.Train.Metrics) == 0 || m.origin.Doubt("train").About("metrics") {
		return
	}
	for i, name := range m.Train.Metrics {
		key := fmt.Sprintf("metrics[%d]", i)
		if name == ObjectiveMetric {
			if len(m.ValidatedTerms()) == 0 && len(m.Losses) > 0 && !m.inDoubt("loss") {
				w.report("train", "", key, fmt.Sprintf("%s: no term can be measured on validation images", key), "leave it out")
			}
			continue
		}
		if _, err := metrics.Select(name); err != nil {
			w.report("train", "", key, fmt.Sprintf("%s: unknown metric %q", key, name), table.Suggest(name, append(metrics.Names(), ObjectiveMetric)))
		}
	}
	if m.Dataset.Source == nil || m.origin.Doubt("dataset") != nil {
		return
	}
	if !m.Dataset.Validates() {
		w.report("train", "", "metrics", "metrics: are measured on validation images, but validation = 0", "hold out a tenth of the images: dataset.validation = 0.1")
	}
}
