package data

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part"
)

func init() {
	Registry.Register("triples", "your own sparse matrix: a line per entry (row, column, value) in a .csv file, or SciPy's .npz files (save_npz)",
		func() Source { return &Triples{Empty: refuseEmpty, Absent: absentMissing} })
}

// Triples is a user-defined sparse matrix of which only some entries are known, for example ratings of films by users. A
// sample is a row of the matrix; all other entries are missing, or with absent = "zero", as in a matrix of counts, 0. A .csv file has a line for each entry. Rows and columns may
// have any names and are sorted by name, or as numbers if all names are whole numbers. An .npz file has the form of
// scipy.sparse.save_npz in the layout COO, CSR or CSC; its rows and columns are numbered. Files are read twice from the disk;
// in memory an entry takes 8 bytes.
type Triples struct {
	File   string `toml:"file" required:"true" doc:"file of the entries, .csv or .npz"`
	Row    string `toml:"row" doc:"column of a .csv file with the names of rows; by default the first"`
	Column string `toml:"column" doc:"column with the names of columns; by default the second"`
	Value  string `toml:"value" doc:"column of the values; by default the third"`
	Empty  string `toml:"empty" oneof:"refuse drop" doc:"rows and columns of an .npz file without an entry: refuse, an error, or drop, which omits them; the names of the others are their numbers"`
	Absent string `toml:"absent" oneof:"missing zero" doc:"entries that the file does not have: missing, as in ratings, or zero, as in counts; with zero, rows and columns without an entry are not refused"`
}

// Origin returns [OwnFiles]: there is nothing to download.
func (*Triples) Origin() Origin { return OwnFiles }

func (s *Triples) hasMissing() bool { return s.Absent != absentZero }
func (*Triples) Unlabelled() bool   { return true }

// Check returns an error for a key that requires another, missing key.
func (s *Triples) Check() error {
	if name := cmp.Or(s.Row, s.Column); name != "" && (s.Row == s.Column || s.Row == s.Value || s.Column == s.Value) {
		return part.KeyErrorf("column", "row, column and value are three columns of the file: got %q, %q and %q", s.Row, s.Column, s.Value)
	}
	return nil
}

// Shape implements [Source]. The number of columns of a .csv file is known only after all lines are read.
func (s *Triples) Shape(Dirs) ([]int, bool) {
	if s.Empty == dropEmpty {
		return nil, false
	}
	f, err := openSparseNPZ(s.File)
	if err != nil {
		return nil, false
	}
	defer f.close()
	return []int{f.columns}, true
}

func (s *Triples) Load(ctx context.Context, _ Dirs, _ Need) (*Set, error) {
	set := &Set{Name: "triples"}
	images, file, err := s.read(ctx, s.File)
	if err != nil {
		return nil, badFile(set.Name, s.File, err)
	}
	set.Files, set.Shape, set.Train = []File{file}, images.Shape, images
	if header := headerOf(s.File); len(header) > 3 && s.Row == "" && isID(header[0]) {
		set.Notes = append(set.Notes, fmt.Sprintf("%s: the first column, %q, is read as the names of rows: if it numbers the lines, write row = %.60q, column = %.60q, value = %.60q in the dataset table",
			inLine(s.File), header[0], header[1], header[2], header[3]))
	}
	return set, nil
}

// Describe implements [Describer].
func (s *Triples) Describe(context.Context) (string, error) {
	header := headerOf(s.File)
	if len(header) < 3 {
		return "", nil
	}
	return inLine(fmt.Sprintf("rows %s, columns %s, values %s", cmp.Or(s.Row, header[0]), cmp.Or(s.Column, header[1]), cmp.Or(s.Value, header[2]))), nil
}

// Size returns the numbers of rows, columns and entries. It does not read the values of an .npz file.
func (s *Triples) Size(ctx context.Context) (rows, columns, entries int, err error) {
	start, err := head(s.File, formatHead)
	switch {
	case err != nil:
	case strings.HasPrefix(string(start), zipMagic):
		var f *sparseNPZ
		if f, err = openSparseNPZ(s.File); err == nil {
			rows, columns, entries = f.rows, f.columns, f.count
			f.close()
		}
	default:
		of, to := newNamed(), newNamed()
		err = s.lines(ctx, s.File, io.Discard, func(_ int, row, column string, _ float32) error {
			of.count(row)
			to.count(column)
			entries++
			return nil
		})
		rows, columns = len(of.counts), len(to.counts)
	}
	return rows, columns, entries, badFile("triples", s.File, err)
}

