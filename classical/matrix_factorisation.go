package classical

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/parallel/team"
	"tessera/internal/vectors"
)

var _ MatrixPredictor = (*matrixFactorisation)(nil)

// MatrixFactorisation approximates the observed entries of a matrix,
//
//	x_ij ~ mu + b_i + c_j + w_i z_j,   minimise  sum over observed (i,j) of (x_ij - mu - b_i - c_j - w_i z_j)^2
//	                                           + sum over i of r_i (|w_i|^2 + b_i^2) + sum over j of s_j (|z_j|^2 + c_j^2)
//
// with the mean mu of the observed entries, biases b of rows and c of columns, and r_i = ridge_rows, s_j = ridge_columns,
// times the number of observed entries of the row or column with weighted_ridge. A sample is a row of the matrix. Its code is
// w_i, followed by the bias b_i, whose atom is constant 1. The other atoms are the columns of Z, and mu + c_j is the bias of a
// decoded row. The code of a new row minimises the objective for the fitted columns.
//
// Solver als computes the columns for the current rows, then the rows for the new columns, each by a Cholesky decomposition;
// the objective never rises. Solver sgd visits the entries in a random order and takes one gradient step per entry, in
// parallel blocks that share neither rows nor columns. With confidence > 0 the entries are implicit feedback: counts >= 0,
// where a missing entry means 0. The objective is then
//
//	sum over all (i,j) of (1 + confidence x_ij) (p_ij - w_i z_j)^2 + ridge,   p_ij = 1 if x_ij > 0, else 0.
//
// Sources: Y. Koren, R. Bell, C. Volinsky, Matrix factorization techniques for recommender systems, IEEE Computer 42(8), 2009;
// Y. Zhou, D. Wilkinson, R. Schreiber, R. Pan, Large-scale parallel collaborative filtering for the Netflix prize, AAIM 2008
// (als, weighted_ridge); R. Gemulla, E. Nijkamp, P. Haas, Y. Sismanis, Large-scale matrix factorization with distributed
// stochastic gradient descent, KDD 2011 (blocks of sgd); Y. Hu, Y. Koren, C. Volinsky, Collaborative filtering for implicit
// feedback datasets, ICDM 2008 (confidence).
type MatrixFactorisation struct {
	Components    int     `toml:"components" want:"> 0" doc:"length k of the factors of a row and of a column"`
	Solver        string  `toml:"solver" oneof:"als sgd" doc:"alternating least squares, or stochastic gradient descent"`
	Biases        bool    `toml:"biases" doc:"mean, and a bias for every row and column"`
	RidgeRows     float64 `toml:"ridge_rows" want:">= 0" doc:"weight of the squares of the factors and biases of rows"`
	RidgeColumns  float64 `toml:"ridge_columns" want:">= 0" doc:"weight of the squares of the factors and biases of columns"`
	WeightedRidge bool    `toml:"weighted_ridge" doc:"multiply the weights by the number of observed entries of the row or column"`
	NonNegative   bool    `toml:"non_negative" doc:"factors >= 0; biases have any sign"`
	Confidence    float64 `toml:"confidence" want:">= 0" doc:"implicit feedback: weight of a count in the confidence 1 + confidence x; 0 for entries that are values"`
	LearningRate  float64 `toml:"learning_rate" want:"> 0" doc:"of sgd"`
	Decay         float64 `toml:"decay" want:"in (0,1]" doc:"of sgd: factor of the learning rate after each iteration"`
	Iterations    int     `toml:"iterations" want:"> 0" doc:"maximum number of iterations, each through all entries"`
	Tolerance     float64 `toml:"tolerance" want:">= 0" doc:"stop when an iteration lowers the objective by less than this fraction of it"`
}

func init() {
	Registry.Register("matrix_factorisation", "factors and biases of the rows and columns of a matrix, fitted to its observed entries",
		func() Method {
			return &MatrixFactorisation{Components: 10, Solver: "als", Biases: true, RidgeRows: 0.05, RidgeColumns: 0.05, WeightedRidge: true,
				LearningRate: 0.01, Decay: 1, Iterations: 30, Tolerance: 1e-5}
		})
}

// Memory returns the memory in bytes that a fit to a matrix with the given numbers of rows, columns and observed entries needs.
// stored is that of the entries, 8 bytes each; factors is that of the factors of rows and columns in float64, with a checkpoint
// that is being written; transposed is that of the largest number of entries that are transposed together.
func (s *MatrixFactorisation) Memory(rows, columns, entries int) (stored, factors, transposed int) {
	u := s.Describe().Units
	most := panelEntries + rows // a panel ends after the column that fills it
	return 8 * entries, (8+3*4)*u*(rows+columns) + 4*u*columns, 8*min(entries, most) + 4*rows
}

