package serve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"tessera/internal/volume"
	"tessera/kernel"
)

// inputName is the name of the only input of a model.
const inputName = "input"

// The data types of tensors. Inputs are numbers; outputs are FP32, and BYTES for names of classes.
const (
	typeFP32  = "FP32"
	typeFP64  = "FP64"
	typeUINT8 = "UINT8"
	typeBytes = "BYTES"
)

// widths are the bytes of one value in the binary extension.
var widths = map[string]int{typeFP32: 4, typeFP64: 8, typeUINT8: 1}

// Limits of a request: further elements are errors before they take memory.
const (
	mostOutputs    = 64
	mostDimensions = 64 // of a shape
	deepest        = 8  // dimensions of nested data
)

// request is an inference request.
type request struct {
	id     string
	hasID  bool
	images []float32 // row-major
	count  int
	wanted []wanted
	png    bool // the answer is a PNG of the only output
}

// wanted is an output of a request.
type wanted struct {
	output *output
	binary bool
}

// draft is the JSON of a request, before it is compared with the model.
type draft struct {
	request
	inputs  int
	input   input
	outputs []outputDraft
	binary  bool // binary_data_output
}

// input is an input tensor.
type input struct {
	name, datatype string
	shape          []int
	data           nested
	hasData        bool
	size           int // binary_data_size; -1 without
}

// outputDraft is a requested output; its binary_data may be missing.
type outputDraft struct {
	name   string
	binary *bool
}

// cut shortens a text of a client for an error.
func cut(text string) string {
	if len(text) <= 100 {
		return text
	}
	return text[:100] + "..."
}

// raw decodes a raw binary request: the body is the FP32 values of images, all outputs are returned as binary data.
func (b *buffer) raw(l *loaded, most int) (*request, error) {
	size := 4 * l.pixels
	if len(b.body) == 0 || len(b.body)%size != 0 {
		return nil, fmt.Errorf("raw binary data: got %d bytes, want a multiple of the %d of an image in FP32", len(b.body), size)
	}
	r := &request{count: len(b.body) / size}
	if r.count > most {
		return nil, tooMany(r.count, most)
	}
	for _, o := range l.outputs {
		r.wanted = append(r.wanted, wanted{o, true})
	}
	var err error
	r.images, err = b.fromBinary(b.body, typeFP32)
	return r, err
}

func tooMany(n, most int) error {
	return problemf(http.StatusRequestEntityTooLarge, "input %q: got %d images, want at most %d; send several requests", inputName, n, most)
}

