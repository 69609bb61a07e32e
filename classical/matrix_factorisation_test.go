package classical

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/random"
	"tessera/internal/vectors"
	"tessera/metrics"
)

// plainRidge returns the difference between the objective and the squared error, for complete images.
func plainRidge(s *MatrixFactorisation, images Matrix, codes []float32, atoms *metrics.Atoms) float64 {
	n, pixels := images.Len(), images.pixels
	rows, columns := 0.0, 0.0
	for _, v := range codes {
		rows += float64(v) * float64(v)
	}
	for _, v := range atoms.Values[:s.Components*pixels] {
		columns += float64(v) * float64(v)
	}
	for _, v := range atoms.Bias {
		c := float64(v) - mean(images.values)
		columns += c * c
	}
	if s.WeightedRidge {
		rows, columns = rows*float64(pixels), columns*float64(n)
	}
	return (s.RidgeRows*rows + s.RidgeColumns*columns) / float64(n) / float64(pixels)
}

// sparseImages returns the samples of a sparse matrix. Its entries may be in any order.
func sparseImages(t testing.TB, n, m int, rows, columns []int, values []float64) *data.Images {
	t.Helper()
	at := map[[2]int]float32{}
	for e, i := range rows {
		at[[2]int{i, columns[e]}] = float32(values[e])
	}
	starts, indices, floats := []int{0}, []int32(nil), []float32(nil)
	for i := range n {
		for j := range m {
			if v, ok := at[[2]int{i, j}]; ok {
				indices, floats = append(indices, int32(j)), append(floats, v)
			}
		}
		starts = append(starts, len(indices))
	}
	images, err := data.NewEntries(starts, indices, floats, m)
	fatal.If(t, err)
	return images
}

// The solutions for each row by alternating least squares equal NumPy's solutions of the same normal equations.
func TestAlternatingLeastSquaresEqualsNumPy(t *testing.T) {
	text, err := os.ReadFile("testdata/matrix_factorisation.json")
	fatal.If(t, err)
	var oracle struct {
		N, M, K, Sweeps int
		Cases           map[string]struct {
			Biases        bool      `json:"biases"`
			Weighted      bool      `json:"weighted"`
			Ridge         float64   `json:"ridge"`
			NonNegative   bool      `json:"nonneg"`
			Confidence    float64   `json:"confidence"`
			Rows, Columns []int     // rows and columns of the entries
			Values, Start []float64 // values of the entries, and initial factors of the columns
			W, Z          []float64
			Objective     float64
		}
	}
	fatal.If(t, json.Unmarshal(text, &oracle))
	if len(oracle.Cases) != 4 {
		t.Fatalf("got %d cases", len(oracle.Cases))
	}
	for name, c := range oracle.Cases {
		s := &MatrixFactorisation{Components: oracle.K, Solver: "als", Biases: c.Biases, RidgeRows: c.Ridge, RidgeColumns: c.Ridge, WeightedRidge: c.Weighted,
			NonNegative: c.NonNegative, Confidence: c.Confidence, Iterations: oracle.Sweeps}
		m := newModel(t, s, []int{oracle.M}, 1).(*matrixFactorisation)
		images := sparseImages(t, oracle.N, oracle.M, c.Rows, c.Columns, c.Values)
		fatal.If(t, m.Begin(context.Background(), images))
		copy(m.sides, c.Start)
		fatal.If(t, expect.Err(m.solveRows()))
		objectives := fitAll(t, &begun{m}, images)
		far := func(got, want []float64) (most float64) {
			for i, v := range want {
				most = max(most, math.Abs(got[i]-v)/max(1, math.Abs(v)))
			}
			return most
		}
		if w, z := far(m.rows, c.W), far(m.sides, c.Z); !(w < 1e-8 && z < 1e-8) || len(m.rows) != len(c.W) {
			t.Errorf("%s: rows differ by %g, columns by %g", name, w, z)
		}
		if got := objectives[len(objectives)-1]; !(math.Abs(got-c.Objective) < 1e-9*c.Objective) {
			t.Errorf("%s: objective %v, want %v", name, got, c.Objective)
		}
	}
}

