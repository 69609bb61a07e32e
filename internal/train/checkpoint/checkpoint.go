// Package checkpoint reads and writes tensors in safetensors files with a checksum.
//
// The format is Hugging Face's safetensors: eight bytes with the little-endian length of a header, the header in JSON (for
// each tensor its dtype, shape and data offsets; under "__metadata__" strings by key), then the data, row-major and
// little-endian, without gaps. Any safetensors reader opens these files. In addition, the metadata key "sha256" contains the
// SHA-256 of the whole file, computed with the checksum's 64 digits set to zeros: any changed bit is detected. Equal contents
// give equal bytes.
package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"tessera/internal/regular"
	"tessera/internal/safetensors"
	"tessera/internal/volume"
)

// Tensor is one named tensor of float32 values.
type Tensor struct {
	Name  string
	Shape []int     // empty for a scalar
	Data  []float32 // row-major
}

// File contains the tensors and metadata of one checkpoint.
type File struct {
	Metadata map[string]string // strings by key; the key "sha256" is reserved for the checksum
	Tensors  []Tensor          // tensors, in the order of their data
}

// Tensor returns the tensor with that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	for _, t := range f.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}

// Error reports a checkpoint that is damaged or does not match its model or data.
type Error struct {
	Path     string
	Problem  string
	Mismatch bool // the file is intact, but belongs to another model or other images
}

func (e *Error) Error() string { return e.Path + ": " + e.Problem }

