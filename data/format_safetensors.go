package data

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tessera/internal/safetensors"
)

// safetensorsKinds maps the supported types to NPY's notation; b2 is bfloat16.
var safetensorsKinds = map[string]string{"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "b2", "U8": "u1", "U16": "u2", "U32": "u4",
	"U64": "u8", "BOOL": "b1", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8"}

func init() {
	RegisterFormat(Format{Dataset: "safetensors", About: "your own vectors or images in .safetensors files, tensors by name", Sort: ArrayFiles,
		Suffixes: []string{".safetensors"}, Is: safetensors.Is, Open: openSafetensors, fill: fillSafetensors})
}

// openSafetensors lists the tensors of a file by name.
func openSafetensors(_ context.Context, path string, _ *Files) (o Opened, err error) {
	if o.contents, err = openContents(path); err != nil {
		return o, err
	}
	header, err := safetensors.Read(o.contents, o.contents.info.Size())
	if err != nil {
		return o, fmt.Errorf("safetensors: %w", err)
	}
	for _, t := range header.Tensors {
		p := tablePart{name: t.Name, dims: t.Shape, kind: safetensorsKinds[t.Dtype]}
		p.read = func(exact bool) (array, error) {
			b := make([]byte, t.Offsets[1]-t.Offsets[0])
			_, err := o.contents.ReadAt(b, int64(header.Length+t.Offsets[0]))
			a, refused := tensorOf(p, t.Dtype, b, exact)
			if err = cmp.Or(err, refused); err != nil {
				err = fmt.Errorf("tensor %.60q: %w", t.Name, err)
			}
			return a, err
		}
		if p.kind != "" {
			h := arrayHeader{kind: p.kind, order: binary.LittleEndian, dims: p.dims}
			p.extents = []extent{{path: path, at: int64(header.Length + t.Offsets[0]), arrayHeader: h}}
		}
		o.parts = append(o.parts, p)
	}
	if len(o.parts) == 0 {
		return o, errors.New("has no tensors")
	}
	slices.SortFunc(o.parts, func(a, b tablePart) int { return strings.Compare(a.name, b.name) })
	return o, nil
}

// tensorOf returns the values of a tensor.
func tensorOf(p tablePart, dtype string, b []byte, exact bool) (array, error) {
	if p.kind == "" {
		return array{}, fmt.Errorf("values of type %.20q are not read: save samples as floats or integers, labels as integers", dtype)
	}
	if p.kind != "b2" {
		return arrayHeader{kind: p.kind, order: binary.LittleEndian, dims: p.dims, exact: exact}.values(b)
	}
	a := array{dims: p.dims, floats: make([]float32, len(b)/2)}
	for i := range a.floats {
		a.floats[i] = fromBrain(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return a, nil
}
