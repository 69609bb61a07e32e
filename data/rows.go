package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/internal/atomicfile"
)

// Rows contains the samples, or the codes, of a file with their names and labels.
type Rows struct {
	*Images
	Names   []string  // one per row, such as the relative path of an image; nil for none
	Classes []string  // names of the classes; nil if unknown
	Columns []string  // names of the values, which WriteRows writes to .csv files if ReadRows can read them back; nil for numbers
	Lost    []string  // names of columns of values that the file of [Complete] lacks
	Notes   []string  // warnings, such as skipped files
	Deep    bool      // WriteRows writes pictures with 16 bits per channel, else with 8; see [Deep]
	Wide    []float64 // the values that WriteRows writes to .csv files, if float32 does not represent them; nil for none
}

// like is a source with changed keys for [ReadRows].
type like struct {
	Source
	r reading
}

// likeOf returns the keys of a source for other files. ok is false for a source that has none, like a published or generated set.
func likeOf(s Source) (l like, ok bool) {
	switch s := s.(type) {
	case like:
		return s, true
	case *Files:
		l = like{s, s.reading()}
		if s.is(SingleFiles) { // a further file contains one array for each column, with its name
			l.r.Labels, l.r.Columns = "", ColumnNames{}
			for name := range s.Columns {
				l.r.Columns[name] = []string{name}
			}
		}
		return l, true
	}
	return like{Source: s}, false
}

// InOrder returns a source with the keys of s, for [ReadRows]. If a .csv file has the named columns of values, each
// once, they are read in the order of the names, and others are left out; a file with only some of the names is an error, others are read in their own
// order. The names come from [Namer]; without names InOrder returns s. The entries of a sparse matrix are assigned to the columns with these names, or without names to
// the columns with the same numbers.
func InOrder(s Source, columns []string) Source {
	l, ok := likeOf(s)
	if !ok || len(columns) == 0 {
		return s
	}
	l.r.order = columns
	return l
}

// Reading returns a source with the keys of s, for [ReadRows], that also reads the given columns (other than images) from the
// same file, with the types and classes of the training. If s has no keys for files, the columns or arrays with the same names are read.
func Reading(s Source, columns ...Column) Source {
	columns = InFiles(columns)
	l, ok := likeOf(s)
	if l.r.is(EntryFiles) || len(columns) == 0 {
		return s
	}
	if !ok {
		l.r.Columns = ColumnNames{}
	}
	l.r.known, l.r.need = columns, nil
	for _, c := range columns {
		l.r.need = append(l.r.need, c.Name)
		if !ok && c.Name != LabelsColumn {
			l.r.Columns[c.Name] = []string{c.Name}
		}
	}
	return l
}

// Measuring is like [Reading], but columns that the file lacks, or has with another number of values, are left out. Without names of classes
// for the labels these are those of the file.
func Measuring(s Source, columns ...Column) Source {
	l, ok := Reading(s, columns...).(like)
	if !ok {
		return s
	}
	l.r.optional = true
	return l
}

// InFiles returns the columns that a file must contain: the mask of missing entries is replaced by the column that it masks.
func InFiles(columns []Column) (list []Column) {
	for _, c := range columns {
		if of, ok := strings.CutSuffix(c.Name, ObservedSuffix); ok {
			c = Column{Name: of, Shape: c.Shape, Type: Float32, Missing: true}
		}
		same := func(o Column) bool { return o.Name == c.Name }
		if c.Name != ImagesColumn && c.Name != ObservedColumn && !slices.ContainsFunc(list, same) {
			list = append(list, c)
		}
	}
	return list
}

// ReadRows reads the samples, or the codes, of a file that belongs to no data set: .npy or IDX, gzipped or not, .npz,
// .safetensors, .csv, one image, or a folder of images. The format is detected from the content, except for .csv. uint8 values
// become value/255, floats are used unchanged; arrays are (n, values), (n, height, width) or (n, height, width, channels).
//
// shape is the shape of one sample that the caller needs. Samples of equal size are reshaped to this shape; other samples are
// an error. A single vector, (values), is one sample. Images are read in grey unless shape has three channels. With a nil
// shape, the file determines the shape. If like is not nil, its keys apply to files of its kind: columns, names of arrays,
// axes, the size of images; see [InOrder] for the order of columns. All errors about the file are of type *Error.
func ReadRows(ctx context.Context, path string, shape []int, like Source) (*Rows, error) {
	l, _ := likeOf(like)
	r := l.r
	if f, ok := l.Source.(FileReader); ok && f.ReadsFile(path) {
		names, _ := r.classNames()
		rows, err := f.ReadFile(ctx, path, names)
		if err == nil {
			err = rows.lacks(r)
		}
		return rows, FileError("", path, err)
	}
	r.shape, r.loose = shape, true
	r.Channels = 1
	if len(shape) == 3 && shape[2] == 3 {
		r.Channels = 3
	}
	var note string
	if r.is(EntryFiles) {
		var matched *Files
		var err error
		if matched, note, err = r.matched(path); err != nil {
			return nil, FileError("", path, err)
		}
		r.Files = *matched
	}
	r.File = path
	rows, err := r.rows(ctx)
	if err == nil && note != "" {
		rows.Notes = append(rows.Notes, note)
	}
	if err == nil {
		err = rows.lacks(r)
	}
	if err == nil && l.Source != nil && rows.Sparse() && rows.missing && !HasMissing(l.Source) { // of a sparse matrix; a table has refused its empty cells
		err = fmt.Errorf("has %d of %d values, and the training had all: save the matrix as an array, with its zeros", len(rows.entries.values), rows.n*rows.pixels)
	}
	if err != nil {
		return nil, FileError("", path, err)
	}
	if shape == nil {
		return rows, nil
	}
	if err := fits(path, rows.Len(), rows.Shape, shape); err != nil {
		return nil, err
	}
	rows.Images, err = rows.Images.WithShape(shape)
	return rows, err
}

