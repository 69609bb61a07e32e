package data

import (
	"archive/zip"
	"cmp"
	"context"
	"errors"
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
		p, err := openPieces(entry, h, err)
		var a array
		if err == nil {
			defer p.Close()
			if a, err = h.read(p, false); err == nil {
				err = p.end()
			}
		}
		if err != nil {
			err = fmt.Errorf("array %.60q: %w", name, err)
		}
		return a, err
	}
	p.open = func() (*pieces, error) { return openPieces(entry, h, err) }
	p.dims, p.kind = h.dims, h.kind
	return p, nil
}

// pieces are the values of an array that are read one after the other.
type pieces struct {
	io.ReadCloser
	arrayHeader
	size, read int64 // bytes of all values, and of those that were read
	left       int   // number of values that were not read
}

// openPieces opens one array, whose header is h, at its first value. An array that is larger than the archive can contain is an error.
func openPieces(entry *zip.File, h arrayHeader, err error) (*pieces, error) {
	if err != nil {
		return nil, err
	}
	n, size, err := h.size()
	if err != nil {
		return nil, err
	}
	if want := size + int64(h.length); uint64(want)/bestRatio > entry.CompressedSize64 {
		return nil, fmt.Errorf("the header says %d bytes, more than %d bytes of the archive can hold", want, entry.CompressedSize64)
	}
	content, err := entry.Open()
	if err != nil {
		return nil, err
	}
	if _, err = io.CopyN(io.Discard, content, int64(h.length)); err != nil {
		return nil, errors.Join(err, content.Close())
	}
	return &pieces{ReadCloser: content, arrayHeader: h, size: size, left: n}, nil
}

// next returns the next values of an array along one axis.
func (p *pieces) next() (array, error) {
	const most = 1 << 13
	h := p.arrayHeader
	h.dims = []int{min(most, p.left)}
	_, size, err := h.size()
	if err != nil {
		return array{}, err
	}
	b := make([]byte, size)
	n, err := io.ReadFull(p, b)
	if p.read += int64(n); err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errSize(p.size, p.read)
	}
	if err != nil {
		return array{}, err
	}
	if p.left -= h.dims[0]; p.left == 0 {
		if err := p.end(); err != nil {
			return array{}, err
		}
	}
	return h.values(b)
}

// end returns an error unless all has been read, and compares the checksum.
func (p *pieces) end() error {
	var next [1]byte
	if more, err := io.ReadFull(p, next[:]); more > 0 || err != io.EOF {
		return cmp.Or(err, errSize(p.size, p.size+1))
	}
	return nil
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
