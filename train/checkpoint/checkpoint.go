// Package checkpoint keeps tensors in safetensors files that say whether they are whole.
//
// The format is Hugging Face's safetensors: eight bytes with the little-endian length of a header, the header in JSON
// (for each tensor its dtype, its shape and where its data lie; under "__metadata__" texts by key), then the data,
// row-major and little-endian, without holes. Any safetensors reader opens these files. Beyond the format every file
// holds, under the metadata key "sha256", the SHA-256 of the whole file with that checksum's 64 digits taken as zeros,
// so that one changed bit anywhere is found; and equal contents give equal bytes.
package checkpoint

import "fmt"

// Tensor is one named tensor of float32 values.
type Tensor struct {
	Name  string
	Shape []int     // empty for a scalar
	Data  []float32 // row-major
}

// File is the contents of one checkpoint.
type File struct {
	Metadata map[string]string // texts by key; the key "sha256" is taken by the checksum
	Tensors  []Tensor          // in the order of their data
}

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	for _, t := range f.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}

// Error says that a checkpoint is damaged or does not match what it should continue: which file, and what is wrong.
type Error struct {
	Path     string
	Problem  string
	Mismatch bool // the file is whole, but not of this model or these images
}

// Error implements error: `PATH: PROBLEM`.
func (e *Error) Error() string { return e.Path + ": " + e.Problem }

// Errorf returns an *Error about the file of that path.
func Errorf(path, format string, args ...any) error {
	return &Error{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// Mismatchf is [Errorf] about a file that is whole.
func Mismatchf(path, format string, args ...any) error {
	return &Error{Path: path, Problem: fmt.Sprintf(format, args...), Mismatch: true}
}

// mostValues is more than a file could hold of one tensor.
const mostValues = 1 << 40
