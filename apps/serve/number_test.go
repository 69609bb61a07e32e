package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/volume"
	"tessera/losses"
)

// parsed reads one number with the cursor. If decimal can read the number, it must return the same.
func parsed(text string) (float32, error) {
	c := &cursor{b: []byte(text + "]                  ")}
	v, err := c.number()
	if f, end := decimal(c.b, 0); err == nil && end > 0 && (end != c.i || math.Float32bits(f) != math.Float32bits(v)) {
		return 0, fmt.Errorf("as a decimal it is %v, of %d bytes", f, end)
	}
	if err == nil && c.i != len(text) {
		err = errors.New("the number ends before its text")
	}
	return v, err
}

func TestNumbersAreRoundedAsStrconvDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	texts := []string{"0", "-0", "0.0", "1", "-1.5", "1e5", "1E-5", "16777217", "16777216.999999999999999", "3.4028235e38", "3.4028236e38", "1.1754943e-38",
		"1e-45", "7e-46", "1e-400", "0e999999999999", "1.00000017881393432617187499", "1.00000017881393432617187500", "1.00000017881393432617187501", "9007199254740993", "18446744073709551615", "18446744073709551616",
		"0.1", "0.20000000298023224", "123456789012345678901234567890", "0.000000000000000000000000000001"}
	for range 20000 {
		f := math.Float32frombits(r.Uint32())
		half := (float64(f) + float64(math.Nextafter32(f, 0))) / 2 // lies between two float32
		for _, v := range []float64{float64(f), half, float64(r.Float32()), r.NormFloat64()} {
			if v-v == 0 {
				texts = append(texts, strconv.FormatFloat(v, "efg"[r.IntN(3)], r.IntN(20)-1, 64))
			}
		}
	}
	for range 20000 { // fractions, which another function reads
		text := strconv.FormatFloat(2*r.Float64()-1, 'f', r.IntN(18), 64)
		texts = append(texts, text, strconv.FormatFloat(float64(r.Float32()/255), 'f', -1, 32))
	}
	for _, text := range texts {
		want, err := strconv.ParseFloat(text, 32)
		got, gotErr := parsed(text)
		if (err == nil) != (gotErr == nil) || err == nil && math.Float32bits(got) != math.Float32bits(float32(want)) {
			t.Errorf("%s: got %v (%v), want %v (%v)", text, got, gotErr, float32(want), err)
		}
	}
}

func TestNumbersAreWrittenAsEncodingJSONDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -0.5, 1e21, 1e-6, 9.99e-7, math.MaxFloat32, math.SmallestNonzeroFloat32, 1.0 / 3}
	for range 1000 {
		if v := math.Float32frombits(r.Uint32()); v-v == 0 {
			values = append(values, v)
		}
	}
	var back []float32
	got := numbersIn(values)
	if err := json.Unmarshal(got, &back); err != nil || !sameBits(back, values) {
		t.Errorf("the numbers come back changed (%v)", err)
	}
	for _, v := range values[:6] {
		if want, _ := json.Marshal(v); string(appendNumber(nil, v)) != string(want) {
			t.Errorf("got %s, want %s", appendNumber(nil, v), want)
		}
	}
}

func FuzzNumbersAreThoseOfEncodingJSON(f *testing.F) {
	for _, s := range []string{"0", "-0.5e-3", "00", "1.", ".5", "1e", "1e+", "+1", "16777217.0000000000001", "1e39", "0x1p4", "Infinity", "- 1", "1_0"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want float32
		err := json.Unmarshal(text, &want)
		if text = bytes.Trim(text, " \t\r\n"); bytes.HasPrefix(text, []byte("null")) {
			return // leaves a float32 as it is
		}
		got, gotErr := parsed(string(text))
		if (err == nil) != (gotErr == nil) || err == nil && math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%q: got %v (%v), want %v (%v)", text, got, gotErr, want, err)
		}
	})
}

// asked is a request that was read with encoding/json.
type asked struct {
	id       *string
	binary   bool
	name     string
	datatype string
	shape    []int
	size     int
	values   []float32
	outputs  []string
	binaries []*bool
}

