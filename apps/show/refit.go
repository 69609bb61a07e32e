package show

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"tessera/apps/show/doc"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/metrics"
	"tessera/posthoc"
	"tessera/posthoc/refit"
)

// Calibrated returns the document about a new calibration.
func Calibrated(c *refit.Calibrated) *doc.Document {
	d := &doc.Document{Data: c}
	t := &doc.Table{Columns: []doc.Column{{Title: "metric"}}}
	for _, v := range c.On[0].Before {
		t.Row(v.Name)
	}
	for _, on := range c.On {
		change(t, on.Split, on.Before, on.After)
	}
	d.Add(doc.Remark("%s: %s, fitted to %d %s images", c.Head, c.Calibration, c.Calibration.Samples, c.Calibration.Split), t)
	return d
}

// decided are the metrics that thresholds change.
var decided = []string{"decision_accuracy", "selection_rate_gap", "false_positive_rate_gap", "false_negative_rate_gap", "precision_gap", "false_omission_rate_gap"}

// few is the number of samples of a group below which its thresholds say little.
const few = 30

// Decided returns the document about new thresholds for a class.
func Decided(r *refit.Decided, positive string) *doc.Document {
	t, d := r.Thresholds, &doc.Document{Data: r}
	d.Add(doc.Remark("%s: %s for %q by %s, fitted to %d %s samples", r.Head, t.Criterion, positive, t.Column, t.Samples, t.Split))
	rules := &doc.Table{Columns: []doc.Column{{Title: "group"}, {Title: "samples", Right: true}, {Title: "positive if", Wrap: true}}}
	for _, g := range slices.Sorted(maps.Keys(t.Groups)) {
		name := groupName(t, g)
		rules.Row(name, t.Groups[g].Samples, ruleText(t.Groups[g]))
		if n := t.Groups[g].Samples; n < few {
			d.Add(doc.Warning("group %s has %d validation samples: its thresholds say little", name, n))
		}
	}
	table := &doc.Table{Columns: []doc.Column{{Title: "metric"}}}
	for _, name := range decided {
		table.Row(name)
	}
	for _, on := range r.On {
		change(table, on.Split, on.Before.Values, on.After.Values)
	}
	d.Add(rules, table)
	return d
}

// change adds the columns of the metrics of a split before and after a change of predictions. The first column has their names.
func change(t *doc.Table, split data.Split, before, after metrics.Values) {
	t.Columns = append(t.Columns, doc.Column{Title: string(split) + " before", Right: true}, doc.Column{Title: "after", Right: true})
	for i, row := range t.Rows {
		name := row[0].(string)
		for _, values := range []metrics.Values{before, after} {
			var shown any
			if v, ok := values.Number(name); ok {
				if shown = v; isCount(name) {
					shown = int(v)
				}
			}
			t.Rows[i] = append(t.Rows[i], shown)
		}
	}
}

func isCount(name string) bool {
	m, _ := metrics.MeasureOf(name)
	return m.Count
}

// groupName returns the name of a group, or its number if it has no name.
func groupName(t *posthoc.Thresholds, group string) string {
	if n, err := strconv.Atoi(group); err == nil && n < len(t.Names) {
		return t.Names[n]
	}
	return group
}

// ruleText describes the rule of a group: "p >= 0.4 with probability 0.25, p >= 0.6".
func ruleText(r posthoc.Rule) string {
	var steps []string
	for _, s := range r.Steps {
		text := "p >= " + numeral.Fixed(s.Threshold, 4)
		if s.Probability < 1-1e-9 {
			text += " with probability " + numeral.Fixed(s.Probability, 4)
		}
		steps = append(steps, text)
	}
	if steps == nil {
		return "never"
	}
	return strings.Join(steps, ", ")
}
