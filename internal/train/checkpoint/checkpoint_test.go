package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func sample() *File {
	return &File{
		Metadata: map[string]string{"kind": "state", "text": "a \"sha256\":\"" + noChecksum + "\" <b>\n", "a": ""},
		Tensors: []Tensor{
			{Name: "encoder.0.weight", Shape: []int{2, 3}, Data: []float32{0, -1, 2.5, float32(math.Inf(1)), 1e-45, 3}},
			{Name: "scale", Shape: []int{}, Data: []float32{7}},
			{Name: "empty", Shape: []int{0, 4}, Data: []float32{}},
			{Name: "best/encoder.0.weight", Shape: []int{1}, Data: []float32{-0.5}},
		},
	}
}

func encode(t testing.TB, f *File) []byte {
	t.Helper()
	b, err := Encode(f, nil)
	fatal.If(t, err)
	return b
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	want := sample()
	got, err := Decode(encode(t, want))
	fatal.If(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAStreamWritesTheBytesOfAnEncodedFile(t *testing.T) {
	long := sample()
	values := lists.Of(2*piece+7, func(i int) float32 { return float32(i) / 3 })
	long.Tensors = append(long.Tensors, Tensor{Name: "long", Shape: []int{len(values)}, Data: values})
	for _, f := range []*File{sample(), long, {}} {
		s, err := NewStream(f)
		fatal.If(t, err)
		for range 2 { // it can be written again
			var b bytes.Buffer
			n, err := s.WriteTo(&b)
			if want := encode(t, f); err != nil || n != int64(len(want)) || !bytes.Equal(b.Bytes(), want) {
				t.Errorf("got %d bytes and %v, want the %d bytes of Encode", n, err, len(want))
			}
		}
		if n, err := s.WriteTo(full{}); n != 0 || !errors.Is(err, errFull) {
			t.Errorf("got %d bytes and %v, want the error of the writer", n, err)
		}
	}
	expect.AnyError(t, expect.Err(NewStream(&File{Tensors: []Tensor{{Name: "a", Shape: []int{2}}}})), "no error for missing values")
}

var errFull = errors.New("full")

// full is a writer on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestEqualContentsGiveEqualBytes(t *testing.T) {
	if !bytes.Equal(encode(t, sample()), encode(t, sample())) {
		t.Error("two encodings of the same file differ")
	}
	want := encode(t, sample())
	for _, size := range []int{3, len(want), 2 * len(want)} { // of another file before
		got, err := Encode(sample(), bytes.Repeat([]byte{'x'}, size))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("in memory of %d bytes: another encoding (%v)", size, err)
		}
	}
}

// The test reads the layout as the format's description defines it, with encoding/json and plain offsets.
func TestEncodeWritesTheSafetensorsLayout(t *testing.T) {
	b := encode(t, sample())
	n := binary.LittleEndian.Uint64(b)
	expect.Equal(t, n%8, 0, "the data begin at byte", 8+n, "want a multiple of 8")
	var header map[string]struct {
		Dtype   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets []int  `json:"data_offsets"`
	}
	fatal.If(t, json.Unmarshal(b[8:8+n], &header))
	w := header["encoder.0.weight"]
	if w.Dtype != "F32" || !reflect.DeepEqual(w.Shape, []int{2, 3}) || !reflect.DeepEqual(w.Offsets, []int{0, 24}) {
		t.Errorf("encoder.0.weight is described as %+v", w)
	}
	expect.Equal(t, math.Float32frombits(binary.LittleEndian.Uint32(b[8+n+8:])), 2.5, "the third value")
	expect.Equal(t, len(b), int(8+n)+header["best/encoder.0.weight"].Offsets[1], "the file has")
}

func TestEveryFlippedBitIsFound(t *testing.T) {
	b := encode(t, sample())
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			expect.AnyError(t, expect.Err(Decode(b)), "byte", i, "bit", bit, "a damaged file was accepted")
			b[i] ^= 1 << bit
		}
	}
	fatal.If(t, expect.Err(Decode(b)), "the intact file is refused")
}

func TestEveryTruncationIsFound(t *testing.T) {
	b := encode(t, sample())
	for n := range b {
		expect.AnyError(t, expect.Err(Decode(b[:n])), "the first", n, "of", len(b), "bytes were accepted")
	}
	expect.AnyError(t, expect.Err(Decode(append(bytes.Clone(b), 0))), "a byte behind the end was accepted")
}

// signed returns a file with the given header and data, and with a correct checksum.
func signed(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(append(b, header...), data...)
	if at := checksumAt(b[:8+len(header)]); at >= 0 {
		field := b[at:][:len(noChecksum)]
		copy(field, noChecksum)
		sum := sha256.Sum256(b)
		hex.Encode(field, sum[:])
	}
	return b
}

