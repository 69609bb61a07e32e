package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/internal/volume"
)

const (
	metadataKey = "__metadata__"
	checksumKey = "sha256"
	alignment   = 8 // of the data, by spaces after the header: other readers map the file into memory
)

// noChecksum is the placeholder of the checksum during its computation.
var noChecksum = strings.Repeat("0", hex.EncodedLen(sha256.Size))

// entry is the header entry of one tensor. The order of the fields is the order in the file.
type entry struct {
	Dtype   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// Encode returns the bytes of a file, in buffer if it is large enough. Equal contents give equal bytes. It returns an error
// for contents that cannot be read back: two tensors with the same name, data that do not match the shape, a reserved key.
func Encode(f *File, buffer []byte) ([]byte, error) {
	if f == nil {
		return nil, errors.New("checkpoint: the file is nil")
	}
	header, total, err := header(f)
	if err != nil {
		return nil, err
	}
	out := slices.Grow(buffer[:0], 8+len(header)+total)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(header)))
	out = append(out, header...)
	for _, t := range f.Tensors {
		for _, v := range t.Data {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	sum := sha256.Sum256(out)
	hex.Encode(out[8+checksumAt(header):], sum[:])
	return out, nil
}

// checksumAt returns the index of the checksum's first digit in a header, -1 if there is no checksum. Other text of the
// header cannot match: its quotes would be escaped.
func checksumAt(header []byte) int {
	const before = `"` + checksumKey + `":"`
	at := bytes.Index(header, []byte(before))
	if at < 0 || at+len(before)+len(noChecksum) > len(header) {
		return -1
	}
	return at + len(before)
}

// header returns the padded header and the length of the data in bytes.
func header(f *File) ([]byte, int, error) {
	if _, taken := f.Metadata[checksumKey]; taken {
		return nil, 0, fmt.Errorf("checkpoint: the metadata key %q is reserved for the checksum", checksumKey)
	}
	metadata := map[string]string{checksumKey: noChecksum}
	for key, text := range f.Metadata {
		metadata[key] = text
	}
	var b bytes.Buffer
	b.WriteByte('{')
	if err := member(&b, metadataKey, metadata); err != nil { // encoding/json sorts the keys
		return nil, 0, err
	}
	offset := 0
	taken := map[string]bool{metadataKey: true}
	for _, t := range f.Tensors {
		n, ok := volume.Within(t.Shape, mostValues)
		switch {
		case taken[t.Name]:
			return nil, 0, fmt.Errorf("checkpoint: tensor %q: two tensors have this name", t.Name)
		case !ok || n != len(t.Data):
			return nil, 0, fmt.Errorf("checkpoint: tensor %q: %d values for shape %v", t.Name, len(t.Data), t.Shape)
		}
		taken[t.Name] = true
		b.WriteByte(',')
		e := entry{Dtype: "F32", Shape: append([]int{}, t.Shape...), Offsets: [2]int{offset, offset + 4*n}}
		if err := member(&b, t.Name, e); err != nil {
			return nil, 0, err
		}
		offset += 4 * n
	}
	b.WriteByte('}')
	for b.Len()%alignment != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes(), offset, nil
}

// member writes "key":value.
func member(b *bytes.Buffer, key string, value any) error {
	for i, v := range []any{key, value} {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("checkpoint: %q: %w", key, err)
		}
		if i == 1 {
			b.WriteByte(':')
		}
		b.Write(text)
	}
	return nil
}