// Describe implements [Method]: with biases, the code includes the bias of the row. Entries may be missing or hidden.
func (s *MatrixFactorisation) Describe() Fitting {
	units := s.Components
	if s.Biases {
		units++
	}
	measures := measuresOfHidden
	if s.Confidence > 0 {
		measures = measuresOfCounts
	}
	return Fitting{Name: "matrix_factorisation", Measures: measures, Units: units, Iterations: s.Iterations, Tolerance: s.Tolerance, Rises: s.Solver == "sgd",
		Signed: s.Confidence == 0, Biased: s.Biases, Holed: s.Iterations, Dense: true,
		Absolute: s.Solver == "sgd" || s.RidgeRows > 0 || s.RidgeColumns > 0 || s.Confidence > 0,
		Sizes:    s.sizes}
}

// Check returns an error for settings that exclude each other.
func (s *MatrixFactorisation) Check() error {
	switch {
	case s.Confidence > 0 && s.Biases:
		return part.KeyErrorf("biases", "got true with confidence = %g, but implicit feedback has no values with a mean: want biases = false", s.Confidence)
	case s.Confidence > 0 && s.Solver == "sgd":
		return part.KeyErrorf("solver", `got "sgd" with confidence = %g, whose objective has all entries, also those that are missing: want solver = "als"`, s.Confidence)
	}
	return nil
}

func (s *MatrixFactorisation) sizes(images, pixels int) error {
	if s.Components > pixels {
		return tooMany(s.Components, pixels, "the number of columns")
	}
	if images > 0 && s.Components > images {
		return tooMany(s.Components, images, "the number of rows")
	}
	units := s.Describe().Units
	return cmp.Or(Bounded(units, "factors of rows", images), Bounded(units, "factors of columns", pixels))
}

func (s *MatrixFactorisation) New(shape []int, seed uint64) (Model, error) {
	return NewModel(s, shape, seed, func(b Base) Algorithm { return &matrixFactorisation{Base: b, settings: *s} })
}

// matrixFactorisation is the model of [MatrixFactorisation]. Rows and columns have the same form: a factor of k values and,
// with biases, a bias.
type matrixFactorisation struct {
	Base
	settings MatrixFactorisation

	x      observations
	n      int       // number of rows
	total  int       // number of observed entries
	mean   float64   // mean of the observed entries; 0 without biases
	rows   []float64 // factors of rows, n x units; nil after Restore until Begin
	codes  []float32 // rows in float32, of the last State or Restore
	sides  []float64 // factors of columns, pixels x units
	counts []int32   // number of observed entries of each column
	digest [3]float64

	panels *panels
	work   pool
}

// observations provides the observed entries of a matrix, by row in ascending order of columns.
type observations interface {
	Len() int
	Entries(i int) (columns []int32, values []float32)
}

func (m *matrixFactorisation) Start(images Images) error {
	m.x, m.n = observed(images), images.Len()
	before := m.digest
	if err := m.examine(); err != nil {
		return err
	}
	if m.atoms != nil {
		if before != m.digest || m.Rows() != m.n {
			return ErrOtherImages
		}
		err := m.fillRows()
		m.collect()
		return err
	}
	err := m.solvable()
	if err != nil {
		return err
	}
	m.start()
	if m.objective, err = m.first(); err != nil {
		return err
	}
	m.publish()
	m.collect()
	return nil
}

// fillRows computes the rows of als that are not in memory: they follow from the columns, with all digits.
func (m *matrixFactorisation) fillRows() (err error) {
	if m.rows == nil && m.settings.Solver == "als" {
		m.rows = make([]float64, m.n*m.units)
		_, err = m.solveRows()
	}
	return err
}

// collect frees memory that is no longer used: a large matrix takes most of the heap, and the garbage of loading and of an
// iteration must not double it.
func (m *matrixFactorisation) collect() {
	const large = 1 << 20
	if m.total >= large {
		debug.FreeOSMemory()
	}
}

