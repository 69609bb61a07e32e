package data

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// csvFile is a text file of columns: a line of their names, then one line per sample.
type csvFile struct {
	header []string
	rest   []byte
	comma  rune
}

// csvColumns says which columns are what.
type csvColumns struct {
	values        []int
	labels, names int // -1 for none
}

// openCSV reads a file and its first line. The separator is the comma, the semicolon or the tab, whichever the first line has
// most of.
func openCSV(ctx context.Context, path string) (*csvFile, File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, File{}, err
	}
	if f, _, err := openFile(path); err == nil {
		packed := isGzip(f)
		f.Close()
		if packed {
			return nil, File{}, errors.New("is compressed: unpack it first")
		}
	}
	b, file, err := readFile(ctx, path, info.Size())
	if err != nil {
		return nil, file, err
	}
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) // the byte order mark that spreadsheets write
	first, _, _ := bytes.Cut(b, []byte("\n"))
	comma := slices.MaxFunc([]rune{',', ';', '\t'}, func(x, y rune) int {
		return cmp.Compare(bytes.Count(first, []byte(string(x))), bytes.Count(first, []byte(string(y))))
	})
	f := &csvFile{rest: b, comma: comma}
	if f.header, err = f.reader().Read(); err != nil {
		return nil, file, csvError(err)
	}
	if !isHeader(f.header) {
		return nil, file, errors.New("the first line holds numbers: write a first line with the names of the columns")
	}
	return f, file, nil
}

// isHeader reports whether a first line holds the names of columns, not the numbers of a sample.
func isHeader(cells []string) bool {
	return slices.ContainsFunc(cells, func(name string) bool { return !isNumber(name) }) || len(cells) > 0 && counts(cells)
}

// isNumber reports whether a cell is a number.
func isNumber(cell string) bool {
	_, err := strconv.ParseFloat(cell, 64)
	return err == nil
}

// counts reports whether a header is 0, 1, 2, ... or 1, 2, 3, ..., as pandas and spreadsheets name columns.
func counts(header []string) bool {
	first, err := strconv.Atoi(header[0])
	for i, name := range header {
		if name != strconv.Itoa(first+i) {
			return false
		}
	}
	return err == nil && (first == 0 || first == 1)
}

func (f *csvFile) reader() *csv.Reader {
	r := csv.NewReader(bytes.NewReader(f.rest))
	r.Comma, r.ReuseRecord = f.comma, true
	r.TrimLeadingSpace = f.comma != '\t' // else empty cells would be trimmed
	return r
}

// csvError words the errors of encoding/csv.
func csvError(err error) error {
	var bad *csv.ParseError
	switch {
	case errors.Is(err, io.EOF):
		return errors.New("is empty")
	case errors.As(err, &bad) && errors.Is(bad.Err, csv.ErrFieldCount):
		return fmt.Errorf("line %d has more or fewer cells than the first line", bad.Line)
	case errors.As(err, &bad):
		return fmt.Errorf("line %d: %w", bad.Line, bad.Err)
	}
	return err
}

// The names of the columns that WriteRows writes before those of the values.
const nameColumn, labelColumn = "name", "label"

// columns finds out which columns are what. A column of labels or names that a key names must be there, unless the caller only
// needs the values; then it may have the name that WriteRows gives it.
func (f *csvFile) columns(r reading) (c csvColumns, err error) {
	first := f.header[:max(0, len(f.header)-r.size())] // those that WriteRows wrote before the values
	find := func(name string, usual []string, written string) (int, error) {
		if name != "" {
			usual = []string{name}
		}
		for i, column := range f.header {
			if slices.ContainsFunc(usual, func(u string) bool { return u == column || name == "" && strings.EqualFold(u, column) }) {
				return i, nil
			}
		}
		if name != "" && r.shape == nil {
			return -1, fmt.Errorf("has no column %q, want %s", name, f.columnList())
		}
		return slices.Index(first, written), nil
	}
	if c.labels, err = find(r.labels, labelNames, labelColumn); err != nil {
		return c, err
	}
	if c.names, err = find(r.names, nameNames, nameColumn); err != nil {
		return c, err
	}
	if c.values, err = f.values(r, c); err != nil {
		return c, err
	}
	if len(c.values) == 0 {
		return c, fmt.Errorf("has no columns of values, got %s", f.columnList())
	}
	return c, nil
}

// size is the number of values that the caller needs of a sample; 0 for any.
func (r reading) size() int {
	n, err := product(r.shape)
	if r.shape == nil || err != nil { // a wrong shape is refused later
		return 0
	}
	return n
}

