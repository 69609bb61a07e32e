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
)

// Format reads the files of one format. A format is one file, format_NAME.go, that registers it. For image files see [imageFormat].
type Format struct {
	Dataset  string                  // name of the data set that reads such files; several formats may have one
	About    string                  // of the data set, in a line; "" for a further format of a data set
	Sort     string                  // sort of files, which determines the keys of the data set
	Suffixes []string                // suffixes of the names of such files
	Is       func(start []byte) bool // reports whether start is the beginning of such a file; nil if only the name identifies it
	Open     func(ctx context.Context, path string, keys *Files) (Opened, error)

	header func(start []byte) (arrayHeader, error)                       // parses the header of a single array
	write  func(written, io.Writer) error                                // writes a file; nil if the format cannot be written
	fill   func(context.Context, *holes, string, []byte) ([]byte, error) // fills missing entries; nil if the format does not support this
	bytes  bool                                                          // values are written as bytes: the format is only for images
}

// formats lists all formats. When a file is read, its content determines the format, if possible; when a file is written, its
// name determines the format.
var formats []*Format

// RegisterFormat adds a format and, with About, its data set. It is called by init functions.
func RegisterFormat(f Format) {
	formats = append(formats, &f)
	if f.About != "" {
		Registry.Register(f.Dataset, f.About, func() Source {
			return &Files{Kind: f.Dataset, Resize: resizes[0], Empty: refuseEmpty, Absent: absentMissing}
		})
	}
}

type written struct {
	path   string
	name   string // name of the array
	dims   []int
	pieces func(do func(values []float32) error) error // passes the values to do, some rows at a time
	rows   Rows                                        // names, labels, classes and columns
}

// to writes the data atomically to a file, gzipped if its name ends in .gz.
func (f *Format) to(out written) error {
	return atomicfile.Write(out.path, func(w io.Writer) error {
		if !strings.HasSuffix(strings.ToLower(out.path), ".gz") {
			return f.write(out, w)
		}
		z := gzip.NewWriter(w)
		return cmp.Or(f.write(out, z), z.Close())
	})
}

// detected returns the format of a file that begins with start, nil if none matches. Of a file of entries only the formats of entries
// are asked; of others all, and those of entries last.
func detected(start []byte, path string, entries bool) *Format {
	fits := func(f *Format) bool { return (f.Sort == EntryFiles) == entries || !entries && f.Suffixes != nil }
	if f := find(func(f *Format) bool { return fits(f) && f.Is != nil && f.Is(start) }); f != nil {
		return f
	}
	if f := find(func(f *Format) bool { return fits(f) && f.Is == nil && f.named(path) }); f != nil || !entries && !isText(start) {
		return f
	}
	return find(func(f *Format) bool { return fits(f) && f.Is == nil && f.Open != nil })
}

// formatHead is the number of bytes at the beginning of a file that determine its format.
const formatHead = 4096

// isText reports whether start is the beginning of a table as text: lines of printable characters, the first with separated cells.
func isText(start []byte) bool {
	first, _, more := bytes.Cut(start, []byte("\n"))
	return more && bytes.ContainsAny(first, ",;\t") && utf8.Valid(first) && !strings.ContainsRune("{[<%#", rune(first[0])) &&
		!bytes.ContainsFunc(start, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' && r != '\n' })
}

func formatNamed(path string) *Format {
	return find(func(f *Format) bool { return f.named(path) })
}

func find(want func(*Format) bool) *Format {
	if i := slices.IndexFunc(formats, want); i >= 0 {
		return formats[i]
	}
	return nil
}

func (f *Format) named(path string) bool {
	name := strings.ToLower(filepath.Base(path))
	return slices.ContainsFunc(f.Suffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// endings lists the suffixes of the selected formats, for a sentence.
func endings(of func(*Format) bool) (list []string) {
	for _, f := range formats {
		if of(f) {
			list = append(list, f.Suffixes...)
		}
	}
	return slices.DeleteFunc(list, func(suffix string) bool { return suffix[0] != '.' })
}

// ReaderOf returns the name of the data set that reads files with such a name, "" if there is none.
func ReaderOf(path string) string {
	if f := formatNamed(path); f != nil {
		return f.Dataset
	}
	if f := formatNamed(strings.TrimSuffix(path, ".gz")); f != nil && f.header != nil {
		return f.Dataset
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
	folder := strings.HasSuffix(path, "/") || err == nil && info.IsDir()
	for _, of := range kinds {
		if kind := of(path, err == nil, folder); kind != "" {
			return kind
		}
	}
	switch {
	case folder:
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
		return f.Dataset, nil
	case strings.HasSuffix(name, ".png"):
		return "png", nil
	case filepath.Ext(name) == "", strings.HasSuffix(path, "/"):
		return "folder", nil
	}
	return "", fmt.Errorf("%s: the name must end in %s or .png, or have no extension, for a folder of PNG files",
		inLine(path), strings.Join(endings(func(f *Format) bool { return f.write != nil }), ", "))
}
