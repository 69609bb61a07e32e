package serve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"tessera/kernel"
)

// The data types of input tensors. Outputs are FP32.
const (
	typeFP32  = "FP32"
	typeFP64  = "FP64"
	typeUINT8 = "UINT8"
)

// widths are the bytes of one value in the binary extension.
var widths = map[string]int{typeFP32: 4, typeFP64: 8, typeUINT8: 1}

// deepest bounds the nesting of the data of a tensor.
const deepest = 8

// nested reads the data of a tensor, flat or nested by dimension, into values.
type nested struct {
	values []float32
	dims   []int // of what was read
	leaf   int   // the depth of the numbers, plus one; 0 before the first
	most   int   // values at most
}

// read reads the array at the cursor, depth dimensions inside.
func (t *nested) read(c *cursor, depth int) error {
	if err := c.take('['); err != nil {
		return err
	}
	if depth == deepest {
		return fmt.Errorf("data: got more than %d dimensions", deepest)
	}
	begin, n, inner := len(t.values), 0, c.next() == '['
	var err error
	switch {
	case c.next() == ']':
		c.i++
	case inner:
		n, err = t.arrays(c, depth)
	default:
		err = t.numbers(c)
		n = len(t.values) - begin
	}
	if err != nil {
		return err
	}
	return t.row(depth, n, inner)
}

// row compares an array of n elements with the others of its depth.
func (t *nested) row(depth, n int, inner bool) error {
	if !inner && t.leaf != 0 && t.leaf != depth+1 {
		return errors.New("data: numbers are nested at different depths")
	}
	if !inner {
		t.leaf = depth + 1
	}
	for len(t.dims) <= depth {
		t.dims = append(t.dims, -1)
	}
	if was := t.dims[depth]; was >= 0 && was != n {
		return fmt.Errorf("data: nested arrays have different lengths (got %d after %d)", n, was)
	}
	t.dims[depth] = n
	return nil
}

// arrays reads the elements of an array of arrays.
func (t *nested) arrays(c *cursor, depth int) (n int, err error) {
	for {
		if err := t.read(c, depth+1); err != nil {
			return n, err
		}
		n++
		switch c.next() {
		case ',':
			c.i++
		case ']':
			c.i++
			return n, nil
		default:
			return n, c.bad("',' or ']'")
		}
	}
}

// numbers reads the elements of an array of numbers. Most of the time of a request is spent here.
func (t *nested) numbers(c *cursor) error {
	values := t.values
	for {
		v, end := fraction(c.b, c.i)
		if end > 0 {
			c.i = end
		} else {
			c.next()
			var err error
			if v, err = c.number(); err != nil {
				return err
			}
		}
		if len(values) == t.most {
			return problemf(413, "data: got more than %d values; send fewer images in one request", t.most)
		}
		values = append(values, v)
		b := byte(0)
		if c.i < len(c.b) {
			b = c.b[c.i]
		}
		if b != ',' && b != ']' {
			b = c.next()
		}
		switch b {
		case ',':
			c.i++
		case ']':
			c.i++
			t.values = values
			return nil
		default:
			return c.bad("',' or ']'")
		}
	}
}

// fromBinary appends the values of little-endian bytes, each in FP32. UINT8 are pixels, scaled by 1/255 as those of training
// images are. The number of bytes is a multiple of the type's width.
func fromBinary(dst []float32, b []byte, datatype string) []float32 {
	dst = slices.Grow(dst, len(b)/widths[datatype])
	switch datatype {
	case typeUINT8:
		n := len(dst)
		dst = dst[:n+len(b)]
		kernel.Float32().FromBytes(dst[n:], b)
	case typeFP64:
		for ; len(b) >= 8; b = b[8:] {
			dst = append(dst, float32(math.Float64frombits(binary.LittleEndian.Uint64(b))))
		}
	default:
		for ; len(b) >= 4; b = b[4:] {
			dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	}
	return dst
}

// appendBinary appends values as little-endian FP32.
func appendBinary(dst []byte, values []float32) []byte {
	dst = slices.Grow(dst, 4*len(values))
	for _, v := range values {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

// fromPixels scales the numbers of a UINT8 tensor in JSON in place.
func fromPixels(values []float32) error {
	pixels := make([]byte, len(values))
	for i, v := range values {
		if v < 0 || v > 255 || v != float32(int(v)) {
			return fmt.Errorf("data: value %d: got %v, want an integer from 0 to 255 for UINT8", i, v)
		}
		pixels[i] = byte(v)
	}
	fromBinary(values[:0], pixels, typeUINT8)
	return nil
}

// finite returns an error for NaN and infinite values.
func finite(values []float32) error {
	for i, v := range values {
		if v-v != 0 {
			return fmt.Errorf("data: value %d: got %v, want a finite number in FP32", i, v)
		}
	}
	return nil
}
