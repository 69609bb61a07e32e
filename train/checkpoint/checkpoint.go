// Package checkpoint reads and writes tensors in safetensors files with a checksum.
//
// The format is Hugging Face's safetensors: eight bytes with the little-endian length of a header, the header in JSON (for
// each tensor its dtype, shape and data offsets; under "__metadata__" texts by key), then the data, row-major and
// little-endian, without gaps. Any safetensors reader opens these files. In addition, the metadata key "sha256" contains
// the SHA-256 of the whole file, computed with the checksum's 64 digits set to zeros: any changed bit is detected. Equal
// contents give equal bytes.
package checkpoint

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"tessera/internal/regular"
	"tessera/internal/volume"
)

// Tensor is one named tensor of float32 values.
type Tensor struct {
	Name  string
	Shape []int     // empty for a scalar
	Data  []float32 // row-major
}

// File is the contents of one checkpoint.
type File struct {
	Metadata map[string]string // texts by key; the key "sha256" is reserved for the checksum
	Tensors  []Tensor          // in the order of their data
}

// Tensor returns the tensor of that name.
func (f *File) Tensor(name string) (Tensor, bool) {
	for _, t := range f.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return Tensor{}, false
}

// Error is the error of a checkpoint that is damaged or does not match its model or data: the file and the problem.
type Error struct {
	Path     string
	Problem  string
	Mismatch bool // the file is intact, but belongs to another model or other images
}

// Error implements error: `PATH: PROBLEM`.
func (e *Error) Error() string { return e.Path + ": " + e.Problem }

// Errorf returns an *Error about the file of that path.
func Errorf(path, format string, args ...any) error {
	return &Error{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// Mismatchf is [Errorf] for an intact file that does not match.
func Mismatchf(path, format string, args ...any) error {
	return &Error{Path: path, Problem: fmt.Sprintf(format, args...), Mismatch: true}
}

// mostValues is more than the number of values that one tensor of a file can have.
const mostValues = 1 << 40

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

// Read returns the contents of a checkpoint that [Encode] wrote. For a damaged file it returns an *[Error] with its path;
// for a missing file the error satisfies errors.Is(err, fs.ErrNotExist).
func Read(path string) (*File, error) {
	b, err := regular.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	f, err := Decode(b)
	if err != nil {
		return nil, Errorf(path, "%v", err)
	}
	return f, nil
}

// Decode returns the contents of a file's bytes, or an error that describes the damage.
func Decode(b []byte) (*File, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("damaged: %d bytes are too few for a checkpoint", len(b))
	}
	length := binary.LittleEndian.Uint64(b)
	if length > uint64(len(b)-8) {
		return nil, fmt.Errorf("damaged: the header should have %d bytes, the whole file has %d", length, len(b))
	}
	header, data := b[8:8+length], b[8+length:]
	f, err := parse(header, data)
	if err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	if err := verify(b, header); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	return f, nil
}

// verify compares the file with its checksum. It only reads b: several goroutines may decode the same bytes.
func verify(b, header []byte) error {
	at := checksumAt(header)
	if at < 0 {
		return errors.New("it contains no checksum")
	}
	from, to := 8+at, 8+at+len(noChecksum)
	sum := sha256.New()
	sum.Write(b[:from])
	sum.Write([]byte(noChecksum))
	sum.Write(b[to:])
	if hex.EncodeToString(sum.Sum(nil)) != string(b[from:to]) {
		return errors.New("its contents do not match its checksum")
	}
	return nil
}

// parse reads the header and its tensors. It checks everything: the checksum protects against accidents, not against
// malicious files.
func parse(header, data []byte) (*File, error) {
	var members map[string]json.RawMessage
	if err := strict(header, &members); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	f := &File{}
	if text, ok := members[metadataKey]; ok {
		if err := strict(text, &f.Metadata); err != nil {
			return nil, fmt.Errorf("header: %s: %w", metadataKey, err)
		}
		delete(f.Metadata, checksumKey)
		delete(members, metadataKey)
	}
	entries := make(map[string]entry, len(members))
	names := make([]string, 0, len(members))
	for name, text := range members {
		var e entry
		if err := strict(text, &e); err != nil {
			return nil, fmt.Errorf("header: tensor %q: %w", name, err)
		}
		entries[name] = e
		names = append(names, name)
	}
	// An empty tensor has the same offset as the next one: sorting by name keeps decoding deterministic.
	slices.SortFunc(names, func(a, b string) int {
		x, y := entries[a].Offsets, entries[b].Offsets
		return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), strings.Compare(a, b))
	})
	return f, f.fill(names, entries, data)
}

