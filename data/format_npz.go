package data

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// An NPZ file of NumPy is a zip archive of NPY files, stored or deflated; the name of an array is that of its file without .npy.
const zipMagic = "PK\x03\x04"

// openNPZ lists the arrays of an NPZ file.
func openNPZ(ctx context.Context, path string) ([]tablePart, File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, File{}, err
	}
	b, file, err := readFile(ctx, path, info.Size())
	if err != nil {
		return nil, file, err
	}
	archive, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, file, fmt.Errorf("is not an .npz file: %w", err)
	}
	var parts []tablePart
	for _, entry := range archive.File {
		name, ok := strings.CutSuffix(entry.Name, ".npy")
		if !ok {
			continue
		}
		p, err := npzPart(name, entry)
		if err != nil {
			return nil, file, fmt.Errorf("array %.60q: %w", name, err)
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return nil, file, fmt.Errorf("is a zip file without arrays: save them with numpy.savez")
	}
	return parts, file, nil
}

// npzPart reads the header of one array. An array of a type that is not read has no kind and fails when it is read.
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
	p.read = func() (array, error) {
		a, err := readNPZ(entry, h, err)
		if err != nil {
			err = fmt.Errorf("array %.60q: %w", name, err)
		}
		return a, err
	}
	p.dims, p.kind = h.dims, h.kind
	return p, nil
}

// readNPZ reads one array, whose header is h. No more memory is taken than the archive can hold.
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
	b, err := io.ReadAll(io.LimitReader(content, want+1))
	if err != nil {
		return array{}, err
	}
	return parseArray(b)
}

// writeNPZ writes named arrays, stored, with the same bytes for the same arrays.
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

// namedArray is one array that is written.
type namedArray struct {
	name  string
	write func(io.Writer) error
}
