package study

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config"
	"tessera/metrics"
	"tessera/show/figures"
	"tessera/sweep"
)

// differ compares the trained models of the page with the first of them, paired by seed. measured and all are those of the
// settings of the results.
func (p *Page) differ(results *sweep.Results, measured []figures.Measured, all []shown) {
	trained := slices.DeleteFunc(slices.Clone(p.Rows), func(r figures.ComparedRow) bool { return r.Measured == nil || r.Measured.Done == 0 })
	if len(trained) < 2 {
		return
	}
	from, sets := 0, make([]*config.Dataset, len(all))
	for i := range all {
		sets[i] = &all[i].model.Dataset
		if trained[0].Measured == &measured[i] {
			from = i
		}
	}
	d := results.Differences(from, sets)
	p.first, p.differing = labelled(trained[0]), d.Metrics
	for i := range measured {
		measured[i].Pairs, measured[i].Differences = d.Pairs[i], map[string]metrics.Paired{}
		for j, paired := range d.Paired[i] {
			if paired != nil {
				measured[i].Differences[d.Metrics[j]] = *paired
			}
		}
	}
}

// Differences returns the differences of the trained models from the first one, with 95 % confidence intervals, and a sentence
// about them. Without two common seeds the table is empty, and the sentence says why; with fewer than two trained models both are
// empty.
func (p *Page) Differences() (figures.Table, string) {
	switch several := slices.ContainsFunc(p.Rows, func(r figures.ComparedRow) bool { return r.Measured != nil && r.Measured.Trials > 1 }); {
	case p.first == "":
		return figures.Table{}, ""
	case len(p.differing) == 0 && several:
		return figures.Table{}, fmt.Sprintf("No difference is shown: no model has two seeds in common with %s, the first trained model of this page, on the same images.", p.first)
	case len(p.differing) == 0:
		return figures.Table{}, "One seed shows no difference between models: give the sweep several seeds."
	}
	return figures.DifferenceTable(p.Rows, p.differing), fmt.Sprintf("Each value is the mean difference from %s, the first trained model of this page, with its 95 %% confidence interval.", p.first)
}

// differences writes the section of the differences between the models.
func (p *Page) differences(b *strings.Builder) {
	t, text := p.Differences()
	if text == "" {
		return
	}
	fmt.Fprintf(b, "## Differences between models\n\n%s", text)
	if len(t.Rows) > 0 {
		fmt.Fprintf(b, " Differences are paired by seed: mean ± t s / √n, by Student's t with n - 1 degrees of freedom. If an interval contains 0, "+
			"no difference is shown. One in twenty such intervals does not contain the true difference. They cover the choice of the seeds, "+
			"not that of the measured images.\n\n%s\n", t.Markdown())
		return
	}
	b.WriteString("\n\n")
}

// labelled names a model with target and weight of its KL penalty, which tell settings of one model apart.
func labelled(r figures.ComparedRow) string {
	if p, beta := r.Penalty(); !math.IsNaN(p) {
		return fmt.Sprintf("%s (p = %v, β = %v)", r.Name(), p, beta)
	}
	return r.Name()
}
