package data

import (
	"context"
	"fmt"
	"slices"
)

func init() {
	RegisterFormat(Format{Dataset: "triples", Sort: EntryFiles, Is: begins(zipMagic), Open: openSparse})
}

// sparseNPZ is a file written by scipy.sparse.save_npz, with the arrays format, shape and data with row and col (COO) or
// indices and indptr (CSR, CSC).
type sparseNPZ struct {
	parts  []tablePart
	layout string
	*Matrix

	starts, lines, others []int // first entry of each row, or row of each entry, and its column; of CSC column and row
	values                array
}

func openSparse(ctx context.Context, path string, keys *Files) (Opened, error) {
	o, err := openNPZ(ctx, path, keys)
	if err != nil {
		return o, err
	}
	f := &sparseNPZ{parts: o.parts, Matrix: &Matrix{}}
	f.Each = f.each
	o.Matrix = f.Matrix
	return o, f.open()
}

// find returns an array. An array other than format has whole numbers, or numbers if it is data, along one axis.
func (f *sparseNPZ) find(name string) (*tablePart, error) {
	p, err := namedPart(f.parts, name, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: want a file of scipy.sparse.save_npz", err)
	}
	of := []Type{Whole, Bytes}
	if name == "data" {
		of = append(of, Float32)
	}
	if name != "format" && (len(p.dims) != 1 || !slices.Contains(of, typeOf(p.kind))) {
		return nil, fmt.Errorf("array %q: got %s of shape %v, want numbers along one axis", name, p.kind, p.dims)
	}
	return p, nil
}

func (f *sparseNPZ) open() error {
	format, err := f.find("format")
	if err != nil {
		return err
	}
	text, err := format.read(false)
	if err != nil {
		return err
	}
	if len(text.texts) != 1 || !slices.Contains([]string{"coo", "csr", "csc"}, text.texts[0]) {
		return fmt.Errorf("array \"format\": got %q, want coo, csr or csc: convert the matrix with tocsr()", text.texts)
	}
	f.layout = text.texts[0]
	values, err := f.find("data")
	if err != nil {
		return err
	}
	shape, err := f.whole("shape", 2, mostRows+1)
	if err != nil {
		return fmt.Errorf("%w: want two numbers", err)
	}
	f.Rows, f.Columns, f.Count = shape[0], shape[1], values.dims[0]
	return sparseShape([3]int{f.Rows, f.Columns, f.Count}, int64(f.Count))
}

// whole reads n whole numbers from 0 to below limit.
func (f *sparseNPZ) whole(name string, n, limit int) ([]int, error) {
	p, err := f.find(name)
	if err != nil {
		return nil, err
	}
	if p.dims[0] != n {
		return nil, fmt.Errorf("array %q: got %d numbers, want %d", name, p.dims[0], n)
	}
	a, err := p.read(false)
	if err != nil {
		return nil, err
	}
	all, err := a.labels()
	for k, i := range all {
		if i < 0 || i >= limit {
			return nil, fmt.Errorf("array %q, entry %d: got %d, want 0 to %d", name, k, i, limit-1)
		}
	}
	return all, err
}

func (f *sparseNPZ) load() error {
	lines, others := f.Rows, f.Columns
	if f.layout == "csc" {
		lines, others = others, lines
	}
	values, err := f.find("data")
	if err != nil {
		return err
	}
	if f.values, err = values.read(false); err != nil {
		return err
	}
	f.values.numbers(false)
	if f.layout == "coo" {
		if f.lines, err = f.whole("row", f.Count, lines); err == nil {
			f.others, err = f.whole("col", f.Count, others)
		}
		return err
	}
	starts, err := f.whole("indptr", lines+1, f.Count+1)
	if err != nil {
		return err
	}
	if !slices.IsSorted(starts) || starts[0] != 0 || starts[lines] != f.Count {
		return fmt.Errorf("array \"indptr\": want ascending numbers from 0 to %d, the number of entries", f.Count)
	}
	f.starts = starts
	f.others, err = f.whole("indices", f.Count, others)
	return err
}

// each calls do for every entry, in the order of the file; place is the index of the entry.
func (f *sparseNPZ) each(ctx context.Context, do eachEntry) error {
	if f.others == nil {
		if err := f.load(); err != nil {
			return err
		}
	}
	line := 0
	for k := range f.Count {
		if k%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if f.lines != nil {
			line = f.lines[k]
		}
		for f.starts != nil && k >= f.starts[line+1] {
			line++
		}
		row, column := line, f.others[k]
		if f.layout == "csc" {
			row, column = column, row
		}
		var v float32
		if f.values.bytes != nil {
			v = float32(f.values.bytes[k])
		} else {
			v = f.values.floats[k]
		}
		if v-v != 0 {
			return fmt.Errorf("array \"data\", entry %d (row %d, column %d): got %v, want a finite number", k, row, column, v)
		}
		if err := do(k, row, column, v); err != nil {
			return err
		}
	}
	return nil
}