// ReadImages is like [ReadRows], without names and without a source.
func ReadImages(ctx context.Context, path string, shape []int) (*Images, error) {
	rows, err := ReadRows(ctx, path, shape, nil)
	if err != nil {
		return nil, err
	}
	return rows.Images, nil
}

func (r reading) rows(ctx context.Context) (*Rows, error) {
	t, err := r.table(ctx)
	if err != nil {
		return nil, err
	}
	if t.sparse != nil {
		isText := func(name string) bool { _, err := strconv.Atoi(name); return err != nil }
		placed := t.sparse.columns == nil && (r.ColNames != "" && r.order != nil || slices.ContainsFunc(r.order, isText))
		images, ignored, err := t.sparse.withColumns(r.order, r.shape, placed)
		t.ignored = ignored
		return &Rows{Images: images, Names: images.RowNames(), Notes: append(t.warnings, t.otherColumns(r.File, nil)...)}, err
	}
	var images *Images
	if len(r.shape) < 2 { // which may be that of codes, whose values are no images
		images, err = r.plain(t.values)
	} else {
		images, _, err = r.interpret(t.values)
	}
	if err != nil {
		return nil, err
	}
	names, known := r.classNames()
	indices := known && t.labels != nil && t.texts == nil && t.classes == nil && len(names) > 0 && !AreNumbers(names)
	classes, err := t.resolve(names, !known)
	if err != nil {
		return nil, err
	}
	if indices {
		t.warnings = append(t.warnings, fmt.Sprintf("%s: the labels are numbers, and count as the places, from 0, of the classes %s", inLine(r.File), nameList(names)))
	}
	if len(t.lost) > 0 {
		t.warnings = append(t.warnings, fmt.Sprintf("%s: lacks columns of the training, whose values count as missing: %s", inLine(r.File), nameList(t.lost)))
	}
	images.labels, images.columns, images.dates = t.labels, t.columns, t.dates
	if t.lines.n > 0 {
		images.lines = &t.lines
	}
	if images, err = images.WithColumns(t.further...); err != nil {
		return nil, err
	}
	return &Rows{Images: images, Names: t.names, Classes: classes, Lost: t.lost, Notes: append(t.warnings, t.otherColumns(r.File, r.order)...)}, nil
}

// classNames returns the class names of the training if the labels are one of the columns to read. Otherwise known is false,
// and the classes are those of the file.
func (r reading) classNames() (names []string, known bool) {
	i := slices.IndexFunc(r.known, func(c Column) bool { return c.Name == LabelsColumn })
	if i < 0 || r.optional && r.known[i].Names == nil {
		return nil, false
	}
	return r.known[i].Names, true
}

// lacks returns an error for a column to read that the rows do not have.
func (r *Rows) lacks(keys reading) error {
	if keys.optional {
		return nil
	}
	for _, name := range keys.need {
		switch _, ok := r.Column(name); {
		case ok:
		case name == LabelsColumn:
			return fmt.Errorf("has no column %q, from which the value is computed: give the labels of the samples in the same file, under the name that the key labels of the data set gives, or as %q", name, name)
		default:
			return fmt.Errorf("has no column %q: name it in the key columns of the data set, and give it in the same file", name)
		}
	}
	return nil
}

// labelTexts returns the labels as text: the name of the class if known, empty if the class is unknown.
func (r Rows) labelTexts() []string {
	if r.Images == nil || r.Images.labels == nil {
		return nil
	}
	var texts []string
	for _, label := range r.Labels() {
		switch {
		case label < 0:
			texts = append(texts, "")
		case label < len(r.Classes):
			texts = append(texts, r.Classes[label])
		default:
			texts = append(texts, strconv.Itoa(label))
		}
	}
	return texts
}