func TestHostileHeadersAreRefused(t *testing.T) {
	const meta = `"__metadata__":{"sha256":"` + "0000000000000000000000000000000000000000000000000000000000000000" + `"}`
	eight := make([]byte, 8)
	cases := map[string]struct {
		header string
		data   []byte
		want   string
	}{
		"no checksum":      {`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, eight, "no checksum"},
		"no object":        {`[1]`, nil, "not a JSON object"},
		"null":             {`null`, nil, "not a JSON object"},
		"empty":            {``, nil, "not a JSON object"},
		"not JSON":         {`{"a":`, nil, "header"},
		"two objects":      {`{` + meta + `}{}`, nil, "data follow"},
		"metadata numbers": {`{"__metadata__":{"sha256":1}}`, nil, "__metadata__"},
		"unknown field":    {`{` + meta + `,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}}`, eight, "unknown field"},
		"null tensor":      {`{` + meta + `,"a":null}`, nil, "not a JSON object"},
		"other dtype":      {`{` + meta + `,"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`, eight, `"F64"`},
		"no shape":         {`{` + meta + `,"a":{"dtype":"F32","data_offsets":[0,4]}}`, eight[:4], "invalid shape"},
		"negative shape":   {`{` + meta + `,"a":{"dtype":"F32","shape":[-1,-2],"data_offsets":[0,8]}}`, eight, "invalid shape"},
		"huge shape":       {`{` + meta + `,"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, nil, "invalid shape"},
		"fractional shape": {`{` + meta + `,"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,8]}}`, eight, "header"},
		"hole before":      {`{` + meta + `,"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, eight, "data_offsets"},
		"wrong size":       {`{` + meta + `,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}`, eight, "data_offsets"},
		"negative offset":  {`{` + meta + `,"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, nil, "data_offsets"},
		"overlap":          {`{` + meta + `,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, eight, "data_offsets"},
		"past the end":     {`{` + meta + `,"a":{"dtype":"F32","shape":[1000000000],"data_offsets":[0,4000000000]}}`, eight, "cut off"},
		"data left over":   {`{` + meta + `,"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, eight, "4 bytes follow"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(signed(c.header, c.data))
			expect.Error(t, err, c.want)
		})
	}
	header := binary.LittleEndian.AppendUint64(nil, math.MaxUint64)
	expect.AnyError(t, expect.Err(Decode(append(header, '{'))), "a header longer than the file was accepted")
}

func TestEncodeRefusesWhatCannotBeReadBack(t *testing.T) {
	one := Tensor{Name: "a", Shape: []int{1}, Data: []float32{1}}
	for name, f := range map[string]*File{
		"same name":     {Tensors: []Tensor{one, one}},
		"metadata name": {Tensors: []Tensor{{Name: "__metadata__", Shape: []int{1}, Data: []float32{1}}}},
		"short data":    {Tensors: []Tensor{{Name: "a", Shape: []int{2}, Data: []float32{1}}}},
		"reserved key":  {Metadata: map[string]string{checksumKey: "x"}},
	} {
		expect.AnyError(t, expect.Err(Encode(f, nil)), name, "accepted")
	}
}

func TestReadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.safetensors")
	expect.Is(t, expect.Err(Read(path)), fs.ErrNotExist, "missing file")
	b := encode(t, sample())
	b[len(b)-1] ^= 1
	fatal.If(t, os.WriteFile(path, b, 0o600))
	var damaged *Error
	if _, err := Read(path); !errors.As(err, &damaged) || damaged.Path != path {
		t.Errorf("damaged file: got %v, want an *Error with its path", err)
	}
}

// Accepted files can be written and read back with the same contents. parse never panics and never allocates more than the
// size of the file.
func FuzzDecode(f *testing.F) {
	b := encode(f, sample())
	n := binary.LittleEndian.Uint64(b)
	f.Add(b[8:8+n], b[8+n:])
	f.Add([]byte(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`), make([]byte, 4))
	f.Add([]byte(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`), []byte{})
	f.Fuzz(func(t *testing.T, header, data []byte) {
		file, _, err := parse(append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), data...))
		if err != nil {
			return
		}
		values := 0
		for _, tensor := range file.Tensors {
			values += len(tensor.Data)
		}
		if 4*values != len(data) {
			t.Fatalf("%d values from %d bytes", values, len(data))
		}
		again, err := Encode(file, nil)
		fatal.If(t, err, "an accepted file cannot be written")
		n := binary.LittleEndian.Uint64(again)
		if !bytes.Equal(again[8+n:], data) {
			t.Fatal("the data changed on the way")
		}
		fatal.If(t, expect.Err(Decode(again)), "a written file cannot be read")
	})
}
