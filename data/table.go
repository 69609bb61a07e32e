package data

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"tessera/internal/numeral"
)

// table is the content of a file of samples, whatever its format: values, names and labels.
type table struct {
	files    []File  // files that were read
	sparse   *Images // samples of a sparse matrix, in place of all others
	values   array
	columns  []string // names of the values, in order, if the file contains them
	dates    []bool   // values that are dates, as years; nil if the file contains no names
	lines    rowLines // line numbers of the samples in a text file
	names    []string // one name per sample; nil if there are none
	labels   []int    // one label per sample; nil if there are none
	texts    []string // labels as text, which may be names of classes; labels is nil if they are not numbers
	classes  []string // names of the classes, if the file contains them
	further  []*Values
	ignored  []string // names of columns of values that are not in the required order of names
	lost     []string // names of columns of values that the file lacks
	warnings []string
	kept     []string // which rows were kept, and where
}

// rowLines are the lines of rows in a text: those that do not follow the line of the row before.
type rowLines struct {
	n     int      // number of rows
	jumps [][2]int // row and its line
	last  int
}

// add adds the line of the next row.
func (l *rowLines) add(line int) {
	if l.n == 0 || line != l.last+1 {
		l.jumps = append(l.jumps, [2]int{l.n, line})
	}
	l.last = line
	l.n++
}

// of returns the line of a row.
func (l *rowLines) of(row int) int {
	i, _ := slices.BinarySearchFunc(l.jumps, row+1, func(jump [2]int, row int) int { return cmp.Compare(jump[0], row) })
	return l.jumps[i-1][1] + row - l.jumps[i-1][0]
}

// place returns the place of a row for a message: its line in a text.
func (l *rowLines) place(row int) string {
	if l.n > 0 {
		return fmt.Sprintf("line %d", l.of(row))
	}
	return fmt.Sprintf("sample %d", row)
}

// reading contains the keys for reading the samples of one split, or another file like it. File is the path.
type reading struct {
	Files
	need     []string // the further columns to read
	known    []Column // the further columns of the training samples, for test samples
	classes  []string // classes of the training samples, if they are folders
	loose    bool     // the file belongs to no data set
	filters  bool     // the key where applies to it nevertheless
	optional bool     // columns to read that the file lacks are left out
	apart    bool     // arrays with usual names belong to other samples in the file
	lacking  bool     // columns of values of a table that the file lacks are missing
	recorded bool     // the rows are those of a [Recording]
	halved   bool     // test samples that this reading does not know have half of the budget
	order    []string // names of the columns of values in the required order; nil for the order of the file
	shape    []int    // required shape of one sample; nil for any
}

// tablePart is one array of a file, before its values are read.
type tablePart struct {
	name string
	dims []int
	kind string // type of its values in NPY's notation: "f4"
	path string // its file, if there is no other array in it
	read func(exact bool) (array, error)
	open func() (*pieces, error) // reads it in pieces; nil for most formats

	extents []extent // where the values are, in row order; nil if they must be read at once
	shards  []length // its files, if there are several
}

// length is the number of samples of one of several files.
type length struct {
	path string
	n    int
}

// beside returns an error for labels, or a column, in several files that are not those of the samples, file by file: their numbers may agree in
// total although entries belong to other samples.
func (p *tablePart) beside(samples *tablePart) error {
	if p == nil || p.shards == nil || samples.shards == nil {
		return nil
	}
	if got, want := len(p.shards), len(samples.shards); got != want {
		return &Error{Path: p.path, Problem: fmt.Sprintf("got %d files, want %d, one for each of %s", got, want, samples.path)}
	}
	for k, of := range samples.shards {
		if got := p.shards[k]; got.n != of.n {
			return &Error{Path: got.path, Problem: fmt.Sprintf("got %s, want %d, one for each sample of %s", numeral.Of(got.n, "entry"), of.n, of.path), Hint: "files belong together in the order of their names"}
		}
	}
	return nil
}

// Opened is a file of samples of which only the header was read: arrays, a table, images or a sparse matrix.
type Opened struct {
	Matrix *Matrix // a sparse matrix; nil for others

	path     string
	parts    []tablePart
	contents *contents // of the file with these parts, which the caller closes
	csv      *csvFile  // the columns of a table, in place of parts
	images   *listing  // the images of a folder
	loose    bool      // it belongs to no data set
	shards   []Opened  // the files of which it consists; nil if it is one file
}

