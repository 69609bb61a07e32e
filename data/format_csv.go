package data

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	declared "tessera/config/part/table"
	"tessera/internal/numeral"
	"tessera/internal/volume"
)

// csvFile is a file of columns: a line of column names, then one line per sample.
type csvFile struct {
	header []string
	rows   func(do func(tableRow) error) (sum string, err error) // calls do for every row below the names; sum is the checksum of a text, "" for other files
	comma  rune
	size   int64    // bytes of texts that are not compressed; else 0
	skip   int      // bytes before the line of names
	texts  bool     // cells are texts
	lost   []string // names at the end of header that the file lacks: their cells are missing

	units      []string  // of the columns; "" for none
	dates      string    // order of dates with slashes; "" if it is not declared
	absent     []string  // texts of cells that are missing
	absentAs   []float64 // numbers of these texts
	decimal    string
	where      []condition // that rows must meet
	kept, left int         // number of rows that do, and of others
}

// tableRow is a row of a file of columns. Its cells are valid until the next row is read; one that is missing is "".
type tableRow struct {
	cells []string
	line  int
	text  *csv.Reader // of a text, behind the row; nil for other files
}

// eachOf calls do for the rows that next returns, up to io.EOF.
func eachOf(next func() (tableRow, error), do func(tableRow) error) error {
	for {
		row, err := next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = do(row)
		}
		if err != nil {
			return err
		}
	}
}

// csvColumns assigns the columns of a file to values, labels, names and the further columns of the set.
type csvColumns struct {
	values        []int
	labels, names int // indices of the columns of labels and names; -1 if there is none
	further       []csvColumn
	ignored       []string // names of columns of values that are not among those that the caller names
}

// taken lists the columns that are not values.
func (c csvColumns) taken() []int {
	list := []int{c.labels, c.names}
	for _, one := range c.further {
		list = append(list, one.at...)
	}
	return list
}

// csvColumn is a column of the set other than images and labels; at contains the indices of its columns in the file.
type csvColumn struct {
	name string
	at   []int
}

func init() {
	of := Format{Dataset: "csv", About: "your own vectors in a .csv file: a line of column names, then a line per sample", Sort: CellFiles,
		Suffixes: []string{".csv", ".csv.gz"}, Open: openColumns, write: written.csv, fill: fillCSV}
	RegisterFormat(of)
	of.Suffixes, of.About, of.write = []string{".tsv", ".tsv.gz"}, "", nil
	RegisterFormat(of)
}

// openColumns opens a text, which may be gzipped, as a table, and parses its first line; see [separator]. Rows are read when they are needed.
func openColumns(ctx context.Context, path string, _ *Files) (o Opened, err error) {
	if o.contents, err = openContents(path); err != nil {
		return o, err
	}
	f := &csvFile{texts: true}
	first, err := o.contents.stream(ctx)
	if err != nil {
		return o, err
	}
	start, _ := decoded(first.text()).Peek(1 << 16)
	if f.comma, f.skip = separator(start); !first.packed {
		f.size = first.info.Size()
	}
	f.rows = func(do func(tableRow) error) (string, error) {
		s, err := o.contents.stream(ctx)
		if err != nil {
			return "", err
		}
		plain := decoded(s.text())
		_, _ = plain.Discard(f.skip)
		r := newTextRows(plain, f.comma)
		names, err := r.read()
		switch {
		case err == io.EOF:
			err = errors.New("is empty")
		case err == nil && f.header == nil: // the first time
			f.header, err = namesIn(names)
		case err == nil:
			err = eachOf(r.next, do)
		}
		return hex.EncodeToString(s.sum.Sum(nil)), err
	}
	_, err = f.rows(nil) // which reads the names
	o.csv = f
	return o, err
}

// isHeader reports whether a first line contains column names rather than the numbers of a sample.
func isHeader(cells []string) bool {
	return slices.ContainsFunc(cells, func(name string) bool { return !isNumber(name) }) || len(cells) > 0 && counts(cells)
}

// isNumber reports whether a cell is a number, with a point or a comma before its fraction, or a missing one.
func isNumber(cell string) bool {
	_, point := parseNumber(cell, ".")
	_, comma := parseNumber(cell, ",")
	return point || comma || strings.EqualFold(cell, "nan")
}

