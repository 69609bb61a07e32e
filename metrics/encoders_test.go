package metrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/fit"
	"tessera/internal/lists"
)

// The expected numbers are those of scikit-learn, NumPy and plain loops on the same codes, computed by testdata/encoders.py.
func TestMeasuresOfEncodersEqualScikitLearnsAndNumPys(t *testing.T) {
	text, err := os.ReadFile("testdata/encoders.json")
	fatal.If(t, err)
	var cases []struct {
		Units         int
		C             float64
		Codes         []float32
		Labels        []int
		Fitted, Held  []int
		Weights       [][]float64
		Accuracy, NLL float64
		Rank          float64 `json:"effective_rank"`
		Uniformity    float64
		Spread        float64 `json:"code_spread"`
		KNN           float64
	}
	fatal.If(t, json.Unmarshal(text, &cases))
	for i, c := range cases {
		p, err := fit.Of("svm", c.Codes, c.Units, c.Labels)
		fatal.If(t, err)
		train, test := p.Subset(c.Fitted), p.Subset(c.Held)
		train.Scale(test)
		train.Centre(test)
		w, err := train.Logistic(context.Background(), c.C)
		fatal.If(t, err)
		for k, row := range c.Weights {
			for j, want := range row {
				expect.Near(t, w[k*p.Width+j], want, 1e-4, "case", i, "weight of class", k, "unit", j)
			}
		}
		accuracy, nll := test.Predicted(w)
		within1e6(t, fmt.Sprintf("case %d: accuracy", i), accuracy, c.Accuracy)
		expect.Near(t, nll, c.NLL, 1e-4, "case", i, "cross entropy")
		subject := Subject{Units: c.Units, Images: len(c.Labels)}
		for name, want := range map[string]float64{"effective_rank": c.Rank, "uniformity": c.Uniformity, "code_spread": c.Spread, "knn_cosine_accuracy": c.KNN} {
			m := selected(t, name)[0].Metric
			within1e6(t, fmt.Sprintf("case %d: %s", i, name), added(t, m, subject, Batch{Codes: c.Codes, Labels: c.Labels})[0].Number, want)
		}
	}
}

// If all codes are equal but for rounding, the measures of collapse are 0. Codes along one direction have an effective rank of
// 1, codes at the corners of a simplex the largest possible one.
func TestCollapsedCodesHaveNoSpreadAndNoRank(t *testing.T) {
	const n, units = 40, 7
	for _, c := range []struct {
		name         string
		code         func(i, j int) float32
		rank, spread float64
	}{
		{"equal codes", func(i, j int) float32 { return float32(j+1) * (1 + 1e-7*float32(i%2)) }, 0, 0},
		{"codes of zeros", func(int, int) float32 { return 0 }, 0, 0},
		{"opposite codes", func(i, j int) float32 { return float32(1-2*(i%2)) * float32(j+1) }, 1, 1},
		{"both ways along the axes", func(i, j int) float32 {
			if i < 4*units && i/4 == j { // the others are zero
				return float32(1 - 2*(i%2))
			}
			return 0
		}, units, 0.7},
	} {
		codes := lists.Of(n*units, func(i int) float32 { return c.code(i/units, i%units) })
		b := Batch{Codes: codes}
		s := Subject{Units: units, Images: n}
		expect.Near(t, added(t, selected(t, "effective_rank")[0].Metric, s, b)[0].Number, c.rank, 1e-6, c.name, "effective rank")
		expect.Near(t, added(t, selected(t, "code_spread")[0].Metric, s, b)[0].Number, c.spread, 1e-6, c.name, "spread")
	}
}

func TestTheRankOfCodesThatAreNotFiniteIsAnError(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		if rank, err := effectiveRank([]float64{1, 2, 3, bad, 5, 6}, 2); !errors.As(err, new(*NotFinite)) {
			t.Errorf("%v: got %v and the error %v, want a NotFinite", bad, rank, err)
		}
	}
}
