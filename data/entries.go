package data

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"tessera/internal/lists"
)

// Entries contains the entries of a sparse matrix, row by row in ascending order of columns, with 8 bytes per entry. In each
// row, hidden entries follow the others.
type Entries struct {
	starts  []int // index of the first entry of each row, and the end of the last row
	columns []int32
	values  []float32
	hidden  []int // index of the first hidden entry of each row; nil if no entries are hidden

	rowNames []string // names of the rows; nil for numbers
	zeros    bool     // all other entries are 0; else they are missing
}

// row returns the entries of row i that are not hidden.
func (e *Entries) row(i int) (columns []int32, values []float32) {
	from, to := e.starts[i], e.starts[i+1]
	if e.hidden != nil {
		to = e.hidden[i]
	}
	return e.columns[from:to], e.values[from:to]
}

// held returns the hidden entries of a row.
func (e *Entries) held(i int) (columns []int32, values []float32) {
	to := e.starts[i+1]
	from := to
	if e.hidden != nil {
		from = e.hidden[i]
	}
	return e.columns[from:to], e.values[from:to]
}

func (e *Entries) rows() int { return len(e.starts) - 1 }

// NewEntries returns the samples of a sparse matrix with width columns, one sample per row. All other entries of a row are
// missing. The entries of row i are those from starts[i] to starts[i+1], in ascending order of columns. Slices are not copied.
// An entry that is out of range, not finite or given twice is an error.
func NewEntries(starts []int, columns []int32, values []float32, width int) (*Images, error) {
	n := len(starts) - 1
	if n < 1 || width < 1 || starts[0] != 0 || starts[n] != len(columns) || len(columns) != len(values) || !slices.IsSorted(starts) {
		return nil, errors.New("data: entries: want ascending starts of at least one row from 0 to the number of columns and of values")
	}
	for i := range n {
		last := int32(-1)
		for k := starts[i]; k < starts[i+1]; k++ {
			c, v := columns[k], values[k]
			switch {
			case c < 0 || int(c) >= width:
				return nil, fmt.Errorf("data: entries: row %d: got the column %d, want 0 to %d", i, c, width-1)
			case c <= last:
				return nil, fmt.Errorf("data: entries: row %d: column %d is given twice, or not in ascending order", i, c)
			case v-v != 0:
				return nil, fmt.Errorf("data: entries: row %d, column %d: got %v, want a finite number", i, c, v)
			}
			last = c
		}
	}
	return newEntryImages(&Entries{starts: starts, columns: columns, values: values}, width, nil), nil
}

func newEntryImages(e *Entries, width int, columnNames []string) *Images {
	return &Images{Shape: []int{width}, pixels: width, n: e.rows(), entries: e, missing: !e.zeros, zeros: e.zeros, columns: columnNames}
}

// Sparse reports whether the samples are rows of a sparse matrix. [Images.Entries] then returns their entries without the cost
// of a complete row.
func (m *Images) Sparse() bool { return m != nil && m.entries != nil }

// Zeros reports whether the samples are complete rows of a sparse matrix whose other entries are 0 (the key absent of [Files], or
// [Images.WithZeros]), also after scaling.
func (m *Images) Zeros() bool { return m.Sparse() && m.zeros && !m.Holed() }

// WithZeros returns the samples of a sparse matrix with 0 in place of missing entries. The entries are not copied.
func (m *Images) WithZeros() *Images {
	e := *m.entries
	e.zeros = true
	other := *m
	other.entries, other.missing = &e, false
	other.zeros = m.scaling == nil || m.scaling.keepsZeros()
	return &other
}

// Entries returns the entries of sample i of a sparse matrix that are neither missing nor hidden, in ascending order of columns. The slices
// must not be changed. Scaled values are computed by every call.
func (m *Images) Entries(i int) (columns []int32, values []float32) {
	columns, values = m.entries.row(m.row(i))
	if m.scaling != nil {
		values = slices.Clone(values)
		m.scaling.applyEntries(columns, values)
	}
	return columns, values
}

