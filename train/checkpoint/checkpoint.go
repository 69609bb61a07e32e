// Package checkpoint reads and writes tensors in safetensors files with a checksum.
//
// The format is Hugging Face's safetensors: eight bytes with the little-endian length of a header, the header in JSON (for
// each tensor its dtype, shape and data offsets; under "__metadata__" texts by key), then the data, row-major and
// little-endian, without gaps. Any safetensors reader opens these files. In addition, the metadata key "sha256" contains
// the SHA-256 of the whole file, computed with the checksum's 64 digits set to zeros: any changed bit is detected. Equal
// contents give equal bytes.
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
	Metadata map[string]string // texts by key; the key "sha256" is reserved for the checksum
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

// Error is the error of a checkpoint that is damaged or does not match its model or data: the file and the problem.
type Error struct {
	Path     string
	Problem  string
	Mismatch bool // the file is intact, but belongs to another model or other images
}

// Error implements error: `PATH: PROBLEM`.
func (e *Error) Error() string { return e.Path + ": " + e.Problem }

// Errorf returns an *Error about the file of that path.
func Errorf(path, format string, args ...any) error {
	return &Error{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// Mismatchf is [Errorf] for an intact file that does not match.
func Mismatchf(path, format string, args ...any) error {
	return &Error{Path: path, Problem: fmt.Sprintf(format, args...), Mismatch: true}
}

// mostValues is more than the number of values that one tensor of a file can have.
const mostValues = 1 << 40