// The values of the keys `empty` and `absent`.
const (
	refuseEmpty, dropEmpty    = "refuse", "drop"
	absentMissing, absentZero = "missing", "zero"
)

// mostRows is the maximum number of rows, and of columns, of a matrix, because their indices are int32.
const mostRows = math.MaxInt32

// read reads a file of entries.
func (s *Triples) read(ctx context.Context, path string) (*Images, File, error) {
	start, err := head(path, formatHead)
	if err != nil {
		return nil, File{}, err
	}
	if !strings.HasPrefix(string(start), zipMagic) {
		return s.readCSV(ctx, path)
	}
	file, err := streamFile(ctx, path, math.MaxInt64-1, func([]byte, int64) {})
	if err != nil {
		return nil, file, err
	}
	f, err := openSparseNPZ(path)
	if err != nil {
		return nil, file, err
	}
	defer f.close()
	rows, columns := newAxis(f.rows), newAxis(f.columns)
	err = f.each(ctx, func(_, i, j int, _ float32) error {
		rows.counts[i]++
		columns.counts[j]++
		return nil
	})
	if err != nil {
		return nil, file, err
	}
	if s.Absent != absentZero || s.Empty == dropEmpty {
		if err := errors.Join(rows.compact("row", s.Empty), columns.compact("column", s.Empty)); err != nil {
			return nil, file, err
		}
	}
	e, err := collect(rows, columns, func(add func(i, j int, v float32) error) error {
		return f.each(ctx, func(_, i, j int, v float32) error { return add(i, j, v) })
	})
	if err != nil {
		return nil, file, err
	}
	for i := range e.rows() {
		j := e.sortRow(i)
		if j < 0 {
			continue
		}
		var places []int
		err := f.each(ctx, func(place, r, c int, _ float32) error {
			if r == rows.number(i) && c == columns.number(j) {
				places = append(places, place)
			}
			return nil
		})
		if err != nil {
			return nil, file, err
		}
		if len(places) < 2 {
			return nil, file, errChanged
		}
		return nil, file, fmt.Errorf("row %d, column %d is given twice, by the entries %d and %d: add them up first, with sum_duplicates() of SciPy",
			rows.number(i), columns.number(j), places[0], places[1])
	}
	e.rowNames, e.zeros = rows.names(), s.Absent == absentZero
	return newEntryImages(e, columns.n, columns.names()), file, nil
}

// axis describes the rows, or the columns, of a matrix whose rows and columns are numbered.
type axis struct {
	counts []int32 // number of entries of each row or column
	index  []int32 // index of each row or column without the omitted ones; nil if none is omitted
	n      int
}

func newAxis(n int) *axis { return &axis{counts: make([]int32, n), n: n} }

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
		return fmt.Errorf(`%s %d has no entry, nor have %d others: nothing can be learned about them; leave them out, or write empty = "drop" in the dataset table`, what, first, others)
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

// at returns the index of the row or column with the given number.
func (a *axis) at(number int) int {
	if a.index == nil {
		return number
	}
	return int(a.index[number])
}

// number returns the number of the row or column with the given index.
func (a *axis) number(at int) int {
	if a.index == nil {
		return at
	}
	// the last number with this index has the entries: those before it were left out
	from, _ := slices.BinarySearch(a.index, int32(at+1))
	return from - 1
}

// names returns the numbers as texts, nil if none is omitted.
func (a *axis) names() []string {
	if a.index == nil {
		return nil
	}
	names := make([]string, a.n)
	for i := range names {
		names[i] = strconv.Itoa(a.number(i))
	}
	return names
}

