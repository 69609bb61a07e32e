package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/internal/lists"
)

func init() {
	RegisterFormat(Format{Dataset: "triples", About: "your own sparse matrix: a line per entry (row, column, value) in a .csv file, SciPy's .npz files (save_npz), or MatrixMarket files (.mtx)",
		Sort: EntryFiles, Open: openTriples})
}

// eachEntry is called for an entry; place is its line or its index.
type eachEntry = func(place, row, column int, v float32) error

// Matrix is an opened file of the entries of a sparse matrix. A sample is a row of the matrix; all other entries are missing, or with
// absent = "zero", as in a matrix of counts, 0. In memory an entry takes 8 bytes; texts are read twice from the disk.
type Matrix struct {
	Rows, Columns int // their numbers; 0 if they have names, and are known only after all entries are read
	Count         int // number of entries; 0 if it is not known
	// Each calls do for every entry, in the order of the file.
	Each func(ctx context.Context, do eachEntry) error

	rows, columns *axis // with names; nil if they have numbers
	warnings      []string
}

// sparseShape returns an error for numbers of rows, columns and entries that a file with at most so many entries does not have, or of
// which nearly all rows or columns are empty.
func sparseShape(sizes [3]int, most int64) error {
	switch empty := max(1<<20, 64*sizes[2]); {
	case int64(sizes[2]) > most:
		return fmt.Errorf("claims %d entries, more than the file can hold", sizes[2])
	case sizes[0] > empty || sizes[1] > empty:
		return fmt.Errorf("has the shape (%d, %d) for %d entries: leave out the empty rows and columns", sizes[0], sizes[1], sizes[2])
	}
	return nil
}

// dims returns the axes of the matrix if they are known without reading all entries.
func (m *Matrix) dims(r reading) ([]int, error) {
	if m.Columns == 0 || r.Empty == dropEmpty {
		return nil, errors.New("the number of columns is not known")
	}
	return []int{max(m.Rows, 1), m.Columns}, nil
}

// counted returns the numbers of entries of all rows and columns. Names are sorted afterwards: as numbers if all are whole numbers, else
// as texts.
func (m *Matrix) counted(ctx context.Context) (rows, columns *axis, entries int, err error) {
	if rows, columns = m.rows, m.columns; rows == nil {
		rows, columns = newAxis(m.Rows), newAxis(m.Columns)
	}
	err = m.Each(ctx, func(_, i, j int, _ float32) error {
		entries++
		return cmp.Or(rows.count(i, "row"), columns.count(j, "column"))
	})
	if err == nil && entries == 0 {
		err = errors.New("has no entries: want a line for each of them after the first one")
	}
	if err == nil && m.rows != nil {
		rows.sort()
		columns.sort()
	}
	return rows, columns, entries, err
}

func (r reading) matrixTable(ctx context.Context, o Opened) (t table, err error) {
	m := o.Matrix
	rows, columns, _, err := m.counted(ctx)
	if err == nil && (!r.AbsentIsZero() || r.Empty == dropEmpty) {
		err = rows.compact("row", r.Empty)
		if !r.loose { // else the columns are those of the training
			err = errors.Join(err, columns.compact("column", r.Empty))
		}
	}
	if err != nil {
		return t, err
	}
	e, err := m.collect(ctx, rows, columns)
	if err != nil {
		return t, err
	}
	for i := range e.rows() {
		if j := e.sortRow(i); j >= 0 {
			return t, m.twice(ctx, rows, columns, i, j)
		}
	}
	file, err := o.checksum(ctx)
	files := []File{file}
	for _, named := range []struct {
		axis       *axis
		path, what string
	}{{rows, r.RowNames, "row"}, {columns, r.ColNames, "column"}} {
		if err == nil && named.path != "" && !r.loose {
			file, err = named.axis.read(ctx, named.path, fmt.Sprintf("one for each %s of %s", named.what, r.File))
			files = append(files, file)
		}
	}
	if err == nil && r.loose && m.rows == nil {
		err = r.namesBeside(ctx, m, rows, columns)
	}
	e.rowNames, e.zeros = rows.names(), r.AbsentIsZero()
	return table{files: files, sparse: newEntryImages(e, columns.n, columns.names()), warnings: m.warnings}, err
}

