package figures

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Table is rows of cells under a head.
type Table struct {
	Head []string
	Rows [][]string
}

// Markdown writes the table as Markdown.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, c := range cells {
			b.WriteString(" " + strings.ReplaceAll(c, "|", `\|`) + " |")
		}
		b.WriteString("\n")
	}
	line(t.Head)
	b.WriteString(strings.Repeat("| --- ", len(t.Head)) + "|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}

// JudgedTable compares reconstruction and sparsity with the published values, with differences and verdicts.
func JudgedTable(rows []ComparedRow) Table {
	t := Table{Head: []string{"model", "p", "β", "epochs", "seeds", "mse published", "mse ours", "difference", "Hoyer published", "Hoyer ours",
		"difference", "verdict"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, append(r.head(), number(r.published("mse")), r.measuredText("mse"), difference("%+.1f %%", 100*r.MSEDifference()),
			number(r.published("hoyer")), r.measuredText("hoyer"), difference("%+.4f", r.HoyerDifference()), r.Verdict()))
	}
	return t
}

// ShownTable has the metrics without a known tolerance: the errors of max-approximation, each by its convention, the
// classification of codes, and dead units. The metrics that no row has are left out.
func ShownTable(rows []ComparedRow) Table {
	t := Table{Head: []string{"model", "p", "β"}}
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

// DifferenceTable has the differences of the measured models from the first one, in the given metrics; "-" where there is none.
// Rows without common seeds, the first model itself among them, are left out. A difference of fewer seeds, where some have no such metric, says how many.
func DifferenceTable(rows []ComparedRow, names []string) Table {
	t := Table{Head: append([]string{"model", "p", "β", "common seeds"}, names...)}
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

// publishedText is a published metric; the accuracy comes with the deviation that the study gives, over its splits.
func (r ComparedRow) publishedText(name string) string {
	text := number(r.published(name))
	if name == "svm_accuracy" && !math.IsNaN(r.published("svm_std")) {
		text += " ± " + number(r.published("svm_std"))
	}
	return text
}

// head has the first cells of every row: model, p, beta, epochs, seeds.
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

// comparedMetrics are the columns of [ComparisonCSV], by the names of `eval --json`.
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

// record is the row in [ComparisonCSV].
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

// field is a number in a file for programs.
func field(v float64) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
