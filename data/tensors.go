package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"

	"tessera/internal/safetensors"
	"tessera/internal/volume"
)

// Tensor is a tensor of float32 values, row-major.
type Tensor struct {
	Shape []int // empty for a scalar
	Data  []float32
}

// Tensors is the content of a safetensors file.
type Tensors struct {
	File     File
	ByName   map[string]Tensor
	Metadata map[string]string
}

// ReadTensors reads all tensors of a safetensors file, of any type of numbers. It returns an error for a value that float32 cannot represent as a
// finite number.
func ReadTensors(path string) (*Tensors, error) {
	refused := func(err error) (*Tensors, error) {
		return nil, &Error{Path: path, Problem: "is no safetensors file of numbers", Err: err}
	}
	f, size, err := openFile(path)
	if err != nil {
		return refused(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return refused(err)
	}
	header, err := safetensors.Read(bytes.NewReader(b), max(size, int64(len(b))))
	if err != nil {
		return refused(err)
	}
	sum := sha256.Sum256(b)
	all := &Tensors{File{Path: path, SHA256: hex.EncodeToString(sum[:])}, map[string]Tensor{}, header.Metadata}
	for _, t := range header.Tensors {
		h := arrayHeader{kind: safetensorsKinds[t.Dtype], order: binary.LittleEndian}
		if h.kind == "" {
			return refused(fmt.Errorf("tensor %.60q: values of type %.20q are not read", t.Name, t.Dtype))
		}
		values := make([]float32, volume.Of(t.Shape))
		decode(values, b[header.Length:][t.Offsets[0]:t.Offsets[1]], h)
		if i := slices.IndexFunc(values, func(v float32) bool { return math.IsNaN(float64(v - v)) }); i >= 0 {
			return refused(fmt.Errorf("tensor %.60q: value %d: got %v, want a finite number", t.Name, i, values[i]))
		}
		all.ByName[t.Name] = Tensor{t.Shape, values}
	}
	return all, nil
}
