package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/metrics"
)

func TestPublishedRowsAreThoseOfTheStudy(t *testing.T) {
	rows := PublishedRows()
	count := map[string]int{}
	for i, r := range rows {
		count[r.Source]++
		if !(r.MSE > 0 && r.MSE < 0.1) {
			t.Errorf("row %d: mse %v", i, r.MSE)
		}
		for _, v := range []float64{r.Hoyer, r.SVM, r.SVMStd} {
			if v < 0 || v > 1 { // NaN is neither
				t.Errorf("row %d (%s): %v is not in [0,1]", i, r.Label, v)
			}
		}
		if strings.HasPrefix(r.Source, "table") && (math.IsNaN(r.SVM) || math.IsNaN(r.MaxApprox) || math.IsNaN(r.MaxApproxBiasDilated)) {
			t.Errorf("row %d (%s) lacks numbers", i, r.Label)
		}
	}
	for source, want := range map[string]int{"table 1": 6, "table 2": 5, "notebook": 10, "figure 8": 32, "figure 8 deep": 32} {
		if count[source] != want {
			t.Errorf("%s: %d rows, want %d", source, count[source], want)
		}
	}
}

func TestPublishedNumbersByHand(t *testing.T) {
	find := func(source, label string) Published {
		i := slices.IndexFunc(PublishedRows(), func(r Published) bool { return r.Source == source && r.Label == label })
		if i < 0 {
			t.Fatalf("no row %s, %s", source, label)
		}
		return PublishedRows()[i]
	}
	nmf := find("table 1", "sparse-nmf")
	if nmf.MSE != 0.0109 || nmf.Hoyer != 0.6504 || nmf.MaxApprox != 0.107 || nmf.MaxApproxClipped != 0.0222 || nmf.SVM != 0.812 || !math.IsNaN(nmf.P) {
		t.Errorf("sparse NMF: %+v", nmf)
	}
	shallow := find("table 1", "shallow")
	if shallow.MaxApprox != 18.04 || shallow.MaxApproxBiasDilated != 18.24 {
		t.Errorf("shallow: %+v", shallow)
	}
	deep := find("figure 8 deep", "asym-nonneg-kl p=0.01 β=0.05")
	if deep.MSE != 0.0261 || deep.Hoyer != 0.837 || deep.MaxApprox != 0.0308 || deep.MaxApproxReconstructed != 0.0098 {
		t.Errorf("deep: %+v", deep)
	}
}

func TestPublishedCurvesAreAWholeGrid(t *testing.T) {
	for _, deep := range []bool{false, true} {
		seen := map[[2]float64]bool{}
		for _, p := range PublishedCurves(deep) {
			seen[[2]float64{p.P, p.Beta}] = true
			if math.IsNaN(p.MSE + p.Hoyer + p.MaxApprox + p.MaxApproxReconstructed) {
				t.Errorf("deep %v, %s lacks a number", deep, p.Label)
			}
		}
		if len(seen) != 4*8 {
			t.Errorf("deep %v: %d different settings, want 32", deep, len(seen))
		}
	}
}

func TestPublishedTablesAreOfOneDataSet(t *testing.T) {
	if n := len(PublishedTables("fashion-mnist")); n != 17 {
		t.Errorf("fashion-mnist: %d points, want 17", n)
	}
	if n := len(PublishedTables("mnist")); n != 4 {
		t.Errorf("mnist: %d points, want 4", n)
	}
	if PublishedTables("swimmer") != nil {
		t.Error("swimmer: nothing was published")
	}
}

func TestPublishedMistakesAreNamed(t *testing.T) {
	head := strings.SplitAfter(string(publishedCSV), "svm_std,note\n")[0]
	_, err := parsePublished([]byte(head + "table 1,mnist,shallow,,,,0.1,wrong,,,,,,,\n"))
	if err == nil || !strings.Contains(err.Error(), "row 1, hoyer") {
		t.Errorf("got %v", err)
	}
	if _, err := parsePublished([]byte(head + "table 1,mnist\n")); err == nil {
		t.Error("a short row was read")
	}
}

func TestPointOfTakesTheMetricsOfAReport(t *testing.T) {
	p := PointOf("model", math.NaN(), math.NaN(), &metrics.Report{MSE: 1, Hoyer: 2, MaxApprox: new(3.0)})
	if p.Label != "model" || p.MSE != 1 || p.Hoyer != 2 || p.MaxApprox != 3 || !math.IsNaN(p.MaxApproxReconstructed) {
		t.Errorf("%+v", p)
	}
}

func TestTargetsAreInOrderAndPointsWithoutOneLast(t *testing.T) {
	nan := math.NaN()
	got := targetsOf([]Point{{P: nan}, {P: 0.2}, {P: 0.01}, {P: nan}, {P: 0.2}})
	if len(got) != 3 || got[0] != 0.01 || got[1] != 0.2 || !math.IsNaN(got[2]) {
		t.Errorf("got %v", got)
	}
}

func TestTrainingIsReadFromMetricsLines(t *testing.T) {
	run, err := ReadTraining("run", strings.NewReader(`{"epoch":1,"step":4,"loss":0.5,"mse":0.5,"val_mse":null,"code_hoyer":0.1,"dead_units":3}
{"epoch":2,"loss":0.25,"val_mse":0.2,"code_hoyer":0.3,"dead_units":0}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(run.Epochs) != 2 || !math.IsNaN(run.Epochs[0].ValMSE) || run.Epochs[0].DeadUnits != 3 ||
		run.Epochs[1] != (TrainingEpoch{2, 0.25, 0.2, 0.3, 0}) {
		t.Errorf("got %+v", run)
	}
	for _, text := range []string{"{\"epoch\":1}\nno", "{\"loss\":1}"} {
		if _, err := ReadTraining("run", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