// members reads an object, with case-sensitive keys; null has no members.
func members(text []byte) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	return m, json.Unmarshal(text, &m) == nil
}

// member decodes a member that is present and not null. If strict is true, null is an error.
func member(m map[string]json.RawMessage, key string, into any, strict bool) bool {
	text, ok := m[key]
	if !ok || !strict && string(text) == "null" {
		return true
	}
	return string(text) != "null" && json.Unmarshal(text, into) == nil
}

// imagesOnly returns a model that reads images with the given shape.
func imagesOnly(shape []int, outputs ...*output) *loaded {
	l := &loaded{shape: shape, pixels: volume.Of(shape), pictures: true}
	for _, o := range outputs {
		f, _ := l.feature(data.Column{Name: losses.Images, Shape: shape}, nil)
		o.inputs = []*feature{f}
		l.outputs = append(l.outputs, o)
	}
	return l
}

// reference reads a request like decode, but with encoding/json. ok is false if decode must return an error.
func reference(text []byte) (a asked, ok bool) {
	a.size = -1
	top, ok := members(text)
	if !ok {
		return a, false
	}
	var inputs, outputs []json.RawMessage
	var parameters map[string]json.RawMessage
	if !member(top, "id", &a.id, false) || !member(top, "parameters", &parameters, false) || !member(parameters, "binary_data_output", &a.binary, true) ||
		!member(top, "inputs", &inputs, false) || !member(top, "outputs", &outputs, false) || len(inputs) != 1 {
		return a, false
	}
	in, ok := members(inputs[0])
	var inParameters map[string]json.RawMessage
	var data json.RawMessage
	if !ok || !member(in, "name", &a.name, true) || !member(in, "datatype", &a.datatype, true) || !member(in, "shape", &a.shape, false) ||
		!member(in, "parameters", &inParameters, false) || !member(inParameters, "binary_data_size", &a.size, true) || !member(in, "data", &data, false) {
		return a, false
	}
	if data != nil && !flatten(data, &a.values) {
		return a, false
	}
	for _, o := range outputs {
		out, ok := members(o)
		var name string
		var parameters map[string]json.RawMessage
		var binary *bool
		if !ok || !member(out, "name", &name, true) || !member(out, "parameters", &parameters, false) || !member(parameters, "binary_data", &binary, true) {
			return a, false
		}
		if _, classes := parameters["classification"]; classes {
			return a, false
		}
		a.outputs, a.binaries = append(a.outputs, name), append(a.binaries, binary)
	}
	return a, true
}

// flatten reads numbers from a flat or nested array.
func flatten(text json.RawMessage, into *[]float32) bool {
	var flat []float32
	if bytes.Contains(text, []byte("null")) {
		return false // which encoding/json reads as 0
	}
	if json.Unmarshal(text, &flat) == nil {
		*into = append(*into, flat...)
		return true
	}
	var nested []json.RawMessage
	if json.Unmarshal(text, &nested) != nil {
		return false
	}
	return !slices.ContainsFunc(nested, func(n json.RawMessage) bool { return !flatten(n, into) })
}