// values are the columns of values: those that the key columns chooses, or all but labels and names. Columns that WriteRows
// numbered are chosen if there are as many as the caller needs. They are in the order of the names that the caller knows, if they are
// the columns of these names.
func (f *csvFile) values(r reading, c csvColumns) (chosen []int, err error) {
	var all []int
	var names []string
	for i, column := range f.header {
		if i == c.labels || i == c.names {
			continue
		}
		all, names = append(all, i), append(names, column)
		named := false
		for _, glob := range r.columns {
			ok, err := path.Match(glob, column)
			if err != nil {
				return nil, fmt.Errorf("columns: %q: %w", glob, err)
			}
			named = named || ok
		}
		if named {
			chosen = append(chosen, i)
		}
	}
	if len(r.columns) == 0 || len(all) > 0 && len(all) == r.size() && counts(names) {
		chosen = all
	}
	return f.inOrder(chosen, r.order), nil
}

// inOrder returns columns in the order of these names if each of them has one of the names; otherwise as they are.
func (f *csvFile) inOrder(columns []int, names []string) []int {
	at := map[string]int{}
	for _, i := range columns {
		at[f.header[i]] = i
	}
	if len(names) != len(columns) || len(at) != len(columns) {
		return columns
	}
	ordered := make([]int, len(names))
	for i, name := range names {
		column, ok := at[name]
		if !ok {
			return columns
		}
		delete(at, name) // a name that comes twice is not found again
		ordered[i] = column
	}
	return ordered
}

// valueNames are the names of the columns of values.
func (f *csvFile) valueNames(c csvColumns) (names []string) {
	for _, i := range c.values {
		names = append(names, f.header[i])
	}
	return names
}

// columnList lists the columns.
func (f *csvFile) columnList() string {
	const most = 12
	texts := make([]string, 0, most+1)
	for _, name := range f.header[:min(most, len(f.header))] {
		texts = append(texts, fmt.Sprintf("%.60q", name))
	}
	if len(f.header) > most {
		texts = append(texts, fmt.Sprintf("... (%d in all)", len(f.header)))
	}
	return strings.Join(texts, ", ")
}

// table reads the samples.
func (f *csvFile) table(r reading) (t table, err error) {
	c, err := f.columns(r)
	if err != nil {
		return t, err
	}
	lines := f.reader()
	_, _ = lines.Read() // the header, which was read before
	for {
		cells, err := lines.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			return t, csvError(err)
		}
		for _, i := range c.values {
			v, err := strconv.ParseFloat(strings.TrimSpace(cells[i]), 32)
			if err != nil {
				line, _ := lines.FieldPos(i)
				return t, fmt.Errorf("line %d, column %.60q: got %.40q, want a number; name columns of labels or names with the keys labels and names, or choose those of values with the key columns",
					line, f.header[i], cells[i])
			}
			t.values.floats = append(t.values.floats, float32(v))
		}
		if c.labels >= 0 {
			t.texts = append(t.texts, strings.Clone(strings.TrimSpace(cells[c.labels])))
		}
		if c.names >= 0 {
			t.names = append(t.names, strings.Clone(cells[c.names]))
		}
	}
	if len(t.values.floats) == 0 {
		return t, errors.New("has no line after the first one")
	}
	t.values.dims = []int{len(t.values.floats) / len(c.values), len(c.values)}
	t.columns = f.valueNames(c)
	t.countLabels()
	return t, nil
}

// writeCSV writes rows of values with a first line of column names: name and label where they are known, then those of the
// values, by default their numbers. A value has as many digits as a float32 needs.
func writeCSV(w io.Writer, size int, values []float32, about Rows) error {
	out := csv.NewWriter(w)
	labels := about.labelTexts()
	var header []string
	if about.Names != nil {
		header = append(header, nameColumn)
	}
	if labels != nil {
		header = append(header, labelColumn)
	}
	header = headed(header, size, about.Columns)
	if err := out.Write(header); err != nil {
		return err
	}
	for row := range len(values) / size {
		cells := header[:0]
		if about.Names != nil {
			cells = append(cells, about.Names[row])
		}
		if labels != nil {
			cells = append(cells, labels[row])
		}
		for _, v := range values[row*size : (row+1)*size] {
			cells = append(cells, strconv.FormatFloat(float64(v), 'g', -1, 32))
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// headed returns the first line of a .csv file: the columns before the values, then the names of the values. The values are numbered
// if they have no names, if one is named as a column before them, or if the line would be numbers alone, as that of a sample.
func headed(before []string, size int, names []string) []string {
	line := slices.Concat(before, names)
	twice := slices.ContainsFunc(names, func(name string) bool { return slices.Contains(before, name) })
	if names != nil && !twice && isHeader(line) {
		return line
	}
	line = slices.Clone(before)
	for i := range size {
		line = append(line, strconv.Itoa(i))
	}
	return line
}