// begun is a model whose Begin was called before, so that Fit does not begin again.
type begun struct{ *matrixFactorisation }

func (*begun) Begin(context.Context, Images) error { return nil }

// plantedEntries returns observed entries of mu + b_i + c_j + w_i z_j + noise, and the same entries without noise.
func plantedEntries(seed uint64, n, m, k int, share, noise float64) (rows, columns []int, values, clean []float64) {
	r := random.Stream(seed, "planted", 0)
	w, z, b, c := make([]float64, n*k), make([]float64, m*k), make([]float64, n), make([]float64, m)
	for _, values := range [][]float64{w, z, b, c} {
		for i := range values {
			values[i] = r.NormFloat64()
		}
	}
	for i := range n {
		for j := range m {
			if r.Float64() >= share {
				continue
			}
			v := 3 + b[i] + c[j]
			for a := range k {
				v += w[i*k+a] * z[j*k+a]
			}
			rows, columns = append(rows, i), append(columns, j)
			clean, values = append(clean, v), append(values, v+noise*r.NormFloat64())
		}
	}
	return rows, columns, values, clean
}

// Both solvers recover planted factors and biases up to the noise: they predict unobserved entries as accurately as the noise
// allows.
func TestPlantedFactorsAreRecoveredToTheNoise(t *testing.T) {
	const n, m, k, noise = 200, 100, 3, 0.1
	rows, columns, values, clean := plantedEntries(4, n, m, k, 1, noise)
	var seen [2][]int // observed entries, and the other entries
	r := random.Stream(1, "seen", 0)
	for e := range rows {
		which := 0
		if r.Float64() < 0.6 {
			which = 1
		}
		seen[which] = append(seen[which], e)
	}
	pick := func(of []int) (i, j []int, v []float64) {
		for _, e := range of {
			i, j, v = append(i, rows[e]), append(j, columns[e]), append(v, values[e])
		}
		return i, j, v
	}
	i, j, v := pick(seen[0])
	images := sparseImages(t, n, m, i, j, v)
	for name, s := range map[string]*MatrixFactorisation{
		"als": {Components: k, Solver: "als", Biases: true, RidgeRows: 0.01, RidgeColumns: 0.01, Iterations: 60},
		"sgd": {Components: k, Solver: "sgd", Biases: true, RidgeRows: 0.01, RidgeColumns: 0.01, LearningRate: 0.05, Decay: 0.97, Iterations: 120},
	} {
		model := newModel(t, s, []int{m}, 1)
		fitAll(t, model, images)
		squares := 0.0
		for _, e := range seen[1] {
			y, err := model.(MatrixPredictor).PredictEntry(rows[e], columns[e])
			fatal.If(t, err)
			squares += (y - clean[e]) * (y - clean[e])
		}
		// of about 40 entries of a row, and 80 of a column, 4 parameters each
		if rmse := math.Sqrt(squares / float64(len(seen[1]))); !(rmse < 0.5*noise) {
			t.Errorf("%s: RMSE %v on entries without noise, want less than half of the noise %v", name, rmse, noise)
		}
	}
}

// For a matrix that consists only of biases, the predictions are the mean plus the biases. The bias of a new row is computed
// from its entries.
func TestBiasesAreRight(t *testing.T) {
	const n, m = 40, 12
	var rows, columns []int
	var values []float64
	at := func(i, j int) float64 { return 3 + float64(i%5-2) + 0.25*float64(j) }
	for i := range n {
		for j := range m {
			if (i*7+j*3)%4 != 0 {
				rows, columns, values = append(rows, i), append(columns, j), append(values, at(i, j))
			}
		}
	}
	s := &MatrixFactorisation{Components: 1, Solver: "als", Biases: true, RidgeRows: 1e-6, RidgeColumns: 1e-6, Iterations: 50}
	model := newModel(t, s, []int{m}, 1)
	fitAll(t, model, sparseImages(t, n, m, rows, columns, values))
	p := model.(MatrixPredictor)
	code, err := p.FoldIn([]int32{0, 3, 7}, []float32{8, 8.75, 9.75}) // a row with the bias 5
	fatal.If(t, err)
	for j := range m {
		got, _ := p.PredictEntry(4, j)
		expect.Near(t, got, at(4, j), 0.01, "column", j)
		if got, _ := p.PredictCode(code, j); math.Abs(got-(8+0.25*float64(j))) > 0.05 {
			t.Errorf("new row, column %d: got %v, want %v", j, got, 8+0.25*float64(j))
		}
	}
}