// counts reports whether a header is 0, 1, 2, ... or 1, 2, 3, ..., the default column names of pandas and spreadsheets.
func counts(header []string) bool {
	first, err := strconv.Atoi(header[0])
	for i, name := range header {
		if name != strconv.Itoa(first+i) {
			return false
		}
	}
	return err == nil && (first == 0 || first == 1)
}

// eachRow calls do for every row that meets the conditions. It returns the checksum of a text, "" for other files.
func (f *csvFile) eachRow(do func(row tableRow) error) (sum string, err error) {
	f.kept, f.left = 0, 0
	sum, err = f.rows(func(row tableRow) error {
		for range f.lost {
			row.cells = append(row.cells, "")
		}
		f.bare(row.cells)
		if f.where != nil {
			if keeps, err := f.keeps(row); err != nil || !keeps {
				return err
			}
		}
		return do(row)
	})
	if err == nil {
		err = f.misread()
	}
	return sum, err
}

type textRows struct {
	*csv.Reader
	source *lineReader
	last   int // line of the last row
	width  int // number of columns; 0 before the first row
}

func newTextRows(text *bufio.Reader, comma rune) *textRows {
	source := &lineReader{text: text}
	r := &textRows{Reader: csv.NewReader(source), source: source}
	r.Comma, r.ReuseRecord = comma, true
	r.TrimLeadingSpace = comma != '\t' // else empty cells would be trimmed
	return r
}

func (r *textRows) next() (tableRow, error) {
	cells, err := r.read()
	return tableRow{cells, r.last, r.Reader}, err
}

func (r *textRows) read() ([]string, error) {
	r.source.left = mostLine
	cells, err := r.Reader.Read()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad) && errors.Is(bad.Err, csv.ErrFieldCount):
		err = fmt.Errorf("line %d has %s, want %d as the first line: look for a missing cell, or for a separator in a text without quotes",
			bad.Line, numeral.Of(len(cells), "cell"), r.FieldsPerRecord)
	case errors.As(err, &bad):
		err = fmt.Errorf("line %d: %w", bad.Line, bad.Err)
	case errors.Is(err, errLine), errors.Is(err, errEncoding):
		where := "the first line"
		if r.last > 0 {
			where = fmt.Sprintf("a line after line %d", r.last)
		}
		err = fmt.Errorf("%s: %w", where, err)
	case err == nil:
		r.last, _ = r.FieldPos(0)
		return r.named(cells)
	}
	return cells, err
}

// named returns the cells of the columns up to the last one with a name: a separator at the end of every line gives a column without a name and values.
func (r *textRows) named(cells []string) ([]string, error) {
	is := func(cell string) bool { return strings.TrimSpace(cell) != "" }
	width := len(cells)
	for width > 0 && !is(cells[width-1]) {
		width--
	}
	switch {
	case r.width == 0 && width == 0, r.width == len(cells):
		r.width = len(cells)
	case r.width == 0:
		r.width = width
	case width > r.width:
		return nil, fmt.Errorf("line %d has the value %.40q in column %d, which has no name in the first line: write one there", r.last, cells[width-1], width)
	}
	return cells[:r.width], nil
}

// mostLine is the number of bytes that a line may have, with the lines that its quotes join.
const mostLine = 16 << 20

var errLine = fmt.Errorf("is longer than %d MB: it is no table, or a quote is not closed", mostLine>>20)

var errEncoding = errors.New("has another encoding than UTF-8")

// lineReader reads whole lines, of at most left bytes; more are an error, before a cell of them is split.
type lineReader struct {
	text *bufio.Reader
	left int
	line []byte // rest of the line that is read
}

func (l *lineReader) Read(b []byte) (n int, err error) {
	if len(l.line) == 0 {
		if l.line, err = l.text.ReadSlice('\n'); err == bufio.ErrBufferFull {
			l.line = bytes.Clone(l.line)
		}
		for err == bufio.ErrBufferFull && len(l.line) <= l.left {
			var more []byte
			if more, err = l.text.ReadSlice('\n'); len(l.line)+len(more) > cap(l.line) {
				l.line = slices.Grow(l.line, len(l.line))
			}
			l.line = append(l.line, more...)
		}
		if l.left -= len(l.line); l.left < 0 {
			return 0, errLine
		}
		if !utf8.Valid(l.line) {
			return 0, fmt.Errorf("%w: got %s", errEncoding, notUTF8(string(l.line)))
		}
	}
	if n = copy(b, l.line); n > 0 {
		err = nil
	}
	l.line = l.line[n:]
	return n, err
}

