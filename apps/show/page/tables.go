package page

import (
	"math"
	"slices"
	"strings"

	"tessera"
	"tessera/data"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// Table is the table of a metric.
type Table struct {
	Title, Of string
	Columns   []string
	Rows      []TableRow
	Notes     []string
}

// TableRow is one row of a [Table].
type TableRow struct {
	Name   string
	Values []string
}

// tableTitles are the titles of known tables.
var tableTitles = map[string]string{"classes": "Classes", "fairness": "Fairness: rates by group, with 95 % intervals"}

// ofPage adds to the metrics what the page of a model shows besides: of a classifier each class, and each group if the samples have a
// column `group`; of a baseline the log-likelihood, which only densities have.
func ofPage(r *tessera.Run, o Options) metrics.Selection {
	chosen := o.Metrics
	var names []string
	switch {
	case len(r.ClassHeads()) > 0:
		names = []string{"per_class"}
		columns := data.ColumnsOf(r.Model.Dataset.Source, data.SearchDirs(o.Open.Data))
		if slices.ContainsFunc(columns, func(c data.Column) bool { return c.Name == "group" }) {
			names = append(names, "fairness")
		}
	case r.Model.Baseline != nil:
		names = []string{"log_likelihood"}
	default:
		return chosen
	}
	if chosen == nil {
		chosen = metrics.Default()
	}
	further, err := metrics.Select(names...)
	if err != nil {
		return chosen
	}
	for i := range further {
		further[i].Optional = true
	}
	return chosen.Add(further)
}

// tablesOf are the tables of the metrics that have some.
func tablesOf(r *evaluation.Report) (list []Table) {
	for _, t := range r.Tables {
		head, name, ok := strings.Cut(t.Name, ".")
		if !ok {
			head, name = "", t.Name
		}
		one := Table{Title: tableTitles[name], Of: t.Of, Columns: t.Columns, Notes: t.Notes}
		if one.Title == "" {
			one.Title = name
		}
		if head != "" {
			one.Title = "Head " + head + ": " + one.Title
		}
		for _, row := range t.Rows {
			values := make([]string, len(row.Numbers))
			for i, v := range row.Numbers {
				switch {
				case math.IsNaN(v):
					values[i] = "-"
				case v == math.Trunc(v) && v > 1:
					values[i] = grouped(int(v))
				default:
					values[i] = short(v)
				}
			}
			one.Rows = append(one.Rows, TableRow{row.Name, values})
		}
		list = append(list, one)
	}
	return list
}
