package data

import (
	"archive/zip"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
)

// zipMagic is the beginning of an NPZ file of NumPy: a zip archive of NPY files, stored or deflated. The name of an array is
// the name of its file without .npy.
const zipMagic = "PK\x03\x04"

func init() {
	RegisterFormat(Format{Dataset: "npz", About: "your own vectors or images in NumPy's .npz files, arrays by name", Sort: ArrayFiles,
		Suffixes: []string{".npz"}, Is: begins(zipMagic), Open: openNPZ, write: written.npz, fill: fillNPZ})
}

func openNPZ(_ context.Context, path string, _ *Files) (o Opened, err error) {
	if o.contents, err = openContents(path); err != nil {
		return o, err
	}
	archive, err := zip.NewReader(o.contents, o.contents.info.Size())
	if err != nil {
		return o, fmt.Errorf("begins as an .npz file, but its table of contents, at its end, is missing or damaged (it has %d bytes): it was cut short or changed; copy it or save it again", o.contents.info.Size())
	}
	for _, entry := range archive.File {
		name, ok := strings.CutSuffix(entry.Name, ".npy")
		if !ok {
			continue
		}
		p, err := npzPart(name, entry)
		if err != nil {
			return o, fmt.Errorf("array %.60q: %w", name, err)
		}
		o.parts = append(o.parts, p)
	}
	if len(o.parts) == 0 {
		return o, fmt.Errorf("is a zip file without arrays: save them with numpy.savez")
	}
	return o, nil
}

// npzPart reads the header of one array. An array of an unsupported type has no kind and fails when it is read.
func npzPart(name string, entry *zip.File) (tablePart, error) {
	p := tablePart{name: name}
	content, err := entry.Open()
	if err != nil {
		return p, err
	}
	defer content.Close()
	start, err := io.ReadAll(io.LimitReader(content, npyHeaderMost))
	if err != nil {
		return p, err
	}
	h, err := parseNPYHeader(start)
	p.read = func(exact bool) (array, error) {
		h.exact = exact
		a, err := readNPZ(entry, h, err)
		if err != nil {
			err = fmt.Errorf("array %.60q: %w", name, err)
		}
		return a, err
	}
	p.dims, p.kind = h.dims, h.kind
	return p, nil
}

// readNPZ reads one array, whose header is h. It allocates no more memory than the archive can contain.
func readNPZ(entry *zip.File, h arrayHeader, err error) (array, error) {
	if err != nil {
		return array{}, err
	}
	_, want, err := h.size()
	if err != nil {
		return array{}, err
	}
	want += int64(h.length)
	if uint64(want)/bestRatio > entry.CompressedSize64 {
		return array{}, fmt.Errorf("the header says %d bytes, more than %d bytes of the archive can hold", want, entry.CompressedSize64)
	}
	content, err := entry.Open()
	if err != nil {
		return array{}, err
	}
	defer content.Close()
	if _, err := io.CopyN(io.Discard, content, int64(h.length)); err != nil {
		return array{}, err
	}
	a, err := h.read(content, false)
	if err != nil {
		return a, err
	}
	var next [1]byte
	if more, err := io.ReadFull(content, next[:]); more > 0 || err != io.EOF { // the end compares the checksum
		return a, cmp.Or(err, errSize(want-int64(h.length), want-int64(h.length)+1))
	}
	return a, nil
}

func (out written) npz(w io.Writer) error {
	arrays := []namedArray{{out.name, out.npy}}
	if out.rows.Names != nil {
		arrays = append(arrays, namedArray{"names", func(w io.Writer) error { return writeNPYTexts(w, out.rows.Names) }})
	}
	if out.rows.Images != nil && out.rows.labels != nil {
		arrays = append(arrays, namedArray{"labels", func(w io.Writer) error { return writeNPYInts(w, out.rows.Labels()) }})
	}
	if out.rows.Classes != nil {
		arrays = append(arrays, namedArray{"classes", func(w io.Writer) error { return writeNPYTexts(w, out.rows.Classes) }})
	}
	return writeNPZ(w, arrays)
}

// writeNPZ writes named arrays, uncompressed. Equal arrays give equal bytes.
func writeNPZ(w io.Writer, arrays []namedArray) error {
	z := zip.NewWriter(w)
	for _, a := range arrays {
		entry, err := z.CreateHeader(&zip.FileHeader{Name: a.name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := a.write(entry); err != nil {
			return err
		}
	}
	return z.Close()
}

type namedArray struct {
	name  string
	write func(io.Writer) error
}
