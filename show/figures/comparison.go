package figures

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/metrics"
)

// The tolerances of a reproduction: two trainings of the study with the same shallow settings differ by up to as much.
const (
	MSETolerance   = 0.10 // of the published mse
	HoyerTolerance = 0.02 // of sparsity, absolute
)

// Measured has the measured values of one model and its settings, over seeds.
type Measured struct {
	Model     string
	Values    string // its settings where they vary: "loss.1.target=0.1"
	Dataset   string
	Split     string         // images that it was measured on, as in [Point]
	P, Beta   float64        // of its KL penalty, NaN where it has none
	Epochs    int            // of its training; 0 for a baseline, which ends by its own rule
	Done      int            // seeds that are measured
	Trials    int            // seeds that are declared
	Mean      metrics.Values // by the names of `eval --json`; those without meaning for the model are left out
	Deviation metrics.Values // over seeds; none of one seed

	Pairs       int                       // seeds that it has in common with the first model
	Differences map[string]metrics.Paired // from the first model, paired by seed, by metric; none of fewer than two pairs
}

// Point is the point that figures show.
func (m Measured) Point() Point {
	return Point{Label: m.name(), P: m.P, Beta: m.Beta, Values: m.Mean, Split: m.Split}
}

func (m Measured) name() string { return strings.TrimSpace(m.Model + " " + m.Values) }

// ComparedRow is one of our models beside its published numbers; one of the two may be nil.
type ComparedRow struct {
	Published *Published
	Measured  *Measured
}

// Compare matches measured models with published rows: first the published rows in their order, then the models without one.
// A published row matches the model that it names, on the same data, with the same p and beta if both have them. A model
// that matches several rows takes the first.
func Compare(published []Published, measured []Measured) []ComparedRow {
	var rows []ComparedRow
	taken := make([]bool, len(measured))
	for i := range published {
		row := ComparedRow{Published: &published[i]}
		at := slices.IndexFunc(measured, func(m Measured) bool { return published[i].Is(m) })
		if at >= 0 && !taken[at] {
			row.Measured, taken[at] = &measured[at], true
		}
		rows = append(rows, row)
	}
	for i := range measured {
		if !taken[i] {
			rows = append(rows, ComparedRow{Measured: &measured[i]})
		}
	}
	return rows
}

// Is reports whether a measured model is the published one.
func (p Published) Is(m Measured) bool {
	agree := func(a, b float64) bool { return a == b || math.IsNaN(a) || math.IsNaN(b) }
	return p.Declared == m.Model && p.Dataset == m.Dataset && agree(p.P, m.P) && agree(p.Beta, m.Beta)
}

// MSEDifference is the difference of the mse divided by the published mse; NaN if one of the two is missing.
func (r ComparedRow) MSEDifference() float64 {
	return r.of("mse")/r.published("mse") - 1
}

// HoyerDifference is the difference of the codes' sparsity; NaN if one of the two is missing.
func (r ComparedRow) HoyerDifference() float64 {
	return r.of("hoyer") - r.published("hoyer")
}

// Outside names the metrics that differ from the published values by more than the tolerance.
func (r ComparedRow) Outside() []string {
	var names []string
	if math.Abs(r.MSEDifference()) > MSETolerance {
		names = append(names, "mse")
	}
	if math.Abs(r.HoyerDifference()) > HoyerTolerance {
		names = append(names, "Hoyer")
	}
	return names
}

// Verdict says whether the row is reproduced: "within", "OUTSIDE: mse", "not measured" where a published row has no trial that
// is done, "not measured: mse" where its trials lack a published metric, and nothing where no metric with a tolerance was published.
func (r ComparedRow) Verdict() string {
	unmeasured, judged := r.unmeasured()
	outside := r.Outside()
	switch {
	case r.Measured == nil || r.Measured.Done == 0:
		return "not measured"
	case !judged:
		return ""
	case len(outside) > 0:
		return "OUTSIDE: " + strings.Join(outside, ", ")
	case len(unmeasured) > 0:
		return "not measured: " + strings.Join(unmeasured, ", ")
	}
	return Within
}

// Within is the verdict on a row whose published metrics with a tolerance were all measured and are within it.
const Within = "within"

// unmeasured names the published metrics with a tolerance that have no measured value; judged is false where none was published.
func (r ComparedRow) unmeasured() (names []string, judged bool) {
	for _, m := range []struct {
		name       string
		published  float64
		difference float64
	}{{"mse", r.published("mse"), r.MSEDifference()}, {"Hoyer", r.published("hoyer"), r.HoyerDifference()}} {
		if math.IsNaN(m.published) {
			continue
		}
		judged = true
		if math.IsNaN(m.difference) {
			names = append(names, m.name)
		}
	}
	return names, judged
}

// Name is the name of the row: the declared model with its distinguishing settings, otherwise the published model.
func (r ComparedRow) Name() string {
	if r.Measured != nil {
		return r.Measured.name()
	}
	if r.Published == nil {
		return ""
	}
	return cmp.Or(r.Published.Declared, r.Published.Model)
}

// Penalty returns target and weight of the row's KL penalty, NaN where it has none.
func (r ComparedRow) Penalty() (p, beta float64) {
	if r.Published != nil {
		return r.Published.P, r.Published.Beta
	}
	if r.Measured != nil {
		return r.Measured.P, r.Measured.Beta
	}
	return math.NaN(), math.NaN()
}

// of is the measured metric of that name, NaN where it is not known.
func (r ComparedRow) of(name string) float64 {
	if r.Measured == nil {
		return math.NaN()
	}
	return orNaN(r.Measured.Mean, name)
}

// published is the published metric of that name, NaN where it is not known.
func (r ComparedRow) published(name string) float64 {
	if r.Published == nil {
		return math.NaN()
	}
	return orNaN(r.Published.Values, name)
}

// number prints a metric with four digits, "-" where it is not known.
func number(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// measuredText is a measured metric, with its deviation where there are several seeds.
func (r ComparedRow) measuredText(name string) string {
	text := number(r.of(name))
	if r.Measured != nil {
		if d, several := r.Measured.Deviation.Number(name); several {
			text += fmt.Sprintf(" ± %.2g", d)
		}
	}
	return text
}