// Array is an array of numbers, row by row.
type Array struct {
	Name string
	Dims []int
	Read func() ([]float64, error)
}

// OpenedArrays returns an opened file of arrays, for formats of other modules.
func OpenedArrays(all ...Array) (o Opened) {
	for _, one := range all {
		read := func(exact bool) (array, error) {
			values, err := one.Read()
			if err != nil {
				return array{}, fmt.Errorf("array %.60q: %w", one.Name, err)
			}
			b, _ := binary.Append(nil, binary.LittleEndian, values) // which always has a size
			return arrayHeader{kind: "f8", order: binary.LittleEndian, dims: one.Dims, exact: exact}.values(b)
		}
		o.parts = append(o.parts, tablePart{name: one.Name, dims: one.Dims, kind: "f8", read: read})
	}
	return o
}

// RowReader reads the rows of a file of columns as texts, the names of the columns first. A cell that is missing is "".
type RowReader interface {
	Read() ([]string, error)
	FieldPos(field int) (line, column int)
}

// OpenedTable returns an opened file of columns with these names, for formats of other modules. rows begins to read it.
func OpenedTable(names []string, rows func() RowReader) Opened {
	return Opened{csv: &csvFile{header: names, rows: func(do func(tableRow) error) (string, error) {
		r := rows()
		_, _ = r.Read() // the names
		return "", eachOf(func() (tableRow, error) {
			cells, err := r.Read()
			if err != nil {
				return tableRow{}, err
			}
			line, _ := r.FieldPos(0)
			return tableRow{cells: cells, line: line}, nil
		}, do)
	}}}
}

func (o Opened) close() {
	if o.contents != nil {
		_ = o.contents.Close() // nothing was written
	}
	for _, shard := range o.shards {
		shard.close()
	}
}

// checksum returns the file with its checksum.
func (o Opened) checksum(ctx context.Context) (File, error) {
	if o.shards != nil {
		var files []File
		for _, shard := range o.shards {
			file, err := shard.checksum(ctx)
			if err != nil {
				return file, FileError("", shard.path, err)
			}
			files = append(files, file)
		}
		return combined(o.path, files), nil
	}
	return Checksum(ctx, o.path)
}

// Usual names of arrays and columns that are not samples.
var (
	labelNames = []string{"labels", "label", "class"}
	nameNames  = []string{"names", "name", ""}
	classNames = []string{"classes"}
)

// open opens the file or folder of the samples. Of a table it leaves out the rows that the key where does not keep.
func (r reading) open(ctx context.Context) (o Opened, err error) {
	if o, err = r.opened(ctx); err != nil || o.csv == nil {
		return o, err
	}
	if err = o.csv.measured(r); err == nil && (!r.loose || r.filters) {
		err = o.csv.only(r)
	}
	return o, err
}

func (r reading) opened(ctx context.Context) (o Opened, err error) {
	info, err := os.Stat(r.File)
	if errors.Is(err, os.ErrNotExist) && isGlob(r.File) {
		return r.openShards(ctx)
	}
	if err != nil {
		return o, err
	}
	if r.is(FolderFiles) && !r.loose || r.loose && info.IsDir() {
		l, err := r.pictures().list(r.File)
		return Opened{path: r.File, images: &l}, err
	}
	start, err := head(r.File, formatHead)
	if err != nil {
		return o, err
	}
	if r.loose && formatOf(start) != nil {
		return Opened{path: r.File, images: &listing{paths: []string{r.File}}}, nil
	}
	f := detected(start, r.File, r.is(EntryFiles))
	switch {
	case f == nil && len(start) == 0:
		return o, errors.New("is empty")
	case f == nil:
		return o, errNoArray
	case r.is(EntryFiles) && bytes.HasPrefix(start, []byte(npyMagic)):
		return o, &Error{Path: r.File, Problem: "is an array, and the samples of this data set are a sparse matrix", Hint: "save it by scipy.sparse.save_npz(FILE, scipy.sparse.csr_matrix(X))"}
	case r.is(SingleFiles) && !r.loose && f.Sort != SingleFiles:
		return o, &Error{Path: r.File, Problem: "is neither an NPY nor an IDX file", Hint: fmt.Sprintf("write name = %q in the dataset table", f.Dataset)}
	}
	o, err = f.Open(ctx, r.File, &r.Files)
	o.path, o.loose = r.File, r.loose
	if o.Matrix != nil && err == nil {
		o.Matrix, err = o.Matrix.adapt(r)
	}
	return o, err
}

