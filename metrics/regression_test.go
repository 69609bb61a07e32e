package metrics

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// regressor is a coder whose values are compared with columns.
type regressor struct {
	*headed
	targets []Target
}

func (r *regressor) Targets() []Target { return r.targets }

// A number that a mask leaves out of all samples has no row, and no part in the comparison with the mean.
func TestANumberThatIsMaskedEverywhereDoesNotCount(t *testing.T) {
	m := &regressionMeter{Target{Column: "y", Size: 2, Counted: []string{"mask"}}, make([]errorsOf, 2)}
	fatal.If(t, m.Add(&Batch{Logits: []float32{1, 0, 3, 0}, Columns: map[string][]float32{"y": {0, 9, 4, 9}, "mask": {1, 0, 1, 0}}}))
	values, err := m.Values(t.Context())
	fatal.If(t, err)
	if v := values[0]; v.Number != 1 || v.Constant != 2 { // deviations of 0 and 4 from their mean
		t.Errorf("got an rmse of %v, and %v of the mean, want 1 and 2", v.Number, v.Constant)
	}
	if rows := m.Tables()[0].Rows; len(rows) != 1 || rows[0].Name != "y.0" {
		t.Errorf("got the rows %+v", rows)
	}
}

// The numbers equal those of scikit-learn 1.2.1, with the means over the targets that it calls uniform_average.
func TestRegressionEqualsScikitLearn(t *testing.T) {
	m := &regressionMeter{Target{Column: "y", Size: 3, Names: []string{"a", "b", "c"}}, make([]errorsOf, 3)}
	for i := range 12 {
		n := float32(i)
		y := []float32{float32(i*i%11) + 0.5*n, 3 - float32(i*7%5), 100 + float32(i*5%13)*4}
		v := []float32{y[0] + (float32(i*3%7)-3)*0.25, y[1]*0.5 + float32(i*2%3), y[2] - (float32(i*11%9)-4)*1.5}
		fatal.If(t, m.Add(&Batch{Logits: v, Columns: map[string][]float32{"y": y}}))
	}
	values, _ := m.Values(context.Background())
	rows := m.Tables()[0]
	for i, want := range [][]float64{
		{1.8822257628738053, 0.5153882032022076, 1.2583057392117916, 3.872983346207417},
		{1.5625, 0.4375, 1.0, 3.25},
		{0.7036113256228326, 0.9769717037928959, 0.19718309859154937, 0.9366791744840526},
	} {
		got := []float64{values[i].Number, rows.Rows[0].Numbers[i+1], rows.Rows[1].Numbers[i+1], rows.Rows[2].Numbers[i+1]}
		for k := range want {
			expect.Near(t, got[k], want[k], 1e-12, rows.Columns[i+1], got, want)
		}
	}
}

// Entries that are missing or masked do not count, values have the prefix of their head, and a target without variance has no r2.
func TestRegressionEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 3))
	const n = 700 // two batches
	of := newHeaded(r, 2, "y", "z")
	s := Sample{Images: uniform(r, n*16), Columns: map[string][]float32{"target": normal(r, n*2), "same": make([]float32, n*2), "mask": make([]float32, n*2), "rows": make([]float32, n)}}
	for i := range s.Columns["mask"] {
		s.Columns["mask"][i], s.Columns["rows"][i/2] = float32(r.IntN(2)), float32(r.IntN(2))
	}
	c := &regressor{of, []Target{{Value: "y", Column: "target", Size: 2, Counted: []string{"mask", "rows", "no column"}}, {Value: "z", Column: "same", Size: 2}, {Value: "z", Column: "absent", Size: 2}}}
	of.names = nil // no head is compared with classes
	result, err := Evaluate(context.Background(), c, s, Selection{{Metric: metricOf("regression")}})
	fatal.If(t, err)
	values, _ := of.Value("y", s.Images)
	var rmse, mae, r2 float64
	for j := range 2 {
		var count, mean, squares, absolute, total float64
		for pass := range 2 {
			for i := range n {
				k := 2*i + j
				if s.Columns["mask"][k] == 0 || s.Columns["rows"][i] == 0 {
					continue
				}
				y, d := float64(s.Columns["target"][k]), float64(values[k])-float64(s.Columns["target"][k])
				if pass == 0 {
					count, mean, squares, absolute = count+1, mean+y, squares+d*d, absolute+math.Abs(d)
				} else {
					total += (y - mean/count) * (y - mean/count)
				}
			}
		}
		rmse, mae, r2 = rmse+math.Sqrt(squares/count)/2, mae+absolute/count/2, r2+(1-squares/total)/2
	}
	for name, want := range map[string]float64{"y.rmse": rmse, "y.mae": mae, "y.r2": r2} {
		if got, ok := result.Number(name); !ok || math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if v, _ := result.Find("z.r2"); v.Missing == "" {
		t.Error("a target that is always 0 has an r2")
	}
	if len(result.Tables) != 2 || result.Tables[0].Name != "y.targets" || result.Tables[0].Rows[1].Name != "target.1" {
		t.Errorf("got %+v", result.Tables)
	}
}
