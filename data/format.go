package data

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"tessera/internal/atomicfile"
	"tessera/internal/safetensors"
)

// format describes a format of sample files: arrays, or columns of text. For image files see [imageFormat].
//
// A new format is a file format_NAME.go with its functions, a line in formats and, for training on such files, a data set
// like those of tables.go.
type format struct {
	dataset  string                  // name of the data set that reads such files
	suffixes []string                // suffixes of the names of such files
	is       func(start []byte) bool // reports whether start is the beginning of such a file; nil if only the name identifies it

	open   func(context.Context, string) (opened, File, error)          // opens a file of several arrays, or of columns; nil for a single array
	header func(start []byte) (arrayHeader, error)                      // parses the header of a single array
	write  func(written, io.Writer) error                               // writes a file; nil if the format cannot be written
	fill   func(context.Context, holes, string, []byte) ([]byte, error) // fills missing entries; nil if the format does not support this
	bytes  bool                                                         // values are written as bytes: the format is only for images
}

// formats lists all formats. When a file is read, its content determines the format, if possible; when a file is written, its
// name determines the format.
var formats = []format{
	{dataset: "npy", suffixes: []string{".npy"}, is: begins(npyMagic), header: parseNPYHeader, write: written.npy, fill: fillNPY},
	{dataset: "npz", suffixes: []string{".npz"}, is: begins(zipMagic), open: openNPZ, write: written.npz, fill: fillNPZ},
	{dataset: "safetensors", suffixes: []string{".safetensors"}, is: safetensors.Is, open: openSafetensors, fill: fillSafetensors},
	{dataset: "csv", suffixes: []string{".csv", ".csv.gz"}, open: openColumns, write: written.csv, fill: fillCSV},
	{dataset: "idx", suffixes: []string{".idx", ".idx.gz", "-ubyte", "-ubyte.gz"}, is: isIDX, header: parseIDXHeader, write: written.idx, bytes: true},
	{dataset: "csv", suffixes: []string{".tsv", ".tsv.gz"}, open: openColumns, fill: fillCSV},
	{dataset: "csv", suffixes: []string{".parquet"}, is: begins("PAR1"), open: openParquet},
}

// written contains the data for writing a file.
type written struct {
	path   string
	name   string // name of the array
	dims   []int
	values []float32
	rows   Rows // names, labels, classes and columns
}

// to writes the data atomically to a file, gzipped if its name ends in .gz.
func (f *format) to(out written) error {
	return atomicfile.Write(out.path, func(w io.Writer) error {
		if !strings.HasSuffix(strings.ToLower(out.path), ".gz") {
			return f.write(out, w)
		}
		z := gzip.NewWriter(w)
		return cmp.Or(f.write(out, z), z.Close())
	})
}

// detected returns the format of a file that begins with start, nil if none matches.
func detected(start []byte, path string) *format {
	if f := find(func(f *format) bool { return f.is != nil && f.is(start) }); f != nil {
		return f
	}
	if f := find(func(f *format) bool { return f.is == nil && f.named(path) }); f != nil || !isText(start) {
		return f
	}
	return find(func(f *format) bool { return f.dataset == "csv" })
}

// formatHead is the number of bytes at the beginning of a file that determine its format.
const formatHead = 4096

// isText reports whether start is the beginning of a table as text: lines of printable characters, the first with separated cells.
func isText(start []byte) bool {
	first, _, more := bytes.Cut(start, []byte("\n"))
	return more && bytes.ContainsAny(first, ",;\t") && utf8.Valid(first) && !strings.ContainsRune("{[<%#", rune(first[0])) &&
		!bytes.ContainsFunc(start, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' })
}

// formatNamed returns the format for a file name, nil if there is none.
func formatNamed(path string) *format {
	return find(func(f *format) bool { return f.named(path) })
}

func find(want func(*format) bool) *format {
	for i := range formats {
		if want(&formats[i]) {
			return &formats[i]
		}
	}
	return nil
}

// named reports whether the name of a file has a suffix of the format.
func (f *format) named(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	return slices.ContainsFunc(f.suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// endings lists the suffixes of the selected formats, for a sentence.
func endings(of func(*format) bool) (list []string) {
	for i := range formats {
		if f := &formats[i]; of(f) {
			list = append(list, f.suffixes...)
		}
	}
	return slices.DeleteFunc(list, func(suffix string) bool { return suffix[0] != '.' })
}

// ReaderOf returns the name of the data set that reads files with such a name, "" if there is none.
func ReaderOf(path string) string {
	if f := formatNamed(path); f != nil {
		return f.dataset
	}
	if f := formatNamed(strings.TrimSuffix(path, ".gz")); f != nil && f.header != nil {
		return f.dataset
	}
	return ""
}

// KindOf returns the name of the data set that reads a file or folder, from its content if it exists and else from its name; "" if there
// is none, or if path does not look like a path: it has neither a point nor a slash.
func KindOf(path string) string {
	if !strings.ContainsAny(path, "./") {
		return ""
	}
	info, err := os.Stat(path)
	switch {
	case strings.HasSuffix(path, "/"), err == nil && info.IsDir():
		return "images"
	case err == nil:
		return cmp.Or(reads(path), ReaderOf(path)) // of a damaged or empty file only the name is known
	}
	return ReaderOf(path)
}

// FormatOf returns the format in which [WriteRows] would write to path: the name of the data set that reads it, such as
// "npy", or "png", or "folder" for a folder of PNG files. A command can thus reject a path before it computes anything.
func FormatOf(path string) (string, error) {
	f := formatNamed(path)
	switch name := strings.ToLower(filepath.Base(path)); {
	case f != nil && f.write != nil:
		return f.dataset, nil
	case strings.HasSuffix(name, ".png"):
		return "png", nil
	case filepath.Ext(name) == "", strings.HasSuffix(path, "/"):
		return "folder", nil
	}
	return "", fmt.Errorf("%s: the name must end in %s or .png, or have no extension, for a folder of PNG files",
		inLine(path), strings.Join(endings(func(f *format) bool { return f.write != nil }), ", "))
}
