package classical

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"tessera/internal/engine/kernel"
	"tessera/internal/fit"
	"tessera/internal/lists"
	"tessera/internal/parallel/team"
	"tessera/internal/random"
	"tessera/internal/vectors"
)

// errSingular is the error for normal equations without a unique solution.
var errSingular = errors.New("its observed entries do not determine its factors: want a ridge > 0")

// solveRows solves all rows for the current columns and returns the objective.
func (m *matrixFactorisation) solveRows() (float64, error) {
	all := m.gramOfAll(m.sides)
	squares, failed := make([]float64, m.n), make([]bool, m.n)
	const grain = 128
	team.For(m.n, grain, func(from, to int) {
		w := m.work.take(m)
		defer m.work.give(w)
		for i := from; i < to; i++ {
			columns, values := m.x.Entries(i)
			var err error
			squares[i], err = w.solve(m.rows[i*m.units:(i+1)*m.units], m.sides, columns, values, m.ridge(m.settings.RidgeRows, len(columns)), all)
			failed[i] = err != nil
		}
	})
	if i := slices.Index(failed, true); i >= 0 {
		return 0, fmt.Errorf("row %d: %w", i, errSingular)
	}
	return m.penalised(lists.Sum(squares)), nil
}

// solveColumns solves all columns for the current rows.
func (m *matrixFactorisation) solveColumns() error {
	all := m.gramOfAll(m.rows)
	failed := make([]bool, m.pixels)
	m.panels.each(m.x, func(j int, rows []int32, values []float32, w *solver) {
		_, err := w.solve(m.sides[j*m.units:(j+1)*m.units], m.rows, rows, values, m.ridge(m.settings.RidgeColumns, len(rows)), all)
		failed[j] = err != nil
	}, func() *solver { return m.work.take(m) }, m.work.give)
	if j := slices.Index(failed, true); j >= 0 {
		return fmt.Errorf("column %d: %w", j, errSingular)
	}
	return nil
}

// fold returns the code of a row from its observed entries.
func (m *matrixFactorisation) fold(columns []int32, values []float32, all []float64) ([]float64, error) {
	w := m.work.take(m)
	defer m.work.give(w)
	code := make([]float64, m.units)
	_, err := w.solve(code, m.sides, columns, values, m.ridge(m.settings.RidgeRows, len(columns)), all)
	return code, err
}

// gramOfAll returns the sum of the outer products of all factors, which is needed for implicit feedback; nil for other
// entries.
func (m *matrixFactorisation) gramOfAll(factors []float64) []float64 {
	if m.settings.Confidence == 0 {
		return nil
	}
	k, n := m.units, len(factors)/m.units
	gram := make([]float64, k*k)
	kernel.Float64().Gemm(true, false, k, k, n, 1, factors, k, factors, k, 0, gram, k)
	return gram
}

type pool struct{ free sync.Pool }

func (p *pool) take(m *matrixFactorisation) *solver {
	if w, ok := p.free.Get().(*solver); ok {
		return w
	}
	k, u := m.settings.Components, m.units
	return &solver{m: m, block: make([]float64, solveBlock*k), target: make([]float64, 2*solveBlock), gram: make([]float64, k*k), sums: make([]float64, 2*k),
		normal: make([]float64, u*u), factor: make([]float64, u*u), right: make([]float64, u)}
}

func (p *pool) give(w *solver) { p.free.Put(w) }

// solveBlock is the number of entries whose factors are copied into one block.
const solveBlock = 256

// solver is the scratch memory for the normal equations of a row or a column.
type solver struct {
	m      *matrixFactorisation
	block  []float64 // factors of the other side, one row per entry
	target []float64 // values that the factors approximate; then weights of these values in the sum for the bias
	gram   []float64 // Gram matrix of the factors, k x k
	sums   []float64 // products of block' and target
	normal []float64 // normal equations, units x units
	factor []float64
	right  []float64
}

