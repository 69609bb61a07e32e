package comparison

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/metrics"
)

// longestSetting is the largest width of a setting, in characters; lists of layers would be longer.
const longestSetting = 40

// Document returns what `tessera compare` reports: models, settings that differ, metrics with their differences, and atoms. Its JSON
// is that of the table.
func (t *Table) Document() *doc.Document {
	d := &doc.Document{Data: t}
	models := &doc.Table{Columns: []doc.Column{{}, {Title: "model"}, {Title: "measured on", Wrap: true}, {Title: "runs", Wrap: true, Spare: 1}}}
	for _, m := range t.Models {
		images := fmt.Sprintf("%s, %s, %s %s", m.dataset(), m.Split, numeral.Count(m.Images), m.Counted)
		if m.Note != "" {
			images += " (" + m.Note + ")"
		}
		models.Row(m.Label, m.Name, images, runsText(m.Runs))
	}
	settings := &doc.Table{Columns: []doc.Column{{Title: "setting"}}}
	for _, m := range t.Models {
		settings.Columns = append(settings.Columns, doc.Column{Title: m.Label})
	}
	for _, s := range t.Settings {
		row := []any{s.Key}
		for _, v := range s.Values {
			if text := []rune(v); len(text) > longestSetting {
				v = string(text[:longestSetting-3]) + "..."
			}
			row = append(row, cmp.Or(v, "-"))
		}
		settings.Row(row...)
	}
	d.Add(models, settings)
	if len(t.With) > 0 {
		d.Add(doc.Remark("measured with %s", strings.Join(t.With, ", ")))
	}
	d.Add(t.Differences(), t.atoms())
	return d
}

// runsText lists runs; trials of one sweep, whose names are hashes, are counted.
func runsText(runs []string) string {
	folders := lists.Map(runs, func(run string) string { return path.Dir(filepath.ToSlash(run)) })
	if folders = slices.Compact(folders); len(runs) > 1 && len(folders) == 1 && path.Base(folders[0]) == "trials" {
		return fmt.Sprintf("%d trials of %s", len(runs), path.Dir(folders[0]))
	}
	return strings.Join(runs, " ")
}

// dataset names the measured data: by its file, if it has one.
func (m *Model) dataset() string {
	switch {
	case m.declared != nil:
		return show.DatasetName(m.declared.Dataset)
	case m.stored != nil && m.stored.Source != nil:
		return show.DatasetName(*m.stored)
	}
	return m.Dataset
}

// Differences returns the metrics of all models with their differences. `compare`, its page and the page of a sweep show them so.
func (t *Table) Differences() *doc.Table {
	shown := &doc.Table{Columns: []doc.Column{{Title: "metric"}, {Title: "better"}}}
	for _, m := range t.Models {
		shown.Columns = append(shown.Columns, doc.Column{Title: m.Label})
	}
	tested := func(i int) bool {
		return slices.ContainsFunc(t.Metrics, func(row Metric) bool { return row.Cells[i].Paired != nil })
	}
	for i, m := range t.Models {
		if m.Against != "" && tested(i) {
			shown.Columns = append(shown.Columns, doc.Column{Title: fmt.Sprintf("%s - %s (95 %%)", m.Label, m.Against)}, doc.Column{Title: "significance", Minor: true})
		}
	}
	for _, row := range t.Metrics {
		cells := []any{row.Name, string(row.Better)}
		for _, c := range row.Cells {
			cells = append(cells, c.value(row.Name))
		}
		for i, c := range row.Cells {
			switch {
			case c.Paired != nil:
				cells = append(cells, c.Paired.String(), c.Paired.Significance())
			case t.Models[i].Against != "" && tested(i):
				cells = append(cells, nil, "")
			}
		}
		shown.Row(cells...)
	}
	if words := t.Words(); words != "" {
		shown.Notes = []string{words}
	}
	return shown
}

// value returns the mean with its deviation, nil for a metric that is not applicable.
func (c Cell) value(metric string) any {
	if !c.Measured {
		return nil
	}
	var mean any = doc.Spread{Mean: c.Mean, Deviation: c.Deviation}
	if m, _ := metrics.MeasureOf(metric); m.Count && c.Deviation == 0 && c.Mean == math.Trunc(c.Mean) {
		mean = int(c.Mean)
	}
	if c.Best {
		return doc.Best{Value: mean}
	}
	return mean
}

// atoms returns the similarity of atoms: the mean cosine of matched atoms and its value by chance.
func (t *Table) atoms() *doc.Table {
	shown := &doc.Table{Columns: []doc.Column{{Title: "atoms of"}, {Title: "matched cosine"}, {Title: "by chance"}, {Title: "Amari distance"}}}
	row := func(what string, a *metrics.Agreement) {
		if a != nil {
			shown.Row(what, a.Matched, a.Permuted, a.Amari)
		}
	}
	for _, m := range t.Models {
		row(m.Label+", between its seeds", m.Seeded)
		row(fmt.Sprintf("%s and %s", t.Reference().Label, m.Label), m.First)
	}
	for _, m := range t.Models {
		if slices.ContainsFunc(m.Unused, func(n int) bool { return n > 0 }) {
			counts := strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Unused), " ", ", "), "[]")
			shown.Notes = append(shown.Notes, fmt.Sprintf("%s: %s of %d atoms are not matched, because their units do not contribute (dead_units_contribution)", m.Label, counts, m.Atoms().Count))
		}
	}
	return shown
}

// Blocks returns the differences between the settings of a sweep for its page.
func (t *Table) Blocks() []doc.Block {
	settings := &doc.Facts{}
	for i, m := range t.Models {
		settings.Add("", m.Label, fmt.Sprintf("%s, %s", t.Title(i), numeral.Of(len(m.Seeds), "seed")))
	}
	return []doc.Block{settings, t.Differences()}
}
