package figures

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tessera/apps/show/doc"
	"tessera/internal/numeral"
	"tessera/metrics"
)

// publishedCSV contains the published values of the study.
//
//go:embed published.csv
var publishedCSV []byte

// Published is one published row of the study; published.csv explains the sources and columns. Values lacks metrics that were
// not published.
type Published struct {
	Source   string // "table 1", "table 2", "notebook", "figure 8", "figure 8 deep"
	Dataset  string
	Model    string
	Declared string // the corresponding shipped model, "" if there is none
	Point
	Note string
}

// PublishedRows returns all published rows, in the order of the tables.
func PublishedRows() []Published {
	rows, err := publishedRows()
	if err != nil {
		panic(err) // the file is part of the program; a test reads it
	}
	return slices.Clone(rows)
}

var publishedRows = sync.OnceValues(func() ([]Published, error) { return parsePublished(publishedCSV) })

// PublishedCurves returns the points of figure 8 of the study: those of the auto-encoders with a convolutional encoder if deep
// is true, otherwise those of the shallow ones.
func PublishedCurves(deep bool) []Point {
	source := "figure 8"
	if deep {
		source += " deep"
	}
	return pointsOf(func(r Published) bool { return r.Source == source })
}

// PublishedTables returns the points of the tables and notebooks for a data set, labelled by model, p and beta.
func PublishedTables(dataset string) []Point {
	return pointsOf(func(r Published) bool {
		return r.Dataset == dataset && (r.Source == "table 1" || r.Source == "table 2" || r.Source == "notebook")
	})
}

func pointsOf(wanted func(Published) bool) []Point {
	var points []Point
	for _, r := range PublishedRows() {
		if wanted(r) {
			points = append(points, r.Point)
		}
	}
	return points
}

