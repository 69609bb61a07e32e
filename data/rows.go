package data

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tessera/internal/atomicfile"
)

// Rows are the samples, or the codes, of a file with their names and labels.
type Rows struct {
	*Images
	Names   []string // one per row, such as the path of an image within its folder; nil for none
	Classes []string // the names of the labels, nil if they are not known
	Columns []string // the names of the values, which WriteRows writes to .csv files if ReadRows can read them back; nil numbers them
	Notes   []string // warnings, such as skipped files
}

// reader is implemented by sources whose keys also apply to other files of their kind.
type reader interface {
	// reading returns the keys for array files, pictures those for image files.
	reading() reading
	pictures() pictures
}

// InOrder returns a source like s for [ReadRows] that takes the columns of .csv files in the order of these names, where a file has
// exactly these columns of values, each of them once. Files with other columns are read in their own order. Names are those of
// [Namer]; without any it returns s.
func InOrder(s Source, columns []string) Source {
	if r, ok := s.(reader); ok && len(columns) > 0 {
		return ordered{s, r, columns}
	}
	return s
}

// ordered is a source whose columns have a known order.
type ordered struct {
	Source
	reader
	columns []string
}

// reading implements [reader].
func (o ordered) reading() reading {
	r := o.reader.reading()
	r.order = o.columns
	return r
}

// Reading returns a source like s for [ReadRows] that also reads these columns, where they are not images, in the same file: with the
// types and classes of the training.
func Reading(s Source, columns ...Column) Source {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c Column) bool { return c.Name == ImagesColumn })
	if r, ok := s.(reader); ok && len(columns) > 0 {
		return withColumns{s, r, columns}
	}
	return s
}

// withColumns is a source whose further columns are read.
type withColumns struct {
	Source
	reader
	columns []Column
}

// reading implements [reader].
func (w withColumns) reading() reading {
	r := w.reader.reading()
	r.known = w.columns
	for _, c := range w.columns {
		r.need = append(r.need, c.Name)
	}
	return r
}

// ReadRows reads the samples, or the codes, of a file that belongs to no data set: .npy, IDX, both gzipped or not, .npz,
// .safetensors, .csv (detected from the content, but for .csv), one image, or a folder of images. uint8 values become value/255,
// floats are taken as they are; arrays are (n, values), (n, height, width) or (n, height, width, channels).
//
// shape is the shape of one sample that the caller needs. Samples with as many values are reshaped to it, others are refused; a
// vector alone, (values), is one sample. Images are read in grey unless shape has three channels. With a nil shape, the file
// determines the shape. A file of the kind of like, nil for none, is read as its keys say: columns, names of arrays, axes, the size
// to which images are brought; see [InOrder] for the order of columns. All errors about the file are an *Error.
func ReadRows(ctx context.Context, path string, shape []int, like Source) (*Rows, error) {
	r, p := reading{}, pictures{}
	if l, ok := like.(reader); ok {
		r = l.reading()
		p = l.pictures()
	}
	r.shape = shape
	rows, err := readRows(ctx, path, r, p)
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

// ReadImages is [ReadRows] without names and without a data set.
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
	if info.IsDir() {
		return p.rows(ctx, path, r.shape)
	}
	start, err := head(path, 16)
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
	classes, err := t.resolve(nil, true)
	if err != nil {
		return nil, err
	}
	images.labels = t.labels
	if images, err = images.WithColumns(t.further...); err != nil {
		return nil, err
	}
	for _, name := range r.need {
		if _, ok := images.Column(name); !ok {
			return nil, fmt.Errorf("has no column %q: name it in the key columns of the data set, and give it in the same file", name)
		}
	}
	return &Rows{Images: images, Names: t.names, Classes: classes}, err
}

// plain returns the samples of an array as the keys understand it; codes are not images, whatever the keys say.
func (l *Layout) plain(a array, shape []int) (*Images, error) {
	if len(shape) < 2 {
		l.ofBytes(a)
		return a.images()
	}
	images, _, err := l.read(a)
	return images, err
}

// labelTexts are the labels of rows, one text each: the name of the class where it is known, empty where the class is not known.
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

