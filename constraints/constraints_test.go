package constraints_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"tessera/config/part"
	"tessera/constraints"
	"tessera/internal/expect"
	"tessera/internal/lists"
)

func projected(c constraints.Constraint, shape []int, w ...float32) []float32 {
	c.Project(w, shape)
	return w
}

func equal(t *testing.T, what string, got []float32, want ...float32) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b float32) bool { return math.Abs(float64(a-b)) <= 1e-7 }) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestProjectionsOfKnownPoints(t *testing.T) {
	inf := float32(math.Inf(1))
	equal(t, "nonneg", projected(constraints.NonNeg{}, []int{2, 2}, -1, 0, 0.5, -1e-40), 0, 0, 0.5, 0)
	equal(t, "box", projected(&constraints.Box{Min: -0.5, Max: 2}, []int{5}, -1, -0.5, 0, 3, -inf), -0.5, -0.5, 0, 2, -0.5)
	equal(t, "unit_norm", projected(constraints.UnitNorm{}, []int{2, 2}, 3, 4, 0, -2), 0.6, 0.8, 0, -1)
	equal(t, "max_norm", projected(&constraints.MaxNorm{Max: 2}, []int{2, 2}, 3, 4, 0, -1), 1.2, 1.6, 0, -1)
}

// duchi returns the projection onto the simplex by sorting, in float64 (Duchi et al., 2008, figure 1).
func duchi(row []float32, sum float64) []float32 {
	sorted := slices.Clone(row)
	slices.SortFunc(sorted, func(a, b float32) int { return cmp.Compare(b, a) })
	total, t := 0.0, 0.0
	for i, v := range sorted {
		total += float64(v)
		if mean := (total - sum) / float64(i+1); float64(v) > mean {
			t = mean
		}
	}
	projected := lists.Map(row, func(v float32) float32 { return float32(max(float64(v)-t, 0)) })
	return projected
}

func TestSimplexIsTheProjectionBySorting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := 1; n < 60; n++ {
		row := lists.Of(n, func(int) float32 { return float32(r.NormFloat64()) })
		want := duchi(row, 2)
		equal(t, "simplex", projected(&constraints.Simplex{Sum: 2}, []int{1, n}, row...), want...)
	}
	equal(t, "large weights", projected(&constraints.Simplex{Sum: 1}, []int{3}, 1e20, 1e20, -1e20), 0.5, 0.5, 0)
}

func TestSparseRowsHaveTheSparseness(t *testing.T) {
	c := &constraints.Sparse{Sparseness: 0.5}
	w := projected(c, []int{2, 4}, 3, 1, 0.5, -1, 0, 0, 0, 0)
	sum, squares := 0.0, 0.0
	for _, v := range w[:4] {
		sum, squares = sum+float64(v), squares+float64(v)*float64(v)
	}
	expect.Near(t, (2-sum/math.Sqrt(squares))/(2-1), 0.5, 1e-6, w[:4], "of sparseness")
	equal(t, "a row of zeros", w[4:], 0, 0, 0, 0)
	equal(t, "one value", projected(&constraints.Sparse{Sparseness: 1}, []int{1, 3}, 1, 4, 2), 0, 4, 0)
	equal(t, "nothing positive", projected(c, []int{1, 3}, -1, -4, -2), 0, 0, 0)
}

// The oracle is the orthogonal factor P Q of gonum's singular value decomposition P S Q.
func TestOrthogonalIsTheFactorOfThePolarDecomposition(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, size := range [][2]int{{1, 5}, {3, 7}, {7, 3}, {6, 6}, {20, 50}, {50, 1}} {
		rows, columns := size[0], size[1]
		w, wide := make([]float32, rows*columns), make([]float64, rows*columns)
		for i := range w {
			w[i] = float32(r.NormFloat64())
			wide[i] = float64(w[i])
		}
		var svd mat.SVD
		if !svd.Factorize(mat.NewDense(rows, columns, wide), mat.SVDThin) {
			t.Fatal("no decomposition")
		}
		var p, q, want mat.Dense
		svd.UTo(&p)
		svd.VTo(&q)
		want.Mul(&p, q.T())
		c := constraints.Orthogonal{}
		c.Project(w, []int{rows, columns})
		if d := c.Violation(w, []int{rows, columns}); !(d <= 2e-7) {
			t.Errorf("%v: violation %v", size, d)
		}
		for i, v := range w {
			if math.Abs(float64(v)-want.At(i/columns, i%columns)) > 1e-6 {
				t.Fatalf("%v: element %d is %v, want %v", size, i, v, want.At(i/columns, i%columns))
			}
		}
	}
}

