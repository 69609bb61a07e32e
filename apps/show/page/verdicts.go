package page

import (
	"fmt"
	"slices"
	"strings"

	"tessera/apps/show"
	"tessera/internal/numeral"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// Verdict is a number that indicates whether a run was successful, with its meaning.
type Verdict struct{ Value, Title, About string }

// verdicts lists the numbers that indicate whether a run was successful.
func (v *view) verdicts(r *evaluation.Report) (list []Verdict) {
	first := v.run.Model.FirstMeasures()
	reconstructs := len(first) > 0 && first[0] == "mse"
	if !reconstructs {
		list = v.judged(r, first)
	}
	mse, ok := r.Number("mse")
	if share, known := r.Number("explained_variance"); ok && known {
		list = append(list, explained(mse, share, r.Fitted, v.noun()))
	} else if ok {
		list = append(list, verdictOf("mse", mse))
	}
	if loss, ok := r.Number("loss"); ok && len(list) == 0 {
		list = append(list, verdictOf("loss", loss))
	}
	k := v.run.Units()
	if l0, ok := r.Number("l0"); ok {
		list = append(list, Verdict{numeral.Fixed(l0*float64(k), 1) + " of " + numeral.Count(k), "units make up one " + v.noun() + ", on average",
			"Mean number of units that contribute more than 1 % of the largest contribution. Fewer is sparser."})
	}
	if useful, ok := r.Number("useful_units"); ok {
		list = append(list, Verdict{numeral.Float(useful) + " of " + numeral.Count(k), "units are useful over all " + v.noun() + "s", "Least number of units that carry the reconstruction: holding all others at their mean raises the error by at most 1 %."})
	} else if dead, ok := r.Number("dead_units"); ok {
		list = append(list, Verdict{numeral.Float(dead) + " of " + numeral.Count(k), "units are dead", "Units that no " + v.noun() + " activates."})
	}
	if lost, ok := r.Number("additivity_lost"); ok && len(v.codes32) > 0 && slices.Max(v.codes32) != 0 && !negative(v.codes32) && !negative(v.atoms.Values) { // else atoms cancel by design
		list = append(list, Verdict{numeral.Percent(1 - lost), "of what atoms add remains",
			"100 % says that " + v.noun() + "s are sums of parts: nothing that an atom adds is taken away by another one."})
	}
	if reconstructs {
		list = append(list, v.judged(r, first)...)
	}
	return list
}

// verdictOf returns a number with the description of its metric.
func verdictOf(name string, number float64) Verdict {
	m, _ := metrics.MeasureOf(name)
	return Verdict{numeral.Float(number), name, show.AboutOf(m) + "."}
}

// mostJudged is the maximum number of verdicts of the metrics by which a model is judged.
const mostJudged = 4

// judged lists the first of the metrics by which a model is judged, except those of a reconstruction.
func (v *view) judged(r *evaluation.Report, first []string) (list []Verdict) {
	for _, one := range r.Shown() {
		m, _ := metrics.MeasureOf(one.Name)
		switch {
		case one.Missing != "" || !slices.Contains(first, m.Name) || len(list) == mostJudged || m.Name == "nll":
		case slices.Contains([]string{"mse", "explained_variance", "dead_units", "useful_units"}, m.Name): // have a verdict of their kind
		case strings.HasSuffix(m.Name, "accuracy"):
			list = append(list, Verdict{numeral.Percent(one.Number), one.Name, "Share of the " + v.noun() + "s whose class is predicted correctly."})
		default:
			list = append(list, verdictOf(one.Name, one.Number))
		}
	}
	return list
}

// explained compares an error with the error of the mean image, which equals the variance, and with the error on fitted images
// if it was measured.
func explained(mse, share float64, fitted *metrics.Result, noun string) Verdict {
	about := "Mean squared error " + numeral.Float(mse)
	if fitted != nil {
		if other, ok := fitted.Number("mse"); ok {
			about += fmt.Sprintf(", on fitted %ss %s", noun, numeral.Float(other))
		}
	}
	if share < 1 {
		about += fmt.Sprintf("; the mean %s alone has %s", noun, numeral.Float(mse/(1-share)))
	}
	if share < 0 {
		return Verdict{"no", "reconstruction: the mean " + noun + " is better", about + "."}
	}
	return Verdict{numeral.Percent(share), "of the variance is reconstructed", about + ". Higher is better, 100 % is perfect."}
}
