package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// ObjectiveMetric is the entry of train.metrics that stands for the objective and its terms.
const ObjectiveMetric = "loss"

// ValidatedTerms returns the indices of the loss terms that can be measured on validation images; see [Model.Watches].
func (m *Model) ValidatedTerms() (list []int) {
	for i, l := range m.Losses {
		if l.Loss != nil && m.Watches(l) {
			list = append(list, i)
		}
	}
	return list
}

// Validates reports whether a term can be measured on images alone; see [losses.Reads.Validates] and [Model.Watches].
func (m *Model) Validates(l Loss) bool { return l.Reads().Validates() && m.Watches(l) }

// Watches reports whether a term can be measured on validation images between epochs. It cannot if a layer draws the mask or the
// sample weights of the term in training; see [layers.Drawing].
func (m *Model) Watches(l Loss) bool {
	return !m.drawnInTraining(l.Mask, map[string]bool{}) && !m.drawnInTraining(l.SampleWeight, map[string]bool{})
}

// Reconstructs returns an error if the output does not reconstruct the images. This is so if the model has no decoder, or if
// every term that compares the output compares it with something else, such as the target of a transcoder or noise, or has a mask that is drawn
// in training, so that the other entries are not trained.
func (m *Model) Reconstructs() error {
	if len(m.Decoder) == 0 {
		return errors.New("the model has no decoder")
	}
	other := ""
	for i, l := range m.Losses {
		if l.Loss == nil || l.On != losses.Output || l.Reads().Against == "" {
			continue
		}
		switch against := l.Reads().Against; {
		case m.drawsColumn(against):
			other = fmt.Sprintf("compares it with the drawn column %q", against)
		case against != losses.Images && against != data.CompleteColumn:
			other = fmt.Sprintf("compares it with %q", against)
		case m.drawnInTraining(l.Mask, map[string]bool{}):
			other = "trains it only where the mask of a training step hides the images"
		default:
			return nil
		}
		other = fmt.Sprintf("the loss %s %s", m.TermName(i), other)
	}
	if other == "" {
		return nil
	}
	return errors.New("the output is no reconstruction: " + other)
}

// Target returns the column or value that the output is trained to equal: the images, unless all terms that compare the output compare it with
// something else.
func (m *Model) Target() string {
	target := ""
	for _, l := range m.Losses {
		if l.Loss == nil || l.On != losses.Output {
			continue
		}
		switch against := l.Reads().Against; against {
		case losses.Images:
			return against
		default:
			target = cmp.Or(target, against)
		}
	}
	return cmp.Or(target, losses.Images)
}

// OutputIsSample reports whether the output has the scale of the samples and the names of their values: unless all terms that compare it compare
// it with something else, such as the target of a transcoder.
func (m *Model) OutputIsSample(l *Layout) bool {
	target := m.Target()
	if target == losses.Images || target == data.CompleteColumn {
		return true
	}
	c, _ := l.Column(target)
	return c.AsImages
}

// drawsColumn reports whether the model draws the values of a column.
func (m *Model) drawsColumn(name string) bool {
	return m.Dataset.Drawn != nil && slices.ContainsFunc(*m.Dataset.Drawn, func(d data.Drawn) bool { return d.Name == name })
}

// drawnInTraining reports whether a value depends on random numbers that are drawn in training. The values in seen are
// known not to depend on any.
func (m *Model) drawnInTraining(name string, seen map[string]bool) bool {
	path, i, published, ok := m.stackOf(name)
	if !ok || seen[name] {
		return false
	}
	seen[name] = true
	list, _ := m.stack(path)
	if i < 0 {
		i = len(list) - 1
	}
	if i < 0 || isNil(list[i].Layer) {
		return false
	}
	if d, ok := list[i].Layer.(layers.Drawing); ok && slices.Contains(d.Draws(), published) {
		return true
	}
	return published == "" && slices.ContainsFunc(m.reads(path, m.source(path), list, i), func(from string) bool { return m.drawnInTraining(from, seen) })
}

// MeasuresObjective reports whether the terms of the objective are measured on the validation images after every epoch. This
// is so if train.metrics lists them, or if the model has no other validation error: no decoder, and no head that is compared
// with classes.
func (m *Model) MeasuresObjective() bool {
	return m.Dataset.Validates() && len(m.ValidatedTerms()) > 0 &&
		(slices.Contains(m.Train.Metrics, ObjectiveMetric) || m.Reconstructs() != nil && len(m.ClassHeads()) == 0 && !m.Opposed())
}

// SelectsOnValidation reports whether early stopping selects the epoch on validation images: by val_mse, by val_loss or by
// the negative log-likelihoods of heads. Without validation images, or without any of these errors, the training loss selects
// the epoch.
func (m *Model) SelectsOnValidation() bool {
	return m.EarlyStops() && m.Dataset.Validates() && m.hasValidationError()
}

// hasValidationError reports whether the model has an error that can be measured on validation images.
func (m *Model) hasValidationError() bool {
	return m.Reconstructs() == nil || len(m.ClassHeads()) > 0 || len(m.Losses) > 0 && len(m.ValidatedTerms()) == len(m.Losses) && !m.Opposed()
}

// noValidationError returns the reason why early stopping has no validation error, and how to get one.
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

// WatchedMetrics returns the metrics listed in train.metrics, without the objective, which a glob may name.
func (m *Model) WatchedMetrics() (metrics.Selection, error) {
	names := slices.DeleteFunc(slices.Clone(m.Train.Metrics), func(name string) bool { return name == ObjectiveMetric })
	chosen, err := metrics.Select(names...)
	return slices.DeleteFunc(chosen, func(c metrics.Choice) bool { return c.Metric.Describe().Measures[0].Name == ObjectiveMetric }), err
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
		chosen, err := metrics.Select(name)
		if err != nil {
			w.report("train", "", key, fmt.Sprintf("%s: unknown metric %q", key, name), table.SuggestOf(name, append(metrics.Names(), ObjectiveMetric), "`tessera list metrics`"))
		}
		for _, value := range metrics.ValuesOf(chosen) { // none after an error
			w.named("train", "", key, value)
		}
	}
	if m.readable() == nil {
		return
	}
	if !m.Dataset.Validates() {
		w.report("train", "", "metrics", "metrics: are measured on validation images, but validation = 0", "hold out a tenth of the images: dataset.validation = 0.1")
	}
}