// solve writes to x the factor and the bias of one row, or column, that minimise its objective for the given factors of the
// other side. It returns the sum of squared errors without the ridge. all is the Gram matrix for implicit feedback.
func (w *solver) solve(x, others []float64, indices []int32, values []float32, ridge float64, all []float64) (float64, error) {
	m := w.m
	k, u := m.settings.Components, m.units
	if len(indices) == 0 {
		clear(x)
		return 0, nil
	}
	clear(w.gram)
	if all != nil {
		copy(w.gram, all)
	}
	clear(w.sums)
	constant, total := 0.0, 0.0 // sums of the squares of targets, and of targets
	gemm := kernel.Float64().Gemm
	for from := 0; from < len(indices); from += solveBlock {
		n := min(solveBlock, len(indices)-from)
		for e, j := range indices[from : from+n] {
			other := others[int(j)*u : int(j)*u+u]
			row := w.block[e*k : (e+1)*k]
			v := float64(values[from+e])
			if all != nil {
				constant += w.implicit(row, other, v, e, n)
				continue
			}
			copy(row, other)
			v -= m.mean
			if u > k {
				v -= other[k]
			}
			w.target[e], w.target[n+e] = v, 1
			constant += v * v
			total += v
		}
		gemm(true, false, k, k, n, 1, w.block, k, w.block, k, 1, w.gram, k)
		gemm(false, false, 2, k, n, 1, w.target, n, w.block, k, 1, w.sums, k)
	}
	for a := range k {
		copy(w.normal[a*u:], w.gram[a*k:(a+1)*k])
		w.right[a] = w.sums[a]
		if u > k {
			w.normal[a*u+k], w.normal[k*u+a] = w.sums[k+a], w.sums[k+a]
		}
	}
	if u > k {
		w.normal[k*u+k], w.right[k] = float64(len(indices)), total
	}
	copy(w.factor, w.normal)
	for a := range u {
		w.factor[a*u+a] += ridge
	}
	if m.settings.NonNegative {
		nonNegative(w.factor, w.right, x, k)
	} else {
		if !decompose(w.factor, u) {
			return 0, errSingular
		}
		copy(x, w.right)
		substitute(w.factor, x)
	}
	return max(0, constant+quadraticForm(w.normal, w.right, x)), nil
}

// implicit adds a count v to a block: the factor times the square root of Confidence*v, which is the weight of the entry minus
// that of a missing one. It returns the constant term of the objective.
func (w *solver) implicit(row, other []float64, v float64, e, n int) float64 {
	more := w.m.settings.Confidence * v
	root := math.Sqrt(more)
	w.target[e], w.target[n+e] = 0, 0
	for a, f := range other {
		row[a] = root * f
	}
	if more == 0 { // as if it were missing
		return 0
	}
	w.target[e] = (1 + more) / root
	return 1 + more
}

// quadraticForm returns x'Ax - 2b'x for a symmetric matrix.
func quadraticForm(a, b, x []float64) (q float64) {
	n := len(x)
	for i, v := range x {
		s := -2 * b[i]
		for j, f := range a[i*n : (i+1)*n] {
			s += f * x[j]
		}
		q += v * s
	}
	return q
}

// decompose replaces the lower triangle of a symmetric n x n matrix A by L with A = L L', and its diagonal by 1/L_ii. It returns false if A is not positive definite,
// up to rounding.
func decompose(a []float64, n int) bool {
	for i := range n {
		row := a[i*n : i*n+n]
		for j := range i {
			other := a[j*n : j*n+n]
			row[j] = (row[j] - vectors.FastDot(row[:j], other[:j])) * other[j]
		}
		d := row[i] - vectors.FastDot(row[:i], row[:i])
		if !(d > 1e-14*row[i]) || math.IsInf(d, 0) {
			return false
		}
		row[i] = 1 / math.Sqrt(d)
	}
	return true
}

