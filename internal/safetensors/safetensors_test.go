package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// file returns a file with the given header and the given number of bytes of values.
func file(header string, values int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, values)...)
}

func read(b []byte) (*Header, error) { return Read(bytes.NewReader(b), int64(len(b))) }

func TestReadReturnsWhatAppendHeaderWrote(t *testing.T) {
	b, err := AppendHeader(nil, map[string]string{"b": "\"<é>", "a": ""}, []Tensor{{Name: "w", Shape: []int{2, 3}}, {Name: "empty", Shape: []int{0, 4}}, {Name: "a scalar"}})
	fatal.If(t, err)
	expect.Equal(t, len(b)%8, 0, "the values begin at byte", len(b), "want a multiple of 8")
	h, err := read(append(b, make([]byte, 28)...))
	want := &Header{Metadata: map[string]string{"b": "\"<é>", "a": ""}, Length: len(b), Tensors: []Tensor{
		{"w", "F32", []int{2, 3}, [2]int{0, 24}}, {"empty", "F32", []int{0, 4}, [2]int{24, 24}}, {"a scalar", "F32", []int{}, [2]int{24, 28}}}}
	if err != nil || !reflect.DeepEqual(h, want) {
		t.Errorf("got %+v, %v, want %+v", h, err, want)
	}
	for name, tensors := range map[string][]Tensor{"two names": {{Name: "a"}, {Name: "a"}}, "reserved": {{Name: "__metadata__"}}, "negative": {{Name: "a", Shape: []int{-1}}}} {
		expect.AnyError(t, expect.Err(AppendHeader(nil, nil, tensors)), name, "accepted")
	}
}

func TestOnlyTheStartOfAFileOfTensorsIsOne(t *testing.T) {
	long := binary.LittleEndian.AppendUint64(nil, 1<<40)
	for name, c := range map[string]struct {
		start []byte
		want  bool
	}{"a file": {file("{}", 0), true}, "no object": {file("[]", 0), false}, "too long a header": {append(long, '{'), false}, "cut": {long, false}} {
		expect.Equal(t, Is(c.start), c.want, name)
	}
}

func TestDamagedHeadersAreRefused(t *testing.T) {
	const one = `"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"nothing":         {nil, "too few"},
		"long header":     {binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "should have"},
		"no object":       {file(`[1]`, 0), "not a JSON object"},
		"two objects":     {file(`{}{}`, 0), "data follow"},
		"unknown field":   {file(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}}`, 4), "unknown field"},
		"no shape":        {file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), "invalid shape"},
		"hole":            {file(`{`+one+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[5,9]}}`, 9), "want the first one to be 4"},
		"overlap":         {file(`{`+one+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]}}`, 7), "want the first one to be 4"},
		"backwards":       {file(`{"a":{"dtype":"X","shape":[1],"data_offsets":[0,-4]}}`, 4), "not less"},
		"other shape":     {file(`{"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,4]}}`, 4), "want [0,6] for BF16 of shape [3]"},
		"cut":             {file(`{`+one+`}`, 3), "cut off"},
		"further bytes":   {file(`{`+one+`}`, 5), "1 bytes follow"},
		"number as text":  {file(`{"__metadata__":{"a":1}}`, 0), "__metadata__"},
		"impossible size": {file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), "invalid shape"},
	} {
		expect.Error(t, expect.Err(read(c.b)), c.want, name)
	}
	expect.NoError(t, expect.Err(read(file(`{"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}}`, 4))), "a type of unknown size")
}
