package classical

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"testing"

	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/random"
)

// planted returns n images of p pixels that are sums of k non-negative parts, and noise.
func planted(n, p, k int, noise float64) Matrix {
	rng := random.Stream(7, "planted", 0)
	draw := func(count int, of func() float64) []float32 {
		values := lists.Of(count, func(int) float32 { return float32(of()) })
		return values
	}
	half := func() float64 { return max(rng.NormFloat64(), 0) }
	codes, atoms := draw(n*k, half), draw(k*p, half)
	x := make([]float32, n*p)
	multiply(false, false, n, p, k, codes, atoms, x)
	for i := range x {
		x[i] = float32(max(float64(x[i])+noise*rng.NormFloat64(), 0))
	}
	return Matrix{x, p}
}

func TestBiCrossValidationFindsThePlantedRank(t *testing.T) {
	images := planted(120, 40, 4, 0.5)
	for name, method := range map[string]Method{
		"pca": &PCA{Components: 1},
		"nmf": &NMF{Components: 1, Solver: "hals", Loss: "euclidean", Init: "nndsvda", Iterations: 100, Tolerance: 1e-4},
	} {
		calls := 0
		errs, err := Rank(t.Context(), method, images, []int{1, 2, 3, 4, 5, 6, 8}, 2, 1, func(int, int) { calls++ })
		fatal.If(t, err)
		best := errs.Rows[0]
		for _, e := range errs.Rows {
			if *e.Values[0] < *best.Values[0] {
				best = e
			}
		}
		expect.Equal(t, best.Components, 4, name)
		expect.Equal(t, calls, 4, name)
		again, err := Rank(t.Context(), method, images, []int{4}, 2, 1, nil)
		if err != nil || !reflect.DeepEqual(again.Rows[0], errs.Rows[3]) {
			t.Errorf("%s: 4 components alone: got %+v, %v, want %+v", name, again, err, errs.Rows[3])
		}
		if !(best.Deviation > 0 && best.Deviation < *best.Values[0]) {
			t.Errorf("%s: standard error %v of %v", name, best.Deviation, *best.Values[0])
		}
	}
}

func TestBiCrossValidationOfSparseSamplesIsThatOfTheirValues(t *testing.T) {
	images := planted(60, 30, 3, 0.5)
	for i := range images.values {
		if i%3 > 0 {
			images.values[i] = 0
		}
	}
	whole := &sparseBlock{width: 30}
	for i := range images.Len() {
		var columns []int32
		var values []float32
		for j, v := range images.values[i*30 : (i+1)*30] {
			if v != 0 {
				columns, values = append(columns, int32(j)), append(values, v)
			}
		}
		whole.columns, whole.values = append(whole.columns, columns), append(whole.values, values)
	}
	for name, method := range map[string]Method{
		"pca": &PCA{Components: 1},
		"nmf": &NMF{Components: 1, Solver: "mu", Loss: "euclidean", Init: "nndsvda", Iterations: 50, Tolerance: 1e-4},
	} {
		want, err := Rank(t.Context(), method, images, []int{1, 3, 5}, 2, 1, nil)
		got, other := Rank(t.Context(), method, whole, []int{1, 3, 5}, 2, 1, nil)
		if err != nil || other != nil {
			t.Fatal(err, other)
		}
		for i, of := range want.Rows {
			if got := *got.Rows[i].Values[0]; !(math.Abs(got / *of.Values[0] - 1) < 0.01) {
				t.Errorf("%s, %d components: got %v of sparse samples, want %v", name, of.Components, got, *of.Values[0])
			}
		}
	}
}

func TestBiCrossValidationOfPCAAgreesWithNumPy(t *testing.T) {
	text, err := os.ReadFile("testdata/rank.json")
	fatal.If(t, err)
	var want []float64
	fatal.If(t, json.Unmarshal(text, &want))
	o := readOracles(t)
	v := validation{method: &PCA{Components: 1}, components: []int{1, 2, 3, 4}, n: o.Images, p: o.Pixels, x: o.X}
	alternating := func(n int) []int {
		fold := lists.Of(n, func(i int) int { return i % 2 })
		return fold
	}
	got := make([]float64, 4)
	for b := range 4 {
		errs, _, err := v.block(t.Context(), alternating(o.Images), alternating(o.Pixels), b/2, b%2)
		fatal.If(t, err)
		for i, e := range errs {
			got[i] += e / float64(len(o.X))
		}
	}
	for i := range want {
		expect.Near(t, got[i], want[i], 1e-5*want[i], i+1, "components")
	}
}

func TestFoldsHaveEqualSizes(t *testing.T) {
	fold := deal(11, 3, 1, "images")
	sizes := [3]int{}
	for _, of := range fold {
		sizes[of]++
	}
	if sizes != [3]int{4, 4, 3} || reflect.DeepEqual(fold, deal(11, 3, 2, "images")) {
		t.Errorf("sizes %v of %v", sizes, fold)
	}
}

func TestWhatBiCrossValidationCannotMeasureIsRefused(t *testing.T) {
	images, ended := planted(20, 10, 2, 0.1), &countdown{context.Background(), 0}
	pca := &PCA{Components: 1}
	var key part.KeyError
	if _, err := Rank(t.Context(), &SemiNMF{Components: 2}, images, []int{1}, 2, 1, nil); !errors.As(err, &key) || key.Key != "kind" {
		t.Errorf("semi_nmf: got %v", err)
	}
	for name, err := range map[string]error{
		"nothing":    second(Rank(t.Context(), pca, nil, []int{1}, 2, 1, nil)),
		"folds":      second(Rank(t.Context(), pca, images, []int{1}, 1, 1, nil)),
		"many folds": second(Rank(t.Context(), pca, images, []int{1}, 11, 1, nil)),
		"none":       second(Rank(t.Context(), pca, images, nil, 2, 1, nil)),
		"zero":       second(Rank(t.Context(), pca, images, []int{0}, 2, 1, nil)),
		"many":       second(Rank(t.Context(), pca, images, []int{6}, 2, 1, nil)),
		"ended":      second(Rank(ended, pca, images, []int{1}, 2, 1, nil)),
		"empty":      second(Rank(t.Context(), pca, Matrix{nil, 10}, []int{1}, 2, 1, nil)),
		"NaN":        second(Rank(t.Context(), pca, Matrix{[]float32{1, 2, float32(math.NaN()), 4}, 2}, []int{1}, 2, 1, nil)),
		"negative":   second(Rank(t.Context(), &NMF{Solver: "hals", Loss: "euclidean", Init: "random", Iterations: 1}, Matrix{[]float32{1, 2, -1, 4}, 2}, []int{1}, 2, 1, nil)),
	} {
		expect.AnyError(t, err, name, "accepted")
	}
}

func second(_ *Ranking, err error) error { return err }
