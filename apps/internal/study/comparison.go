package study

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/internal/numeral"
	"tessera/metrics"
)

// Tolerances of a reproduction. Two trainings of the study with the same shallow settings differ by up to these amounts.
const (
	MSETolerance   = 0.10 // relative difference of the mse
	HoyerTolerance = 0.02 // absolute difference of the sparsity
)

// Measured contains the measured values of one model with its settings, over seeds.
type Measured struct {
	Model     string
	Values    string // its varying settings: "loss.1.target=0.1"
	Dataset   string
	Split     string         // measured images, as in [figures.Point]
	P, Beta   float64        // target and weight of the KL penalty; NaN without this penalty
	Epochs    int            // epochs of its training; 0 for a baseline, which ends by its own rule
	Done      int            // number of measured seeds
	Trials    int            // number of declared seeds
	Mean      metrics.Values // means by the names of `eval --json`, without metrics that do not apply to the model
	Deviation metrics.Values // standard deviations over the seeds; empty for one seed

	Pairs       int                       // number of seeds in common with the first model
	Differences map[string]metrics.Paired // differences from the first model, paired by seed, by metric; empty for fewer than two pairs
}

// Point returns the point of the model in figures.
func (m Measured) Point() figures.Point {
	return figures.Point{Label: m.name(), P: m.P, Beta: m.Beta, Values: m.Mean, Split: m.Split}
}

func (m Measured) name() string { return strings.TrimSpace(m.Model + " " + m.Values) }

// ComparedRow pairs a measured model with its published numbers; one of the two may be nil.
type ComparedRow struct {
	Published *figures.Published
	Measured  *Measured
}