// substitute solves L L' x = b in place for the result of decompose.
func substitute(l, x []float64) {
	n := len(x)
	for i := range n {
		x[i] = (x[i] - vectors.FastDot(l[i*n:i*n+i], x[:i])) * l[i*n+i]
	}
	for i := n - 1; i >= 0; i-- {
		x[i] *= l[i*n+i]
		v := x[i]
		for j, f := range l[i*n : i*n+i] {
			x[j] -= f * v
		}
	}
}

// nonNegative minimises x'Ax - 2b'x over x whose first k values are >= 0, by cyclic coordinate descent from 0. The result does not depend on x.
func nonNegative(a, b, x []float64, k int) {
	const sweeps, precision = 2000, 1e-13
	n := len(x)
	clear(x)
	rest := slices.Clone(b) // b - Ax
	for range sweeps {
		change, size := 0.0, 0.0
		for i := range n {
			d := a[i*n+i]
			if !(d > 0) {
				continue
			}
			v := x[i] + rest[i]/d
			if i < k {
				v = max(v, 0)
			}
			step := v - x[i]
			x[i] = v
			change, size = max(change, math.Abs(step)), max(size, math.Abs(v))
			if step == 0 {
				continue
			}
			for j, f := range a[i*n : (i+1)*n] {
				rest[j] -= f * step
			}
		}
		if change <= precision*size {
			return
		}
	}
}

// squares returns the sum of the squared errors of the observed entries.
func (m *matrixFactorisation) squares() float64 {
	return sumLanes(m.n, func(i int) (s float64) {
		columns, values := m.x.Entries(i)
		for e, j := range columns {
			d := float64(values[e]) - m.predict(m.rows[i*m.units:(i+1)*m.units], int(j))
			s += d * d
		}
		return s
	})
}

// sumLanes returns the sum of of(i) over all rows i.
func sumLanes(n int, of func(i int) float64) float64 {
	sums := make([]float64, fit.Lanes(n))
	fit.ForLanes(n, func(lane, from, to int) {
		for i := from; i < to; i++ {
			sums[lane] += of(i)
		}
	})
	return lists.Sum(sums)
}

// descend performs one pass of stochastic gradient descent over the entries. Rows and columns are divided into the same number
// of ranges, and a pass has the same number of rounds. In each round every range of rows is combined with a different range of
// columns. No two goroutines then change the same factor, and the result does not depend on the number of goroutines.
func (m *matrixFactorisation) descend() {
	const most = 16
	b := min(most, m.n, m.pixels)
	rate := m.settings.LearningRate * math.Pow(m.settings.Decay, float64(m.iteration))
	orders := make([][]int, b)
	for i := range orders {
		from, to := m.n*i/b, m.n*(i+1)/b
		orders[i] = random.Stream(m.seed, fmt.Sprint("matrix/sgd/", i), uint64(m.iteration)).Perm(to - from)
		for k := range orders[i] {
			orders[i][k] += from
		}
	}
	for round := range b {
		team.For(b, 1, func(first, end int) {
			for i := first; i < end; i++ {
				c := (i + round) % b
				low, high := int32(m.pixels*c/b), int32(m.pixels*(c+1)/b)
				for _, row := range orders[i] {
					m.descendRow(row, low, high, rate)
				}
			}
		})
	}
}

// descendRow takes a gradient step for each entry of a row in a range of columns.
func (m *matrixFactorisation) descendRow(i int, low, high int32, rate float64) {
	columns, values := m.x.Entries(i)
	own := m.ridgeOfEntry(m.settings.RidgeRows, len(columns))
	at, _ := slices.BinarySearch(columns, low)
	k := m.settings.Components
	row := m.rows[i*m.units : (i+1)*m.units]
	for ; at < len(columns) && columns[at] < high; at++ {
		j := int(columns[at])
		side := m.sides[j*m.units : (j+1)*m.units]
		e := float64(values[at]) - m.predict(row, j)
		theirs := m.ridgeOfEntry(m.settings.RidgeColumns, int(m.counts[j]))
		for c := range k {
			w, z := row[c], side[c]
			row[c] += rate * (e*z - own*w)
			side[c] += rate * (e*w - theirs*z)
			if m.settings.NonNegative {
				row[c], side[c] = max(row[c], 0), max(side[c], 0)
			}
		}
		if m.settings.Biases {
			row[k] += rate * (e - own*row[k])
			side[k] += rate * (e - theirs*side[k])
		}
	}
}