// collect returns the entries by row. The entries of a row are in the order of the file.
func collect(rows, columns *axis, each func(add func(i, j int, v float32) error) error) (*Entries, error) {
	e := &Entries{starts: make([]int, rows.n+1)}
	for i, c := range rows.counts[:rows.n] {
		e.starts[i+1] = e.starts[i] + int(c)
	}
	total := e.starts[rows.n]
	e.columns, e.values = make([]int32, total), make([]float32, total)
	next := slices.Clone(e.starts[:rows.n])
	err := each(func(i, j int, v float32) error {
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

var errChanged = errors.New("has changed while it was read")

// readCSV reads a CSV file with one entry per line.
func (s *Triples) readCSV(ctx context.Context, path string) (*Images, File, error) {
	digest := sha256.New()
	rows, columns := newNamed(), newNamed()
	err := s.lines(ctx, path, digest, func(line int, row, column string, _ float32) error {
		rows.count(row)
		columns.count(column)
		if len(rows.counts) > mostRows || len(columns.counts) > mostRows {
			return fmt.Errorf("has more than %d rows or columns", mostRows)
		}
		return nil
	})
	file := File{Path: path, SHA256: hex.EncodeToString(digest.Sum(nil))}
	if err == nil && len(rows.counts) == 0 {
		err = errors.New("has no entries: want a line for each of them after the first one")
	}
	if err != nil {
		return nil, file, err
	}
	rowNames, columnNames := rows.sort(), columns.sort()
	e, err := collect(rows.axis(), columns.axis(), func(add func(i, j int, v float32) error) error {
		return s.lines(ctx, path, io.Discard, func(_ int, row, column string, v float32) error {
			i, known := rows.index[row]
			j, also := columns.index[column]
			if !known || !also {
				return errChanged
			}
			return add(int(i), int(j), v)
		})
	})
	if err != nil {
		return nil, file, err
	}
	for i := range e.rows() {
		if j := e.sortRow(i); j >= 0 {
			return nil, file, s.twice(ctx, path, rowNames[i], columnNames[j])
		}
	}
	e.rowNames, e.zeros = rowNames, s.Absent == absentZero
	return newEntryImages(e, len(columnNames), columnNames), file, nil
}

// twice returns the error for an entry that occurs twice.
func (s *Triples) twice(ctx context.Context, path, row, column string) error {
	var at []int
	err := s.lines(ctx, path, io.Discard, func(line int, r, c string, _ float32) error {
		if r == row && c == column {
			at = append(at, line)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(at) < 2 {
		return errChanged
	}
	return fmt.Errorf("line %d: row %.60q, column %.60q is given a second time, first in line %d: keep one of them, or their mean", at[1], row, column, at[0])
}

// named contains the rows, or the columns, of a matrix by name.
type named struct {
	index  map[string]int32
	counts []int32
}

func newNamed() *named { return &named{index: map[string]int32{}} }

// count adds one entry to the count of the named row or column.
func (n *named) count(name string) {
	i, ok := n.index[name]
	if !ok {
		i = int32(len(n.counts))
		n.index[strings.Clone(name)] = i // the name is part of a line
		n.counts = append(n.counts, 0)
	}
	n.counts[i]++
}

// axis returns the numbers of entries in the order of the indices.
func (n *named) axis() *axis { return &axis{counts: n.counts, n: len(n.counts)} }

// sort sorts the names and returns them: as numbers if all are whole numbers, else as texts.
func (n *named) sort() []string {
	names := make([]string, 0, len(n.index))
	numbers := true
	for name := range n.index {
		names = append(names, name)
		v, err := strconv.ParseInt(name, 10, 64)
		numbers = numbers && err == nil && strconv.FormatInt(v, 10) == name
	}
	slices.SortFunc(names, func(a, b string) int {
		if !numbers {
			return cmp.Compare(a, b)
		}
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		return cmp.Compare(x, y)
	})
	counts := make([]int32, len(names))
	for i, name := range names {
		counts[i] = n.counts[n.index[name]]
		n.index[name] = int32(i)
	}
	n.counts = counts
	return names
}

// lines calls do for every entry of a .csv file, and writes the bytes of the file to w.
func (s *Triples) lines(ctx context.Context, path string, w io.Writer, do func(line int, row, column string, v float32) error) error {
	return eachLine(ctx, path, w, []string{s.Row, s.Column, s.Value}, 3, func(line int, cells []string) error {
		v, err := entryValue(line, cells[2])
		if err != nil {
			return err
		}
		return do(line, cells[0], cells[1], v)
	})
}

// entryValue returns the value of an entry.
func entryValue(line int, cell string) (float32, error) {
	v, ok := parseNumber(cell, ".")
	if !ok || math.Abs(v) > math.MaxFloat32 {
		return 0, fmt.Errorf("line %d: value: got %.60q, want a finite number of float32", line, cell)
	}
	return narrow(cell, v), nil
}

// eachLine calls do with the cells of named columns in every line of a .csv file, and writes the bytes of the file to w. An
// empty name selects the column at this position. An empty cell in one of the first needed columns is an error. If the file
// lacks a column that is not needed, its cells are "".
func eachLine(ctx context.Context, path string, w io.Writer, names []string, needed int, do func(line int, cells []string) error) error {
	f, size, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	source, err := unpacked(f, size)
	if err != nil {
		return err
	}
	text := bufio.NewReaderSize(decoded(io.TeeReader(readerOf(ctx, source), w)), 1<<18)
	r, header, err := linesOf(text)
	if err != nil {
		return err
	}
	at, err := findColumns(header, names, needed)
	if err != nil {
		return err
	}
	cells := make([]string, len(names))
	for {
		record, err := r.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			return csvError(err)
		}
		line, _ := r.FieldPos(0)
		for i, k := range at {
			if k < 0 {
				continue
			}
			if cells[i] = strings.TrimSpace(record[k]); cells[i] == "" && i < needed {
				return fmt.Errorf("line %d, column %.60q: is empty", line, header[k])
			}
		}
		if err := do(line, cells); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, text)
	return err
}

// linesOf reads the first line of a text, the names of the columns.
func linesOf(text *bufio.Reader) (r *csv.Reader, header []string, err error) {
	first, _ := text.Peek(1 << 16)
	comma, skip := separator(first)
	_, _ = text.Discard(skip)
	r = csv.NewReader(text)
	r.Comma, r.ReuseRecord = comma, true
	if header, err = r.Read(); err != nil {
		return nil, nil, csvError(err)
	}
	header, err = namesIn(header)
	return r, header, err
}

// headerOf returns the names in the first line of a text file, nil for another file.
func headerOf(path string) []string {
	f, size, err := openFile(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	source, err := unpacked(f, size)
	if err != nil {
		return nil
	}
	_, header, err := linesOf(bufio.NewReaderSize(decoded(source), 1<<18))
	if err != nil {
		return nil
	}
	return header
}

// matched returns the settings for another file of the same kind: columns that no key names are those with the names that the first
// columns of the training file have. A file without all of these names is read by places, and note says so.
func (s *Triples) matched(path string) (like *Triples, note string) {
	known, header := headerOf(s.File), headerOf(path)
	if len(known) < 2 || header == nil {
		return s, ""
	}
	other := *s
	var absent []string
	for i, key := range []*string{&other.Row, &other.Column, &other.Value} {
		if *key != "" || i >= len(known) {
			continue
		}
		if slices.Contains(header, known[i]) {
			*key = known[i]
		} else if i < 2 {
			absent = append(absent, strconv.Quote(known[i]))
		}
	}
	if len(absent) == 0 {
		if other.Value == "" && s.Value == "" { // the third column is not the value of the training
			other.Value = known[min(2, len(known)-1)]
		}
		return &other, ""
	}
	return s, fmt.Sprintf("%s: has no column %s, which the training had: its first columns, %.200s, are read as rows and columns", inLine(path), strings.Join(absent, " and "), (&csvFile{header: header[:min(2, len(header))]}).columnList())
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
			return nil, fmt.Errorf("has no column %.60q, only %s", name, (&csvFile{header: header}).columnList())
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
func ReadPairs(ctx context.Context, path string, like *Triples) (*Pairs, error) {
	if like == nil {
		like = &Triples{}
	}
	p := &Pairs{}
	like, note := like.matched(path)
	if note != "" {
		p.Notes = []string{note}
	}
	names := []string{like.Row, like.Column, like.Value}
	values := true
	err := eachLine(ctx, path, io.Discard, names, 2, func(line int, cells []string) error {
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
	return p, badFile("", path, err)
}

// ReadTriples reads a file of entries with the settings of another data set; nil means the defaults. It is used for samples of rows
// to which a model was not fitted.
func ReadTriples(ctx context.Context, path string, like *Triples) (*Images, error) {
	if like == nil {
		like = &Triples{}
	}
	like, _ = like.matched(path)
	images, _, err := like.read(ctx, path)
	return images, badFile("", path, err)
}