// examine reads all entries once. It computes their number, their mean and a digest, and returns errors in them.
func (m *matrixFactorisation) examine() error {
	m.counts, m.total, m.mean = make([]int32, m.pixels), 0, 0
	h := sha256.New()
	var b []byte
	for i := range m.n {
		columns, values := m.x.Entries(i)
		b = binary.LittleEndian.AppendUint32(b[:0], uint32(len(columns)))
		for k, c := range columns {
			v := values[k]
			if v-v != 0 || v < 0 && !m.fit.Signed {
				return &data.Error{Problem: fmt.Sprintf("row %d, column %d: got %v, want %s", i, c, v, map[bool]string{true: "a finite number", false: "a count >= 0"}[m.fit.Signed])}
			}
			m.counts[c]++
			m.mean += float64(v)
			b = binary.LittleEndian.AppendUint32(b, uint32(c))
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		m.total += len(columns)
		h.Write(b)
	}
	if m.total == 0 {
		return &data.Error{Problem: "no entry is observed"}
	}
	if m.mean /= float64(m.total); !m.settings.Biases {
		m.mean = 0
	}
	sum := h.Sum(nil)
	for i := range m.digest {
		m.digest[i] = float64(binary.LittleEndian.Uint64(append(sum[6*i:6*i+6:6*i+6], 0, 0)))
	}
	m.panels = newPanels(m.counts)
	return nil
}

// solvable returns an error for a row or column whose factors are not determined by entries or a ridge.
func (m *matrixFactorisation) solvable() error {
	if m.settings.Solver == "sgd" || m.settings.Confidence > 0 {
		return nil
	}
	least := func(what string, at, count int, key string) error {
		return part.KeyErrorf(key, "got 0, but %s %d has %d observed entries, which do not determine its %d values: want > 0", what, at, count, m.units)
	}
	if m.settings.RidgeRows == 0 {
		for i := range m.n {
			if columns, _ := m.x.Entries(i); len(columns) < m.units {
				return least("row", i, len(columns), "ridge_rows")
			}
		}
	}
	if j := slices.IndexFunc(m.counts, func(c int32) bool { return int(c) < m.units }); j >= 0 && m.settings.RidgeColumns == 0 {
		return least("column", j, int(m.counts[j]), "ridge_columns")
	}
	return nil
}

// start draws the initial factors.
func (m *matrixFactorisation) start() {
	draw := func(n int, stream string) []float64 {
		values := make([]float64, n*m.units)
		r := m.Random(stream)
		for i := range n {
			for k := range m.settings.Components {
				v := r.NormFloat64() / math.Sqrt(float64(m.settings.Components))
				if m.settings.NonNegative {
					v = math.Abs(v)
				}
				values[i*m.units+k] = v
			}
		}
		inPairs(values)
		return values
	}
	m.sides = draw(m.pixels, "matrix/columns")
	if m.settings.Biases {
		m.startBiases()
	}
	m.rows = make([]float64, m.n*m.units)
	if m.settings.Solver == "sgd" {
		for i, v := range m.sides {
			if m.settings.Biases && (i+1)%m.units == 0 {
				continue
			}
			m.sides[i] = float64(float32(v / 10))
		}
		m.rows = draw(m.n, "matrix/rows")
		for i, v := range m.rows {
			m.rows[i] = float64(float32(v / 10))
		}
	}
}

// startBiases sets the biases of columns to their means, so that the first factors of rows do not have to represent these
// means.
func (m *matrixFactorisation) startBiases() {
	sums := make([]float64, m.pixels)
	for i := range m.n {
		columns, values := m.x.Entries(i)
		for k, j := range columns {
			sums[j] += float64(values[k]) - m.mean
		}
	}
	for j, count := range m.counts {
		if count > 0 {
			m.sides[(j+1)*m.units-1] = float64(float32(sums[j] / float64(count)))
		}
	}
}

// first returns the objective before the first iteration.
func (m *matrixFactorisation) first() (float64, error) {
	if m.settings.Solver == "sgd" {
		return m.penalised(m.squares()), nil
	}
	return m.solveRows()
}

func (m *matrixFactorisation) Improve(context.Context) (objective float64, err error) {
	if m.x == nil {
		return 0, errors.New("Step before Begin")
	}
	if m.settings.Solver == "sgd" {
		m.descend()
		inPairs(m.rows)
		inPairs(m.sides)
		objective = m.penalised(m.squares())
	} else {
		if err := m.fillRows(); err != nil {
			return 0, err
		}
		if err := m.solveColumns(); err != nil {
			return 0, err
		}
		inPairs(m.sides)
		if objective, err = m.solveRows(); err != nil {
			return 0, err
		}
	}
	m.publish()
	m.collect()
	return objective, nil
}

// publish sets atoms and bias to the factors of the columns.
func (m *matrixFactorisation) publish() {
	if m.atoms == nil {
		m.atoms = make([]float32, m.units*m.pixels)
	}
	if m.settings.Biases && m.bias == nil {
		m.bias = make([]float32, m.pixels)
	}
	k := m.settings.Components
	for j := range m.pixels {
		side := m.sides[j*m.units : (j+1)*m.units]
		for c, v := range side[:k] {
			m.atoms[c*m.pixels+j] = float32(v)
		}
		if m.settings.Biases {
			m.atoms[k*m.pixels+j] = 1
			m.bias[j] = float32(m.mean + side[k])
		}
	}
}

// penalised returns the objective for a sum of squared errors: the sum plus the ridge terms, divided by the number of observed
// entries, or of all entries for implicit feedback.
func (m *matrixFactorisation) penalised(squares float64) float64 {
	for i := range m.n {
		columns, _ := m.x.Entries(i)
		squares += m.ridge(m.settings.RidgeRows, len(columns)) * squared(m.rows[i*m.units:(i+1)*m.units])
	}
	for j, count := range m.counts {
		squares += m.ridge(m.settings.RidgeColumns, int(count)) * squared(m.sides[j*m.units:(j+1)*m.units])
	}
	if m.settings.Confidence > 0 {
		return squares / float64(m.n) / float64(m.pixels)
	}
	return squares / float64(m.total)
}

// ridge returns the weight of the squared norm of a row or column with count observed entries.
func (m *matrixFactorisation) ridge(weight float64, count int) float64 {
	if m.settings.WeightedRidge {
		return weight * float64(count)
	}
	return weight
}

func squared(values []float64) (sum float64) {
	for _, v := range values {
		sum += v * v
	}
	return sum
}

// predict returns the predicted value of column j in a row.
func (m *matrixFactorisation) predict(row []float64, j int) float64 {
	side := m.sides[j*m.units : (j+1)*m.units]
	k := m.settings.Components
	y := m.mean
	for c, v := range side[:k] {
		y += row[c] * v
	}
	if m.settings.Biases {
		y += row[k] + side[k]
	}
	return y
}

// Infer implements [Algorithm]. NaN means that an entry is not observed.
func (m *matrixFactorisation) Infer(images []float32) ([]float32, error) {
	n := len(images) / m.pixels
	codes, errs := make([]float32, n*m.units), make([]error, n)
	all := m.gramOfAll(m.sides)
	const grain = 16
	team.For(n, grain, func(from, to int) {
		columns, values := make([]int32, 0, m.pixels), make([]float32, 0, m.pixels)
		for i := from; i < to; i++ {
			columns, values = columns[:0], values[:0]
			for j, v := range images[i*m.pixels : (i+1)*m.pixels] {
				if v == v {
					columns, values = append(columns, int32(j)), append(values, v)
				}
			}
			code, err := m.fold(columns, values, all)
			if err != nil {
				errs[i] = fmt.Errorf("sample %d: %w", i, err)
				continue
			}
			for k, v := range code {
				codes[i*m.units+k] = float32(v)
			}
		}
	})
	return codes, errors.Join(errs...)
}

// Reconstructs returns an error with confidence > 0: the model predicts preferences in [0,1] then, and not the counts.
func (m *matrixFactorisation) Reconstructs() error {
	if m.settings.Confidence > 0 {
		return errors.New("the entries are implicit feedback: the model predicts preferences, not counts")
	}
	return nil
}

// MatrixPredictor is a model that predicts the entries of a matrix. [MatrixFactorisation] returns one.
type MatrixPredictor interface {
	// Rows returns the number of fitted rows.
	Rows() int
	// PredictEntry returns the prediction of column j in a fitted row i.
	PredictEntry(i, j int) (float64, error)
	// FoldIn returns the code of a new row from its observed entries, without changing the model.
	FoldIn(columns []int32, values []float32) ([]float64, error)
	// PredictCode returns the prediction of column j in a row with the given code.
	PredictCode(code []float64, j int) (float64, error)
}

func (m *matrixFactorisation) Rows() int { return max(len(m.rows), len(m.codes)) / max(1, m.units) }

func (m *matrixFactorisation) PredictEntry(i, j int) (float64, error) {
	if i < 0 || i >= m.Rows() {
		return 0, fmt.Errorf("matrix_factorisation: row: got %d, want 0 to %d", i, m.Rows()-1)
	}
	if m.rows == nil {
		return m.PredictCode(vectors.Wide(m.codes[i*m.units:(i+1)*m.units]), j)
	}
	return m.PredictCode(m.rows[i*m.units:(i+1)*m.units], j)
}

func (m *matrixFactorisation) FoldIn(columns []int32, values []float32) ([]float64, error) {
	if len(columns) != len(values) {
		return nil, fmt.Errorf("matrix_factorisation: got %d columns and %d values, want as many", len(columns), len(values))
	}
	for k, c := range columns {
		if v := values[k]; c < 0 || int(c) >= m.pixels || v-v != 0 {
			return nil, fmt.Errorf("matrix_factorisation: got column %d with the value %v, want 0 to %d and a finite number", c, v, m.pixels-1)
		}
	}
	if m.atoms == nil {
		return nil, errUnfitted
	}
	code, err := m.fold(columns, values, m.gramOfAll(m.sides))
	return code, m.wrap(err)
}

func (m *matrixFactorisation) PredictCode(code []float64, j int) (float64, error) {
	switch {
	case m.atoms == nil:
		return 0, errUnfitted
	case len(code) != m.units || j < 0 || j >= m.pixels:
		return 0, fmt.Errorf("matrix_factorisation: got a code of %d values and column %d, want %d values and a column from 0 to %d", len(code), j, m.units, m.pixels-1)
	}
	return m.predict(code, j), nil
}

// notes lists the rows and columns without an observed entry.
func (m *matrixFactorisation) notes() (notes []string) {
	empty, first := 0, 0
	for i := m.n - 1; i >= 0; i-- {
		if columns, _ := m.x.Entries(i); len(columns) == 0 {
			empty, first = empty+1, i
		}
	}
	if empty > 0 {
		notes = append(notes, fmt.Sprintf("%d rows, the first of them row %d, have no observed entry: they are predicted by the mean and the biases of the columns", empty, first))
	}
	if j := slices.Index(m.counts, 0); j >= 0 {
		empty = 0
		for _, c := range m.counts {
			if c == 0 {
				empty++
			}
		}
		notes = append(notes, fmt.Sprintf("%d columns, the first of them column %d, have no observed entry: they are predicted by the mean and the biases of the rows", empty, j))
	}
	return notes
}

// The names of the saved tensors and numbers.
const (
	columnsName = "columns" // tensor of the factors of columns, pixels x units, with lowSuffix
	meanName    = "mean"
	digestName  = "digest."
)

// Keep implements [Algorithm]. The rows of als are saved only for predictions; a resumed fit computes them from the columns.
func (m *matrixFactorisation) Keep(k *Kept) {
	m.Base.Keep(k)
	k.Number(meanName, &m.mean)
	for i := range m.digest {
		k.Number(fmt.Sprint(digestName, i), &m.digest[i])
	}
	if m.atoms == nil || k.failed() {
		return
	}
	if m.settings.Biases && m.bias == nil {
		k.Fail(fmt.Errorf("the state holds no tensor %q", biasName))
	}
	k.pair(columnsName, &m.sides, m.pixels, m.units)
	if m.settings.Solver == "sgd" {
		k.pair(codesName, &m.rows, -1, m.units)
		return
	}
	if m.rows != nil && !k.Restores {
		m.codes = slices.Grow(m.codes[:0], len(m.rows))[:len(m.rows)]
		for i, v := range m.rows {
			m.codes[i] = float32(v)
		}
		if m.done { // predictions need no more than the codes
			m.rows = nil
			m.collect()
		}
	}
	k.Tensor(codesName, &m.codes, -1, m.units)
}

// observed returns the observed entries of images. The entries of a sparse matrix are not copied.
func observed(images Images) observations {
	if s, ok := images.(interface {
		observations
		Sparse() bool
	}); ok && s.Sparse() && sparseOf(images) == nil {
		return s
	}
	mask, _ := images.(interface {
		Holed() bool
		Gather(dst []float32, column string, indices []int)
	})
	n, pixels := images.Len(), images.Pixels()
	g := &gathered{starts: make([]int, n+1)}
	row, seen := make([]float32, pixels), make([]float32, pixels)
	for i := range n {
		images.Batch(row, []int{i})
		masked := mask != nil && mask.Holed()
		if masked {
			mask.Gather(seen, data.ObservedColumn, []int{i})
		}
		for j, v := range row {
			if v == v && (!masked || seen[j] != 0) {
				g.columns, g.values = append(g.columns, int32(j)), append(g.values, v)
			}
		}
		g.starts[i+1] = len(g.columns)
	}
	return g
}

// gathered contains the observed entries of images other than a sparse matrix.
type gathered struct {
	starts  []int
	columns []int32
	values  []float32
}

func (g *gathered) Len() int { return len(g.starts) - 1 }

func (g *gathered) Entries(i int) ([]int32, []float32) {
	return g.columns[g.starts[i]:g.starts[i+1]], g.values[g.starts[i]:g.starts[i+1]]
}