// Names of the columns that WriteRows writes before the values.
const nameColumn, labelColumn = "name", "label"

// columns assigns the columns. A column of labels or names that a key names must exist, unless the caller needs only the
// values; then the name that WriteRows uses is also accepted.
func (f *csvFile) columns(r reading) (c csvColumns, err error) {
	first := f.header[:max(0, len(f.header)-r.size())] // those that WriteRows wrote before the values
	find := func(name string, usual []string, written string) (int, error) {
		if name != "" {
			usual = []string{name}
		}
		is := func(column string) bool {
			return slices.ContainsFunc(usual, func(u string) bool { return u == column || name == "" && strings.EqualFold(u, column) })
		}
		if i := slices.IndexFunc(f.header, is); i >= 0 {
			if column := f.header[i]; column != "" && slices.Contains(f.header[i+1:], column) {
				return -1, fmt.Errorf("the column %.60q occurs twice, once as labels or names and once as a value: rename or remove one of them", column)
			}
			return i, nil
		}
		if name != "" && r.shape == nil {
			return -1, f.missing(name)
		}
		return slices.Index(first, written), nil
	}
	if c.labels, err = find(r.Labels, labelNames, labelColumn); err != nil {
		return c, err
	}
	if c.names, err = find(r.Names, nameNames, nameColumn); err != nil {
		return c, err
	}
	if c.further, err = f.further(r); err != nil {
		return c, err
	}
	for _, key := range r.Columns[ImagesColumn] {
		if r.shape == nil && !slices.ContainsFunc(f.header, func(column string) bool { return r.namedBy([]string{key}, column) }) {
			return c, f.missing(key)
		}
	}
	if r.lacking {
		f.lose(r, c)
	}
	if c.values, c.ignored = f.inOrder(f.values(r, c), r.order); len(c.values) == 0 {
		return c, fmt.Errorf("has no columns of values, got %s", nameList(f.header))
	}
	return c, f.renamed(r, c)
}

// lose adds the columns of values of the training that the file lacks, as missing ones, unless others may be these under new names.
func (f *csvFile) lose(r reading, c csvColumns) {
	lost, there := without(r.order, f.header), f.names(f.values(r, c))
	if len(there)+len(lost) == len(r.order) && len(there) > 0 && len(without(there, r.order)) == 0 {
		f.header, f.lost = slices.Concat(f.header, lost), lost
	}
}