// table reads the file of the samples.
func (r reading) table(ctx context.Context) (t table, err error) {
	o, err := r.open(ctx)
	defer o.close()
	switch {
	case err != nil:
		return t, err
	case o.images != nil:
		return r.imagesTable(ctx, *o.images)
	case o.Matrix != nil:
		return r.matrixTable(ctx, o)
	case o.csv != nil:
		t, err = o.csv.table(ctx, r)
	default:
		t, err = o.table(ctx, r)
	}
	if err == nil && len(t.files) == 0 {
		var file File
		file, err = o.checksum(ctx)
		t.files = append(t.files, file)
	}
	err = cmp.Or(err, o.unchanged())
	if err == nil {
		err = t.complete(r.shape)
	}
	return t, err
}

// complete turns a single vector into a table of one row, and checks lengths.
func (t *table) complete(shape []int) error {
	if d := t.values.dims; len(d) == 1 && len(shape) == 1 && d[0] == shape[0] {
		t.values.dims = []int{1, d[0]}
	}
	if len(t.values.dims) == 0 {
		return errors.New("holds a single number, want samples")
	}
	n := t.values.dims[0]
	if got := len(t.names); got > 0 && got != n {
		return fmt.Errorf("%d names for %d samples", got, n)
	}
	if got := max(len(t.labels), len(t.texts)); got > 0 && got != n {
		return fmt.Errorf("%d labels for %d samples", got, n)
	}
	return nil
}

// table reads the requested arrays of a file.
func (o Opened) table(ctx context.Context, r reading) (t table, err error) {
	samples, err := samplesOf(o.parts, r)
	if err != nil {
		return t, err
	}
	if err := t.readValues(ctx, samples, r); err != nil {
		return t, err
	}
	if err := t.readLabels(ctx, o, samples, r); err != nil {
		return t, err
	}
	if err := t.readColumns(ctx, o, samples, r); err != nil || r.apart {
		return t, err
	}
	t.names, err = t.textsOf(ctx, o, samples, nameNames)
	return t, err
}

// readValues reads the values of the samples, or keeps them on disk if they do not fit into the budget.
func (t *table) readValues(ctx context.Context, samples *tablePart, r reading) (err error) {
	budget := r.exceeded(samples)
	if budget == 0 || r.loose && !r.readsInParts(samples) {
		t.values, err = t.read(samples, r.Scale.subtracts())
		return err
	}
	if !r.readsInParts(samples) {
		return r.notInParts()
	}
	files, err := t.fromDisk(ctx, samples, r)
	if err == nil {
		t.files = append(t.files, combined(r.File, files))
	}
	return err
}

// fromDisk leaves the values of the samples on disk, and returns the files with their checksums.
func (t *table) fromDisk(ctx context.Context, samples *tablePart, r reading) ([]File, error) {
	d, err := r.newDisk(samples.extents, r.budget())
	if err != nil {
		return nil, err
	}
	t.values = array{dims: samples.dims, disk: d}
	all := t.values
	if d.channels > 0 {
		all = all.channelsLast()
	}
	m, err := all.onDisk(dropOneChannel(all.dims[1:]))
	if err != nil {
		return nil, err
	}
	files, spans, err := d.scan(ctx, m)
	t.values.spans = spans
	return files, err
}

// looseBudget is the budget for a file that belongs to no data set.
const looseBudget = 1 << 30

// budget returns the budget for the samples of a split, 0 for none.
func (r reading) budget() int64 {
	switch {
	case (r.HasTest() || r.halved) && !r.loose:
		return int64(r.Memory) / 2
	case r.loose && r.Memory == 0:
		return looseBudget
	}
	return int64(r.Memory)
}

// exceeded returns the budget for the samples of a split if their values in memory would exceed it, otherwise 0.
func (r reading) exceeded(samples *tablePart) int64 {
	budget := r.budget()
	size := 4
	switch kind := samples.kind; {
	case kind == "u1":
		size = 1
	case kind == "f8" || typeOf(kind) == Whole:
		if r.Scale.subtracts() {
			size += 8
		}
	}
	if _, length, err := arrayBytes(samples.dims, size); budget == 0 || err != nil || length <= budget {
		return 0
	}
	return budget
}

