package data

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
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
	Notes   []string  // warnings, such as skipped files
	Wide    []float64 // the values that WriteRows writes to .csv files, if float32 does not represent them; nil for none
}

// reader is implemented by sources whose keys also apply to other files of the same kind.
type reader interface {
	// reading returns the keys for array files, pictures the keys for image files.
	reading() reading
	pictures() pictures
}

// InOrder returns a source with the keys of s, for [ReadRows]. If a .csv file has the named columns of values, each
// once, they are read in the order of the names, and others are left out; other files are read in their own order. The names come from [Namer]; without
// names InOrder returns s. The entries of a sparse matrix are assigned to the columns with these names, or without names to
// the columns with the same numbers.
func InOrder(s Source, columns []string) Source {
	if t, ok := s.(*Triples); ok {
		return knownColumns{t, columns}
	}
	if r, ok := s.(reader); ok && len(columns) > 0 {
		return ordered{s, r, columns}
	}
	return s
}

// knownColumns is a source of sparse matrices whose columns are assigned by name to those of another matrix.
type knownColumns struct {
	*Triples
	columns []string
}

// rows reads the rows of a file.
func (k knownColumns) rows(ctx context.Context, path string, shape []int) (*Rows, error) {
	images, err := ReadTriples(ctx, path, k.Triples)
	if err != nil {
		return nil, err
	}
	if images, err = images.withColumns(k.columns, shape); err != nil {
		return nil, &Error{Path: path, Err: err}
	}
	return &Rows{Images: images, Names: images.RowNames()}, nil
}

// ordered is a source whose columns have a known order.
type ordered struct {
	Source
	reader
	columns []string
}

func (o ordered) reading() reading {
	r := o.reader.reading()
	r.order = o.columns
	return r
}

// Reading returns a source with the keys of s, for [ReadRows], that also reads the given columns (other than images) from the
// same file, with the types and classes of the training. If s has no keys for files, like a published or generated set, the
// columns or arrays with the same names are read.
func Reading(s Source, columns ...Column) Source {
	columns = inFiles(columns)
	r, ok := s.(reader)
	if _, sparse := s.(knownColumns); sparse || len(columns) == 0 {
		return s
	}
	if !ok {
		r = byName(columns)
	}
	return withColumns{s, r, columns}
}

// byName replaces a source without keys for files. The columns of a file are identified by their own names.
type byName []Column

func (b byName) reading() reading {
	r := reading{held: ColumnNames{}}
	for _, c := range b {
		if c.Name != LabelsColumn {
			r.held[c.Name] = []string{c.Name}
		}
	}
	return r
}

// pictures implements [reader] without settings for image files.
func (byName) pictures() pictures { return pictures{} }

