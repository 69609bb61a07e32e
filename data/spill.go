package data

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"tessera/internal/numeral"
)

// spill takes the rows of a table whose values exceed a budget: they are written to a file without a name, which the system removes when the
// process ends, however it ends, and read from there as the rows of an array are. A table of cells cannot be read in parts itself, because its rows have no places.
type spill struct {
	r      reading
	file   *os.File // nil until the budget is exceeded
	to     *bufio.Writer
	header arrayHeader
}

const spillAt = 1 << 20 // bytes of values that are collected before they are written

// take moves the values of rows from t to the file if they exceed the budget, or if earlier ones did.
func (s *spill) take(t *table, last bool) error {
	size, budget := int64(4*len(t.values.floats)+8*len(t.values.wide)), s.r.budget()
	switch {
	case s.file == nil && (budget == 0 || size <= budget), s.file != nil && size < spillAt && !last:
		return nil
	case s.r.Missing != nil && s.r.loose:
		return nil
	case s.r.Missing != nil:
		return s.r.notInParts()
	}
	var err error
	if t.values.wide != nil {
		err = s.write("f8", t.values.wide)
	} else {
		err = s.write("f4", t.values.floats)
	}
	t.values.floats, t.values.wide = t.values.floats[:0], t.values.wide[:0]
	if err != nil || !last {
		return err
	}
	return s.wrong(s.to.Flush())
}

// write appends values of the same kind to the file, which it creates first. That they cannot be written is an error of Flush.
func (s *spill) write(kind string, values any) error {
	if s.file == nil {
		if err := s.create(); err != nil {
			return err
		}
		s.header = arrayHeader{kind: kind, order: binary.LittleEndian}
	}
	writeNumbers(s.to, values)
	return nil
}

// create creates the file beside the table, or else where the system keeps caches and temporary files.
func (s *spill) create() (err error) {
	places := []string{filepath.Dir(s.r.File), "", os.TempDir()}
	if places[1], err = os.UserCacheDir(); err != nil {
		places[1] = places[2]
	}
	for _, place := range places {
		if s.file, err = os.CreateTemp(place, ".tessera-rows-*"); err == nil {
			_ = os.Remove(s.file.Name()) // a system that refuses it keeps the file until it is deleted by hand
			s.to = bufio.NewWriterSize(s.file, 1<<18)
			return nil
		}
	}
	return s.wrong(err)
}

func (s *spill) wrong(err error) error {
	if err == nil {
		return nil
	}
	return &Error{Path: s.r.File, Problem: fmt.Sprintf("its values do not fit into %s, and cannot be written to a file", numeral.Bytes(s.r.budget())), Err: err,
		Hint: "give a larger budget with the key memory, or make room"}
}

// extent returns the place of the values in the file.
func (s *spill) extent(dims []int) extent {
	s.header.dims = dims
	return extent{path: s.r.File, last: true, file: s.file, arrayHeader: s.header}
}

// finish replaces the values of t by those in the file.
func (s *spill) finish(ctx context.Context, t *table) error {
	if s.file == nil {
		return nil
	}
	if err := s.take(t, true); err != nil {
		return err
	}
	one := tablePart{dims: t.values.dims, kind: s.header.kind, extents: []extent{s.extent(t.values.dims)}}
	width, err := s.header.valueSize()
	if err != nil {
		return err
	}
	_, length, err := arrayBytes(s.header.dims, width)
	if err != nil {
		return err
	}
	spans := t.values.spans
	_, err = t.fromDisk(ctx, &one, s.r)
	t.values.spans = spans
	t.kept = append(t.kept, fmt.Sprintf("%s of values in a temporary file, because they do not fit into memory = %q", numeral.Bytes(length), s.r.Memory))
	return err
}
