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
	"math"
	"slices"
	"strings"

	"tessera/internal/regular"
	"tessera/internal/volume"
)

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
