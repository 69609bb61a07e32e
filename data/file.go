package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	declared "tessera/config/part/table"
	"tessera/internal/lists"
)

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
		err = errChanged
	}
	return err
}

var errChanged = errors.New("has changed while it was read")

// stream reads a file from its beginning, inflated if it is gzipped, and hashes what it has read. It ends with the error of the context.
type stream struct {
	*contents
	ctx    context.Context
	r      io.Reader
	sum    hash.Hash
	packed bool
}

// openStream opens a file, which the caller closes.
func openStream(ctx context.Context, path string) (*stream, error) {
	c, err := openContents(path)
	if err != nil {
		return nil, err
	}
	s, err := c.stream(ctx)
	if err != nil {
		c.Close()
	}
	return s, err
}

func (c *contents) stream(ctx context.Context) (*stream, error) {
	s := &stream{c, ctx, io.NewSectionReader(c, 0, c.info.Size()), sha256.New(), isGzip(c)}
	if s.packed {
		z, err := gzip.NewReader(bufio.NewReaderSize(s.r, 1<<18))
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		s.r = z
	}
	return s, nil
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	return n, err
}

// file reads what is left, and returns the file with its checksum.
func (s *stream) file() (File, error) {
	_, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{s}, make([]byte, 1<<18))
	return File{Path: s.path, SHA256: hex.EncodeToString(s.sum.Sum(nil))}, err
}

// readFile returns the uncompressed bytes of a file, one more than most if there are more, and their checksum.
func readFile(ctx context.Context, path string, most int64) (b []byte, file File, err error) {
	s, err := openStream(ctx, path)
	if err != nil {
		return nil, file, err
	}
	defer s.Close()
	if b, err = readAll(s, most+1, most); err == nil && int64(len(b)) <= most {
		file, err = s.file()
	}
	return b, file, err
}

// readAll returns at most most bytes. It begins with memory for a number of them.
func readAll(r io.Reader, most, room int64) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, room+bytes.MinRead))
	_, err := b.ReadFrom(io.LimitReader(r, most))
	return b.Bytes(), err
}

// Checksum returns a file with the checksum of its uncompressed bytes.
func Checksum(ctx context.Context, path string) (File, error) {
	s, err := openStream(ctx, path)
	if err != nil {
		return File{}, err
	}
	defer s.Close()
	return s.file()
}

func isGzip(f io.ReaderAt) bool {
	var magic [2]byte
	_, err := f.ReadAt(magic[:], 0)
	return err == nil && magic == [2]byte{0x1f, 0x8b}
}

// Limits for gzip files. A file whose header declares more than countFrom bytes, and more than countRatio times the size of the file,
// is inflated twice. The first pass only counts bytes, so that memory is allocated only for bytes that exist.
const (
	countFrom  = 32 << 20
	countRatio = 16
	bestRatio  = 1032 // maximum ratio of deflate
)

// counted returns an error unless a gzip file inflates to a number of bytes.
func (c *contents) counted(want int64) error {
	s, err := c.stream(context.Background())
	if err != nil {
		return err
	}
	got, err := io.Copy(io.Discard, io.LimitReader(s.r, want+1))
	if err == nil && got != want {
		err = fmt.Errorf("the header says %d bytes in all, the file has %s", want, map[bool]string{true: "more", false: fmt.Sprint(got)}[got > want])
	}
	return err
}

// head returns the first bytes, at most n, of a file, uncompressed.
func head(path string, n int) ([]byte, error) {
	s, err := openStream(context.Background(), path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	b := make([]byte, n)
	got, err := io.ReadFull(s.r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF { // a short file, or a cut one: what there is may do
		err = nil
	}
	return b[:got], err
}

// FileError wraps err, the error of a file of a data set ("" for none), in an *Error. nil and the error of a cancelled context
// are returned unchanged.
func FileError(dataset, path string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if known, ok := errors.AsType[*Error](err); ok {
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
	if p, ok := errors.AsType[*os.PathError](err); ok { // the path is said already
		err = p.Err
	}
	return &Error{Dataset: dataset, Path: path, Problem: unreadable, Err: err}
}

const unreadable = "cannot be read"

// NotFoundAt returns the error for a missing file, with the most similar name that exists: of the file, or of the first folder of the path that
// does not exist.
func NotFoundAt(dataset, path string) *Error {
	e := &Error{Dataset: dataset, Path: path, Problem: NotFound, Hint: "paths are relative to the folder in which the command is run"}
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		entries, err := os.ReadDir(filepath.Dir(at))
		if err != nil && filepath.Dir(at) != at {
			continue
		}
		names := lists.Map(entries, func(entry os.DirEntry) string { return entry.Name() })
		if near, ok := declared.Nearest(filepath.Base(at), names); ok && near != filepath.Base(at) {
			e.Hint = fmt.Sprintf("did you mean %q? %s", filepath.Join(filepath.Dir(at), near), e.Hint)
		}
		return e
	}
}

func errSize(want, got int64) error {
	return fmt.Errorf("the header says %d bytes follow it, the file has %d", want, got)
}
