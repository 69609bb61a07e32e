package figures

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
)

func TestPublishedRowsAreThoseOfTheStudy(t *testing.T) {
	rows := PublishedRows()
	count := map[string]int{}
	for i, r := range rows {
		count[r.Source]++
		if mse, ok := r.Values.Number("mse"); !ok || !(mse > 0 && mse < 0.1) {
			t.Errorf("row %d: mse %v", i, mse)
		}
		for _, name := range []string{"hoyer", "svm_accuracy", "svm_std"} {
			if v, _ := r.Values.Number(name); v < 0 || v > 1 {
				t.Errorf("row %d (%s): %s %v is not in [0,1]", i, r.Label, name, v)
			}
		}
		if strings.HasPrefix(r.Source, "table") && !has(r.Point, "svm_accuracy", "max_approx", "max_approx_bias_dilated") {
			t.Errorf("row %d (%s) lacks numbers", i, r.Label)
		}
	}
	for source, want := range map[string]int{"table 1": 6, "table 2": 5, "notebook": 10, "figure 8": 32, "figure 8 deep": 32} {
		expect.Equal(t, count[source], want, source, count[source], "rows")
	}
}

// has reports whether a point has all of these numbers.
func has(p Point, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { _, ok := p.Values.Number(name); return !ok })
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
	if !math.IsNaN(nmf.P) || !math.IsNaN(nmf.Beta) {
		t.Errorf("sparse NMF: p %v, β %v", nmf.P, nmf.Beta)
	}
	for _, c := range []struct {
		row  Published
		want map[string]float64
	}{
		{nmf, map[string]float64{"mse": 0.0109, "hoyer": 0.6504, "max_approx": 0.107, "max_approx_clipped": 0.0222, "svm_accuracy": 0.812}},
		{find("table 1", "shallow"), map[string]float64{"max_approx": 18.04, "max_approx_bias_dilated": 18.24}},
		{find("figure 8 deep", "asym-nonneg-kl p=0.01 β=0.05"),
			map[string]float64{"mse": 0.0261, "hoyer": 0.837, "max_approx": 0.0308, "max_approx_reconstructed": 0.0098}},
	} {
		for name, want := range c.want {
			if got, ok := c.row.Values.Number(name); !ok || got != want {
				t.Errorf("%s: %s is %v, want %v", c.row.Label, name, got, want)
			}
		}
	}
}

func TestPublishedCurvesAreAWholeGrid(t *testing.T) {
	for _, deep := range []bool{false, true} {
		seen := map[[2]float64]bool{}
		for _, p := range PublishedCurves(deep) {
			seen[[2]float64{p.P, p.Beta}] = true
			if !has(p, "mse", "hoyer", "max_approx", "max_approx_reconstructed") {
				t.Errorf("deep %v, %s lacks a number", deep, p.Label)
			}
		}
		expect.Equal(t, len(seen), 4*8, "deep", deep, len(seen), "different settings, want 32")
	}
}

func TestPublishedTablesAreOfOneDataSet(t *testing.T) {
	expect.Equal(t, len(PublishedTables("fashion-mnist")), 17, "fashion-mnist")
	expect.Equal(t, len(PublishedTables("mnist")), 4, "mnist")
	if PublishedTables("swimmer") != nil {
		t.Error("swimmer: nothing was published")
	}
}

func TestPublishedMistakesAreNamed(t *testing.T) {
	head := strings.SplitAfter(string(publishedCSV), "svm_std,note\n")[0]
	_, err := parsePublished([]byte(head + "table 1,mnist,shallow,,,,0.1,wrong,,,,,,,\n"))
	expect.Error(t, err, "row 1, hoyer")
	expect.AnyError(t, expect.Err(parsePublished([]byte(head+"table 1,mnist\n"))), "a short row was read")
}

func TestTargetsAreInOrderAndPointsWithoutOneLast(t *testing.T) {
	nan := math.NaN()
	got := targetsOf([]Point{{P: nan}, {P: 0.2}, {P: 0.01}, {P: nan}, {P: 0.2}})
	if len(got) != 3 || got[0] != 0.01 || got[1] != 0.2 || !math.IsNaN(got[2]) {
		t.Errorf("got %v", got)
	}
}
