// Package wire converts structs to Protocol Buffers messages and back. The tags of a struct are its schema:
//
//	Name string  `pb:"8"` // field 8 of the message
//	Dims []int64 `pb:"1"` // a repeated field
//
// The types and their encodings are: bool, int32 and int64 (varint), float32 (fixed 32 bits), float64 (fixed 64 bits),
// string and []byte (length-delimited), structs and pointers to structs (messages), pointers to numbers (fields that
// are written even if they are 0), and slices of all of these (repeated, not packed). Fields with the zero value are
// not written, unless they are pointers. Fields of a message that the struct lacks are ignored.
//
// Source: Protocol Buffers, Encoding (https://protobuf.dev/programming-guides/encoding/).
package wire

import (
	"fmt"
	"math"
	"reflect"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

var bytesType = reflect.TypeFor[[]byte]()

// Append appends the message of a struct, or of a pointer to a struct, to b. Equal structs give equal bytes. It panics
// if the struct has a field that this package cannot encode, which is a programming error.
func Append(b []byte, message any) []byte {
	v := reflect.Indirect(reflect.ValueOf(message))
	for i := range v.NumField() {
		b = appendField(b, number(v.Type(), i), v.Field(i))
	}
	return b
}

// number returns the field number of field i of a struct type.
func number(t reflect.Type, i int) protowire.Number {
	n, err := strconv.Atoi(t.Field(i).Tag.Get("pb"))
	if err != nil {
		panic(fmt.Sprintf("wire: %v.%s has no tag with its number", t, t.Field(i).Name))
	}
	return protowire.Number(n)
}

func appendField(b []byte, n protowire.Number, v reflect.Value) []byte {
	switch {
	case v.Kind() == reflect.Slice && v.Type() != bytesType:
		for i := range v.Len() {
			b = appendValue(b, n, v.Index(i))
		}
		return b
	case v.IsZero():
		return b
	case v.Kind() == reflect.Pointer:
		v = v.Elem()
	}
	return appendValue(b, n, v)
}

func appendValue(b []byte, n protowire.Number, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), protowire.EncodeBool(v.Bool()))
	case reflect.Int32, reflect.Int64:
		return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(v.Int()))
	case reflect.Float32:
		return protowire.AppendFixed32(protowire.AppendTag(b, n, protowire.Fixed32Type), math.Float32bits(float32(v.Float())))
	case reflect.Float64:
		return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), math.Float64bits(v.Float()))
	}
	b = protowire.AppendTag(b, n, protowire.BytesType)
	switch v.Kind() {
	case reflect.String:
		return protowire.AppendString(b, v.String())
	case reflect.Struct:
		return protowire.AppendBytes(b, Append(nil, v.Interface()))
	case reflect.Slice:
		return protowire.AppendBytes(b, v.Bytes())
	}
	panic(fmt.Sprintf("wire: field %d has type %v, which is not encoded", n, v.Type()))
}