func parsePublished(text []byte) ([]Published, error) {
	read := csv.NewReader(bytes.NewReader(text))
	read.Comment = '#'
	records, err := read.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("published.csv: %w", err)
	}
	var rows []Published
	for i, record := range records[1:] {
		row := Published{Source: record[0], Dataset: record[1], Model: record[2], Declared: record[3], Note: record[14]}
		row.P, row.Beta = math.NaN(), math.NaN()
		for j := 4; j < 14; j++ {
			if record[j] == "" {
				continue
			}
			number, err := strconv.ParseFloat(record[j], 64)
			if err != nil {
				return nil, fmt.Errorf("published.csv: row %d, %s: %w", i+1, records[0][j], err)
			}
			switch name := records[0][j]; name {
			case "p":
				row.P = number
			case "beta":
				row.Beta = number
			default:
				row.Values.Set(name, number)
			}
		}
		row.Label = row.Model
		if !math.IsNaN(row.P) {
			row.Label = fmt.Sprintf("%s p=%v β=%v", row.Model, row.P, row.Beta)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

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
	Split     string         // measured images, as in [Point]
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
func (m Measured) Point() Point {
	return Point{Label: m.name(), P: m.P, Beta: m.Beta, Values: m.Mean, Split: m.Split}
}

func (m Measured) name() string { return strings.TrimSpace(m.Model + " " + m.Values) }

// ComparedRow pairs a measured model with its published numbers; one of the two may be nil.
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

// Is reports whether the measured model corresponds to the published row.
func (p Published) Is(m Measured) bool {
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
	return orNaN(r.Measured.Mean, name)
}

// published returns the named published metric, NaN if unknown.
func (r ComparedRow) published(name string) float64 {
	if r.Published == nil {
		return math.NaN()
	}
	return orNaN(r.Published.Values, name)
}

// number formats a metric with four digits, "-" if unknown.
func number(v float64) string { return numeral.Float(v) }

// measuredText formats a measured metric, with its deviation if there are several seeds.
func (r ComparedRow) measuredText(name string) string {
	deviation := math.NaN()
	if r.Measured != nil {
		deviation = orNaN(r.Measured.Deviation, name)
	}
	return numeral.Spread(r.of(name), deviation)
}

// Table contains rows of cells below a header row.
type Table struct {
	Head  []string
	Rows  [][]string
	Names int // leading columns that name a row; 0 means 1
}

// Block returns the table as a block of a document.
func (t Table) Block() *doc.Table {
	b := &doc.Table{Columns: doc.Columns(t.Head...), Heads: t.Names}
	for _, row := range t.Rows {
		b.Rows = append(b.Rows, nil)
		for _, cell := range row {
			b.Rows[len(b.Rows)-1] = append(b.Rows[len(b.Rows)-1], cell)
		}
	}
	return b
}

// CSV formats the table for other programs.
func (t Table) CSV() []byte {
	var b bytes.Buffer
	_ = csv.NewWriter(&b).WriteAll(append([][]string{t.Head}, t.Rows...)) // a buffer takes everything
	return b.Bytes()
}

// JudgedTable compares reconstruction and sparsity with the published values, with differences and verdicts.
func JudgedTable(rows []ComparedRow) Table {
	t := Table{Names: 3, Head: []string{"model", "p", "β", "epochs", "seeds", "mse published", "mse ours", "difference", "Hoyer published", "Hoyer ours",
		"difference", "verdict"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, append(r.head(), number(r.published("mse")), r.measuredText("mse"), difference("%+.1f %%", 100*r.MSEDifference()),
			number(r.published("hoyer")), r.measuredText("hoyer"), difference("%+.4f", r.HoyerDifference()), r.Verdict()))
	}
	return t
}

// ShownTable contains the metrics without a known tolerance: the errors of max-approximation in several conventions, the
// classification of codes, and dead units. Metrics that no row has are omitted.
func ShownTable(rows []ComparedRow) Table {
	t := Table{Names: 3, Head: []string{"model", "p", "β"}}
	body := make([][]string, len(rows))
	for i, r := range rows {
		body[i] = r.head()[:3]
	}
	for _, c := range []struct{ metric, name string }{
		{"max_approx", "max_approx"}, {"max_approx_bias_dilated", "bias dilated"}, {"max_approx_reconstructed", "to reconstructions"},
		{"max_approx_clipped", "clipped"}, {"svm_accuracy", "SVM"}, {"dead_units", "dead units"},
	} {
		if slices.ContainsFunc(rows, func(r ComparedRow) bool { return !math.IsNaN(r.published(c.metric)) }) {
			t.Head = append(t.Head, c.name+" published")
			for i, r := range rows {
				body[i] = append(body[i], r.publishedText(c.metric))
			}
		}
		if slices.ContainsFunc(rows, func(r ComparedRow) bool { return !math.IsNaN(r.of(c.metric)) }) {
			t.Head = append(t.Head, c.name+" ours")
			for i, r := range rows {
				body[i] = append(body[i], r.measuredText(c.metric))
			}
		}
	}
	t.Rows = body
	return t
}

// DifferenceTable contains the differences of the measured models from the first one, in the given metrics; "-" for missing
// ones. Rows without common seeds, and the first model itself, are omitted. If some seeds lack a metric, the cell contains the
// number of seeds used.
func DifferenceTable(rows []ComparedRow, names []string) Table {
	t := Table{Names: 3, Head: append([]string{"model", "p", "β", "common seeds"}, names...)}
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
		t.Rows = append(t.Rows, row)
	}
	return t
}

// publishedText formats a published metric; the accuracy includes the deviation over the study's splits.
func (r ComparedRow) publishedText(name string) string {
	text := number(r.published(name))
	if name == "svm_accuracy" && !math.IsNaN(r.published("svm_std")) {
		text += " ± " + number(r.published("svm_std"))
	}
	return text
}

// head returns the first cells of the row: model, p, beta, epochs, seeds.
func (r ComparedRow) head() []string {
	p, beta := r.Penalty()
	epochs, seeds := "-", "-"
	if m := r.Measured; m != nil {
		seeds = fmt.Sprintf("%d of %d", m.Done, m.Trials)
		if m.Epochs > 0 {
			epochs = strconv.Itoa(m.Epochs)
		}
	}
	return []string{r.Name(), number(p), number(beta), epochs, seeds}
}

func difference(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}

// comparedMetrics lists the columns of [ComparisonCSV], by the names of `eval --json`.
var comparedMetrics = []string{"mse", "hoyer", "max_approx", "max_approx_bias_dilated", "max_approx_reconstructed", "max_approx_clipped",
	"svm_accuracy", "dead_units"}

// ComparisonCSV writes the rows for other programs: the published value, the mean and the deviation of every metric with six
// digits, empty if unknown.
func ComparisonCSV(rows []ComparedRow) []byte {
	head := []string{"source", "dataset", "model", "p", "beta", "epochs", "seeds", "verdict", "mse_difference", "hoyer_difference"}
	for _, name := range comparedMetrics {
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

// record returns the row for [ComparisonCSV].
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
	for _, name := range comparedMetrics {
		deviation := math.NaN()
		if r.Measured != nil {
			deviation = orNaN(r.Measured.Deviation, name)
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
