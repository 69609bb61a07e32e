package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"tessera/internal/safetensors"
)

// safetensorsKinds maps the supported types to NPY's notation; b2 is bfloat16.
var safetensorsKinds = map[string]string{"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "b2", "U8": "u1", "U16": "u2", "U32": "u4",
	"U64": "u8", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8"}

// openSafetensors lists the tensors of a file by name.
func openSafetensors(ctx context.Context, path string) (opened, File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return opened{}, File{}, err
	}
	b, file, err := readFile(ctx, path, info.Size())
	if err != nil {
		return opened{}, file, err
	}
	header, err := safetensors.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return opened{}, file, fmt.Errorf("safetensors: %w", err)
	}
	var parts []tablePart
	for _, t := range header.Tensors {
		p := tablePart{name: t.Name, dims: t.Shape, kind: safetensorsKinds[t.Dtype]}
		p.read = func() (array, error) {
			a, err := tensorOf(p, t.Dtype, b[header.Length:][t.Offsets[0]:t.Offsets[1]])
			if err != nil {
				err = fmt.Errorf("tensor %.60q: %w", t.Name, err)
			}
			return a, err
		}
		parts = append(parts, p)
	}
	if len(parts) == 0 {
		return opened{}, file, errors.New("has no tensors")
	}
	slices.SortFunc(parts, func(a, b tablePart) int { return strings.Compare(a.name, b.name) })
	return opened{parts: parts}, file, nil
}

// tensorOf returns the values of a tensor.
func tensorOf(p tablePart, dtype string, b []byte) (array, error) {
	if p.kind == "" {
		return array{}, fmt.Errorf("values of type %.20q are not read: save samples as float32, float16 or bfloat16, labels as integers", dtype)
	}
	size := int(p.kind[1] - '0')
	n := len(b) / size
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
		a.floats = appendFloats(make([]float32, 0, n), b, size, binary.LittleEndian)
	default:
		a.ints = integers(b, size, binary.LittleEndian, n, p.kind[0] == 'i')
	}
	return a, nil
}