// readsInParts reports whether the values of the samples need not be in memory.
func (r reading) readsInParts(samples *tablePart) bool {
	return samples.extents != nil && r.Missing == nil && len(samples.dims) >= 2 && len(samples.dims) <= 4
}

// read reads the values of an array, and records its file if it has one of its own.
func (t *table) read(p *tablePart, exact bool) (array, error) {
	a, err := p.read(exact)
	if a.file.Path != "" {
		t.files = append(t.files, a.file)
	}
	return a, p.wrong(err)
}

// wrong returns an error about an array, with its file if it has one of its own.
func (p *tablePart) wrong(err error) error {
	if p.path != "" {
		return FileError("", p.path, err)
	}
	return err
}

// readLabels reads the labels of samples and, if the labels are numbers, the names of their classes.
func (t *table) readLabels(ctx context.Context, o Opened, samples *tablePart, r reading) error {
	usual := labelNames
	if r.apart {
		usual = nil
	}
	labels, err := o.part(ctx, r.Labels, usual)
	if err != nil && r.loose { // new samples need no labels unless a value is computed from them, which [Rows.lacks] says
		labels, err = o.part(ctx, "", labelNames[:1])
	}
	if err != nil {
		return err
	}
	if err := labels.beside(samples); err != nil {
		return err
	}
	if labels != nil && labels != samples {
		a, err := t.read(labels, false)
		if err != nil {
			return err
		}
		if t.texts = a.texts; t.texts == nil || labels.path != "" {
			t.labels, err = a.labels()
			if n := t.values.dims[0]; err == nil && labels.path != "" && len(t.labels) != n {
				err = &Error{Path: labels.path, Problem: fmt.Sprintf("%d labels for %d samples", len(t.labels), n)}
			}
			switch {
			case err != nil && labels.path != "":
				return FileError("", labels.path, err)
			case err != nil:
				return fmt.Errorf("%s: %w", labels.name, err)
			}
		}
	}
	t.classes, err = t.textsOf(ctx, o, samples, classNames)
	return err
}

// readColumns reads the requested further columns.
func (t *table) readColumns(ctx context.Context, o Opened, samples *tablePart, r reading) error {
	for _, name := range r.need {
		p, err := o.part(ctx, r.Columns.one(name), nil)
		if err != nil && !r.optional {
			return fmt.Errorf("column %q: %w", name, err)
		}
		if p == nil { // the set has no such column
			continue
		}
		if err := p.beside(samples); err != nil {
			return err
		}
		a, err := t.read(p, false)
		if err != nil {
			return err
		}
		v, err := a.values(name, t.values.dims[0], r.Missing != nil)
		if err != nil {
			return p.wrong(err)
		}
		if i := slices.IndexFunc(r.known, func(k Column) bool { return k.Name == name }); i >= 0 && r.known[i].Type != "" {
			if r.optional && v.Size() != r.known[i].Size() {
				continue
			}
			if v, err = v.as(r.known[i], r.loose); err != nil {
				return p.wrong(err)
			}
		}
		t.further = append(t.further, v)
	}
	return nil
}

// textsOf returns the texts of the first array with a usual name; nil if there is none, or if it contains numbers.
func (t *table) textsOf(ctx context.Context, o Opened, samples *tablePart, usual []string) ([]string, error) {
	p, _ := o.part(ctx, "", usual) // no name that must be there
	if p == nil || p == samples {
		return nil, nil
	}
	a, err := t.read(p, false)
	return a.texts, err
}

// single reports whether the file is that of one array. The names of labels and columns are then those of other such files.
func (o Opened) single() bool { return len(o.parts) == 1 && o.parts[0].path != "" }

// part returns the array with the given name or, if name is "", the first with a usual name; nil if there is none.
func (o Opened) part(ctx context.Context, name string, usual []string) (*tablePart, error) {
	switch {
	case !o.single():
		return namedPart(o.parts, name, usual)
	case name == "" || o.loose:
		return nil, nil
	}
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) && isGlob(name) {
		r := reading{Files: Files{Kind: "npy", File: name}}
		other, err := r.openShards(ctx)
		if err != nil {
			return nil, FileError("", name, err)
		}
		return &other.parts[0], nil
	}
	other, err := openArray(ctx, name, nil)
	if err != nil {
		return nil, FileError("", name, otherFormat(name, err))
	}
	return &other.parts[0], nil
}

