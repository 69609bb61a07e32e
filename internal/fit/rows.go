package fit

// Rows are the rows of a matrix. They are in memory, or read a few at a time, such as those of a sparse matrix.
type Rows struct {
	N, Width int

	values []float32 // nil if they are read
	read   func(dst []float32, from, to int)
}

// Dense returns rows that are in memory.
func Dense(values []float32, width int) Rows {
	return Rows{N: len(values) / width, Width: width, values: values}
}

// Read returns n rows that read writes; several goroutines may call it.
func Read(n, width int, read func(dst []float32, from, to int)) Rows {
	return Rows{N: n, Width: width, read: read}
}

// mostRead is the number of values that are read at a time.
const mostRead = 1 << 20

// Step returns the number of rows that should be asked for at a time.
func (r Rows) Step() int {
	if r.read == nil {
		return BlockSize
	}
	return max(1, min(BlockSize, mostRead/r.Width))
}

// Block returns rows [from, to), which are not to be changed. Rows that are read are written to dst, which grows if it is too short.
func (r Rows) Block(dst *[]float32, from, to int) []float32 {
	if r.read == nil {
		return r.values[from*r.Width : to*r.Width]
	}
	if size := (to - from) * r.Width; len(*dst) < size {
		*dst = make([]float32, size)
	}
	block := (*dst)[:(to-from)*r.Width]
	r.read(block, from, to)
	return block
}

// Row returns row i.
func (r Rows) Row(i int) []float32 {
	var row []float32
	return r.Block(&row, i, i+1)
}

// Each calls do for rows [from, to), in order. A row is not to be kept.
func (r Rows) Each(from, to int, do func(i int, row []float32)) {
	var space []float32
	for step := r.Step(); from < to; from += step {
		block := r.Block(&space, from, min(from+step, to))
		for k := range len(block) / r.Width {
			do(from+k, block[k*r.Width:(k+1)*r.Width])
		}
	}
}
