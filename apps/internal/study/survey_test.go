package study

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tessera/apps/show/doc"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// surveyed is a reproduction without published rows.
func surveyed() Reproduction {
	return Reproduction{Name: "small", Title: "Small", About: "Bars.", Dataset: "bars", Columns: []string{"mse", "accuracy"}, Figures: []string{}}
}

func TestAPageWithoutPublishedRowsHasOneTableWithRangesOverTheSeeds(t *testing.T) {
	out := t.TempDir()
	p, results := reproduceAs(t, surveyed(), out, "targets", Options{}, config.Passes(2))
	if len(p.Survey.Rows) != 2 || len(p.Rows) != 0 {
		t.Fatalf("got %d rows in the table and %d compared, want 2 and 0", len(p.Survey.Rows), len(p.Rows))
	}
	for i, row := range p.Survey.Rows {
		var mse []float64
		for _, trial := range results.Trials[2*i : 2*i+2] {
			v, ok := trial.Metrics.Number("mse")
			if !ok {
				t.Fatal("a trial has no mse")
			}
			mse = append(mse, v)
		}
		if row[0] != "small" || row[1] != "100" || row[2] != "2" || row[3] != "2 of 2" || row[4] != ranged(mse) || row[5] != "–" ||
			!regexp.MustCompile(`^[\d.e+-]+( \(|$)`).MatchString(doc.Text(row[6])) {
			t.Errorf("row %d is %q, want 100 images, 2 epochs, the mse %s, no accuracy, and seconds", i, row, ranged(mse))
		}
	}
	page := read(t, filepath.Join(out, "page", "README.md"))
	contains(t, page, "# Small\n", "| model | images | epochs | seeds | mse | accuracy | seconds |", markdown(t, p.Survey), "All values are measured on")
	for _, never := range []string{"published", "tolerance", "![", "Differences"} {
		if strings.Contains(page, never) {
			t.Errorf("the page says %q:\n%s", never, page)
		}
	}
	if got := read(t, filepath.Join(out, "page", "table.csv")); got != string(csvOf(p.Survey)) || strings.Count(got, "\n") != 3 {
		t.Errorf("the table is\n%s", got)
	}
}

func TestATrialThatFailedIsARowWithoutValues(t *testing.T) {
	p, _ := reproduceAs(t, surveyed(), t.TempDir(), "wild", Options{})
	want := []string{"–", "–", "0 of 1", "–", "–"}
	row := p.Survey.Rows[len(p.Survey.Rows)-1]
	for i, cell := range want {
		if row[1+i] != cell {
			t.Errorf("the row is %q, want %q after the name", row, want)
			break
		}
	}
	contains(t, string(p.markdown()), "## Trials that failed")
}

func TestAModelWithoutATrialIsARowWithItsReason(t *testing.T) {
	p, _ := reproduceAs(t, surveyed(), t.TempDir(), "late", Options{}, config.Passes(1))
	if len(p.Survey.Rows) != 2 || p.Survey.Rows[0][3] != "1 of 1" || !slices.Equal(p.Survey.Rows[1], []any{"late", "–", "–", "0 of 0", "–", "–", "–"}) {
		t.Errorf("got the rows %q", p.Survey.Rows)
	}
	contains(t, string(p.markdown()), "## Models without a trial\n\n- `late`: hook.prune: from: the phase begins after epoch 30")
}

func TestATableOfSeveralDataSetsNamesThem(t *testing.T) {
	r := surveyed()
	r.Columns, r.With = []string{"parts_found"}, []string{"part_cosine=0.9"}
	p, _ := reproduceAs(t, r, t.TempDir(), "sets", Options{}, config.Passes(1))
	contains(t, string(p.markdown()), "| model | data set | images | epochs | seeds | parts_found | seconds |", "| small | bars | 100 | 1 | 1 of 1 |", "| swimming | swimmer | 256 | 1 | 1 of 1 |",
		"The metrics have the settings `--with part_cosine=0.9`.")
}

func TestDrawnImagesHaveTheirPrecisionAndRecall(t *testing.T) {
	r := surveyed()
	r.Columns, r.Drawing = []string{"mse"}, &Drawing{Features: "small", Count: 20, Seeds: []uint64{1, 2}}
	p, _ := reproduceAs(t, r, t.TempDir(), "models", Options{}, config.Passes(2))
	contains(t, string(p.markdown()), "| mse | precision | recall | precision, mixture | recall, mixture | seconds |", "compare 20 drawn images with as many test images, by the codes of `small`, for 2 seeds")
	small, components := p.Survey.Rows[0], p.Survey.Rows[1]
	for i := 5; i < 9; i++ {
		if share := regexp.MustCompile(`^[01][\d.]*( \(|$)`); !share.MatchString(doc.Text(components[i])) || small[i] != "–" {
			t.Errorf("column %d: got %q and %q, want a share, and none for the model of the features", i, components[i], small[i])
		}
	}
	if components[5] != components[7] || components[6] != components[8] { // the codes of a model without a prior are always those of the mixture
		t.Errorf("got %q", components)
	}
	r.Drawing = &Drawing{Features: "late", Count: 20, Seeds: []uint64{1}}
	if p, _ = reproduceAs(t, r, t.TempDir(), "models", Options{}, config.Passes(2)); p.Survey.Rows[1][5] != "–" {
		t.Errorf("without features: got %q", p.Survey.Rows[1])
	}
}

func TestRangesAreShort(t *testing.T) {
	for want, numbers := range map[string][]float64{
		"–": nil, "0.0123": {0.01234}, "0.0125 (0.012 to 0.013)": {0.012, 0.013}, "99.5 (98 to 101)": {98, 101}, "1234": {1234, 1234.2},
	} {
		expect.Equal(t, ranged(numbers), want, numbers)
	}
	expect.Equal(t, string(csvOf(&doc.Table{Columns: doc.Columns("a", "b"), Rows: [][]any{{"1, 2", "x"}}})), "a,b\n\"1, 2\",x\n")
}

// shownOf is the second table of a page.
func shownOf(rows []ComparedRow) *doc.Table {
	t, _ := shownTable(rows)
	return t
}

// markdown is the text of a table on a page.
func markdown(t *testing.T, table *doc.Table) string {
	var b strings.Builder
	fatal.If(t, (&doc.Document{Blocks: []doc.Block{table}}).Markdown(&b))
	return b.String()
}