// namedPart returns the array with the given name or, if name is "", the first with a usual name; nil if there is none.
func namedPart(parts []tablePart, name string, usual []string) (*tablePart, error) {
	if name != "" {
		usual = []string{name}
	}
	for _, n := range usual {
		if i := slices.IndexFunc(parts, func(p tablePart) bool { return p.name == n }); i >= 0 {
			return &parts[i], nil
		}
	}
	if name != "" {
		return nil, fmt.Errorf("has no array %q, want %s", name, partList(parts))
	}
	return nil, nil
}

// samplesOf selects the array of the samples: the named one, or else the only array of two to four axes that is not labels, names or
// classes, of bytes or floats if there is one, else of integers; arrays of the required size have precedence.
func samplesOf(parts []tablePart, r reading) (*tablePart, error) {
	if (Opened{parts: parts}).single() {
		return &parts[0], nil
	}
	if r.Tensor != "" {
		return namedPart(parts, r.Tensor, nil)
	}
	all, fitting := candidates(parts, r, func(kind string) bool { t := typeOf(kind); return t == Bytes || t == Float32 })
	if len(all)+len(fitting) == 0 { // integers and booleans may be labels
		all, fitting = candidates(parts, r, func(kind string) bool { return typeOf(kind) == Whole })
	}
	switch {
	case len(fitting) == 1:
		return fitting[0], nil
	case len(all) == 1:
		return all[0], nil
	case len(all) == 0:
		if i := slices.IndexFunc(parts, func(p tablePart) bool { return p.kind == "" && len(p.dims) > 1 }); i >= 0 {
			if _, err := parts[i].read(false); err != nil { // names the type
				return nil, err
			}
		}
		return nil, fmt.Errorf("has no array of samples, (samples, values) of numbers: got %s", partList(parts))
	}
	if r.loose {
		return nil, fmt.Errorf("has several arrays (%s): save that of the samples alone", partList(parts))
	}
	return nil, fmt.Errorf("has several arrays (%s): name that of the samples with the key tensor", partList(parts))
}

// candidates lists the arrays of two to four axes that may be samples, and those of the required size.
func candidates(parts []tablePart, r reading, accepts func(kind string) bool) (all, fitting []*tablePart) {
	for i := range parts {
		p := &parts[i]
		other := slices.Contains(slices.Concat(labelNames, nameNames, classNames, []string{r.Labels}, r.Columns.arrays()), p.name)
		if other || !accepts(p.kind) {
			continue
		}
		if len(p.dims) >= 2 && len(p.dims) <= 4 {
			all = append(all, p)
		}
		if sameSize(p.dims, r.shape) {
			fitting = append(fitting, p)
		}
	}
	return all, fitting
}

// sameSize reports whether an array with these axes contains samples of the given shape, or a single such vector.
func sameSize(dims, shape []int) bool {
	if shape == nil || len(dims) == 0 {
		return false
	}
	want, err := product(shape)
	if len(dims) > 1 {
		dims = dims[1:]
	}
	got, wrong := product(dims)
	return err == nil && wrong == nil && got == want
}

// partList lists arrays with their axes.
func partList(parts []tablePart) string {
	const most = 12
	var texts []string
	for _, p := range parts {
		if len(texts) == most {
			texts = append(texts, "...")
			break
		}
		texts = append(texts, fmt.Sprintf("%.60q (%s)", p.name, strings.ReplaceAll(by(p.dims), "x", ",")))
	}
	return strings.Join(texts, ", ")
}

// dims returns the axes of the samples without reading them; the number of samples is unknown for some formats and set to 1.
func (o Opened) dims(r reading) ([]int, error) {
	switch {
	case o.csv != nil:
		columns, err := o.csv.columns(r)
		return []int{1, len(columns.values)}, err
	case o.images != nil:
		shape, err := r.pictures().shape(o.images.paths[0])
		return append([]int{1}, shape...), err
	case o.Matrix != nil:
		return o.Matrix.dims(r)
	}
	p, err := samplesOf(o.parts, r)
	if err != nil {
		return nil, err
	}
	return p.dims, nil
}