// decode reads a request of at most that many images: header bytes of JSON, then the binary data.
func (b *buffer) decode(header int, l *loaded, most int) (*request, error) {
	d := &b.draft
	*d = draft{outputs: d.outputs[:0], request: request{wanted: d.wanted[:0]}}
	d.input.data = nested{buffer: b, most: most * l.pixels}
	c := &cursor{b: b.body[:header]}
	if err := c.object(func(key string) error { return d.member(c, key) }); err != nil {
		return nil, err
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	if err := d.check(b.body[header:], l, most); err != nil {
		return nil, err
	}
	return &d.request, d.choose(l)
}

// member reads a member of the request.
func (d *draft) member(c *cursor, key string) (err error) {
	switch key {
	case "id":
		if c.null() {
			return nil
		}
		d.hasID = true
		d.id, err = c.text()
		return err
	case "parameters":
		return c.object(func(key string) (err error) {
			if key != "binary_data_output" {
				return c.skip()
			}
			d.binary, err = c.boolean()
			return err
		})
	case "inputs":
		d.inputs = 0
		err := c.array(func() error {
			if d.inputs++; d.inputs > 1 {
				return fmt.Errorf("got several, want one input, %q", inputName)
			}
			data := d.input.data
			d.input = input{size: -1, data: nested{buffer: data.buffer, most: data.most}}
			return c.object(func(key string) error { return d.input.member(c, key) })
		})
		if err != nil && statusOf(err) == http.StatusBadRequest {
			err = fmt.Errorf("inputs: %w", err)
		}
		return err
	case "outputs":
		d.outputs = d.outputs[:0]
		return c.array(func() error {
			if len(d.outputs) == mostOutputs {
				return fmt.Errorf("outputs: got more than %d", mostOutputs)
			}
			d.outputs = append(d.outputs, outputDraft{})
			return c.object(func(key string) error { return d.outputs[len(d.outputs)-1].member(c, key) })
		})
	}
	return c.skip()
}

// member reads a member of an input.
func (in *input) member(c *cursor, key string) (err error) {
	switch key {
	case "name":
		in.name, err = c.text()
	case "datatype":
		in.datatype, err = c.text()
	case "shape":
		in.shape = make([]int, 0, 4)
		err = c.array(func() error {
			if len(in.shape) == mostDimensions {
				return fmt.Errorf("shape: got more than %d dimensions", mostDimensions)
			}
			n, err := c.size()
			in.shape = append(in.shape, n)
			return err
		})
	case "data":
		if c.null() {
			return nil
		}
		in.hasData = true
		in.data.dims, in.data.leaf = nil, 0
		in.data.buffer.images = in.data.buffer.images[:0]
		err = in.data.read(c, 0)
	case "parameters":
		err = c.object(func(key string) (err error) {
			if key != "binary_data_size" {
				return c.skip()
			}
			in.size, err = c.size()
			return err
		})
	default:
		err = c.skip()
	}
	return err
}

// member reads a member of a requested output.
func (o *outputDraft) member(c *cursor, key string) (err error) {
	switch key {
	case "name":
		o.name, err = c.text()
		return err
	case "parameters":
		return c.object(func(key string) error {
			switch key {
			case "binary_data":
				b, err := c.boolean()
				o.binary = &b
				return err
			case "classification":
				return errors.New("outputs: the classification extension is not supported; ask for HEAD.label and HEAD.probability")
			}
			return c.skip()
		})
	}
	return c.skip()
}

// check compares the input with the model and takes its images.
func (d *draft) check(binary []byte, l *loaded, most int) (err error) {
	in := &d.input
	if d.inputs != 1 || in.name != inputName {
		return fmt.Errorf("inputs: got %q, want one input, %q", cut(in.name), inputName)
	}
	if widths[in.datatype] == 0 {
		return fmt.Errorf("input %q: datatype: got %q, want FP32, FP64 or UINT8", inputName, cut(in.datatype))
	}
	if in.datatype == typeUINT8 && !l.pictures {
		return fmt.Errorf("input %q: datatype UINT8: %w", inputName, errNoPixels)
	}
	if len(in.shape) < 2 || in.shape[0] < 1 || !slices.Equal(in.shape[1:], l.shape) && !slices.Equal(in.shape[1:], []int{l.pixels}) {
		return fmt.Errorf("input %q: shape: got %v, want [n %s] or [n %d] with n > 0", inputName, in.shape, strings.Trim(fmt.Sprint(l.shape), "[]"), l.pixels)
	}
	if d.count = in.shape[0]; d.count > most {
		return tooMany(d.count, most)
	}
	switch got, want := &in.data, d.count*l.pixels; {
	case in.size >= 0:
		d.images, err = in.fromBinary(binary, want*widths[in.datatype])
		return err
	case len(binary) > 0:
		return fmt.Errorf("input %q: got %d bytes of binary data, want binary_data_size in its parameters", inputName, len(binary))
	case !in.hasData:
		return fmt.Errorf("input %q: got no data", inputName)
	case len(got.values()) != want || volume.Of(got.dims) != want:
		return fmt.Errorf("input %q: data: got %d values, want %d for shape %v", inputName, len(got.values()), want, in.shape)
	case len(got.dims) > 1 && !slices.Equal(got.dims, in.shape):
		return fmt.Errorf("input %q: data: got nested arrays of shape %v, want %v", inputName, got.dims, in.shape)
	default:
		d.images = got.values()
	}
	if in.datatype == typeUINT8 {
		return fromPixels(d.images)
	}
	return nil
}

// fromBinary takes the images from the bytes after the JSON.
func (in *input) fromBinary(binary []byte, want int) ([]float32, error) {
	switch {
	case in.hasData:
		return nil, fmt.Errorf("input %q: got data and binary_data_size, want one of them", inputName)
	case in.size != want:
		return nil, fmt.Errorf("input %q: binary_data_size: got %d, want %d for shape %v of %s", inputName, in.size, want, in.shape, in.datatype)
	case len(binary) != want:
		return nil, fmt.Errorf("input %q: got %d bytes of binary data after the JSON, want binary_data_size = %d", inputName, len(binary), want)
	}
	return in.data.buffer.fromBinary(binary, in.datatype)
}

// choose finds the requested outputs: the default ones of the model unless the request names some.
func (d *draft) choose(l *loaded) (err error) {
	if len(d.outputs) == 0 {
		for _, o := range l.outputs {
			d.wanted = append(d.wanted, wanted{o, d.binary})
		}
	}
	for _, o := range d.outputs {
		binary := d.binary
		if o.binary != nil {
			binary = *o.binary
		}
		if err := d.request.add(l, o.name, binary); err != nil {
			return fmt.Errorf("outputs: %w", err)
		}
	}
	return nil
}

// add requests an output by its name.
func (r *request) add(l *loaded, name string, binary bool) error {
	o := l.output(name)
	if o == nil {
		return fmt.Errorf("got %q, want one of %q", cut(name), l.names())
	}
	if slices.ContainsFunc(r.wanted, func(w wanted) bool { return w.output == o }) {
		return fmt.Errorf("got %q twice", name)
	}
	r.wanted = append(r.wanted, wanted{o, binary})
	return nil
}

// nested reads the data of a tensor, flat or nested by dimension, into the images of a buffer.
type nested struct {
	buffer *buffer
	dims   []int // of the arrays that were read
	leaf   int   // the depth of the numbers, plus one; 0 before the first
	most   int   // values at most
}

// values are the numbers that were read.
func (t *nested) values() []float32 { return t.buffer.images }

// read reads the array at the cursor, depth dimensions inside.
func (t *nested) read(c *cursor, depth int) error {
	if err := c.take('['); err != nil {
		return err
	}
	if depth == deepest {
		return fmt.Errorf("data: got more than %d dimensions", deepest)
	}
	begin, n, inner := len(t.values()), 0, c.next() == '['
	switch {
	case c.next() == ']':
		c.i++
	case inner:
		for more := true; more; n++ {
			err := t.read(c, depth+1)
			if err == nil {
				more, err = c.more(']')
			}
			if err != nil {
				return err
			}
		}
	default:
		if err := t.numbers(c); err != nil {
			return err
		}
		n = len(t.values()) - begin
	}
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

// numbers reads the elements of an array of numbers. Most of the time of a request is spent here.
func (t *nested) numbers(c *cursor) error {
	values := t.values()
	for {
		v, end := decimal(c.b, c.i)
		if end > 0 {
			c.i = end
		} else {
			c.next()
			var err error
			if v, err = c.number(); err != nil {
				return err
			}
		}
		if len(values) == cap(values) || len(values) >= t.most {
			if len(values) >= t.most {
				return problemf(http.StatusRequestEntityTooLarge, "data: got more than %d values; send fewer images in one request", t.most)
			}
			var err error
			if values, err = room(t.buffer, values, min(max(2*len(values), 1024), t.most)); err != nil {
				return err
			}
		}
		values = append(values, v)
		b := byte(0)
		if c.i < len(c.b) {
			b = c.b[c.i]
		}
		if b == ',' {
			c.i++
			continue
		}
		more, err := c.more(']')
		if err != nil {
			return err
		}
		if !more {
			t.buffer.images = values
			return nil
		}
	}
}

// fromBinary takes the images from little-endian bytes, whose number is a multiple of the type's width. UINT8 are pixels, scaled by
// 1/255 as those of training images are. NaN and infinite values are an error.
func (b *buffer) fromBinary(bytes []byte, datatype string) (images []float32, err error) {
	if b.images, err = room(b, b.images[:0], len(bytes)/widths[datatype]); err != nil {
		return nil, err
	}
	b.images = fromBinary(b.images, bytes, datatype)
	return b.images, finite(b.images)
}

// fromBinary appends the values of little-endian bytes.
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

// fromPixels scales the numbers of a UINT8 tensor in JSON in place.
func fromPixels(values []float32) error {
	var pixels [4096]byte
	for at := 0; at < len(values); at += len(pixels) {
		part := values[at:min(at+len(pixels), len(values))]
		for i, v := range part {
			if v < 0 || v > 255 || v != float32(int(v)) {
				return fmt.Errorf("data: value %d: got %v, want an integer from 0 to 255 for UINT8", at+i, v)
			}
			pixels[i] = byte(v)
		}
		kernel.Float32().FromBytes(part, pixels[:len(part)])
	}
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
