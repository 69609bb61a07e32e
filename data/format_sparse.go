package data

import (
	"archive/zip"
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// sparseNPZ is a file written by scipy.sparse.save_npz, with the arrays format, shape and data with row and col (COO) or
// indices and indptr (CSR, CSC).
type sparseNPZ struct {
	file          *os.File
	entries       map[string]*zip.File
	format        string
	rows, columns int
	count         int   // number of entries
	starts        []int // values of indptr
}

func init() {
	RegisterFormat(Format{Dataset: "triples", Sort: EntryFiles, Is: begins(zipMagic), Open: openSparse})
}

// openSparse reads the headers of a file.
func openSparse(_ context.Context, path string, _ *Files) (Opened, error) {
	file, size, err := openFile(path)
	if err != nil {
		return Opened{}, err
	}
	f := &sparseNPZ{file: file, entries: map[string]*zip.File{}}
	m := &Matrix{Each: f.each, closes: func() { _ = file.Close() }}
	err = f.open(size)
	m.Rows, m.Columns, m.Count = f.rows, f.columns, f.count
	return Opened{Matrix: m}, err
}

func (f *sparseNPZ) open(size int64) error {
	archive, err := zip.NewReader(f.file, size)
	if err != nil {
		return fmt.Errorf("is not an .npz file: %w", err)
	}
	for _, entry := range archive.File {
		if name, ok := strings.CutSuffix(entry.Name, ".npy"); ok {
			f.entries[name] = entry
		}
	}
	for _, name := range []string{"format", "shape", "data"} {
		if f.entries[name] == nil {
			return fmt.Errorf("has no array %q: want a file of scipy.sparse.save_npz", name)
		}
	}
	format, err := f.small("format")
	if err != nil {
		return err
	}
	if len(format.texts) != 1 || format.texts[0] != "coo" && format.texts[0] != "csr" && format.texts[0] != "csc" {
		return fmt.Errorf("array \"format\": got %q, want coo, csr or csc: convert the matrix with tocsr()", format.texts)
	}
	f.format = format.texts[0]
	shape, err := f.small("shape")
	if err != nil {
		return err
	}
	if len(shape.ints) != 2 || shape.ints[0] < 1 || shape.ints[1] < 1 || max(shape.ints[0], shape.ints[1]) > mostRows {
		return fmt.Errorf("array \"shape\": got %v, want two numbers from 1 to %d", shape.ints, mostRows)
	}
	f.rows, f.columns = shape.ints[0], shape.ints[1]
	values, err := f.stream("data")
	if err != nil {
		return err
	}
	f.count = values.left
	if f.count == 0 {
		return errors.New("has no entries")
	}
	if err := sparseShape([3]int{f.rows, f.columns, f.count}, math.MaxInt64); err != nil {
		return err
	}
	return f.readStarts()
}

// readStarts reads where the rows of a CSR matrix, or the columns of a CSC matrix, begin.
func (f *sparseNPZ) readStarts() error {
	if f.format == "coo" {
		return nil
	}
	lines := f.rows
	if f.format == "csc" {
		lines = f.columns
	}
	s, err := f.stream("indptr")
	if err != nil {
		return err
	}
	if s.left != lines+1 {
		return fmt.Errorf("array \"indptr\": got %d numbers, want %d", s.left, lines+1)
	}
	f.starts = make([]int, lines+1)
	for i := range f.starts {
		if f.starts[i], err = s.whole(); err != nil {
			return err
		}
		if f.starts[i] < 0 || i == 0 && f.starts[0] != 0 || i > 0 && f.starts[i] < f.starts[i-1] {
			return fmt.Errorf("array \"indptr\", entry %d: got %d, want ascending numbers from 0", i, f.starts[i])
		}
	}
	if err := s.end(); err != nil {
		return err
	}
	if f.starts[lines] != f.count {
		return fmt.Errorf("array \"indptr\": ends with %d, want %d, the number of entries", f.starts[lines], f.count)
	}
	return nil
}

// small reads a short array.
func (f *sparseNPZ) small(name string) (array, error) {
	content, err := f.entries[name].Open()
	if err != nil {
		return array{}, fmt.Errorf("array %q: %w", name, err)
	}
	defer content.Close()
	b, err := io.ReadAll(io.LimitReader(content, npyHeaderMost))
	if err == nil {
		var a array
		if a, err = parseArray(b); err == nil {
			return a, nil
		}
	}
	return array{}, fmt.Errorf("array %q: %w", name, err)
}

// each calls do for every entry, in the order of the file; place is the index of the entry.
func (f *sparseNPZ) each(ctx context.Context, do func(place, row, column int, v float32) error) error {
	values, err := f.stream("data")
	if err != nil {
		return err
	}
	first, second := "row", "col"
	if f.format != "coo" {
		second = "indices"
	}
	var lines, others *arrayStream
	if f.format == "coo" {
		if lines, err = f.stream(first); err != nil {
			return err
		}
	}
	if others, err = f.stream(second); err != nil {
		return err
	}
	for _, s := range []*arrayStream{lines, others} {
		if s != nil && s.left != f.count {
			return fmt.Errorf("array %q: got %d numbers, want %d, as many as data", s.name, s.left, f.count)
		}
	}
	limits := [2]int{f.rows, f.columns}
	if f.format == "csc" {
		limits = [2]int{f.columns, f.rows}
	}
	line := 0
	for place := range f.count {
		if place%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if lines != nil {
			if line, err = lines.index(place, limits[0]); err != nil {
				return err
			}
		} else {
			for place >= f.starts[line+1] {
				line++
			}
		}
		other, err := others.index(place, limits[1])
		if err != nil {
			return err
		}
		v, err := values.float()
		if err != nil {
			return err
		}
		row, column := line, other
		if f.format == "csc" {
			row, column = other, line
		}
		if v-v != 0 {
			return fmt.Errorf("array \"data\", entry %d (row %d, column %d): got %v, want a finite number", place, row, column, v)
		}
		if err := do(place, row, column, v); err != nil {
			return err
		}
	}
	return cmp.Or(lines.end(), others.end(), values.end())
}

// arrayStream reads the numbers of an array one by one.
type arrayStream struct {
	name   string
	r      *bufio.Reader
	kind   byte
	width  int
	signed bool
	order  binary.ByteOrder
	left   int
	buffer [8]byte
}

// stream opens an array with one axis.
func (f *sparseNPZ) stream(name string) (*arrayStream, error) {
	entry := f.entries[name]
	if entry == nil {
		return nil, fmt.Errorf("has no array %q, which the layout %s has", name, f.format)
	}
	wrong := func(err error) (*arrayStream, error) { return nil, fmt.Errorf("array %q: %w", name, err) }
	content, err := entry.Open()
	if err != nil {
		return wrong(err)
	}
	r := bufio.NewReaderSize(content, 1<<18)
	start, err := r.Peek(npyHeaderMost)
	if err != nil && err != io.EOF {
		return wrong(err)
	}
	h, err := parseNPYHeader(start)
	if err != nil {
		return wrong(err)
	}
	n, want, err := h.size()
	if err != nil {
		return wrong(err)
	}
	width, _ := h.valueSize()
	kind := h.kind[0]
	if len(h.dims) != 1 || kind == 'U' || kind == 'S' || name != "data" && kind == 'f' {
		return wrong(fmt.Errorf("got %s of shape %v, want numbers along one axis", h.kind, h.dims))
	}
	if got := int64(entry.UncompressedSize64); got != want+int64(h.length) || entry.UncompressedSize64/bestRatio > entry.CompressedSize64 {
		return wrong(errSize(want, got-int64(h.length)))
	}
	_, err = r.Discard(h.length)
	return &arrayStream{name: name, r: r, kind: kind, width: width, signed: kind == 'i', order: h.order, left: n}, err
}

// next returns the bytes of the next number.
func (s *arrayStream) next() ([]byte, error) {
	b := s.buffer[:s.width]
	if _, err := io.ReadFull(s.r, b); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("array %q: %w", s.name, err)
	}
	return b, nil
}

