package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
)

// Checksum identifies images by their content: the SHA-256 of their shape, their values as float32 and their labels, in
// order. Bytes and floats of equal values are equal images.
func (m *Images) Checksum() string {
	h := sha256.New()
	labels := m.Labels()
	fmt.Fprintf(h, "%v %d %d\n", m.Shape, m.n, len(labels))
	row, b := make([]float32, m.pixels), make([]byte, 0, 4*m.pixels)
	for i := range m.n {
		m.copyRow(row, i)
		b = b[:0]
		for _, v := range row {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		h.Write(b)
	}
	for _, l := range labels {
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(l))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}