// EachRow calls do for every sample: with its entries if the samples are [Images.Zeros], and else with columns nil and all values, NaN for a
// missing one. Slices must not be changed, and not be kept.
func (m *Images) EachRow(do func(columns []int32, values []float32)) {
	row := make([]float32, m.pixels)
	for i := range m.n {
		if m.Zeros() {
			do(m.Entries(i))
			continue
		}
		m.copyRow(row, i)
		m.markMissing(row, i)
		do(nil, row)
	}
}

// Compact returns the same samples; of a sparse matrix, without the memory of rows that are not among them.
func (m *Images) Compact() *Images {
	if m.entries == nil || m.rows == nil {
		return m
	}
	other, e, kept := *m, *m.entries, make([]bool, m.entries.rows())
	for _, i := range m.rows {
		kept[i] = true
	}
	other.entries = &e
	e.starts, e.columns, e.values, e.hidden = make([]int, len(e.starts)), nil, nil, slices.Clone(e.hidden)
	for i := range kept {
		from, to := m.entries.starts[i], m.entries.starts[i+1]
		if !kept[i] {
			to = from
		}
		if e.hidden != nil {
			e.hidden[i] = len(e.columns) + min(e.hidden[i], to) - from
		}
		e.columns, e.values = append(e.columns, m.entries.columns[from:to]...), append(e.values, m.entries.values[from:to]...)
		e.starts[i+1] = len(e.columns)
	}
	return &other
}

// HeldOut returns the entries of sample i of a sparse matrix that are hidden deliberately (`hide`).
func (m *Images) HeldOut(i int) (columns []int32, values []float32) { return m.entries.held(m.row(i)) }

// RowNames returns the names of the samples of a sparse matrix, nil if the names are numbers.
func (m *Images) RowNames() []string {
	if !m.Sparse() || m.entries.rowNames == nil && m.rows == nil {
		return nil
	}
	return lists.Of(m.n, func(i int) string { return m.entries.nameOf(m.row(i)) })
}

// ValueNames returns the names of the values of a sample, nil if they have no names.
func (m *Images) ValueNames() []string { return slices.Clone(m.columns) }

func (e *Entries) nameOf(row int) string {
	if e.rowNames == nil {
		return fmt.Sprint(row)
	}
	return e.rowNames[row]
}

// copySparse writes the values of a row, with 0 for entries that are not observed.
func (m *Images) copySparse(dst []float32, row int) {
	clear(dst)
	columns, values := m.entries.row(row)
	if m.Zeros() && m.scaling != nil {
		values = slices.Clone(values)
		m.scaling.applyEntries(columns, values)
	}
	for i, c := range columns {
		dst[c] = values[i]
	}
	if !m.Zeros() && (m.scaling != nil || m.vacant != nil) {
		m.scaling.Apply(dst)
		m.fillRow(dst, row)
	}
}

// observedAt reports whether a row has an entry in a column that is not hidden.
func (e *Entries) observedAt(row, column int) bool {
	if e.zeros {
		held, _ := e.held(row)
		return !slices.Contains(held, int32(column))
	}
	columns, _ := e.row(row)
	_, found := slices.BinarySearch(columns, int32(column))
	return found
}

