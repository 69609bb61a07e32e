package data

import (
	"archive/zip"
	"context"
	"fmt"
	"slices"
	"strings"
)

func init() {
	RegisterFormat(Format{Dataset: "triples", Sort: EntryFiles, Is: begins(zipMagic), Open: openSparse})
	RegisterKind(func(path string, exists, isDir bool) string {
		if exists && !isDir && strings.HasSuffix(strings.ToLower(path), ".npz") && isSparse(path) {
			return "triples"
		}
		return ""
	})
}

// isSparse reports whether an .npz file has the arrays of a sparse matrix.
func isSparse(path string) bool {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return false
	}
	defer archive.Close()
	return !slices.ContainsFunc([]string{"format.npy", "shape.npy", "data.npy"}, func(name string) bool {
		return !slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == name })
	})
}

// sparseNPZ is a file written by scipy.sparse.save_npz, with the arrays format, shape and data with row and col (COO) or
// indices and indptr (CSR, CSC).
type sparseNPZ struct {
	parts  []tablePart
	layout string
	*Matrix

	starts []int // first entry of each row, of CSC of each column; nil for COO
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

// number returns value i of an array of numbers.
func (a array) number(i int) float32 {
	if a.floats != nil {
		return a.floats[i]
	}
	return float32(a.whole(i))
}

// whole returns value i of an array of whole numbers.
func (a array) whole(i int) int {
	if a.ints != nil {
		return a.ints[i]
	}
	return int(a.bytes[i])
}

// each calls do for every entry, in the order of the file; place is the index of the entry. The arrays are never in memory together.
func (f *sparseNPZ) each(ctx context.Context, do eachEntry) (err error) {
	arrays, limits := []string{"data", "row", "col"}, []int{0, f.Rows, f.Columns}
	if f.layout != "coo" {
		arrays, limits = []string{"data", "indices"}, []int{0, f.Columns}
		lines := f.Rows
		if f.layout == "csc" {
			lines, limits[1] = f.Columns, f.Rows
		}
		if f.starts, err = f.whole("indptr", lines+1, f.Count+1); err != nil {
			return err
		}
		if !slices.IsSorted(f.starts) || f.starts[0] != 0 || f.starts[lines] != f.Count {
			return fmt.Errorf("array \"indptr\": want ascending numbers from 0 to %d, the number of entries", f.Count)
		}
	}
	open, now := make([]*pieces, len(arrays)), make([]array, len(arrays))
	for i, name := range arrays {
		p, err := f.find(name)
		if err == nil && p.dims[0] != f.Count {
			err = fmt.Errorf("array %q: got %d numbers, want %d", name, p.dims[0], f.Count)
		}
		if err == nil {
			open[i], err = p.open()
		}
		if err != nil {
			return err
		}
		defer open[i].Close()
	}
	at := make([]int, len(arrays)) // of an entry: the number in each array
	line := 0
	for from := 0; from < f.Count; from += now[0].dims[0] {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, p := range open {
			if now[i], err = p.next(); err != nil {
				return fmt.Errorf("array %q: %w", arrays[i], err)
			}
		}
		for i := range now[0].dims[0] {
			for a := 1; a < len(now); a++ {
				if at[a] = now[a].whole(i); at[a] < 0 || at[a] >= limits[a] {
					return fmt.Errorf("array %q, entry %d: got %d, want 0 to %d", arrays[a], from+i, at[a], limits[a]-1)
				}
			}
			row, column := at[1], at[len(at)-1]
			if f.starts != nil {
				for from+i >= f.starts[line+1] {
					line++
				}
				row = line
			}
			if f.layout == "csc" {
				row, column = column, row
			}
			v := now[0].number(i)
			if v-v != 0 {
				return fmt.Errorf("array \"data\", entry %d (row %d, column %d): got %v, want a finite number", from+i, row, column, v)
			}
			if err := do(from+i, row, column, v); err != nil {
				return err
			}
		}
	}
	return nil
}
