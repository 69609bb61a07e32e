package page

import (
	"slices"

	"tessera"
	"tessera/apps/show"
	"tessera/data"
	"tessera/metrics"
)

// ofPage adds to the metrics those that judge the model, unless metrics were named, and of a classifier each class, and each group if the
// samples have a column `group`.
func ofPage(r *tessera.Run, o Options) (metrics.Selection, error) {
	var further []string
	if !o.Named {
		further = r.Model.FirstMeasures()
	}
	if len(r.ClassHeads()) > 0 {
		further = append(further, "per_class")
		columns := data.ColumnsOf(r.Model.Dataset.Source, data.SearchDirs(o.Open.Data))
		if slices.ContainsFunc(columns, func(c data.Column) bool { return c.Name == "group" }) {
			further = append(further, "fairness")
		}
	}
	if further == nil {
		return o.Metrics, nil
	}
	return show.Also(o.Metrics, further...)
}