// Rows that depend linearly on other rows get directions that are orthogonal to the other rows.
func TestOrthogonalCompletesDependentRows(t *testing.T) {
	c, shape := constraints.Orthogonal{}, []int{3, 4}
	for _, w := range [][]float32{make([]float32, 12), {1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 0, 1}, {1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}} {
		c.Project(w, shape)
		if d := c.Violation(w, shape); !(d <= 2e-7) {
			t.Errorf("%v: violation %v", w, d)
		}
	}
}

func BenchmarkOrthogonalAfterAStep(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	w, shape := make([]float32, 100*784), []int{100, 784}
	for i := range w {
		w[i] = float32(r.NormFloat64())
	}
	c := constraints.Orthogonal{}
	c.Project(w, shape)
	stepped := make([]float32, len(w))
	for b.Loop() {
		for i, v := range w {
			stepped[i] = v + float32(r.NormFloat64())*1e-3
		}
		c.Project(stepped, shape)
	}
}

func TestRowsAreThoseOfTheFirstAxis(t *testing.T) {
	c := constraints.UnitNorm{}
	equal(t, "two atoms of four pixels", projected(c, []int{2, 4}, 1, 1, 1, 1, 0, 0, 5, 0), .5, .5, .5, .5, 0, 0, 1, 0)
	equal(t, "a bias is one row", projected(c, []int{4}, 2, 2, 2, 2), .5, .5, .5, .5)
	equal(t, "a scalar", projected(c, nil, -3), -1)
	expect.Equal(t, len(projected(c, []int{0, 4})), 0, "no rows become")
}

func TestARowOfZerosBecomesEvenAndStaysNonNegative(t *testing.T) {
	equal(t, "zeros", projected(constraints.UnitNorm{}, []int{2, 4}, 0, 0, 0, 0, 0, 0, 7, 0), .5, .5, .5, .5, 0, 0, 1, 0)
	w := projected(constraints.NonNeg{}, []int{1, 4}, -1, -2, -3, -4)
	constraints.UnitNorm{}.Project(w, []int{1, 4})
	equal(t, "nonneg, then unit_norm", w, .5, .5, .5, .5)
}

func TestADenormalRowKeepsItsDirection(t *testing.T) {
	const d = math.SmallestNonzeroFloat32
	equal(t, "denormals", projected(constraints.UnitNorm{}, []int{1, 2}, 3*d, 4*d), 0.6, 0.8)
}

func TestViolationIsTheLargestBreach(t *testing.T) {
	for _, c := range []struct {
		name  string
		c     constraints.Constraint
		shape []int
		w     []float32
		want  float64
	}{
		{"nonneg", constraints.NonNeg{}, []int{3}, []float32{1, -0.5, -0.25}, 0.5},
		{"box below", &constraints.Box{Min: 0, Max: 1}, []int{3}, []float32{1.25, -0.5, 0}, 0.5},
		{"box above", &constraints.Box{Min: 0, Max: 1}, []int{3}, []float32{1.75, -0.5, 0}, 0.75},
		{"unit_norm", constraints.UnitNorm{}, []int{2, 2}, []float32{3, 4, 0, 0}, 4},
		{"unit_norm short", constraints.UnitNorm{}, []int{2, 2}, []float32{1, 0, 0, 0}, 1},
		{"max_norm", &constraints.MaxNorm{Max: 2}, []int{2, 2}, []float32{3, 4, 1, 0}, 3},
		{"simplex", &constraints.Simplex{Sum: 1}, []int{2, 2}, []float32{0.5, 0.75, 1.5, -0.5}, 0.5},
		{"sparse", &constraints.Sparse{Sparseness: 1}, []int{1, 4}, []float32{3, 4, 0, 0}, 1},
		{"orthogonal", constraints.Orthogonal{}, []int{2, 2}, []float32{1, 0, 0.5, 1}, 0.5},
		{"max_norm inside", &constraints.MaxNorm{Max: 9}, []int{2, 2}, []float32{3, 4, 1, 0}, 0},
	} {
		expect.Near(t, c.c.Violation(c.w, c.shape), c.want, 1e-12, c.name, "violation")
	}
}

func TestABoxWithoutValuesIsRefused(t *testing.T) {
	for _, b := range []constraints.Box{{Min: 1, Max: 0}, {Min: math.NaN(), Max: 1}, {Min: 0, Max: math.NaN()}} {
		var key part.KeyError
		if err := b.Check(); !errors.As(err, &key) || key.Key != "min" {
			t.Errorf("[%v, %v]: got %v, want an error about min", b.Min, b.Max, err)
		}
	}
	for _, b := range []constraints.Box{{Min: 0, Max: 1}, {Min: 2, Max: 2}, {Min: math.Inf(-1), Max: 0}} {
		if err := b.Check(); err != nil {
			t.Errorf("[%v, %v]: %v", b.Min, b.Max, err)
		}
	}
}