// missing returns the error for a name or a glob that matches no column of the file.
func (f *csvFile) missing(name string) error {
	hint := ""
	if near, ok := declared.Nearest(name, f.header); ok {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("has no column %q, want %s%s", name, nameList(f.header), hint)
}

// renamed returns an error that names the columns of values of the training that the file lacks, and those that the training does not
// know, if other columns have names of the training, or if the file has another number of values than the model.
func (f *csvFile) renamed(r reading, c csvColumns) error {
	lost := without(r.order, f.header)
	names, size := f.names(c.values), r.size()
	fits := size == 0 || size == len(c.values)
	if len(lost) == 0 || fits && (len(lost) == len(r.order) || counts(names)) {
		return nil
	}
	var others []string
	taken := c.taken()
	for i, name := range f.header {
		if !slices.Contains(taken, i) {
			others = append(others, name)
		}
	}
	text := "missing: " + nameList(lost)
	if unknown := without(others, r.order); len(unknown) > 0 {
		text += "; unknown to the training: " + nameList(unknown)
		if near, ok := declared.Nearest(lost[0], unknown); ok {
			text += fmt.Sprintf("; did you mean %q by %q?", lost[0], near)
		}
	}
	if fits {
		return fmt.Errorf("some columns have names of the training, others have not; %s; give all columns the names that they had", text)
	}
	return fmt.Errorf("got %s of values, want %d; %s", numeral.Of(len(c.values), "column"), size, text)
}

// without returns the names that are not among others.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

func (r reading) size() int {
	n, err := product(r.shape)
	if r.shape == nil || err != nil { // a wrong shape is refused later
		return 0
	}
	return n
}

// namedBy reports whether the keys select a column of the file: by its exact name, or by a glob if no key of the data set
// contains its exact name.
func (r reading) namedBy(keys []string, column string) bool {
	if slices.Contains(keys, column) {
		return true
	}
	exact := column != "" && (column == r.Labels || column == r.Names)
	for _, list := range r.Columns {
		exact = exact || slices.Contains(list, column)
	}
	return !exact && slices.ContainsFunc(keys, func(glob string) bool {
		ok, _ := path.Match(glob, column) // malformed globs are errors of the declaration
		return ok
	})
}

// further returns the further columns of the set with their columns in the file.
func (f *csvFile) further(r reading) (list []csvColumn, err error) {
	for _, name := range r.Columns.further() {
		c := csvColumn{name: name}
		for _, wanted := range r.Columns[name] {
			before := len(c.at)
			for i, column := range f.header {
				if r.namedBy([]string{wanted}, column) && !slices.Contains(c.at, i) {
					c.at = append(c.at, i)
				}
			}
			if len(c.at) == before && r.shape == nil {
				return nil, fmt.Errorf("column %q: %w", name, f.missing(wanted))
			}
		}
		list = append(list, c)
	}
	return list, nil
}

// values returns the columns of values: those that the key columns selects, or all except labels, names and further columns.
// If the file contains the required number of columns with the numeric names that WriteRows writes, these are selected.
func (f *csvFile) values(r reading, c csvColumns) (chosen []int) {
	var all []int
	var names []string
	taken := c.taken()
	for i, column := range f.header {
		asked := slices.ContainsFunc(f.where, func(of condition) bool { return of.column == i })
		if (asked || slices.Contains(taken, i)) && len(r.Columns[ImagesColumn]) == 0 || i == c.labels || i == c.names {
			continue
		}
		all, names = append(all, i), append(names, column)
		if r.namedBy(r.Columns[ImagesColumn], column) {
			chosen = append(chosen, i)
		}
	}
	if len(r.Columns[ImagesColumn]) == 0 || len(all) > 0 && len(all) == r.size() && counts(names) {
		chosen = all
	}
	return chosen
}

// inOrder returns the columns with these names in the order of the names, and the names of the others; unless each name stands in the file
// once, it returns columns unchanged, which [csvFile.renamed] refuses if only some names are missing.
func (f *csvFile) inOrder(columns []int, names []string) (ordered []int, others []string) {
	if len(names) == 0 || len(names) > len(columns) {
		return columns, nil
	}
	at := map[string]int{}
	for _, i := range columns {
		name := f.header[i]
		if _, twice := at[name]; twice && slices.Contains(names, name) {
			return columns, nil
		}
		at[name] = i
	}
	for _, name := range names {
		column, ok := at[name]
		if !ok {
			return columns, nil
		}
		delete(at, name) // a name that comes twice is not found again
		ordered = append(ordered, column)
	}
	for _, i := range columns {
		if !slices.Contains(names, f.header[i]) {
			others = append(others, f.header[i])
		}
	}
	return ordered, others
}

// names returns the names of columns.
func (f *csvFile) names(columns []int) (names []string) {
	for _, i := range columns {
		names = append(names, f.header[i])
	}
	return names
}

// otherColumns returns a warning if the names of the columns differ from the known ones, so that the columns are read in the order
// of the file. It does not warn of the names 0, 1, 2 and so on, which WriteRows writes if it knows no names.
func (t *table) otherColumns(path string, known []string) []string {
	if len(t.ignored) > 0 {
		return []string{fmt.Sprintf("%s: columns that the training had not are left out: %s", path, nameList(t.ignored))}
	}
	numbered := true
	for i, name := range t.columns {
		numbered = numbered && name == strconv.Itoa(i)
	}
	if len(t.columns) != len(known) || len(known) == 0 || numbered || slices.Equal(t.columns, known) {
		return nil
	}
	if lost := without(known, t.columns); len(lost) > 0 {
		i := slices.Index(known, lost[0])
		return []string{fmt.Sprintf("%s: has no column %q, which the training had: the columns are read in the order of the file, column %d of values, %q, as %q",
			path, lost[0], i+1, t.columns[i], lost[0])}
	}
	return []string{fmt.Sprintf("%s: names of columns are repeated: the columns are read in the order of the file", path)}
}

// nameList lists the first 12 names for a message, and their number if there are more.
func nameList(names []string) string {
	const most = 12
	texts := make([]string, 0, most+1)
	for _, name := range names[:min(most, len(names))] {
		texts = append(texts, fmt.Sprintf("%.60q", name))
	}
	if len(names) > most {
		texts = append(texts, fmt.Sprintf("... (%d in all)", len(names)))
	}
	return strings.Join(texts, ", ")
}

// describe returns a description of the use of the columns: `12 values (m0, m1, m2, ..., m11), labels species`.
func (f *csvFile) describe(c csvColumns) string {
	names := f.names(c.values)
	if n := len(names); n > 6 {
		names = []string{names[0], names[1], names[2], "...", names[n-1]}
	}
	text := fmt.Sprintf("%s (%s)", numeral.Of(len(c.values), "value"), strings.Join(names, ", "))
	if c.labels >= 0 {
		text += ", labels " + cmp.Or(f.header[c.labels], `""`)
	}
	if c.names >= 0 {
		text += ", names " + cmp.Or(f.header[c.names], `""`)
	}
	return inLine(text)
}

// firstRows is the number of rows by which the number of all rows is estimated.
const firstRows = 256

func (f *csvFile) table(ctx context.Context, r reading) (t table, err error) {
	if !f.texts { // numbers that are no texts
		r.Decimal = ""
	}
	c, err := f.columns(r)
	if err != nil {
		return t, err
	}
	further := f.collectors(c, r)
	for _, one := range further {
		if len(one.at) == 0 {
			return t, fmt.Errorf("column %q: has none of %q, want %s", one.name, r.Columns[one.name], nameList(f.header))
		}
	}
	missing, first := 0, ""
	t.values.spans = newSpans(len(c.values))
	exact := r.Scale.subtracts()
	t.dates = make([]bool, len(c.values))
	s, seen := spill{r: r}, make([]bool, len(c.values))
	defer func() {
		if err != nil && s.file != nil {
			_ = s.file.Close() // which has no name
		}
	}()
	sum, err := f.eachRow(func(row tableRow) error {
		cells, line := row.cells, row.line
		t.lines.add(line)
		for k, i := range c.values {
			v, absent, ok := cellNumber(cells[i], r.Decimal)
			switch {
			case absent:
				if missing++; missing == 1 {
					first = fmt.Sprintf("line %d, column %.60q", line, f.header[i])
				}
			case !ok:
				return fmt.Errorf("line %d, column %.60q: got %.40q, want a finite number; %s", line, f.header[i], cells[i], r.columnHint(f.header[i], strings.TrimSpace(cells[i])))
			default:
				if !seen[k] {
					_, t.dates[k] = dateNumber(strings.TrimSpace(cells[i]))
					seen[k] = true
				}
				t.values.spans.add(k, v)
				if t.values.spans.over != 0 {
					return fmt.Errorf("line %d, column %.60q: %w", line, f.header[i], t.values.spans.overflow())
				}
			}
			t.values.floats = append(t.values.floats, narrow(cells[i], v))
			if exact {
				t.values.wide = append(t.values.wide, v)
			}
		}
		if row.text != nil && t.lines.n == firstRows { // room for all rows, which costs nothing until it is used
			more := int(f.size/max(1, row.text.InputOffset()/firstRows)*11/10) * len(c.values)
			if budget := r.budget(); budget > 0 {
				more = min(more, int(budget/4))
			}
			t.values.floats = slices.Grow(t.values.floats, more)
			if exact {
				t.values.wide = slices.Grow(t.values.wide, more)
			}
		}
		if c.labels >= 0 {
			t.texts = append(t.texts, strings.Clone(strings.TrimSpace(cells[c.labels])))
		}
		if c.names >= 0 {
			t.names = append(t.names, strings.Clone(cells[c.names]))
		}
		if err := s.take(&t, false); err != nil {
			return err
		}
		return addRow(further, f.header, row)
	})
	if err != nil {
		return t, err
	}
	if sum != "" {
		t.files = append(t.files, File{Path: r.File, SHA256: sum})
	}
	for _, one := range further {
		v, err := one.finish(r.known, &t.lines)
		if err != nil {
			return t, err
		}
		t.further = append(t.further, v)
		if one.unseen != "" {
			t.warnings = append(t.warnings, inLine(r.File)+": "+one.unseen)
		}
	}
	if missing > 0 && r.Missing == nil {
		return t, fmt.Errorf("%d of %d cells of values are empty or NA (first: %s); %s, remove these rows or columns, or fill the cells in",
			missing, t.lines.n*len(c.values), first, missingHint)
	}
	if t.lines.n == 0 && f.left > 0 {
		return t, fmt.Errorf("has no row that meets the conditions of where (%s)", strings.Join(r.Where, ", "))
	}
	if t.lines.n == 0 {
		return t, errors.New("has no line after the first one")
	}
	if f.where != nil {
		t.kept = append(t.kept, f.keptRows(r.Where))
	}
	t.values.dims = []int{t.lines.n, len(c.values)}
	t.columns = f.names(c.values)
	t.ignored, t.lost = c.ignored, f.lost
	if !slices.ContainsFunc(t.names, func(name string) bool { return name != "" }) {
		t.names = nil // lines that end in a separator
	}
	t.countLabels()
	return t, s.finish(ctx, &t)
}

func isMissing(cell string) bool {
	return slices.Contains([]string{"", "na", "n/a", "nan", "null", "none", "-", "?"}, strings.ToLower(cell))
}

func (r reading) columnHint(column, text string) string {
	unit := unitOf(text)
	if _, _, ok := cellNumber(withoutUnit(text, unit), r.Decimal); ok && unit != "" {
		return fmt.Sprintf("if %q is a unit, write units = { %s = %s } in the dataset table", unit, declared.KeyText(column), declared.StringText(unit))
	}
	if hint := r.decimalHint(text); hint != "" {
		return hint
	}
	if strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return "lists and structures are not read: write each value into a column, or save vectors as .npy; the key columns leaves columns out"
	}
	if isDate(text) {
		return r.datesHint(text)
	}
	if r.loose {
		return "write a number there; columns that the model does not read are left out, or named label or name"
	}
	return "name columns of labels, of names and of categories (columns = { NAME = COLUMN }, for the layer embedding) with the keys labels, names and columns"
}

