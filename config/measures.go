package config

import (
	"slices"

	"tessera/internal/lists"
	"tessera/layers"
	"tessera/losses"
	"tessera/metrics"
)

// usual are the metrics in the tables of every model but the classical ones that declare theirs.
var usual = []string{"accuracy", "mse", "hoyer", "dead_units", "useful_units", "negative_weights", "explained_variance"}

// OfUnits reports whether a metric says how units are used.
func OfUnits(metric string) bool {
	return slices.Contains([]string{"hoyer", "dead_units", "useful_units"}, metric)
}

// HasUnits reports whether the model computes its codes: a model that is linear in the data, such as a logistic regression, has the
// values of the samples in their place.
func (m *Model) HasUnits() bool {
	return len(m.Encoder) == 0 || slices.ContainsFunc(m.Encoder, func(l Layer) bool {
		_, flat := l.Layer.(*layers.Flatten)
		return !flat
	})
}

// FirstMeasures lists the metrics by which the model is judged, most important first: those that its kind declares, or the error of
// a model that reconstructs its samples, those that its loss terms declare, and of a generator with a judge the distance of drawn samples. It is
// the only such list: every measurement without a choice of metrics has these metrics, and every result has them first.
func (m *Model) FirstMeasures() []string {
	names, _ := m.kind().first()
	return names
}

func (m network) first() (names []string, alone bool) {
	latent := false
	for _, l := range m.Losses {
		if _, compares := l.Loss.(losses.Regression); compares && !m.regresses(l) {
			continue
		}
		if l.Loss != nil {
			names = append(names, losses.MeasuresOf(l.Loss)...)
		}
		_, diverges := l.Loss.(losses.Divergence)
		latent = latent || diverges
	}
	if m.Opposed() { // a generator and its judge
		names = append([]string{"drawn_precision", "drawn_recall"}, names...)
	}
	if m.Reconstructs() == nil && !latent {
		names = append([]string{"mse"}, names...)
	}
	return unique(names), false
}

func unique(names []string) (list []string) {
	list = lists.Add(list, names...)
	return list
}

// regresses reports whether a term compares a value with a column of numbers that the data set has.
func (m *Model) regresses(l Loss) bool {
	if _, ok := l.Loss.(losses.Regression); !ok {
		return false
	}
	against := l.Reads().Against
	return against == losses.Labels || m.hasColumn(against) && !m.drawsColumn(against)
}

// Targets lists the values that terms compare with columns of numbers, in the order of the terms: the first column of each value.
func (m *Model) Targets(l *Layout) (list []metrics.Target) {
	for _, term := range m.Losses {
		against := ""
		if m.regresses(term) {
			against = term.Reads().Against
		}
		if against == "" || !slices.Contains(l.Values(), term.On) || slices.ContainsFunc(list, func(t metrics.Target) bool { return t.Value == term.On }) {
			continue
		}
		c, _ := l.Column(against)
		t := metrics.Target{Value: term.On, Column: against, Size: l.Size(term.On), Names: c.In}
		for _, name := range []string{term.present, term.Mask} {
			if name != "" {
				t.Counted = append(t.Counted, name)
			}
		}
		list = append(list, t)
	}
	return list
}

// Language returns the value that predicts the tokens of a sample, of several the one that predicts the nearest tokens, without the bytes of
// tokens; nil if there is none.
func (m *Model) Language() (nearest *metrics.Language) {
	for _, term := range m.Losses {
		if masked, ok := term.Loss.(*losses.MaskedToken); ok && term.Reads().Against == losses.Images && nearest == nil {
			nearest = &metrics.Language{Value: term.On, Length: masked.Length, Hidden: masked.Hidden}
		}
		next, ok := term.Loss.(*losses.NextToken)
		if ok && term.Reads().Against == losses.Images && (nearest == nil || next.Shift < nearest.Shift) {
			nearest = &metrics.Language{Value: term.On, Shift: next.Shift, Length: next.Length}
		}
	}
	return nearest
}

// Pair returns the values of a sample that the first loss contrastive compares; nil if there is none.
func (m *Model) Pair() *metrics.Pair {
	for _, term := range m.Losses {
		if l, ok := term.Loss.(*losses.Contrastive); ok {
			return &metrics.Pair{First: term.On, Second: l.With}
		}
	}
	return nil
}

// Measures lists the metrics of tables and figures for which nobody has chosen any: [Model.FirstMeasures], and those of every model.
func (m *Model) Measures() []string {
	names, alone := m.kind().first()
	if alone {
		return slices.Clone(names)
	}
	names = unique(append(slices.Clip(names), usual...))
	if !m.HasUnits() {
		names = slices.DeleteFunc(names, OfUnits)
	}
	if m.Reconstructs() != nil && len(m.ClassHeads()) == 0 {
		names = append(names, "loss")
	}
	return names
}