// end checks that the array has ended. It thus also verifies the checksum of the archive.
func (s *arrayStream) end() error {
	if s == nil {
		return nil
	}
	_, err := s.r.ReadByte()
	if err == io.EOF {
		return nil
	}
	return fmt.Errorf("array %q: %w", s.name, cmp.Or(err, errors.New("is longer than its header says")))
}

// whole returns the next number, which must be a whole number.
func (s *arrayStream) whole() (int, error) {
	b, err := s.next()
	if err != nil {
		return 0, err
	}
	var v uint64
	switch s.width {
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(s.order.Uint16(b))
	case 4:
		v = uint64(s.order.Uint32(b))
	default:
		v = s.order.Uint64(b)
	}
	if s.signed {
		unused := 64 - 8*s.width
		return int(int64(v<<unused) >> unused), nil
	}
	return int(v), nil
}

// index returns the next number, which must be a valid index of a row or column below limit.
func (s *arrayStream) index(place, limit int) (int, error) {
	i, err := s.whole()
	if err == nil && (i < 0 || i >= limit) {
		err = fmt.Errorf("array %q, entry %d: got %d, want 0 to %d", s.name, place, i, limit-1)
	}
	return i, err
}

// float returns the next value.
func (s *arrayStream) float() (float32, error) {
	if s.kind != 'f' {
		i, err := s.whole()
		return float32(i), err
	}
	b, err := s.next()
	if err != nil {
		return 0, err
	}
	switch s.width {
	case 2:
		return fromHalf(s.order.Uint16(b)), nil
	case 4:
		return math.Float32frombits(s.order.Uint32(b)), nil
	}
	return float32(math.Float64frombits(s.order.Uint64(b))), nil
}