// decimalHint returns what to do with a cell that is a number with the other sign before its fraction, "" for another cell.
func (r reading) decimalHint(text string) string {
	was, is, other := "point", "comma", ","
	if r.Decimal == "," {
		was, is, other = is, was, "."
	}
	if _, ok := parseNumber(text, other); !ok || isBool(text) {
		return ""
	}
	if r.loose {
		return fmt.Sprintf("numbers of this file have a %s before their fraction, those of the training a %s: write them as in the training", is, was)
	}
	return fmt.Sprintf("if the %s is the decimal sign, write decimal = %q in the dataset table", is, other)
}

// csv writes rows of values. The first line contains the column names: name and label if they are known, then the names of
// the values, by default their numbers. A value has as many digits as a float32 requires, and more only if
// it is no float32.
func (out written) csv(w io.Writer) error {
	table, labels, size := csv.NewWriter(w), out.rows.labelTexts(), volume.Of(out.dims[1:])
	var header []string
	if out.rows.Names != nil {
		header = append(header, nameColumn)
	}
	if labels != nil {
		header = append(header, labelColumn)
	}
	header = headed(header, size, out.rows.Columns)
	if err := table.Write(header); err != nil {
		return err
	}
	row := 0
	err := out.pieces(func(values []float32) error {
		for values := range slices.Chunk(values, size) {
			cells := header[:0]
			if out.rows.Names != nil {
				cells = append(cells, out.rows.Names[row])
			}
			if labels != nil {
				cells = append(cells, labels[row])
			}
			for i, v := range values {
				wide := float64(v)
				if out.rows.Wide != nil {
					wide = out.rows.Wide[row*size+i]
				}
				cells = append(cells, numberText(wide))
			}
			if err := table.Write(cells); err != nil {
				return err
			}
			row++
		}
		return nil
	})
	table.Flush()
	return cmp.Or(err, table.Error())
}

func numberText(v float64) string {
	if float64(float32(v)) == v || v-v != 0 {
		return strconv.FormatFloat(v, 'g', -1, 32)
	}
	if math.Abs(v) < 1e15 { // float64 has digits after the point, which an exponent would hide
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// headed returns the first line of a .csv file: the columns before the values, then the names of the values. The values are
// numbered if they have no names, if a name equals that of a column before them, or if the line would look like the numbers
// of a sample.
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