// Errorf returns an *Error for the file at path.
func Errorf(path, format string, args ...any) error {
	return &Error{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// Mismatchf is like [Errorf], for an intact file that does not match its model or data.
func Mismatchf(path, format string, args ...any) error {
	return &Error{Path: path, Problem: fmt.Sprintf(format, args...), Mismatch: true}
}

const checksumKey = "sha256"

// noChecksum replaces the digits of the checksum while the checksum is computed.
var noChecksum = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// Encode returns the bytes of a file, in buffer if it is large enough. Equal contents give equal bytes. It returns an error
// for contents that could not be read back: two tensors with the same name, data that do not match the shape, a reserved key.
func Encode(f *File, buffer []byte) ([]byte, error) {
	out, values, err := appendHeader(buffer[:0], f)
	if err != nil {
		return nil, err
	}
	at := checksumAt(out)
	out = slices.Grow(out, 4*values)
	for _, t := range f.Tensors {
		out = appendValues(out, t.Data)
	}
	sum := sha256.Sum256(out)
	hex.Encode(out[at:], sum[:])
	return out, nil
}

// appendHeader appends the header of a file, without its checksum, and returns the number of values in the file.
func appendHeader(b []byte, f *File) (header []byte, values int, err error) {
	if f == nil {
		return nil, 0, errors.New("checkpoint: the file is nil")
	}
	if _, taken := f.Metadata[checksumKey]; taken {
		return nil, 0, fmt.Errorf("checkpoint: the metadata key %q is reserved for the checksum", checksumKey)
	}
	metadata := map[string]string{checksumKey: noChecksum}
	maps.Copy(metadata, f.Metadata)
	tensors := make([]safetensors.Tensor, len(f.Tensors))
	for i, t := range f.Tensors {
		if volume.Of(t.Shape) != len(t.Data) {
			return nil, 0, fmt.Errorf("checkpoint: tensor %q: %d values for shape %v", t.Name, len(t.Data), t.Shape)
		}
		tensors[i] = safetensors.Tensor{Name: t.Name, Shape: t.Shape}
		values += len(t.Data)
	}
	if header, err = safetensors.AppendHeader(b, metadata, tensors); err != nil {
		return nil, 0, fmt.Errorf("checkpoint: %w", err)
	}
	return header, values, nil
}

// appendValues appends little-endian float32 numbers.
func appendValues(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// Stream writes the bytes of [Encode] piece by piece, without a copy of the complete file in memory.
type Stream struct {
	header  []byte
	tensors []Tensor
}

// NewStream returns the stream of a file. Its tensors must not change until they are written. The errors are those of [Encode].
func NewStream(f *File) (*Stream, error) {
	header, _, err := appendHeader(nil, f)
	if err != nil {
		return nil, err
	}
	s, sum := &Stream{header, f.Tensors}, sha256.New()
	_, _ = s.WriteTo(sum) // never fails
	hex.Encode(header[checksumAt(header):], sum.Sum(nil))
	return s, nil
}

func (s *Stream) WriteTo(w io.Writer) (written int64, err error) {
	write := func(b []byte) {
		if err == nil {
			var n int
			n, err = w.Write(b)
			written += int64(n)
		}
	}
	write(s.header)
	b := make([]byte, 0, 4*piece)
	for _, t := range s.tensors {
		for values := range slices.Chunk(t.Data, piece) {
			b = appendValues(b[:0], values)
			write(b)
		}
	}
	return written, err
}

// piece is the number of values that a stream encodes at a time.
const piece = 1 << 14

// checksumAt returns the index of the checksum's first digit in a file's header, -1 if there is no checksum. The search text
// contains quotes, which are escaped in all other strings of the header.
func checksumAt(header []byte) int {
	const before = `"` + checksumKey + `":"`
	at := bytes.Index(header, []byte(before))
	if at < 0 || at+len(before)+len(noChecksum) > len(header) {
		return -1
	}
	return at + len(before)
}

// Read returns the contents of a checkpoint that [Encode] wrote. For a damaged file it returns an *[Error] with its path;
// for a missing file the error satisfies errors.Is(err, fs.ErrNotExist).
func Read(path string) (*File, error) {
	b, err := regular.ReadUnlinked(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	f, err := Decode(b)
	if err != nil {
		return nil, Errorf(path, "%v", err)
	}
	return f, nil
}

// Decode returns the contents of a file's bytes, or an error that describes the damage.
func Decode(b []byte) (*File, error) {
	f, length, err := parse(b)
	if err == nil {
		err = verify(b, b[:length])
	}
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return f, nil
}

// parse returns the contents of a file and the length of its header. It checks everything except the checksum, which protects
// against accidents, not against malicious files.
func parse(b []byte) (*File, int, error) {
	header, err := safetensors.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, 0, err
	}
	f := &File{Metadata: header.Metadata}
	delete(f.Metadata, checksumKey)
	for _, t := range header.Tensors {
		if t.Dtype != "F32" {
			return nil, 0, fmt.Errorf("tensor %q: dtype is %q, want \"F32\"", t.Name, t.Dtype)
		}
		data := b[header.Length:][t.Offsets[0]:t.Offsets[1]]
		values := make([]float32, len(data)/4)
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		f.Tensors = append(f.Tensors, Tensor{Name: t.Name, Shape: t.Shape, Data: values})
	}
	return f, header.Length, nil
}

// verify compares the file with its checksum. It only reads b: several goroutines may decode the same bytes.
func verify(b, header []byte) error {
	at := checksumAt(header)
	if at < 0 {
		return errors.New("it contains no checksum")
	}
	from, to := at, at+len(noChecksum)
	sum := sha256.New()
	sum.Write(b[:from])
	sum.Write([]byte(noChecksum))
	sum.Write(b[to:])
	if hex.EncodeToString(sum.Sum(nil)) != string(b[from:to]) {
		return errors.New("its contents do not match its checksum")
	}
	return nil
}

// ReadMetadata returns the metadata of a checkpoint without reading its tensors. It detects a damaged header and a truncated
// file, but does not verify the checksum, unlike [Read]. The errors are those of Read.
func ReadMetadata(path string) (map[string]string, error) {
	f, err := regular.OpenUnlinked(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	header, err := safetensors.Read(f, info.Size())
	if err == nil && header.Metadata == nil {
		err = errors.New("header: it has no metadata")
	}
	if err != nil {
		return nil, Errorf(path, "damaged: %v", err)
	}
	return header.Metadata, nil
}
