package data

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	declared "tessera/config/part/table"
)

// errTooLarge is the error for a file with more bytes than the reader allows.
var errTooLarge = errors.New("the file is too large")

// readFile returns the uncompressed bytes of a file, limited to most bytes, and their SHA-256.
func readFile(ctx context.Context, path string, most int64) (b []byte, file File, err error) {
	file, err = streamFile(ctx, path, most, func(piece []byte, size int64) {
		if b == nil {
			b = make([]byte, 0, size)
		}
		b = append(b, piece...)
	})
	return b, file, err
}

// streamFile passes the uncompressed bytes of a file, limited to most bytes, to do in pieces. A piece is valid only during the
// call. The first piece contains the header, if the file has one. size is the probable number of bytes. streamFile detects
// from the content whether the file is gzipped, and returns the SHA-256 of the bytes. It hashes a piece while it inflates the
// next one.
func streamFile(ctx context.Context, path string, most int64, do func(piece []byte, size int64)) (File, error) {
	f, size, err := openFile(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	r := io.Reader(f)
	if isGzip(f) {
		if r, err = gzip.NewReader(bufio.NewReaderSize(f, 1<<18)); err != nil {
			return File{}, fmt.Errorf("gzip: %w", err)
		}
		size = claimedSize(f, size)
	}
	const piece, pieces = 1 << 20, 3
	full, free, digest := make(chan []byte, pieces), make(chan []byte, pieces), make(chan string)
	for range pieces {
		free <- nil
	}
	go func() {
		h := sha256.New()
		for p := range full {
			h.Write(p)
			free <- p
		}
		digest <- hex.EncodeToString(h.Sum(nil))
	}()
	size = min(size, most)
	r = io.LimitReader(r, most+1)
	read := int64(0)
	for err = ctx.Err(); err == nil; err = cmp.Or(err, ctx.Err()) {
		p, n := slices.Grow((<-free)[:0], int(min(piece, max(size+1, 2*npyHeaderMost)))), 0
		for p = p[:cap(p)]; n < len(p) && err == nil; {
			var more int
			more, err = r.Read(p[n:])
			n += more
		}
		if read += int64(n); read > most {
			err = errTooLarge
			break
		}
		if n > 0 {
			do(p[:n], size)
		}
		full <- p[:n]
	}
	close(full)
	file := File{Path: path, SHA256: <-digest}
	if err == io.EOF {
		err = nil
	}
	return file, err
}

// openFile opens a regular file. Other files are an error, because reading a pipe could block forever.
func openFile(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if info.IsDir() {
		return nil, 0, &Error{Path: path, Problem: "is a folder", Hint: `a data set of name = "images" reads folders of images`}
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("is not a file")
	}
	f, err := os.Open(path)
	return f, info.Size(), err
}

// contents gives access to the parts of a file of several arrays, so that arrays that nobody reads are not in memory.
type contents struct {
	*os.File
	path string
	info os.FileInfo // at the time of opening
}

func openContents(path string) (*contents, error) {
	f, _, err := openFile(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &contents{f, path, info}, nil
}

// unchanged returns an error if the file at the path is not the one that was opened, or has changed since.
func (c *contents) unchanged() error {
	now, err := os.Stat(c.path)
	if err == nil && (!os.SameFile(c.info, now) || now.Size() != c.info.Size() || !now.ModTime().Equal(c.info.ModTime())) {
		err = errors.New("has changed while it was read")
	}
	return err
}

// isGzip reports whether f starts like a gzip file.
func isGzip(f io.ReaderAt) bool {
	var magic [2]byte
	_, err := f.ReadAt(magic[:], 0)
	return err == nil && magic == [2]byte{0x1f, 0x8b}
}

// isPacked reports whether a file is gzipped.
func isPacked(path string) bool {
	f, _, err := openFile(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return isGzip(f)
}

// Limits for gzip files. A file whose header declares more than countFrom bytes, and more than countRatio times the size of the file,
// is inflated twice. The first pass only counts bytes, so that memory is allocated only for bytes that exist.
const (
	countFrom  = 32 << 20
	countRatio = 16
	bestRatio  = 1032 // maximum ratio of deflate
)

// plausible returns an error for a file that is too small to contain the values after its header.
func plausible(path string, header, values int64) error {
	f, packed, err := openFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	size := header + values
	switch {
	case !isGzip(f) && size != packed:
		return errSize(values, packed-header)
	case !isGzip(f) || size <= countFrom || size/countRatio <= packed:
		return nil
	case size/bestRatio > packed:
		return fmt.Errorf("the header says %d bytes follow it, more than a gzip file of %d bytes can hold", values, packed)
	}
	z, err := gzip.NewReader(bufio.NewReaderSize(f, 1<<18))
	if err != nil {
		return fmt.Errorf("gzip: %w", err)
	}
	got, err := io.Copy(io.Discard, io.LimitReader(z, size+1))
	if err != nil {
		return err
	}
	if got != size {
		return fmt.Errorf("the header says %d bytes in all, the file has %s", size, map[bool]string{true: "more", false: fmt.Sprint(got)}[got > size])
	}
	return nil
}

// claimedSize returns the uncompressed size according to the last four bytes of a gzip file. It is only a hint, which is
// limited by the best compression ratio of deflate.
func claimedSize(f io.ReaderAt, packed int64) int64 {
	var claim [4]byte
	if _, err := f.ReadAt(claim[:], packed-4); err != nil {
		return 0
	}
	return min(int64(binary.LittleEndian.Uint32(claim[:])), bestRatio*packed)
}

// claimed returns the probable number of uncompressed bytes of a file.
func claimed(c *contents) int64 {
	if isGzip(c) {
		return min(claimedSize(c, c.info.Size()), textRatio*c.info.Size())
	}
	return c.info.Size()
}

// head returns the first bytes, at most n, of a file, uncompressed.
func head(path string, n int) ([]byte, error) {
	f, _, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := io.Reader(f)
	if isGzip(f) {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	b := make([]byte, n)
	got, err := io.ReadFull(r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // a short file, or a cut one: what there is may do
		err = nil
	}
	return b[:got], err
}

// badFile wraps err, the error of a file of a data set ("" for none), in an *Error. nil and the error of a cancelled context
// are returned unchanged.
func badFile(dataset, path string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var known *Error
	if errors.As(err, &known) {
		named := *known
		named.Dataset = dataset
		return &named
	}
	if errors.Is(err, os.ErrNotExist) {
		return NotFoundAt(dataset, path)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file is cut short")
	}
	var p *os.PathError
	if errors.As(err, &p) { // the path is said already
		err = p.Err
	}
	return &Error{Dataset: dataset, Path: path, Problem: "cannot be read", Err: err}
}

// NotFoundAt returns the error for a missing file, with the most similar name that exists: of the file, or of the first folder of the path that
// does not exist.
func NotFoundAt(dataset, path string) *Error {
	e := &Error{Dataset: dataset, Path: path, Problem: NotFound, Hint: "paths are relative to the folder in which the command is run"}
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		entries, err := os.ReadDir(filepath.Dir(at))
		if err != nil && filepath.Dir(at) != at {
			continue
		}
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		if near, ok := declared.Nearest(filepath.Base(at), names); ok && near != filepath.Base(at) {
			e.Hint = fmt.Sprintf("did you mean %q? %s", filepath.Join(filepath.Dir(at), near), e.Hint)
		}
		return e
	}
}

// errSize is the error for a file that is longer or shorter than its header declares.
func errSize(want, got int64) error {
	return fmt.Errorf("the header says %d bytes follow it, the file has %d", want, got)
}