// WriteRows writes samples or codes of the given shape, row-major. The name of path selects the format:
//
//	x.npy                        float32, (n, shape...), the unchanged values
//	x.npz                        the same as an array of the given name, with the arrays names, labels and classes if known
//	x.csv                        columns name and label if known, then one per value, with its name or its number
//	x.idx, x-ubyte, either .gz   IDX bytes (value*255, rounded and clipped to [0,255])
//	x.png                        one image, as bytes
//	any other name without an    a new folder of PNG files with the names of the samples, or 00000.png, 00001.png, ..., as bytes
//	extension
//
// Of about, only names, labels, classes, columns, Deep and Wide are used. Vectors are written as .npy, .npz or .csv. Files are written
// atomically. An existing file is replaced; a folder that is not empty is an error.
func WriteRows(path, name string, shape []int, values []float32, about Rows) error {
	size, err := product(shape)
	if err != nil {
		return err
	}
	if size == 0 || len(values)%size != 0 {
		return fmt.Errorf("%d values are not a whole number of images of shape %v", len(values), shape)
	}
	if about.Wide != nil && len(about.Wide) != len(values) {
		return fmt.Errorf("got %d values in float64, want %d", len(about.Wide), len(values))
	}
	if f := formatNamed(path); f == nil && len(shape) > 1 {
		kind, err := FormatOf(path)
		if err == nil {
			err = about.isOf(len(values)/size, size)
		}
		if err != nil {
			return err
		}
		return writePictures(path, kind, append([]int{len(values) / size}, shape...), values, about)
	}
	return WritePieces(path, name, shape, len(values)/size, func(do func([]float32) error) error { return do(values) }, about)
}

// WritePieces is like [WriteRows] for n samples or codes that are computed while they are written: pieces passes their values to do, some rows at a
// time. It writes files of arrays or columns.
func WritePieces(path, name string, shape []int, n int, pieces func(do func(values []float32) error) error, about Rows) error {
	size, err := product(shape)
	if err == nil {
		_, err = FormatOf(path)
	}
	if err == nil {
		err = about.isOf(n, size)
	}
	if err != nil {
		return err
	}
	f := formatNamed(path)
	if f == nil || len(shape) < 2 && f.bytes {
		return fmt.Errorf("%s: vectors of %d values are not images: write them to a name that ends in .npy, .npz or .csv", path, size)
	}
	got := 0
	counted := func(do func([]float32) error) error {
		err := pieces(func(values []float32) error {
			got += len(values)
			return do(values)
		})
		if err == nil && got != n*size {
			err = fmt.Errorf("got %d values, want %d", got, n*size)
		}
		return err
	}
	return f.to(written{path: path, name: name, dims: append([]int{n}, shape...), pieces: counted, rows: about})
}

func (r Rows) isOf(n, size int) error {
	if r.Names != nil && len(r.Names) != n || r.Images != nil && r.Len() != n {
		return errors.New("names or labels are of another number of rows")
	}
	if r.Columns != nil && len(r.Columns) != size {
		return fmt.Errorf("got %d names of values, want %d", len(r.Columns), size)
	}
	return nil
}

// fits returns an error if got, the shape of the n images of a file, differs from want; a nil want accepts any shape.
func fits(path string, n int, got, want []int) error {
	if want == nil {
		return nil
	}
	if len(got) > 1 && len(want) > 1 && !slices.Equal(got, want) {
		return &Error{Path: path, Problem: fmt.Sprintf("the images are %s, want %s", by(got), by(want))}
	}
	values, err := product(got)
	if err != nil {
		return FileError("", path, err)
	}
	if wanted, err := product(want); err != nil || wanted != values {
		hint := ""
		if slices.Equal(append([]int{n}, got...), want) {
			hint = fmt.Sprintf("one image alone is saved with the shape (1,%s)", strings.ReplaceAll(by(want), "x", ","))
		}
		return &Error{Path: path, Problem: fmt.Sprintf("each row has %d values (%s), want %s", values, by(got), by(want)), Hint: hint}
	}
	return nil
}

// WriteImages is like [WriteRows], for images, or codes, without names and labels.
func WriteImages(path string, shape []int, values []float32) error {
	return WriteRows(path, "images", shape, values, Rows{})
}

func writePictures(path, format string, dims []int, values []float32, about Rows) error {
	n, shape := dims[0], dims[1:]
	switch {
	case len(shape) == 3 && shape[2] != 1 && shape[2] != 3:
		return fmt.Errorf("%s: a PNG file has 1 or 3 channels, not %d: write to a name that ends in .npy", path, shape[2])
	case format == "png" && n != 1:
		return fmt.Errorf("%s: %d images do not fit into one PNG file: give the name of a folder", path, n)
	case format == "png":
		return atomicfile.Write(path, func(w io.Writer) error { return encodePNG(w, shape, values, about.Deep) })
	}
	return writePNGs(path, shape, values, about)
}

// toBytes returns value*255, rounded and clipped to [0,255]; NaN gives 0.
func toBytes(values []float32) []byte {
	b := make([]byte, len(values))
	for i, v := range values {
		b[i] = byte(stepOf(v, 255))
	}
	return b
}

// stepOf returns v*most, rounded and clipped to [0,most]; NaN gives 0.
func stepOf(v float32, most float64) int {
	if v > 0 {
		return int(math.Round(most * float64(min(v, 1))))
	}
	return 0
}

// by formats a shape as 28x28.
func by(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
}
