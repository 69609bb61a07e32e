package data

import "io"

// WriteNPY writes float32 values, row-major, as an array of that shape in NumPy's format NPY, version 1.
func WriteNPY(w io.Writer, dims []int, values []float32) error { return writeNPY(w, dims, values) }