// A folded-in row gets the code that it would have as a fitted row. Images with NaN are encoded like sparse rows.
func TestFoldingInIsTheRowsOwnLeastSquares(t *testing.T) {
	rows, columns, values, _ := plantedEntries(9, 50, 30, 2, 0.5, 0.1)
	images := sparseImages(t, 50, 30, rows, columns, values)
	s := &MatrixFactorisation{Components: 2, Solver: "als", Biases: true, RidgeRows: 0.1, RidgeColumns: 0.1, WeightedRidge: true, Iterations: 5}
	m := newModel(t, s, []int{30}, 1).(*matrixFactorisation)
	fitAll(t, m, images)
	dense := images.Raw()
	codes := encode(t, m, dense)
	for i := range 50 {
		code, err := m.FoldIn(images.Entries(i))
		fatal.If(t, err)
		if !reflect.DeepEqual(code, m.rows[3*i:3*i+3]) || !reflect.DeepEqual(vectors.Narrow(code), codes[3*i:3*i+3]) {
			t.Fatalf("row %d: folded in as %v and %v, fitted as %v", i, code, codes[3*i:3*i+3], m.rows[3*i:3*i+3])
		}
	}
	expect.AnyError(t, expect.Err(m.FoldIn([]int32{30}, []float32{1})), "a column out of range was accepted")
	full := newModel(t, s, []int{30}, 1) // the same entries, not sparse
	missing, err := data.NewFloats([]int{30}, dense, nil)
	fatal.If(t, err)
	fitAll(t, full, missing.WithMissing())
	if !reflect.DeepEqual(full.Atoms(), m.Atoms()) {
		t.Error("sparse and dense images are fitted differently")
	}
}

// The result has the same bytes on any number of processors, and for several panels of columns.
func TestMatrixFactorisationIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	rows, columns, values, _ := plantedEntries(5, 400, 90, 2, 0.4, 0.1)
	images := sparseImages(t, 400, 90, rows, columns, values)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, solver := range []string{"als", "sgd"} {
		states := map[string]State{}
		for _, processors := range []int{1, 2, 7} {
			s := &MatrixFactorisation{Components: 4, Solver: solver, Biases: true, RidgeRows: 0.1, RidgeColumns: 0.1, LearningRate: 0.01, Decay: 1, Iterations: 4}
			m := newModel(t, s, []int{90}, 1)
			runtime.GOMAXPROCS(processors)
			fitAll(t, m, images)
			states[fmt.Sprint(processors)] = saved(t, m.State())
		}
		if !reflect.DeepEqual(states["1"], states["2"]) || !reflect.DeepEqual(states["1"], states["7"]) {
			t.Errorf("%s: the fit depends on the number of processors", solver)
		}
	}
}

// Panels provide the entries of every column, with rows in ascending order.
func TestPanelsTransposeTheMatrix(t *testing.T) {
	rows, columns, values, _ := plantedEntries(6, 70, 45, 1, 0.3, 0)
	images := sparseImages(t, 70, 45, rows, columns, values)
	counts := make([]int32, 45)
	want := make([][]int32, 45)
	for i := range 70 {
		c, _ := images.Entries(i)
		for _, j := range c {
			counts[j]++
			want[j] = append(want[j], int32(i))
		}
	}
	p := newPanels(counts)
	got := make([][]int32, 45)
	p.each(images, func(j int, rows []int32, v []float32, _ *solver) {
		got[j] = append([]int32(nil), rows...)
		for e, i := range rows {
			if c, x := images.Entries(int(i)); x[indexOf(c, int32(j))] != v[e] {
				t.Errorf("row %d, column %d: got %v", i, j, v[e])
			}
		}
	}, func() *solver { return nil }, func(*solver) {})
	if !reflect.DeepEqual(got, want) {
		t.Error("columns have other entries")
	}
}