// inFiles returns the columns that a file must contain: the mask of missing entries is replaced by the column that it masks.
func inFiles(columns []Column) (list []Column) {
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

// withColumns is a source from which further columns are read.
type withColumns struct {
	Source
	reader
	columns []Column
}

func (w withColumns) reading() reading {
	r := w.reader.reading()
	r.known = w.columns
	for _, c := range w.columns {
		r.need = append(r.need, c.Name)
	}
	return r
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
	if k, ok := like.(knownColumns); ok {
		return k.rows(ctx, path, shape)
	}
	r, p := reading{}, pictures{}
	if l, ok := like.(reader); ok {
		r = l.reading()
		p = l.pictures()
	}
	r.shape = shape
	rows, err := readRows(ctx, path, r, p)
	if err == nil {
		err = rows.lacks(r)
	}
	if err != nil {
		return nil, badFile("", path, err)
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

func readRows(ctx context.Context, path string, r reading, p pictures) (*Rows, error) {
	r.loose = true
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	p.channels = 1
	if len(r.shape) == 3 && r.shape[2] == 3 {
		p.channels = 3
	}
	names, known := r.classNames()
	if info.IsDir() {
		rows, err := p.rows(ctx, path, r.shape)
		if err != nil || !known {
			return rows, err
		}
		t := table{labels: rows.labels, classes: rows.Classes}
		rows.Classes, err = t.resolve(names, false)
		rows.labels = t.labels
		return rows, err
	}
	start, err := head(path, formatHead)
	if err != nil {
		return nil, err
	}
	if isImage(start) {
		return p.row(ctx, path, r.shape)
	}
	t, _, err := readTable(ctx, path, r)
	if err != nil {
		return nil, err
	}
	images, err := r.layout.plain(t.values, r.shape)
	if err != nil {
		return nil, err
	}
	classes, err := t.resolve(names, !known)
	if err != nil {
		return nil, err
	}
	images.labels = t.labels
	if images, err = images.WithColumns(t.further...); err != nil {
		return nil, err
	}
	return &Rows{Images: images, Names: t.names, Classes: classes, Notes: t.otherColumns(path, r.order)}, err
}

// classNames returns the class names of the training if the labels are one of the columns to read. Otherwise known is false,
// and the classes are those of the file.
func (r reading) classNames() (names []string, known bool) {
	i := slices.IndexFunc(r.known, func(c Column) bool { return c.Name == LabelsColumn })
	if i < 0 {
		return nil, false
	}
	return r.known[i].Names, true
}

// lacks returns an error for a column to read that the rows do not have.
func (r *Rows) lacks(keys reading) error {
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

// plain returns the samples of an array according to the keys. If shape is the shape of codes, the values are not interpreted
// as images.
func (l *Layout) plain(a array, shape []int) (*Images, error) {
	if len(shape) < 2 {
		return l.images(a)
	}
	images, _, err := l.read(a)
	return images, err
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
//	any other name without an    a new folder 00000.png, 00001.png, ..., as bytes
//	extension
//
// Of about, only names, labels, classes, columns and Wide are used. Vectors are written as .npy, .npz or .csv. Files are written
// atomically. An existing file is replaced; a folder that is not empty is an error.
func WriteRows(path, name string, shape []int, values []float32, about Rows) error {
	size, err := product(shape)
	if err != nil {
		return err
	}
	if size == 0 || len(values)%size != 0 {
		return fmt.Errorf("%d values are not a whole number of images of shape %v", len(values), shape)
	}
	kind, err := FormatOf(path)
	if err != nil {
		return err
	}
	n := len(values) / size
	if about.Names != nil && len(about.Names) != n || about.Images != nil && about.Len() != n {
		return errors.New("names or labels are of another number of rows")
	}
	if about.Columns != nil && len(about.Columns) != size {
		return fmt.Errorf("got %d names of values, want %d", len(about.Columns), size)
	}
	if about.Wide != nil && len(about.Wide) != len(values) {
		return fmt.Errorf("got %d values in float64, want %d", len(about.Wide), len(values))
	}
	out := written{path: path, name: name, dims: append([]int{n}, shape...), values: values, rows: about}
	f := formatNamed(path)
	switch {
	case len(shape) < 2 && (f == nil || f.bytes):
		return fmt.Errorf("%s: vectors of %d values are not images: write them to a name that ends in .npy, .npz or .csv", path, size)
	case f != nil:
		return f.to(out)
	}
	return writePictures(path, kind, out.dims, values)
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
		return badFile("", path, err)
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

// writePictures writes images as bytes.
func writePictures(path, format string, dims []int, values []float32) error {
	n, shape := dims[0], dims[1:]
	switch {
	case len(shape) == 3 && shape[2] != 1 && shape[2] != 3:
		return fmt.Errorf("%s: a PNG file has 1 or 3 channels, not %d: write to a name that ends in .npy", path, shape[2])
	case format == "png" && n != 1:
		return fmt.Errorf("%s: %d images do not fit into one PNG file: give the name of a folder", path, n)
	case format == "png":
		return atomicfile.Write(path, func(w io.Writer) error { return encodePNG(w, shape, toBytes(values)) })
	}
	return writePNGs(path, shape, toBytes(values))
}

// toBytes returns value*255, rounded and clipped to [0,255]; NaN gives 0.
func toBytes(values []float32) []byte {
	b := make([]byte, len(values))
	for i, v := range values {
		if v > 0 {
			b[i] = byte(math.Round(255 * float64(min(v, 1))))
		}
	}
	return b
}

// by formats a shape as 28x28.
func by(shape []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
}
