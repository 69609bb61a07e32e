package page

import (
	"slices"

	"tessera"
	"tessera/data"
	"tessera/metrics"
)

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