// WriteRows writes samples or codes of that shape, row-major, in the format that the name of path asks for:
//
//	x.npy                        float32, (n, shape...), the values as they are
//	x.npz                        the same as an array of the given name, with the arrays names, labels and classes where they are known
//	x.csv                        columns name and label where they are known, then one per value, with its name or its number
//	x.idx, x-ubyte, either .gz   IDX bytes (value*255, rounded and clipped to [0,255])
//	x.png                        one image, as bytes
//	any other name without an    a new folder 00000.png, 00001.png, ..., as bytes
//	extension
//
// Of about, only names, labels, classes and columns are used. Vectors are written as .npy, .npz or .csv.
// Files appear complete or not at all; an existing file is replaced, a folder that is not empty is refused.
func WriteRows(path, name string, shape []int, values []float32, about Rows) error {
	size, err := product(shape)
	if err != nil {
		return err
	}
	if size == 0 || len(values)%size != 0 {
		return fmt.Errorf("%d values are not a whole number of images of shape %v", len(values), shape)
	}
	format, err := FormatOf(path)
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
	dims := append([]int{n}, shape...)
	switch {
	case format == "npy":
		return atomicfile.Write(path, func(w io.Writer) error { return writeNPY(w, dims, values) })
	case format == "npz":
		return atomicfile.Write(path, func(w io.Writer) error { return writeNPZ(w, about.arrays(name, dims, values)) })
	case format == "csv":
		return atomicfile.Write(path, func(w io.Writer) error { return writeCSV(w, size, values, about) })
	case len(shape) < 2:
		return fmt.Errorf("%s: vectors of %d values are not images: write them to a name that ends in .npy, .npz or .csv", path, size)
	}
	return writePictures(path, format, dims, values)
}

// arrays are those of an NPZ file.
func (r Rows) arrays(name string, dims []int, values []float32) []namedArray {
	arrays := []namedArray{{name, func(w io.Writer) error { return writeNPY(w, dims, values) }}}
	if r.Names != nil {
		arrays = append(arrays, namedArray{"names", func(w io.Writer) error { return writeNPYTexts(w, r.Names) }})
	}
	if r.Images != nil && r.Images.labels != nil {
		arrays = append(arrays, namedArray{"labels", func(w io.Writer) error { return writeNPYInts(w, r.Labels()) }})
	}
	if r.Classes != nil {
		arrays = append(arrays, namedArray{"classes", func(w io.Writer) error { return writeNPYTexts(w, r.Classes) }})
	}
	return arrays
}

// fits refuses the n images of a file if their shape got is not the shape want, nil for any.
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

// WriteImages is [WriteRows] of images, or codes, without names and labels.
func WriteImages(path string, shape []int, values []float32) error {
	return WriteRows(path, "images", shape, values, Rows{})
}

// writePictures writes images as bytes.
func writePictures(path, format string, dims []int, values []float32) error {
	n, shape := dims[0], dims[1:]
	switch {
	case format == "idx":
		return atomicfile.Write(path, func(w io.Writer) error { return writeIDXFile(w, path, dims, toBytes(values)) })
	case len(shape) == 3 && shape[2] != 1 && shape[2] != 3:
		return fmt.Errorf("%s: a PNG file has 1 or 3 channels, not %d: write to a name that ends in .npy", path, shape[2])
	case format == "png" && n != 1:
		return fmt.Errorf("%s: %d images do not fit into one PNG file: give the name of a folder", path, n)
	case format == "png":
		return atomicfile.Write(path, func(w io.Writer) error { return encodePNG(w, shape, toBytes(values)) })
	}
	return writePNGs(path, shape, toBytes(values))
}

// FormatOf returns the format in which [WriteRows] writes to a path of that name: "npy", "npz", "csv", "idx", "png" or "folder".
// It lets a command refuse a name before it computes anything.
func FormatOf(path string) (string, error) {
	name := strings.ToLower(filepath.Base(path))
	bare := strings.TrimSuffix(name, ".gz")
	switch {
	case strings.HasSuffix(bare, ".idx"), strings.HasSuffix(bare, "-ubyte"):
		return "idx", nil
	case strings.HasSuffix(name, ".npy"), strings.HasSuffix(name, ".npz"), strings.HasSuffix(name, ".csv"):
		return name[len(name)-3:], nil
	case strings.HasSuffix(name, ".png"):
		return "png", nil
	case filepath.Ext(name) == "", strings.HasSuffix(path, "/"):
		return "folder", nil
	}
	return "", fmt.Errorf("%s: the name must end in .npy, .npz, .csv, .idx, .idx.gz or .png, or have no extension, for a folder of PNG files", inLine(path))
}

// writeIDXFile writes an IDX file, gzipped where its name says so.
func writeIDXFile(w io.Writer, path string, dims []int, values []byte) error {
	if !strings.HasSuffix(strings.ToLower(path), ".gz") {
		return writeIDX(w, dims, values)
	}
	z := gzip.NewWriter(w)
	if err := writeIDX(z, dims, values); err != nil {
		return err
	}
	return z.Close()
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
