package data

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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

func openSafetensors(_ context.Context, path string, _ *Files) (o Opened, err error) {
	if o.contents, err = openContents(path); err != nil {
		return o, err
	}
	header, err := safetensors.Read(o.contents, o.contents.info.Size())
	if err != nil {
		return o, fmt.Errorf("safetensors: %w", err)
	}
	for _, t := range header.Tensors {
		h := arrayHeader{kind: safetensorsKinds[t.Dtype], order: binary.LittleEndian, dims: t.Shape}
		p := tablePart{name: t.Name, dims: t.Shape, kind: h.kind}
		at := int64(header.Length + t.Offsets[0])
		p.read = func(exact bool) (a array, err error) {
			if h.exact = exact; h.kind == "" {
				err = fmt.Errorf("values of type %.20q are not read: save samples as floats or integers, labels as integers", t.Dtype)
			} else {
				a, err = h.read(io.NewSectionReader(o.contents, at, int64(t.Offsets[1]-t.Offsets[0])), true)
			}
			if err != nil {
				err = fmt.Errorf("tensor %.60q: %w", t.Name, err)
			}
			return a, err
		}
		if h.kind != "" {
			p.extents = []extent{{path: path, at: at, arrayHeader: h}}
		}
		o.parts = append(o.parts, p)
	}
	if len(o.parts) == 0 {
		return o, errors.New("has no tensors")
	}
	slices.SortFunc(o.parts, func(a, b tablePart) int { return strings.Compare(a.name, b.name) })
	return o, nil
}