// withColumns returns the same rows with other columns, which are identified by names or, if names is nil, by numbers; shape
// contains their number. Columns without names have the names in their order if placed is true. Entries of columns with other names are left
// out and their names returned; those of other numbers are an error.
func (m *Images) withColumns(names []string, shape []int, placed bool) (chosen *Images, ignored []string, err error) {
	if len(shape) != 1 || names != nil && len(names) != shape[0] {
		return nil, nil, fmt.Errorf("got %d columns of a sparse matrix, want samples of shape %v", len(names), shape)
	}
	if placed && m.pixels != len(names) {
		return nil, nil, fmt.Errorf("has %d columns without names, want the %d of the training, in their order", m.pixels, len(names))
	}
	at := make([]int32, m.pixels) // -1 for a column that is left out
	to := make(map[string]int32, shape[0])
	for j := range shape[0] {
		name := strconv.Itoa(j)
		if names != nil {
			name = names[j]
		}
		to[name] = int32(j)
	}
	nameOf := func(j int32) string {
		switch {
		case m.columns != nil:
			return m.columns[j]
		case placed:
			return names[j]
		}
		return strconv.Itoa(int(j))
	}
	for j := range at {
		of, ok := to[nameOf(int32(j))]
		if at[j] = of; !ok {
			at[j] = -1
		}
	}
	others := map[int32]bool{} // columns of entries that are left out
	e := &Entries{starts: make([]int, m.n+1), rowNames: m.RowNames(), zeros: m.entries.zeros}
	for i := range m.n {
		columns, values := m.entries.row(m.row(i))
		for k, j := range columns {
			switch {
			case at[j] >= 0:
				e.columns, e.values = append(e.columns, at[j]), append(e.values, values[k])
			case names != nil:
				others[j] = true
			default:
				return nil, nil, fmt.Errorf("row %.60q has an entry in column %d, want columns from 0 to %d as in the training", m.entries.nameOf(m.row(i)), j, shape[0]-1)
			}
		}
		e.starts[i+1] = len(e.columns)
		e.sortRow(i)
	}
	ignored = lists.Map(slices.Sorted(maps.Keys(others)), nameOf)
	if len(e.columns) == 0 && len(m.entries.columns) > 0 {
		return nil, nil, fmt.Errorf("has no column of the training (%s), only %s", nameList(names), nameList(ignored))
	}
	return newEntryImages(e, shape[0], names), ignored, nil
}

func (m *Images) eachEntry(do func(column int, v float32)) {
	for i := range m.n {
		columns, values := m.Entries(i)
		for k, c := range columns {
			do(int(c), values[k])
		}
	}
}

func (m *Images) sparseRange() (low, high float32) {
	if low, high = float32(math.Inf(1)), float32(math.Inf(-1)); m.entries.zeros {
		low, high = 0, 0
	}
	m.eachEntry(func(_ int, v float32) { low, high = min(low, v), max(high, v) })
	if low > high { // all are hidden
		return 0, 0
	}
	return low, high
}

// hideEntries hides the entries of each row that choose sets.
func (m *Images) hideEntries(choose func(chosen []bool)) *Images {
	e := *m.entries
	e.columns, e.values, e.hidden = slices.Clone(e.columns), slices.Clone(e.values), make([]int, e.rows())
	var held []int
	var chosen []bool
	for i := range e.hidden {
		from, to := e.starts[i], e.starts[i+1]
		held = held[:0]
		chosen = slices.Grow(chosen[:0], to-from)[:to-from]
		choose(chosen)
		at := from
		for k := from; k < to; k++ {
			if chosen[k-from] {
				held = append(held, k)
				continue
			}
			e.columns[at], e.values[at] = e.columns[k], e.values[k]
			at++
		}
		e.hidden[i] = at
		for j, k := range held {
			e.columns[at+j], e.values[at+j] = m.entries.columns[k], m.entries.values[k]
		}
	}
	other := *m
	other.entries = &e
	return &other
}

// sortRow sorts the entries of a row by column. It returns a column that occurs twice, -1 if there is none.
func (e *Entries) sortRow(row int) (twice int) {
	from, to := e.starts[row], e.starts[row+1]
	columns, values := e.columns[from:to], e.values[from:to]
	if !slices.IsSorted(columns) {
		type entry struct {
			column int32
			value  float32
		}
		row := make([]entry, len(columns))
		for k, c := range columns {
			row[k] = entry{c, values[k]}
		}
		slices.SortFunc(row, func(a, b entry) int { return cmp.Compare(a.column, b.column) })
		for k, one := range row {
			columns[k], values[k] = one.column, one.value
		}
	}
	for i := 1; i < len(columns); i++ {
		if columns[i] == columns[i-1] {
			return int(columns[i])
		}
	}
	return -1
}
