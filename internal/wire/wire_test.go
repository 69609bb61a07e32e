package wire_test

import (
	"encoding/hex"
	"reflect"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/wire"
)

type inner struct {
	A int64 `pb:"1"`
}

type outer struct {
	Number  int64   `pb:"1"`
	Text    string  `pb:"2"`
	Inner   *inner  `pb:"3"`
	Many    []inner `pb:"4"`
	Raw     []byte  `pb:"5"`
	Single  float32 `pb:"6"`
	Double  float64 `pb:"7"`
	Zero    *int64  `pb:"8"`
	Numbers []int64 `pb:"16"`
	Yes     bool    `pb:"17"`
}

// The expected bytes are those in the encoding guide of Protocol Buffers: field 1 with 150, field 2 with "testing",
// field 3 with a message whose field 1 is 150.
func TestMessagesHaveTheBytesOfTheGuide(t *testing.T) {
	for want, m := range map[string]outer{
		"089601":                         {Number: 150},
		"120774657374696e67":             {Text: "testing"},
		"1a03089601":                     {Inner: &inner{150}},
		"22030896012200":                 {Many: []inner{{150}, {}}},
		"350000803f":                     {Single: 1},
		"4000":                           {Zero: new(int64)},
		"8001018001ffffffffffffffffff01": {Numbers: []int64{1, -1}},
	} {
		expect.Equal(t, hex.EncodeToString(wire.Append(nil, m)), want, m)
	}
}

func TestReadReturnsWhatAppendWrote(t *testing.T) {
	two := int64(2)
	want := outer{-3, "text", &inner{7}, []inner{{1}, {}}, []byte{0, 255}, 0.5, -0.25, &two, []int64{5, 0, -6}, true}
	b := wire.Append(nil, &want)
	var got outer
	if err := wire.Read(b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	var few struct {
		Text string `pb:"2"`
	}
	if err := wire.Read(b, &few); err != nil || few.Text != "text" {
		t.Errorf("unknown fields: got %+v, %v", few, err)
	}
	for n := range b { // a truncated message gives an error or fewer fields, never a panic
		_ = wire.Read(b[:n], new(outer))
	}
	expect.AnyError(t, wire.Read(b[:len(b)-1], new(outer)), "a cut message")
	var other struct {
		Text int64 `pb:"2"`
	}
	expect.AnyError(t, wire.Read(b, &other), "a text is read as a number")
}

type tree struct {
	Inner *tree `pb:"1"`
}

// Bytes that are not a message give an error. Encoding a decoded message and decoding it again gives the same message.
func FuzzRead(f *testing.F) {
	f.Add(wire.Append(nil, outer{Number: 1, Text: "a", Inner: &inner{2}, Many: []inner{{3}}, Single: 4, Numbers: []int64{5}, Yes: true}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var once, again outer
		if wire.Read(b, &once) != nil {
			return
		}
		fatal.If(t, wire.Read(wire.Append(nil, once), &again))
		expect.Equal(t, string(wire.Append(nil, again)), string(wire.Append(nil, once)))
	})
}

func TestReadRefusesMessagesThatAreNestedTooDeep(t *testing.T) {
	for depth, ok := range map[int]bool{50: true, 500: false} {
		m := &tree{}
		for range depth {
			m = &tree{m}
		}
		if err := wire.Read(wire.Append(nil, m), new(tree)); (err == nil) != ok {
			t.Errorf("%d levels: %v", depth, err)
		}
	}
}