// ridgeOfEntry returns the share of the ridge for one of count entries.
func (m *matrixFactorisation) ridgeOfEntry(weight float64, count int) float64 {
	return m.ridge(weight, count) / float64(count)
}

// panels divides the columns of a matrix for a transposition in pieces. The entries of a panel are copied in the order of
// columns, used and discarded, so that only one copy of the matrix is in memory. One goroutine processes a group of panels.
type panels struct {
	groups [][]int // for each group, the first columns of its panels, and the end of the last one
	starts []int   // index of the first entry of each column in the order of columns
	free   sync.Pool
}

// panel is the memory of a panel.
type panel struct {
	next   []int32 // index of the first entry of each row that was not copied yet
	rows   []int32
	values []float32
}

func (p *panels) take() *panel {
	if t, ok := p.free.Get().(*panel); ok {
		return t
	}
	return &panel{}
}

// panelEntries is the number of entries at which a panel is complete.
const panelEntries = 1 << 18

// newPanels divides columns into panels. counts contains the number of entries of each column.
func newPanels(counts []int32) *panels {
	const groups = 16
	p := &panels{starts: make([]int, len(counts)+1)}
	for j, c := range counts {
		p.starts[j+1] = p.starts[j] + int(c)
	}
	total := p.starts[len(counts)]
	least := total/groups + 1 // entries of a group
	var group []int
	for j, from, begun := 0, 0, 0; j < len(counts); j++ {
		if group == nil {
			group, from, begun = []int{j}, p.starts[j], p.starts[j]
		}
		if end := p.starts[j+1]; end-begun >= least || j == len(counts)-1 {
			p.groups, group = append(p.groups, append(group, j+1)), nil
		} else if end-from >= panelEntries {
			group, from = append(group, j+1), end
		}
	}
	return p
}

// each calls do for every column with its entries, which have ascending rows. take and give borrow and return a solver for a
// goroutine.
func (p *panels) each(x observations, do func(j int, rows []int32, values []float32, w *solver), take func() *solver, give func(*solver)) {
	team.For(len(p.groups), 1, func(first, end int) {
		w := take()
		defer give(w)
		t := p.take()
		defer p.free.Put(t)
		for _, group := range p.groups[first:end] {
			t.next = slices.Grow(t.next[:0], x.Len())[:x.Len()]
			for i := range t.next {
				columns, _ := x.Entries(i)
				at, _ := slices.BinarySearch(columns, int32(group[0]))
				t.next[i] = int32(at)
			}
			for k, from := range group[:len(group)-1] {
				to := group[k+1]
				base := p.starts[from]
				size := p.starts[to] - base
				t.rows, t.values = slices.Grow(t.rows[:0], size)[:size], slices.Grow(t.values[:0], size)[:size]
				at := lists.Of(to-from, func(j int) int { return p.starts[from+j] - base })
				for i := range t.next {
					columns, v := x.Entries(i)
					e := t.next[i]
					for ; int(e) < len(columns) && int(columns[e]) < to; e++ {
						j := int(columns[e]) - from
						t.rows[at[j]], t.values[at[j]] = int32(i), v[e]
						at[j]++
					}
					t.next[i] = e
				}
				for j := from; j < to; j++ {
					a, b := p.starts[j]-base, p.starts[j+1]-base
					do(j, t.rows[a:b], t.values[a:b], w)
				}
			}
		}
	})
}