// namesBeside reads the names of another matrix than that of the training from files beside it, which are named as those of the training.
// Without them, or beside the matrix of the training, the columns have the names of the training, in their order.
func (r reading) namesBeside(ctx context.Context, m *Matrix, rows, columns *axis) error {
	beside := func(names string) (path string) {
		training, _ := os.Stat(names)
		name := filepath.Join(filepath.Dir(r.File), strings.TrimSuffix(filepath.Base(names), ".gz"))
		for _, path := range []string{name, name + ".gz"} {
			if here, err := os.Stat(path); names != "" && err == nil {
				if os.SameFile(here, training) {
					return names
				}
				return path
			}
		}
		return ""
	}
	if path := beside(r.RowNames); path != "" && path != r.RowNames {
		if _, err := rows.read(ctx, path, ""); err != nil { // they are those of another matrix
			rows.texts = nil
		}
	}
	path := beside(r.ColNames)
	if path != "" && path != r.ColNames {
		if _, err := columns.read(ctx, path, fmt.Sprintf("one for each column of %s", r.File)); err != nil {
			return err
		}
		there := map[string]bool{}
		for _, name := range columns.texts {
			there[name] = true
		}
		if lost := lists.Only(r.order, func(name string) bool { return !there[name] }); len(lost) > 0 {
			m.warnings = append(m.warnings, fmt.Sprintf("%s: lacks columns of the training, which count as without entries: %s", r.File, nameList(lost)))
		}
		return nil
	}
	if r.ColNames == "" {
		return nil
	}
	if _, err := columns.read(ctx, r.ColNames, ""); err != nil { // it has other columns, or the names are gone
		columns.texts = nil
	} else if path == "" {
		m.warnings = append(m.warnings, fmt.Sprintf("%s: its columns are taken in the order of %s, because no file beside it, %s, has their names",
			r.File, r.ColNames, filepath.Base(r.ColNames)))
	}
	return nil
}

