package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
)

// mostNested is the maximum nesting depth of messages, the same as in Google's readers.
const mostNested = 100

// Read fills the struct that message points to from the bytes of a message. Strings and bytes are copied. It returns an
// error if the bytes are not a message, if the type of a field differs from that of the struct, or if messages are
// nested more than 100 deep.
func Read(b []byte, message any) error { return read(b, reflect.ValueOf(message).Elem(), mostNested) }

func read(b []byte, v reflect.Value, nested int) error {
	if nested == 0 {
		return fmt.Errorf("messages are nested more than %d deep", mostNested)
	}
	for len(b) > 0 {
		n, kind, used := protowire.ConsumeTag(b)
		if used < 0 {
			return protowire.ParseError(used)
		}
		b = b[used:]
		rest, err := readField(b, n, kind, v, nested)
		if err != nil {
			return fmt.Errorf("field %d: %w", n, err)
		}
		b = rest
	}
	return nil
}

func readField(b []byte, n protowire.Number, kind protowire.Type, message reflect.Value, nested int) (rest []byte, err error) {
	for i := range message.NumField() {
		if number(message.Type(), i) != n {
			continue
		}
		f := message.Field(i)
		switch {
		case f.Kind() == reflect.Slice && f.Type() != bytesType:
			f.Set(reflect.Append(f, reflect.Zero(f.Type().Elem())))
			f = f.Index(f.Len() - 1)
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		return readValue(b, kind, f, nested)
	}
	used := protowire.ConsumeFieldValue(n, kind, b)
	if used < 0 {
		return nil, protowire.ParseError(used)
	}
	return b[used:], nil
}

var errKind = errors.New("has another type on the wire")

// wireKinds maps kinds of Go values to their encodings. All other kinds are length-delimited.
var wireKinds = map[reflect.Kind]protowire.Type{
	reflect.Bool: protowire.VarintType, reflect.Int32: protowire.VarintType, reflect.Int64: protowire.VarintType,
	reflect.Float32: protowire.Fixed32Type, reflect.Float64: protowire.Fixed64Type,
}

func readValue(b []byte, kind protowire.Type, v reflect.Value, nested int) (rest []byte, err error) {
	want, ok := wireKinds[v.Kind()]
	if !ok {
		want = protowire.BytesType
	}
	if kind != want {
		return nil, errKind
	}
	var used int
	switch kind {
	case protowire.VarintType:
		var x uint64
		if x, used = protowire.ConsumeVarint(b); v.Kind() == reflect.Bool {
			v.SetBool(protowire.DecodeBool(x))
		} else {
			v.SetInt(int64(x))
		}
	case protowire.Fixed32Type:
		var x uint32
		x, used = protowire.ConsumeFixed32(b)
		v.SetFloat(float64(math.Float32frombits(x)))
	case protowire.Fixed64Type:
		var x uint64
		x, used = protowire.ConsumeFixed64(b)
		v.SetFloat(math.Float64frombits(x))
	default:
		var x []byte
		if x, used = protowire.ConsumeBytes(b); used >= 0 {
			err = readBytes(x, v, nested)
		}
	}
	if used < 0 {
		return nil, protowire.ParseError(used)
	}
	return b[used:], err
}

func readBytes(x []byte, v reflect.Value, nested int) error {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(x))
	case reflect.Slice:
		v.SetBytes(append([]byte{}, x...))
	default:
		return read(x, v, nested-1)
	}
	return nil
}