// A request that decode accepts has the same meaning for encoding/json. A text that encoding/json rejects is an error for
// decode too.
func FuzzRequestsAreThoseOfEncodingJSON(f *testing.F) {
	x := images(1, 1)
	f.Add(jsonRequest(x, `,"id":"\u00e9\"","outputs":[{"name":"code","parameters":{"binary_data":true,"x":[{}]}}],"parameters":{"binary_data_output":true}`))
	f.Add(jsonRequest(x[:8], `,"other":{"a":[1,"]",null]}`))
	f.Add([]byte(`{"inputs":[{"shape":[1,2,2],"name":"input","datatype":"FP64","data":[[[1,2],[3,4e0]]]}],"id":null,"outputs":null}`))
	f.Add([]byte(`{"inputs":[{"shape":[1,4],"name":"input","datatype":"UINT8","data":[0,255,3,4]}]}`))
	f.Add([]byte(`{"inputs":[{"shape":[1,4],"name":"input","datatype":"FP32","data":[0,1,2,3],"data":[4,5,6,7]}],"inputs":null}`))
	l := imagesOnly([]int{2, 2}, &output{name: "code", shape: []int{3}}, &output{name: "output", shape: []int{2, 2}})
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := bufferOf(text).decode(len(text), l, 8)
		want, ok := reference(text)
		if err != nil {
			return // decode also refuses what does not fit the model
		}
		if !ok {
			t.Fatalf("encoding/json does not read %q", text)
		}
		if want.datatype == typeUINT8 {
			fatal.If(t, fromPixels(want.values))
		}
		if !sameBits(got.sent[0].values, want.values) || got.hasID != (want.id != nil) || got.hasID && got.id != *want.id || got.count != want.shape[0] {
			t.Fatalf("%q: got %+v, want %+v", text, got, want)
		}
		names, binaries := want.outputs, want.binaries
		if len(names) == 0 {
			names, binaries = l.outputNames(), make([]*bool, 2)
		}
		for i, w := range got.wanted {
			binary := want.binary
			if binaries[i] != nil {
				binary = *binaries[i]
			}
			if w.output.name != names[i] || w.binary != binary {
				t.Fatalf("%q: output %d: got %s, %v", text, i, w.output.name, w.binary)
			}
		}
		if len(got.wanted) != len(names) {
			t.Fatalf("%q: %d outputs", text, len(got.wanted))
		}
	})
}

// Any bytes after any header give a response or an error. A response is computed from the images in the binary data.
func FuzzBinaryRequests(f *testing.F) {
	body, header := binaryRequest(images(1, 1)[:64], "")
	n, _ := strconv.Atoi(header)
	f.Add(body, n)
	f.Add([]byte(`{"inputs":[{"name":"input","shape":[2,4],"datatype":"UINT8","parameters":{"binary_data_size":8}}]}`+"12345678"), 96)
	f.Add(make([]byte, 32), 0)
	l := imagesOnly([]int{2, 2}, &output{name: "code", shape: []int{3}})
	f.Fuzz(func(t *testing.T, body []byte, header int) {
		if header < 0 || header > len(body) { // infer refuses them
			return
		}
		got, err := bufferOf(body).decode(header, l, 8)
		if header == 0 {
			got, err = bufferOf(body).raw(l, 8)
		}
		if err != nil {
			return
		}
		if len(got.sent[0].values) != got.count*l.pixels || got.count < 1 || got.count > 8 || finite(got.sent[0].values) != nil {
			t.Fatalf("%q: got %+v", body, got)
		}
		if rest := body[header:]; len(rest) == 4*len(got.sent[0].values) && !slices.Equal(appendBinary(nil, got.sent[0].values), rest) {
			t.Fatalf("%q: other images", body)
		}
	})
}

// The benchmark compares the scanner with encoding/json, which is slower: see docs/dev/adr/0020.
func BenchmarkRequests(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, draw := range map[string]func() float32{"pixels": func() float32 { return float32(r.IntN(256)) / 255 }, "normal": func() float32 { return float32(r.NormFloat64()) },
		"integers": func() float32 { return float32(r.IntN(256)) }} {
		x := lists.Of(784, func(int) float32 { return draw() })
		text := fmt.Appendf(nil, `{"inputs":[{"name":"input","shape":[1,784],"datatype":"FP32","data":%s}]}`, numbersIn(x))
		l := imagesOnly([]int{28, 28}, &output{name: "code", shape: []int{3}})
		b.Run(name+"/scanner", func(b *testing.B) {
			request := bufferOf(text)
			for b.Loop() {
				fatal.If(b, expect.Err(request.decode(len(text), l, 8)))
			}
		})
		b.Run(name+"/json", func(b *testing.B) {
			var into struct {
				Inputs []struct {
					Name, Datatype string
					Shape          []int
					Data           []float32
				}
			}
			for b.Loop() {
				fatal.If(b, json.Unmarshal(text, &into))
			}
		})
	}
}
