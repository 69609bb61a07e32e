package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Type bytes of the IDX layout of LeCun's MNIST page: two zero bytes, one for the type, one for the number of axes, each axis
// as a big-endian uint32, then the values, big-endian, last axis fastest.
const (
	idxUint8   = 0x08
	idxInt8    = 0x09
	idxInt16   = 0x0b
	idxInt32   = 0x0c
	idxFloat32 = 0x0d
	idxFloat64 = 0x0e
)

var idxKinds = map[byte]string{idxUint8: "u1", idxInt8: "i1", idxInt16: "i2", idxInt32: "i4", idxFloat32: "f4", idxFloat64: "f8"}

func init() {
	RegisterFormat(Format{Dataset: "idx", About: "your own images in IDX files, the layout of MNIST: images, labels, test images, test labels", Sort: SingleFiles,
		Suffixes: []string{".idx", ".idx.gz", "-ubyte", "-ubyte.gz"}, Is: isIDX, Open: openArray, header: parseIDXHeader, write: written.idx, bytes: true})
}

func isIDX(b []byte) bool {
	return len(b) >= 4 && b[0] == 0 && b[1] == 0 && idxKinds[b[2]] != ""
}

func parseIDXHeader(b []byte) (h arrayHeader, err error) {
	axes := int(b[3])
	h = arrayHeader{kind: idxKinds[b[2]], order: binary.BigEndian, length: 4 + 4*axes}
	if axes < 1 || axes > 4 {
		return h, fmt.Errorf("the IDX header says %d axes, want 1 to 4", axes)
	}
	if len(b) < h.length {
		return h, errors.New("the file ends within the IDX header")
	}
	for i := range axes {
		h.dims = append(h.dims, int(binary.BigEndian.Uint32(b[4+4*i:])))
	}
	return h, nil
}

func (out written) idx(w io.Writer) error {
	header := []byte{0, 0, idxUint8, byte(len(out.dims))}
	for _, d := range out.dims {
		if uint64(d) > math.MaxUint32 {
			return fmt.Errorf("an IDX file cannot hold %d rows", d)
		}
		header = binary.BigEndian.AppendUint32(header, uint32(d))
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	return out.pieces(func(values []float32) error {
		_, err := w.Write(toBytes(values))
		return err
	})
}