func indexOf(columns []int32, c int32) int {
	for i, v := range columns {
		if v == c {
			return i
		}
	}
	return -1
}

// The error for data that cannot be fitted contains the row and the column.
func TestMatrixFactorisationSaysWhatIsWrong(t *testing.T) {
	base := func() *MatrixFactorisation {
		return &MatrixFactorisation{Components: 2, Solver: "als", Biases: true, RidgeRows: 0.1, RidgeColumns: 0.1, Iterations: 3}
	}
	images := sparseImages(t, 4, 3, []int{0, 0, 0, 1, 1, 2, 2, 2}, []int{0, 1, 2, 0, 1, 0, 1, 2}, []float64{1, 2, 3, 1, 2, -1, 2, 2})
	for name, c := range map[string]struct {
		change func(s *MatrixFactorisation)
		want   string
	}{
		"too many for the columns": {func(s *MatrixFactorisation) { s.Components = 4 }, "components: got 4, want at most 3, the number of columns"},
		"undetermined row":         {func(s *MatrixFactorisation) { s.RidgeRows = 0 }, "row 1 has 2 observed entries"},
		"undetermined column":      {func(s *MatrixFactorisation) { s.RidgeColumns = 0 }, "column 2 has 2 observed entries"},
		"negative counts":          {func(s *MatrixFactorisation) { s.Biases, s.Confidence = false, 2 }, "row 2, column 0: got -1, want a count >= 0"},
		"biases of counts":         {func(s *MatrixFactorisation) { s.Confidence = 2 }, "want biases = false"},
		"sgd of counts":            {func(s *MatrixFactorisation) { s.Biases, s.Confidence, s.Solver = false, 2, "sgd" }, `want solver = "als"`},
	} {
		s := base()
		c.change(s)
		m, err := s.New([]int{3}, 1)
		if err == nil {
			_, err = Fit(context.Background(), m, images, nil)
		}
		var bad *data.Error
		if _, ok := errors.AsType[part.KeyError](err); err == nil || !strings.Contains(err.Error(), c.want) || !ok && !errors.As(err, &bad) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	rows := make([]int, 0, 6)
	m, err := (&MatrixFactorisation{Components: 3, Solver: "als", RidgeRows: 1, RidgeColumns: 1, Iterations: 1}).New([]int{3}, 1)
	fatal.If(t, err)
	two := sparseImages(t, 2, 3, append(rows, 0, 0, 0, 1, 1, 1), []int{0, 1, 2, 0, 1, 2}, []float64{1, 2, 3, 4, 5, 6})
	expect.Error(t, expect.Err(Fit(context.Background(), m, two, nil)), "the number of rows", "more components than rows")
	empty := newModel(t, base(), []int{3}, 1) // row 3 has no entry
	fitAll(t, empty, images)
	if notes := Notes(empty); len(notes) != 1 || !strings.Contains(notes[0], "row 3") {
		t.Errorf("an empty row: %q", notes)
	}
}

// BenchmarkSweep solves all columns and all rows of a matrix with 100 entries per row.
func BenchmarkSweep(b *testing.B) {
	const n, m, each = 10000, 1000, 100
	r := random.Stream(1, "bench", 0)
	starts, columns, values := []int{0}, []int32(nil), []float32(nil)
	for range n {
		for j := range int32(each) {
			columns, values = append(columns, j*(m/each)+int32(r.IntN(m/each))), append(values, r.Float32())
		}
		starts = append(starts, len(columns))
	}
	images, err := data.NewEntries(starts, columns, values, m)
	fatal.If(b, err)
	s := &MatrixFactorisation{Components: 32, Solver: "als", Biases: true, RidgeRows: 0.05, RidgeColumns: 0.05, WeightedRidge: true, Iterations: 1 << 30}
	model := newModel(b, s, []int{m}, 1)
	fatal.If(b, model.Begin(context.Background(), images))
	for b.Loop() {
		fatal.If(b, expect.Err(model.Step(context.Background())))
	}
}