// fill adds the tensors in the order of their data, which must cover the file without gaps or overlaps.
func (f *File) fill(names []string, entries map[string]entry, data []byte) error {
	end := 0
	for _, name := range names {
		e := entries[name]
		n, ok := volume.Within(e.Shape, mostValues)
		switch {
		case e.Dtype != "F32":
			return fmt.Errorf("tensor %q: dtype is %q, want \"F32\"", name, e.Dtype)
		case !ok || e.Shape == nil:
			return fmt.Errorf("tensor %q: invalid shape %v", name, e.Shape)
		case e.Offsets[0] != end || e.Offsets[1]-end != 4*n || e.Offsets[1] < end:
			return fmt.Errorf("tensor %q: data_offsets are %v, want [%d,%d]", name, e.Offsets, end, end+4*n)
		case e.Offsets[1] > len(data):
			return fmt.Errorf("tensor %q: its data end at byte %d of %d: the file is cut off", name, e.Offsets[1], len(data))
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[end+4*i:]))
		}
		end = e.Offsets[1]
		f.Tensors = append(f.Tensors, Tensor{Name: name, Shape: e.Shape, Data: values})
	}
	if end != len(data) {
		return fmt.Errorf("%d bytes follow the last tensor", len(data)-end)
	}
	return nil
}

// strict decodes one JSON object. Unknown fields and anything but spaces after the object are errors.
func strict(text []byte, into any) error {
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

// mostHeader bounds the header that [ReadMetadata] reads: declarations and the states of hooks, far below it.
const mostHeader = 64 << 20

// ReadMetadata returns the metadata of a checkpoint and reads nothing else of it. It finds a damaged header and a file that is cut; it does
// not verify the checksum, as [Read] does. Errors: as Read.
func ReadMetadata(path string) (map[string]string, error) {
	f, err := regular.Open(path)
	if errors.Is(err, regular.ErrNot) {
		return nil, Errorf(path, "%v", regular.ErrNot)
	} else if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	metadata, err := readMetadata(f)
	if err != nil {
		return nil, Errorf(path, "damaged: %v", err)
	}
	return metadata, nil
}

func readMetadata(f *os.File) (map[string]string, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var size [8]byte
	if _, err := io.ReadFull(f, size[:]); err != nil {
		return nil, fmt.Errorf("%d bytes are too few for a checkpoint", info.Size())
	}
	length := binary.LittleEndian.Uint64(size[:])
	if length > uint64(info.Size()-8) || length > mostHeader {
		return nil, fmt.Errorf("the header should have %d bytes, the whole file has %d", length, info.Size())
	}
	header := make([]byte, length)
	if _, err := io.ReadFull(f, header); err != nil {
		return nil, err
	}
	return metadataOf(header, info.Size()-8-int64(length))
}

// metadataOf returns the metadata of a header whose tensors take that many bytes.
func metadataOf(header []byte, bytes int64) (map[string]string, error) {
	var members map[string]json.RawMessage
	if err := strict(header, &members); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	var metadata map[string]string
	if err := json.Unmarshal(members[metadataKey], &metadata); err != nil {
		return nil, errors.New("header: it has no metadata")
	}
	delete(members, metadataKey)
	end := int64(0)
	for name, text := range members {
		var e entry
		if err := strict(text, &e); err != nil {
			return nil, fmt.Errorf("header: tensor %q: %w", name, err)
		}
		end = max(end, int64(e.Offsets[1]))
	}
	if end != bytes {
		return nil, fmt.Errorf("its tensors have %d bytes, the header describes %d", bytes, end)
	}
	return metadata, nil
}
