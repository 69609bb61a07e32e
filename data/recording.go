package data

import (
	"context"
	"math"
	"slices"
	"sync"
)

// Recording collects rows of numbers that are made one after the other, such as the tokens of texts: in memory, or beyond a budget in a file, as the
// rows of a table are.
type Recording struct {
	spill spill
	all   []float32   // rows, after Finish, if they are in memory
	some  []float32   // rows that were added last
	full  [][]float32 // rows before them that are in memory
	width int
	n     int       // number of rows
	low   []float64 // smallest number at each place of a row
	high  []float64
	disk  *disk // after Finish; nil in memory
}

// NewRecording returns an empty recording of rows of width numbers. Its file lies beside the file at path. Rows are divided among two recordings of the
// budget if there are test samples.
func NewRecording(path string, budget Budget, tests bool, width int) *Recording {
	return &Recording{spill: spill{r: reading{Files: Files{File: path, Memory: budget}, recorded: true, halved: tests}}, width: width,
		low: slices.Repeat([]float64{math.Inf(1)}, width), high: slices.Repeat([]float64{math.Inf(-1)}, width)}
}

// Add appends a row, or several.
func (r *Recording) Add(values ...float32) error {
	r.some = append(r.some, values...)
	for i, v := range values {
		k := i % r.width
		r.low[k], r.high[k] = min(r.low[k], float64(v)), max(r.high[k], float64(v))
	}
	r.n += len(values) / r.width
	if len(r.some) < spillAt/4 {
		return nil
	}
	if r.exceeds() {
		return r.write()
	}
	r.full, r.some = append(r.full, r.some), make([]float32, 0, spillAt/4+r.width)
	return nil
}

// exceeds reports whether the rows, with the lists of samples that a training has in memory, take more than half of the budget: the other half is the garbage
// collector's.
func (r *Recording) exceeds() bool {
	budget := r.spill.r.budget()
	return r.spill.file != nil || budget > 0 && int64(r.n)*(int64(4*r.width)+listed) > budget/2
}

// write moves the rows to the file.
func (r *Recording) write() error {
	for _, rows := range append(r.full, r.some) {
		if err := r.spill.write("f4", rows); err != nil {
			return err
		}
	}
	r.full, r.some = nil, r.some[:0]
	return nil
}

// Len returns the number of rows.
func (r *Recording) Len() int { return r.n }

// Finish makes the rows readable.
func (r *Recording) Finish() (err error) {
	if !r.exceeds() {
		r.all = slices.Concat(append(r.full, r.some)...)
		r.full, r.some = nil, nil
		return nil
	}
	if err = r.write(); err == nil {
		err = r.spill.wrong(r.spill.to.Flush())
	}
	if r.some = nil; err == nil {
		r.disk, err = r.spill.r.newDisk([]extent{r.spill.extent([]int{r.Len(), r.width})}, r.spill.r.budget())
	}
	return err
}

// Read writes successive rows, the first of which is given, to dst. Rows on disk that cannot be read panic with an [*Error]: see [Unread].
func (r *Recording) Read(dst []float32, row int) {
	if r.disk == nil {
		copy(dst, r.all[row*r.width:])
		return
	}
	for len(dst) > 0 {
		held, b, of := r.disk.acquireRest(row)
		n := min(len(dst), len(b)/4)
		decode(dst[:n], b, of)
		r.disk.release(held)
		dst, row = dst[n:], row+n/r.width
	}
}

// Each calls do for all rows. The row is valid during the call.
func (r *Recording) Each(ctx context.Context, do func(row []float32) error) error {
	const most = 4096
	all := make([]float32, most*r.width)
	for first := 0; first < r.Len(); first += most {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows := all[:min(most, r.Len()-first)*r.width]
		for r.Read(rows, first); len(rows) > 0; rows = rows[r.width:] {
			if err := do(rows[:r.width]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Images returns samples with the first numbers of each row, which are whole, as values of this shape.
func (r *Recording) Images(shape []int, labels []int) (*Images, error) {
	pixels, err := product(shape)
	if err != nil {
		return nil, err
	}
	if r.disk == nil {
		values := r.all
		if pixels < r.width {
			values = make([]float32, 0, r.Len()*pixels)
			for row := range r.Len() {
				values = append(values, r.all[row*r.width:][:pixels]...)
			}
		}
		return NewFloats(shape, values, labels)
	}
	d := *r.disk
	d.pixels = pixels
	m, err := array{dims: []int{r.Len()}, disk: &d}.onDisk(shape)
	if err == nil {
		m.labels = labels
		d.low, d.high, d.whole = r.low[:pixels], r.high[:pixels], true
	}
	return m, err
}

// Column returns the numbers of each row that begin at a place as a column.
func (r *Recording) Column(c Column, at int) *Values {
	rows := sync.Pool{New: func() any { row := make([]float32, r.width); return &row }}
	return ReadColumn(c, r.Len(), func(dst []float32, row int) {
		whole := rows.Get().(*[]float32)
		r.Read(*whole, row)
		copy(dst, (*whole)[at:])
		rows.Put(whole)
	})
}
