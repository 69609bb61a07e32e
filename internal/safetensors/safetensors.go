// Package safetensors reads and writes the header of Hugging Face's file format safetensors.
//
// A file consists of the length of the header (eight bytes, little-endian), the header in JSON, and the values of all
// tensors, little-endian and row-major, without gaps. The header maps the name of each tensor to its dtype, shape and
// data_offsets. The key "__metadata__" maps keys to texts.
//
// Source: https://github.com/huggingface/safetensors, "Format".
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tessera/internal/volume"
)

const (
	metadataKey = "__metadata__"
	prefix      = 8         // size of the length of the header in bytes
	alignment   = 8         // alignment of the values, by spaces after the header, because other readers map files into memory
	maxHeader   = 100 << 20 // limit of the reference implementation
	maxValues   = 1 << 40   // more values than any tensor in a file can have
)

// sizes contains the number of bytes per value for each dtype whose size is checked.
var sizes = map[string]int{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "U8": 1, "U16": 2, "U32": 4, "U64": 8, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "BOOL": 1}

// Header is the header of a file.
type Header struct {
	Metadata map[string]string // nil if there is none
	Tensors  []Tensor          // tensors in the order of their values
	Length   int               // number of bytes before the values
}

// Tensor describes the values of one tensor.
type Tensor struct {
	Name    string `json:"-"`
	Dtype   string `json:"dtype"` // "F32", "BF16", ...
	Shape   []int  `json:"shape"` // empty for a scalar
	Offsets [2]int `json:"data_offsets"`
}

// Is reports whether a file that starts with these bytes is likely to be a safetensors file.
func Is(start []byte) bool {
	return len(start) > prefix && start[prefix] == '{' && binary.LittleEndian.Uint64(start) <= maxHeader
}

// Read reads the header of a file of size bytes and checks it completely. The values of the tensors must cover the rest
// of the file without gaps or overlaps. The shape of each tensor with a known dtype must match the number of its
// values. Read never allocates more memory than the size of the file.
func Read(r io.Reader, size int64) (*Header, error) {
	var start [prefix]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return nil, fmt.Errorf("%d bytes are too few for a safetensors file", size)
	}
	length := binary.LittleEndian.Uint64(start[:])
	if length > uint64(size-prefix) || length > maxHeader {
		return nil, fmt.Errorf("the header should have %d bytes, the whole file has %d", length, size)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	h := &Header{Length: prefix + int(length)}
	if err := h.parse(text); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return h, h.check(size - int64(h.Length))
}

func (h *Header) parse(text []byte) error {
	var members map[string]json.RawMessage
	if err := decode(text, &members); err != nil {
		return err
	}
	for name, text := range members {
		if name == metadataKey {
			if err := decode(text, &h.Metadata); err != nil {
				return fmt.Errorf("%s: %w", metadataKey, err)
			}
			continue
		}
		t := Tensor{Name: name}
		if err := decode(text, &t); err != nil {
			return fmt.Errorf("tensor %.60q: %w", name, err)
		}
		h.Tensors = append(h.Tensors, t)
	}
	// An empty tensor has the same offset as the next tensor. Sorting by name keeps their order deterministic.
	slices.SortFunc(h.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Offsets[0], b.Offsets[0]), cmp.Compare(a.Offsets[1], b.Offsets[1]), strings.Compare(a.Name, b.Name))
	})
	return nil
}

// check compares the offsets of the tensors with size, the number of bytes after the header.
func (h *Header) check(size int64) error {
	end := 0
	for _, t := range h.Tensors {
		n, ok := volume.Within(t.Shape, maxValues)
		width, known := sizes[t.Dtype]
		switch {
		case !ok || t.Shape == nil:
			return fmt.Errorf("tensor %.60q: invalid shape %v", t.Name, t.Shape)
		case t.Offsets[0] != end || t.Offsets[1] < end:
			return fmt.Errorf("tensor %.60q: data_offsets are %v, want the first one to be %d and the second one not less", t.Name, t.Offsets, end)
		case known && t.Offsets[1]-end != width*n:
			return fmt.Errorf("tensor %.60q: data_offsets are %v, want [%d,%d] for %s of shape %v", t.Name, t.Offsets, end, end+width*n, t.Dtype, t.Shape)
		case int64(t.Offsets[1]) > size:
			return fmt.Errorf("tensor %.60q: its data end at byte %d of %d: the file is cut off", t.Name, t.Offsets[1], size)
		}
		end = t.Offsets[1]
	}
	if int64(end) != size {
		return fmt.Errorf("%d bytes follow the last tensor", size-int64(end))
	}
	return nil
}

// decode reads one JSON object. Unknown fields are errors, and so is anything after the object except spaces.
func decode(text []byte, into any) error {
	if len(text) == 0 || text[0] != '{' {
		return errors.New("is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if rest := bytes.TrimLeft(text[d.InputOffset():], " "); len(rest) > 0 {
		return errors.New("data follow the JSON object")
	}
	return nil
}

// AppendHeader appends the header of a file of float32 tensors with the given names and shapes. The values must follow
// in the same order. Equal arguments give equal bytes. It returns an error if two tensors have the same name or a shape
// is impossible. It ignores the Dtype and the offsets of the tensors.
func AppendHeader(b []byte, metadata map[string]string, tensors []Tensor) ([]byte, error) {
	start := len(b)
	b = append(b, make([]byte, prefix)...)
	b = append(b, '{')
	var err error
	if b, err = appendMember(b, metadataKey, metadata); err != nil { // encoding/json sorts the keys of metadata
		return nil, err
	}
	end := 0
	taken := map[string]bool{metadataKey: true}
	for _, t := range tensors {
		n, ok := volume.Within(t.Shape, maxValues)
		switch {
		case taken[t.Name]:
			return nil, fmt.Errorf("tensor %q: two tensors have this name", t.Name)
		case !ok:
			return nil, fmt.Errorf("tensor %q: invalid shape %v", t.Name, t.Shape)
		}
		taken[t.Name] = true
		t.Dtype, t.Shape, t.Offsets = "F32", append([]int{}, t.Shape...), [2]int{end, end + 4*n}
		if b, err = appendMember(append(b, ','), t.Name, t); err != nil {
			return nil, err
		}
		end += 4 * n
	}
	b = append(b, '}')
	for (len(b)-start)%alignment != 0 {
		b = append(b, ' ')
	}
	binary.LittleEndian.PutUint64(b[start:], uint64(len(b)-start-prefix))
	return b, nil
}

func appendMember(b []byte, key string, value any) ([]byte, error) {
	name, err := json.Marshal(key)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", key, err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", key, err)
	}
	return append(append(append(b, name...), ':'), text...), nil
}
