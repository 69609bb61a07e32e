package data

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
)

// The layout of safetensors: the length of the header as a little-endian uint64, the header (JSON: name to dtype, shape and
// data_offsets), then the values, little-endian and row-major.
const (
	safetensorsHeader     = 8
	safetensorsHeaderMost = 100 << 20 // as the reference implementation has it
)

// safetensorsKinds are the types that are read, as NPY names them; b2 is bfloat16.
var safetensorsKinds = map[string]string{"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "b2", "U8": "u1", "U16": "u2", "U32": "u4",
	"U64": "u8", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8"}

// isSafetensors reports whether b starts like a safetensors file.
func isSafetensors(b []byte) bool {
	return len(b) > safetensorsHeader && b[safetensorsHeader] == '{' && binary.LittleEndian.Uint64(b) <= safetensorsHeaderMost
}

// openSafetensors lists the tensors of a file by name.
func openSafetensors(ctx context.Context, path string) ([]tablePart, File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, File{}, err
	}
	b, file, err := readFile(ctx, path, info.Size())
	if err != nil {
		return nil, file, err
	}
	length := binary.LittleEndian.Uint64(b)
	if length > uint64(len(b)-safetensorsHeader) {
		return nil, file, errors.New("the file ends within the safetensors header")
	}
	var header map[string]json.RawMessage
	if err := json.Unmarshal(b[safetensorsHeader:safetensorsHeader+int(length)], &header); err != nil {
		return nil, file, fmt.Errorf("the safetensors header: %w", err)
	}
	delete(header, "__metadata__")
	values := b[safetensorsHeader+int(length):]
	var parts []tablePart
	for _, name := range slices.Sorted(maps.Keys(header)) {
		p, err := safetensorsPart(name, header[name], values)
		if err != nil {
			return nil, file, fmt.Errorf("tensor %.60q: %w", name, err)
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return nil, file, errors.New("has no tensors")
	}
	return parts, file, nil
}

// safetensorsPart is one tensor, with the values of all of them.
func safetensorsPart(name string, text json.RawMessage, values []byte) (tablePart, error) {
	var header struct {
		Dtype   string
		Shape   []int
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(text, &header); err != nil {
		return tablePart{}, err
	}
	from, to := header.Offsets[0], header.Offsets[1]
	if from < 0 || to < from || to > int64(len(values)) {
		return tablePart{}, fmt.Errorf("the header places it at bytes %d to %d of %d", from, to, len(values))
	}
	p := tablePart{name: name, dims: header.Shape, kind: safetensorsKinds[header.Dtype]}
	p.read = func() (array, error) {
		a, err := tensorOf(p, header.Dtype, values[from:to])
		if err != nil {
			err = fmt.Errorf("tensor %.60q: %w", name, err)
		}
		return a, err
	}
	return p, nil
}

// tensorOf returns the values of a tensor.
func tensorOf(p tablePart, dtype string, b []byte) (array, error) {
	if p.kind == "" {
		return array{}, fmt.Errorf("values of type %.20q are not read: save samples as float32, float16 or bfloat16, labels as integers", dtype)
	}
	size := int(p.kind[1] - '0')
	n, want, err := arrayBytes(p.dims, size)
	if err != nil {
		return array{}, err
	}
	if want != int64(len(b)) {
		return array{}, fmt.Errorf("its shape needs %d bytes, the header places %d", want, len(b))
	}
	a := array{dims: p.dims}
	switch {
	case p.kind == "u1":
		a.bytes = b
	case p.kind == "b2":
		a.floats = make([]float32, n)
		for i := range a.floats {
			a.floats[i] = fromBrain(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case p.kind[0] == 'f':
		a.floats = npyFloats(b, size, binary.LittleEndian, n)
	default:
		a.ints = npyInts(b, size, binary.LittleEndian, n, p.kind[0] == 'i')
	}
	return a, nil
}