// twice returns the error for an entry that occurs twice.
func (m *Matrix) twice(ctx context.Context, rows, columns *axis, i, j int) error {
	var places []int
	err := m.Each(ctx, func(place, r, c int, _ float32) error {
		if r == rows.number(i) && c == columns.number(j) {
			places = append(places, place)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(places) < 2:
		return errChanged
	case m.rows != nil:
		return fmt.Errorf("line %d: row %.60q, column %.60q is given a second time, first in line %d: keep one of them, or their mean", places[1], rows.texts[i], columns.texts[j], places[0])
	}
	return fmt.Errorf("row %d, column %d is given twice, by the entries %d and %d: add them up first, with sum_duplicates() of SciPy",
		rows.number(i), columns.number(j), places[0], places[1])
}

// CountEntries returns the numbers of rows, columns and entries of a sparse matrix. It reads all entries only if the header lacks the numbers.
func (f *Files) CountEntries(ctx context.Context) (rows, columns, entries int, err error) {
	r := f.reading()
	o, err := r.open(ctx)
	defer o.close()
	if err == nil && o.Matrix.Count > 0 {
		return o.Matrix.Rows, o.Matrix.Columns, o.Matrix.Count, nil
	}
	if err == nil {
		var of, to *axis
		of, to, entries, err = o.Matrix.counted(ctx)
		rows, columns = of.n, to.n
	}
	return rows, columns, entries, FileError(f.Kind, r.File, err)
}

// The values of the keys `empty` and `absent`.
const (
	refuseEmpty, dropEmpty    = "refuse", "drop"
	absentMissing, absentZero = "missing", "zero"
)

// mostRows is the maximum number of rows, and of columns, of a matrix, because their indices are int32.
const mostRows = math.MaxInt32

type axis struct {
	n      int              // their number, without the omitted ones
	counts []int32          // number of entries of each row or column
	index  []int32          // index of each row or column without the omitted ones; nil if none is omitted
	byName map[string]int32 // their numbers by name; nil if they have no names
	texts  []string         // the names in order, once all are known
}

func newAxis(n int) *axis { return &axis{counts: make([]int32, n), n: n} }

// count counts an entry of a row or column, which a named one may be the first time.
func (a *axis) count(i int, what string) error {
	switch n := len(a.counts); {
	case i == n && a.byName != nil && i < mostRows:
		a.counts, a.n = append(a.counts, 0), i+1
	case i < 0 || i >= n:
		return fmt.Errorf("%s %d: want one of %d", what, i, n)
	}
	a.counts[i]++
	return nil
}

// compact omits rows or columns without an entry, or returns an error, depending on the key empty.
func (a *axis) compact(what, empty string) error {
	first := slices.Index(a.counts, 0)
	if first < 0 {
		return nil
	}
	if empty != dropEmpty {
		others := 0
		for _, c := range a.counts[first+1:] {
			if c == 0 {
				others++
			}
		}
		return fmt.Errorf(`%s %d has no entry, nor have %d others: nothing can be learned about them; leave them out, or write empty = "drop" in the dataset table, or absent = "zero" if entries that are not stored are 0`, what, first, others)
	}
	a.index, a.n = make([]int32, len(a.counts)), 0
	counts := a.counts[:0]
	for i, c := range a.counts {
		if a.index[i] = int32(a.n); c > 0 {
			counts = append(counts, c)
			a.n++
		}
	}
	a.counts = counts
	return nil
}

func (a *axis) at(number int) int {
	if a.index == nil {
		return number
	}
	return int(a.index[number])
}

func (a *axis) number(at int) int {
	if a.index == nil {
		return at
	}
	// the last number with this index has the entries: those before it were left out
	from, _ := slices.BinarySearch(a.index, int32(at+1))
	return from - 1
}

// read reads the names from a file, one in a line, for what.
func (a *axis) read(ctx context.Context, path, what string) (File, error) {
	text, err := ReadText(ctx, path)
	if err != nil {
		return File{}, err
	}
	var ids []string
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		id, name, several := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if name, _, _ = strings.Cut(name, "\t"); !several {
			name = id
		}
		if name = strings.TrimSpace(name); name == "" {
			return File{}, FileError("", path, fmt.Errorf("line %d: has no name", len(ids)+1))
		}
		ids, a.texts = append(ids, strings.TrimSpace(id)), append(a.texts, name)
		counts[name]++
	}
	if n := max(len(a.counts), len(a.index)); len(ids) != n {
		return File{}, &Error{Path: path, Problem: fmt.Sprintf("got %d names, want %d, %s", len(ids), n, what), Hint: "a file whose rows are genes wants transpose = true"}
	}
	seen := map[string]int{}
	for i, name := range a.texts {
		if counts[name] > 1 && ids[i] != name {
			a.texts[i] = fmt.Sprintf("%s (%s)", name, ids[i])
		}
		if first := seen[a.texts[i]]; first > 0 {
			return File{}, FileError("", path, fmt.Errorf("line %d: got the name %.60q of line %d again", i+1, a.texts[i], first))
		}
		seen[a.texts[i]] = i + 1
	}
	return Checksum(ctx, path)
}

// adapt exchanges rows and columns if r says so. Files with names of their own want no others.
func (m *Matrix) adapt(r reading) (*Matrix, error) {
	if m.rows != nil && !r.loose && (r.RowNames != "" || r.ColNames != "" || r.Transpose) {
		return m, &Error{Path: r.File, Problem: "has the names of row and column in every line, but row_names, column_names or transpose is given", Hint: "leave these out; the keys row and column say which columns of the file have the names"}
	}
	if !r.Transpose || m.rows != nil {
		return m, nil
	}
	other := *m
	other.Rows, other.Columns = m.Columns, m.Rows
	other.Each = func(ctx context.Context, do eachEntry) error {
		return m.Each(ctx, func(place, row, column int, v float32) error { return do(place, column, row, v) })
	}
	return &other, nil
}

// names returns the names: those of the file, or the numbers as texts, nil if none is omitted.
func (a *axis) names() []string {
	if a.index == nil {
		return a.texts
	}
	return lists.Of(a.n, func(i int) string {
		if a.texts != nil {
			return a.texts[a.number(i)]
		}
		return strconv.Itoa(a.number(i))
	})
}

// collect returns the entries by row. The entries of a row are in the order of the file.
func (m *Matrix) collect(ctx context.Context, rows, columns *axis) (*Entries, error) {
	e := &Entries{starts: make([]int, rows.n+1)}
	for i, c := range rows.counts[:rows.n] {
		e.starts[i+1] = e.starts[i] + int(c)
	}
	total := e.starts[rows.n]
	e.columns, e.values = make([]int32, total), make([]float32, total)
	next := slices.Clone(e.starts[:rows.n])
	err := m.Each(ctx, func(_, i, j int, v float32) error {
		r := rows.at(i)
		at := next[r]
		if at == e.starts[r+1] {
			return errChanged
		}
		e.columns[at], e.values[at] = int32(columns.at(j)), v
		next[r]++
		return nil
	})
	if err == nil && !slices.Equal(next, e.starts[1:]) {
		err = errChanged
	}
	return e, err
}

// openTriples opens a .csv file with a line for each entry. Rows and columns may have any names.
func openTriples(_ context.Context, path string, keys *Files) (Opened, error) {
	m := &Matrix{rows: &axis{byName: map[string]int32{}}, columns: &axis{byName: map[string]int32{}}}
	m.Each = func(ctx context.Context, do eachEntry) error {
		return eachLine(ctx, path, []string{keys.Row, keys.Column, keys.Value}, 3, func(line int, cells []string) error {
			v, err := entryValue(line, cells[2])
			if err != nil {
				return err
			}
			i, err := m.rows.called(cells[0])
			if err != nil {
				return err
			}
			j, err := m.columns.called(cells[1])
			if err != nil {
				return err
			}
			return do(line, i, j, v)
		})
	}
	header := headerOf(path)
	switch {
	case len(header) <= 3 || keys.Row != "":
	case isID(header[0]):
		m.warnings = append(m.warnings, fmt.Sprintf("%s: the first column, %q, is read as the names of rows: if it numbers the lines, write row = %.60q, column = %.60q, value = %.60q in the dataset table",
			inLine(path), header[0], header[1], header[2], header[3]))
	case keys.Column == "" && keys.Value == "":
		m.warnings = append(m.warnings, fmt.Sprintf("%s: rows, columns and values are those of %s; left out: %s; name them with the keys row, column and value, or write name = \"csv\" if a line is a whole row",
			inLine(path), nameList(header[:3]), nameList(header[3:])))
	}
	return Opened{Matrix: m}, nil
}

// called returns the number of a name, a new one for a new name.
func (a *axis) called(name string) (int, error) {
	i, ok := a.byName[name]
	switch {
	case !ok && a.texts != nil:
		return 0, errChanged
	case !ok:
		i = int32(len(a.byName))
		a.byName[strings.Clone(name)] = i // the name is part of a line
	}
	return int(i), nil
}

// sort numbers the names in their order: as numbers if all are whole numbers, else as texts.
func (a *axis) sort() {
	names := slices.Collect(maps.Keys(a.byName))
	number := func(name string) int64 {
		v, _ := strconv.ParseInt(name, 10, 64)
		return v
	}
	numbers := !slices.ContainsFunc(names, func(name string) bool { return strconv.FormatInt(number(name), 10) != name })
	slices.SortFunc(names, func(x, y string) int {
		if numbers {
			return cmp.Compare(number(x), number(y))
		}
		return cmp.Compare(x, y)
	})
	counts := make([]int32, len(names))
	for i, name := range names {
		counts[i] = a.counts[a.byName[name]]
		a.byName[name] = int32(i)
	}
	a.counts, a.texts = counts, names
}

func entryValue(line int, cell string) (float32, error) {
	v, ok := parseNumber(cell, ".")
	if !ok || math.Abs(v) > math.MaxFloat32 {
		return 0, fmt.Errorf("line %d: value: got %.60q, want a finite number of float32", line, cell)
	}
	return narrow(cell, v), nil
}

// eachLine calls do with the cells of named columns in every line of a .csv file. An
// empty name selects the column at this position. An empty cell in one of the first needed columns is an error. If the file
// lacks a column that is not needed, its cells are "".
func eachLine(ctx context.Context, path string, names []string, needed int, do func(line int, cells []string) error) error {
	o, err := openColumns(ctx, path, nil)
	defer o.close()
	if err != nil {
		return err
	}
	at, err := findColumns(o.csv.header, names, needed)
	if err != nil {
		return err
	}
	cells := make([]string, len(names))
	_, err = o.csv.eachRow(func(row tableRow) error {
		for i, k := range at {
			if k < 0 {
				continue
			}
			if cells[i] = strings.TrimSpace(row.cells[k]); cells[i] == "" && i < needed {
				return fmt.Errorf("line %d, column %.60q: is empty", row.line, o.csv.header[k])
			}
		}
		return do(row.line, cells)
	})
	return err
}

// headerOf returns the names in the first line of a text file, nil for another file.
func headerOf(path string) []string {
	o, err := openColumns(context.Background(), path, nil)
	defer o.close()
	if err != nil {
		return nil
	}
	return o.csv.header
}

// matched returns the settings for another file of the same kind: columns that no key names are those with the names that the first
// columns of the training file have. A file without any of these names is read by places, and note says so; one with some of them is an error.
func (f *Files) matched(path string) (like *Files, note string, err error) {
	known, header := headerOf(f.spelt().File), headerOf(path)
	if len(known) < 2 || header == nil {
		return f, "", nil
	}
	other := *f
	var absent []string
	found := ""
	for i, key := range []*string{&other.Row, &other.Column, &other.Value} {
		if *key != "" || i >= len(known) {
			continue
		}
		if slices.Contains(header, known[i]) {
			*key = known[i]
			found = cmp.Or(found, known[i])
		} else if i < 2 {
			absent = append(absent, strconv.Quote(known[i]))
		}
	}
	if len(absent) == 0 {
		if other.Value == "" && f.Value == "" { // the third column is not the value of the training
			other.Value = known[min(2, len(known)-1)]
		}
		return &other, "", nil
	}
	lacks := fmt.Sprintf("has no column %s, which the training had", strings.Join(absent, " and "))
	if found != "" {
		return f, "", fmt.Errorf("%s, only %.200s: give its columns the names that they had", lacks, nameList(header))
	}
	return f, fmt.Sprintf("%s: %s: its first columns, %.200s, are read as rows and columns", inLine(path), lacks, nameList(header[:min(2, len(header))])), nil
}

// findColumns returns the index of each named column, -1 for a missing column that is not needed.
func findColumns(header, names []string, needed int) ([]int, error) {
	at := make([]int, len(names))
	if header[0] == "" && names[0] == "" {
		rest := append(slices.Clone(header[1:]), "ROW", "COLUMN", "VALUE")
		return nil, fmt.Errorf("the first column has no name; it is probably an index: name the columns, such as row = %.60q, column = %.60q, value = %.60q in the dataset table", rest[0], rest[1], rest[2])
	}
	for i, name := range names {
		at[i] = i
		if name != "" {
			at[i] = slices.Index(header, name)
			if at[i] >= 0 && slices.Contains(header[at[i]+1:], name) {
				return nil, fmt.Errorf("the column %.60q occurs twice: rename or remove one of them", name)
			}
		}
		if at[i] >= len(header) {
			at[i] = -1
		}
		if at[i] < 0 && i < needed {
			if name == "" {
				return nil, fmt.Errorf("has %d columns, want one of rows, one of columns and one of values", len(header))
			}
			return nil, fmt.Errorf("has no column %.60q, only %s", name, nameList(header))
		}
		if k := slices.Index(at[:i], at[i]); at[i] >= 0 && k >= 0 {
			return nil, fmt.Errorf("column %.60q is read twice: name all three in the keys row, column and value", header[at[i]])
		}
	}
	return at, nil
}

// Pairs contains pairs of a row and a column, for which a model predicts entries of a matrix.
type Pairs struct {
	Rows, Columns []string  // names of the rows and columns
	Values        []float32 // values of the entries; nil if the file does not contain them
	Lines         []int     // line numbers in a .csv file
	Notes         []string  // warnings
}

// ReadPairs reads pairs of rows and columns from a .csv file, with their values if the file contains them. The keys of like
// name the columns, or else the first line of its file does; nil selects the first three columns.
func ReadPairs(ctx context.Context, path string, like *Files) (*Pairs, error) {
	if like == nil {
		like = &Files{Kind: "triples"}
	}
	p := &Pairs{}
	like, note, err := like.matched(path)
	if err != nil {
		return nil, FileError("", path, err)
	}
	if note != "" {
		p.Notes = []string{note}
	}
	names := []string{like.Row, like.Column, like.Value}
	values := true
	err = eachLine(ctx, path, names, 2, func(line int, cells []string) error {
		p.Rows, p.Columns, p.Lines = append(p.Rows, strings.Clone(cells[0])), append(p.Columns, strings.Clone(cells[1])), append(p.Lines, line)
		if values = values && cells[2] != ""; values {
			v, err := entryValue(line, cells[2])
			if err != nil {
				return err
			}
			p.Values = append(p.Values, v)
		}
		return nil
	})
	if !values {
		p.Values = nil
	}
	if err == nil && len(p.Rows) == 0 {
		err = errors.New("has no pairs: want a line for each of them after the first one")
	}
	return p, FileError("", path, err)
}
