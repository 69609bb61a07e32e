package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The IDX layout of LeCun's MNIST page: two zero bytes, one for the type, one for the number of axes, each axis as a
// big-endian uint32, then the values, big-endian, last axis fastest.
const (
	idxUint8   = 0x08
	idxInt8    = 0x09
	idxInt16   = 0x0b
	idxInt32   = 0x0c
	idxFloat32 = 0x0d
	idxFloat64 = 0x0e
)

var idxSize = map[byte]int{idxUint8: 1, idxInt8: 1, idxInt16: 2, idxInt32: 4, idxFloat32: 4, idxFloat64: 8}

// isIDX reports whether b starts like an IDX file.
func isIDX(b []byte) bool {
	return len(b) >= 4 && b[0] == 0 && b[1] == 0 && idxSize[b[2]] > 0
}

// idxHeader returns the type, the axes and the length of the header.
func idxHeader(b []byte) (kind byte, dims []int, length int, err error) {
	if !isIDX(b) {
		return 0, nil, 0, errors.New("is not an IDX file: it does not start with two zero bytes and a type")
	}
	axes := int(b[3])
	length = 4 + 4*axes
	if axes < 1 || axes > 4 {
		return 0, nil, 0, fmt.Errorf("the IDX header says %d axes, want 1 to 4", axes)
	}
	if len(b) < length {
		return 0, nil, 0, errors.New("the file ends within the IDX header")
	}
	for i := range axes {
		dims = append(dims, int(binary.BigEndian.Uint32(b[4+4*i:])))
	}
	return b[2], dims, length, nil
}

// parseIDX returns the values of an IDX file.
func parseIDX(b []byte) (array, error) {
	kind, dims, length, err := idxHeader(b)
	if err != nil {
		return array{}, err
	}
	size := idxSize[kind]
	n, want, err := arrayBytes(dims, size)
	if err != nil {
		return array{}, err
	}
	if got := int64(len(b) - length); want != got {
		return array{}, errSize(want, got)
	}
	b = b[length:]
	a := array{dims: dims}
	switch kind {
	case idxUint8:
		a.bytes = b
	case idxInt8, idxInt16, idxInt32:
		a.ints = make([]int, n)
		for i := range a.ints {
			a.ints[i] = bigEndianInt(b[i*size : (i+1)*size])
		}
	case idxFloat32:
		a.floats = make([]float32, n)
		for i := range a.floats {
			a.floats[i] = math.Float32frombits(binary.BigEndian.Uint32(b[4*i:]))
		}
	case idxFloat64:
		a.floats = make([]float32, n)
		for i := range a.floats {
			a.floats[i] = float32(math.Float64frombits(binary.BigEndian.Uint64(b[8*i:])))
		}
	}
	return a, nil
}

// bigEndianInt returns the signed number of 1, 2 or 4 bytes.
func bigEndianInt(b []byte) int {
	switch len(b) {
	case 1:
		return int(int8(b[0]))
	case 2:
		return int(int16(binary.BigEndian.Uint16(b)))
	}
	return int(int32(binary.BigEndian.Uint32(b)))
}

// writeIDX writes bytes in the IDX layout.
func writeIDX(w io.Writer, dims []int, values []byte) error {
	header := []byte{0, 0, idxUint8, byte(len(dims))}
	for _, d := range dims {
		if uint64(d) > math.MaxUint32 {
			return fmt.Errorf("an IDX file cannot hold %d rows", d)
		}
		header = binary.BigEndian.AppendUint32(header, uint32(d))
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	_, err := w.Write(values)
	return err
}