// pair matches measured models with published rows: first the published rows in their order, then the models without one.
// A published row matches the model that it names, on the same data, with the same p and beta if both have them. A model
// that matches several rows takes the first.
func pair(published []figures.Published, measured []Measured) []ComparedRow {
	var rows []ComparedRow
	taken := make([]bool, len(measured))
	for i := range published {
		row := ComparedRow{Published: &published[i]}
		at := slices.IndexFunc(measured, func(m Measured) bool { return corresponds(published[i], m) })
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

// corresponds reports whether a measured model is that of a published row.
func corresponds(p figures.Published, m Measured) bool {
	agree := func(a, b float64) bool { return a == b || math.IsNaN(a) || math.IsNaN(b) }
	return p.Declared == m.Model && p.Dataset == m.Dataset && agree(p.P, m.P) && agree(p.Beta, m.Beta)
}

// toleranceTests lists the metrics with a tolerance, and the differences that are compared with it.
var toleranceTests = []struct {
	metric, name string
	difference   func(ComparedRow) float64
	tolerance    float64
}{{"mse", "mse", ComparedRow.MSEDifference, MSETolerance}, {"hoyer", "Hoyer", ComparedRow.HoyerDifference, HoyerTolerance}}

// MSEDifference returns the difference of the mse divided by the published mse; NaN if one of the two is missing.
func (r ComparedRow) MSEDifference() float64 {
	return r.of("mse")/r.published("mse") - 1
}

// HoyerDifference returns the difference of the codes' sparsity; NaN if one of the two is missing.
func (r ComparedRow) HoyerDifference() float64 {
	return r.of("hoyer") - r.published("hoyer")
}

// Outside returns the names of the metrics that differ from the published values by more than the tolerance.
func (r ComparedRow) Outside() []string {
	var names []string
	for _, t := range toleranceTests {
		if math.Abs(t.difference(r)) > t.tolerance {
			names = append(names, t.name)
		}
	}
	return names
}

// Verdict returns whether the row is reproduced: "within", "OUTSIDE: mse", "not measured" if a published row has no finished
// trial, "not measured: mse" if its trials lack a published metric, and "" if no metric with a tolerance was published.
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

// unmeasured returns the names of the published metrics with a tolerance that were not measured; judged is false if no such
// metric was published.
func (r ComparedRow) unmeasured() (names []string, judged bool) {
	for _, t := range toleranceTests {
		if math.IsNaN(r.published(t.metric)) {
			continue
		}
		judged = true
		if math.IsNaN(t.difference(r)) {
			names = append(names, t.name)
		}
	}
	return names, judged
}

// Name returns the name of the row: the declared model with its distinguishing settings, otherwise the published model.
func (r ComparedRow) Name() string {
	if r.Measured != nil {
		return r.Measured.name()
	}
	if r.Published == nil {
		return ""
	}
	return cmp.Or(r.Published.Declared, r.Published.Model)
}

// Penalty returns target and weight of the row's KL penalty, NaN if it has none.
func (r ComparedRow) Penalty() (p, beta float64) {
	if r.Published != nil {
		return r.Published.P, r.Published.Beta
	}
	if r.Measured != nil {
		return r.Measured.P, r.Measured.Beta
	}
	return math.NaN(), math.NaN()
}

// of returns the named measured metric, NaN if unknown.
func (r ComparedRow) of(name string) float64 {
	if r.Measured == nil {
		return math.NaN()
	}
	return r.Measured.Mean.OrNaN(name)
}

// published returns the named published metric, NaN if unknown.
func (r ComparedRow) published(name string) float64 {
	if r.Published == nil {
		return math.NaN()
	}
	return r.Published.Values.OrNaN(name)
}

// measuredText formats a measured metric, with its deviation if there are several seeds.
func (r ComparedRow) measuredText(name string) string {
	deviation := math.NaN()
	if r.Measured != nil {
		deviation = r.Measured.Deviation.OrNaN(name)
	}
	return numeral.Spread(r.of(name), deviation)
}

// csvOf formats a table for other programs.
func csvOf(t *doc.Table) []byte {
	records := [][]string{nil}
	for _, c := range t.Columns {
		records[0] = append(records[0], c.Title)
	}
	for _, row := range t.Rows {
		records = append(records, nil)
		for _, cell := range row {
			records[len(records)-1] = append(records[len(records)-1], cell.(string))
		}
	}
	var b bytes.Buffer
	_ = csv.NewWriter(&b).WriteAll(records) // a buffer takes everything
	return b.Bytes()
}

// judgedTable compares reconstruction and sparsity with the published values, with differences and verdicts.
func judgedTable(rows []ComparedRow) *doc.Table {
	t := &doc.Table{Heads: 3, Columns: doc.Columns("model", "p", "β", "epochs", "seeds", "mse published", "mse ours", "difference", "Hoyer published", "Hoyer ours",
		"difference", "verdict")}
	for _, r := range rows {
		t.Row(append(r.head(), numeral.Float(r.published("mse")), r.measuredText("mse"), difference("%+.1f %%", 100*r.MSEDifference()),
			numeral.Float(r.published("hoyer")), r.measuredText("hoyer"), difference("%+.4f", r.HoyerDifference()), r.Verdict())...)
	}
	return t
}

// column is a column of the second table of a page: a metric without a known tolerance.
type column struct{ metric, name, about string }

var columns = []column{
	{"max_approx", "max_approx", "mean squared difference of the dilated original (grey-level dilation by the disk of radius 1: a pixel and its four neighbours) and " +
		"the output with every atom dilated, **the bias not dilated, nothing clipped**. The study's text and curves use this definition. For most rows " +
		"of its tables the value is known only from the curves, which come from other trainings."},
	{"max_approx_bias_dilated", "bias dilated", "the same with the bias dilated as an image too, **nothing clipped**. This is what tables 1 and 2 of the study print. For a model without bias both are the same."},
	{"max_approx_reconstructed", "to reconstructions", "the same as max_approx, compared with the dilated reconstruction instead of the dilated original."},
	{"max_approx_clipped", "clipped", "the same as max_approx with the output clipped to [0,1] before it is compared, as in the author's notebooks of 2019. " +
		"The values are several times smaller and cannot be compared with the others."},
	{"svm_accuracy", "SVM", "mean accuracy of a linear SVM on the codes of test images, 25 splits. The study's ± is over the splits of one training, ours over seeds. " +
		"Differences below 0.02 mean nothing: the study measured one model five times and found 0.782 to 0.803."},
	{"dead_units", "dead units", "units whose largest activation on the test images is below 1 % of the largest of any unit."},
}

// shownTable contains the metrics without a known tolerance, and lists what they are. Metrics that no row has are omitted.
func shownTable(rows []ComparedRow) (t *doc.Table, about []string) {
	t = &doc.Table{Heads: 3, Columns: doc.Columns("model", "p", "β"), Rows: make([][]any, len(rows))}
	for i, r := range rows {
		t.Rows[i] = r.head()[:3]
	}
	add := func(title string, of func(ComparedRow) float64, text func(ComparedRow) string) (added bool) {
		if added = slices.ContainsFunc(rows, func(r ComparedRow) bool { return !math.IsNaN(of(r)) }); added {
			t.Columns = append(t.Columns, doc.Columns(title)...)
			for i, r := range rows {
				t.Rows[i] = append(t.Rows[i], text(r))
			}
		}
		return added
	}
	for _, c := range columns {
		published := add(c.name+" published", func(r ComparedRow) float64 { return r.published(c.metric) }, func(r ComparedRow) string { return r.publishedText(c.metric) })
		ours := add(c.name+" ours", func(r ComparedRow) float64 { return r.of(c.metric) }, func(r ComparedRow) string { return r.measuredText(c.metric) })
		if published || ours {
			about = append(about, fmt.Sprintf("- **%s**: %s", c.name, c.about))
		}
	}
	return t, about
}

// differenceTable contains the differences of the measured models from the first one, in the given metrics; "-" for missing
// ones. Rows without common seeds, and the first model itself, are omitted. If some seeds lack a metric, the cell contains the
// number of seeds used.
func differenceTable(rows []ComparedRow, names []string) *doc.Table {
	t := &doc.Table{Heads: 3, Columns: doc.Columns(append([]string{"model", "p", "β", "common seeds"}, names...)...)}
	for _, r := range rows {
		if r.Measured == nil || r.Measured.Pairs == 0 {
			continue
		}
		row := append(r.head()[:3], strconv.Itoa(r.Measured.Pairs))
		for _, name := range names {
			text := "-"
			if d, ok := r.Measured.Differences[name]; ok {
				text = d.String()
				if d.Pairs != r.Measured.Pairs {
					text += fmt.Sprintf(" (%d seeds)", d.Pairs)
				}
			}
			row = append(row, text)
		}
		t.Row(row...)
	}
	return t
}

// publishedText formats a published metric; the accuracy includes the deviation over the study's splits.
func (r ComparedRow) publishedText(name string) string {
	text := numeral.Float(r.published(name))
	if name == "svm_accuracy" && !math.IsNaN(r.published("svm_std")) {
		text += " ± " + numeral.Float(r.published("svm_std"))
	}
	return text
}

// head returns the first cells of the row: model, p, beta, epochs, seeds.
func (r ComparedRow) head() []any {
	p, beta := r.Penalty()
	epochs, seeds := "-", "-"
	if m := r.Measured; m != nil {
		seeds = fmt.Sprintf("%d of %d", m.Done, m.Trials)
		if m.Epochs > 0 {
			epochs = strconv.Itoa(m.Epochs)
		}
	}
	return []any{r.Name(), numeral.Float(p), numeral.Float(beta), epochs, seeds}
}

func difference(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// comparedMetrics lists the columns of [comparisonCSV], by the names of `eval --json`.
func comparedMetrics() []string {
	names := []string{"mse", "hoyer"}
	for _, c := range columns {
		names = append(names, c.metric)
	}
	return names
}

// comparisonCSV writes the rows for other programs: the published value, the mean and the deviation of every metric with six
// digits, empty if unknown.
func comparisonCSV(rows []ComparedRow) []byte {
	head := []string{"source", "dataset", "model", "p", "beta", "epochs", "seeds", "verdict", "mse_difference", "hoyer_difference"}
	for _, name := range comparedMetrics() {
		head = append(head, name+"_published", name, name+"_deviation")
	}
	records := [][]string{head}
	for _, r := range rows {
		records = append(records, r.record())
	}
	var b bytes.Buffer
	_ = csv.NewWriter(&b).WriteAll(records) // a buffer takes everything
	return b.Bytes()
}

// record returns the row for [comparisonCSV].
func (r ComparedRow) record() []string {
	p, beta := r.Penalty()
	var source, dataset, epochs, seeds string
	if r.Published != nil {
		source, dataset = r.Published.Source, r.Published.Dataset
	}
	if m := r.Measured; m != nil {
		dataset, epochs, seeds = m.Dataset, strconv.Itoa(m.Epochs), strconv.Itoa(m.Done)
	}
	record := []string{source, dataset, r.Name(), field(p), field(beta), epochs, seeds, r.Verdict(), field(r.MSEDifference()),
		field(r.HoyerDifference())}
	for _, name := range comparedMetrics() {
		deviation := math.NaN()
		if r.Measured != nil {
			deviation = r.Measured.Deviation.OrNaN(name)
		}
		record = append(record, field(r.published(name)), field(r.of(name)), field(deviation))
	}
	return record
}

// field formats a number in a file for programs, "" if unknown.
func field(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
