package sweep

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestMeansAndDeviationsAreOverSeeds(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	r := run(t, strings.Replace(declared, "[1, 2]", "[1, 2, 7]", 1), Options{Out: out})
	for i, s := range r.Settings {
		var x []float64
		for _, row := range r.Trials[3*i : 3*i+3] {
			expect.Equal(t, row.Values["loss.1.target"], s.Values["loss.1.target"], "setting", i, "has trial", row)
			mse, _ := row.Metrics.Number("mse")
			x = append(x, mse)
		}
		m := (x[0] + x[1] + x[2]) / 3
		d := math.Sqrt(((x[0]-m)*(x[0]-m) + (x[1]-m)*(x[1]-m) + (x[2]-m)*(x[2]-m)) / 2)
		gotMean, _ := s.Mean.Number("mse")
		gotDeviation, _ := s.Deviation.Number("mse")
		if math.Abs(gotMean-m) > 1e-15 || math.Abs(gotDeviation-d) > 1e-15 || d == 0 || !slices.Equal(s.Seeds, []uint64{1, 2, 7}) {
			t.Errorf("got %v ± %v over %v, want %v ± %v", gotMean, gotDeviation, s.Seeds, m, d)
		}
	}
}

func TestTablesSayWhatTheDocumentSays(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, declared, Options{Out: out})
	r, err := Read(out)
	if err != nil || !Is(out) || Is(filepath.Join(out, "trials")) {
		t.Fatal(err)
	}
	rows := readTable(t, filepath.Join(out, TableFile))
	if len(rows) != len(r.Trials) {
		t.Fatalf("%d rows, %d trials", len(rows), len(r.Trials))
	}
	for i, row := range rows {
		trial := r.Trials[i]
		var kept keptMetrics
		text, err := os.ReadFile(filepath.Join(TrialPath(out, row["trial"]), keptFile))
		if err != nil || json.Unmarshal(text, &kept) != nil {
			t.Fatal(err)
		}
		if row["trial"] != trial.Trial || row["loss.1.target"] != trial.Texts(r.Keys)[0] || row["seed"] != strconv.FormatUint(trial.Seed, 10) ||
			row["mse"] != number(kept.Measured.Values, "mse") || row["dataset"] != "bars" || row["images"] != "100" ||
			row["max_approx"] != number(trial.Metrics.Values, "max_approx") || row["error"] != "" {
			t.Errorf("row %v\nof trial %+v", row, trial)
		}
		if _, ok := row["svm_accuracy"]; ok {
			t.Error("a column of the SVM, which was not asked for")
		}
	}
	for i, row := range readTable(t, filepath.Join(out, SummaryFile)) {
		s := r.Settings[i]
		if row["model"] != "small" || row["seeds"] != "2" || row["hoyer"] != number(s.Mean, "hoyer") ||
			row["hoyer_deviation"] != number(s.Deviation, "hoyer") {
			t.Errorf("row %v\nof setting %+v", row, s)
		}
	}
	for _, row := range readTable(t, filepath.Join(out, TimingsFile)) {
		if s, err := strconv.ParseFloat(row["seconds"], 64); err != nil || s <= 0 || row["epochs"] != "3" {
			t.Errorf("timing %v", row)
		}
	}
}

// A sweep of data sets has them in the column of its key, and no second column of that name, which a reader of CSV would take instead.
func TestASweepOfDataSetsHasOneColumnOfThem(t *testing.T) {
	out := filepath.Join(t.TempDir(), "s")
	run(t, strings.Replace(declared, "set.loss.1.target = [0.1, 0.3]", `set.dataset = [{ name = "bars", count = 50 }, { name = "bars", count = 60 }]`, 1), Options{Out: out})
	for i, row := range readTable(t, filepath.Join(out, TableFile)) {
		if want := []string{"50", "60"}[i/2]; row["dataset"] != `{ name = "bars", count = `+want+` }` || row["images"] != want || row["split"] != "all" {
			t.Errorf("row %d is %v, want %s bars", i, row, want)
		}
	}
}

// readTable reads a CSV file as maps from column to cell.
func readTable(t *testing.T, path string) []map[string]string {
	t.Helper()
	f, err := os.Open(path)
	fatal.If(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	fatal.If(t, err)
	var rows []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, cell := range record {
			row[records[0][i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}
