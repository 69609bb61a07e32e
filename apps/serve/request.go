package serve

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tessera/internal/volume"
)

// inputName is the name of the only input of a model.
const inputName = "input"

// request is an inference request.
type request struct {
	id     string
	hasID  bool
	images []float32 // whole images, row-major
	count  int
	wanted []wanted
}

// wanted is an output of a request.
type wanted struct {
	output *output
	binary bool
}

// draft is what the JSON of a request says, before it is compared with the model.
type draft struct {
	request
	inputs  []input
	outputs []outputDraft
	binary  bool // binary_data_output
	most    int  // values at most
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

// raw decodes a raw binary request: the body is the FP32 values of whole images, all outputs are returned as binary data.
func raw(body []byte, l *loaded, most int) (*request, error) {
	size := 4 * l.pixels
	if len(body) == 0 || len(body)%size != 0 {
		return nil, fmt.Errorf("raw binary data: got %d bytes, want a multiple of the %d of an image in FP32", len(body), size)
	}
	if len(body)/size > most {
		return nil, tooMany(len(body)/size, most)
	}
	r := &request{images: fromBinary(nil, body, typeFP32), count: len(body) / size}
	for _, o := range l.outputs {
		r.wanted = append(r.wanted, wanted{o, true})
	}
	return r, finite(r.images)
}

func tooMany(n, most int) error {
	return problemf(http.StatusRequestEntityTooLarge, "input %q: got %d images, want at most %d; send several requests", inputName, n, most)
}

// decode reads a request of at most that many images: header bytes of JSON, then the binary data. images are reused where they are
// large enough, and the memory of a draft that nobody uses any more.
func (d *draft) decode(body []byte, header int, l *loaded, most int, images []float32) (*request, error) {
	*d = draft{most: most * l.pixels, inputs: d.inputs[:0], outputs: d.outputs[:0], request: request{images: images[:0], wanted: d.wanted[:0]}}
	c := &cursor{b: body[:header]}
	if err := c.object(func(key string) error { return d.member(c, key) }); err != nil {
		return nil, err
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	if err := d.input(body[header:], l, most); err != nil {
		return nil, err
	}
	return &d.request, d.want(l)
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
		d.inputs = d.inputs[:0]
		return c.array(func() error {
			in := input{size: -1, data: nested{values: d.images[:0], most: d.most}}
			if len(d.inputs) > 0 { // is refused below: a model has one input
				in.data.values = nil
			}
			d.inputs = append(d.inputs, in)
			return c.object(func(key string) error { return d.inputs[len(d.inputs)-1].member(c, key) })
		})
	case "outputs":
		d.outputs = d.outputs[:0]
		return c.array(func() error {
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
			n, err := c.size()
			in.shape = append(in.shape, n)
			return err
		})
	case "data":
		if c.null() {
			return nil
		}
		in.hasData = true
		in.data.values, in.data.dims, in.data.leaf = in.data.values[:0], nil, 0
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
	if err != nil && statusOf(err) == http.StatusBadRequest {
		err = fmt.Errorf("inputs: %w", err)
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
				return fmt.Errorf("outputs: the classification extension is not supported; take the values of the output")
			}
			return c.skip()
		})
	}
	return c.skip()
}

// input compares the input with the model and its binary data.
func (d *draft) input(binary []byte, l *loaded, most int) error {
	if len(d.inputs) != 1 || d.inputs[0].name != inputName {
		var names []string
		for _, in := range d.inputs {
			names = append(names, in.name)
		}
		return fmt.Errorf("inputs: got %q, want one input, %q", names, inputName)
	}
	in := &d.inputs[0]
	if widths[in.datatype] == 0 {
		return fmt.Errorf("input %q: datatype: got %q, want FP32, FP64 or UINT8", inputName, in.datatype)
	}
	if in.datatype == typeUINT8 && !l.pictures {
		return fmt.Errorf("input %q: datatype UINT8: %w", inputName, errNoPixels)
	}
	if err := d.shape(in.shape, l, most); err != nil {
		return err
	}
	if in.size >= 0 {
		return d.fromBinary(in, binary, l)
	}
	if len(binary) > 0 {
		return fmt.Errorf("input %q: got %d bytes of binary data, want binary_data_size in its parameters", inputName, len(binary))
	}
	return d.fromJSON(in, l)
}

// shape compares the shape of the input with the images of the model: (n, height, width) or (n, pixels).
func (d *draft) shape(shape []int, l *loaded, most int) error {
	if len(shape) < 2 || shape[0] < 1 || !slices.Equal(shape[1:], l.shape) && !slices.Equal(shape[1:], []int{l.pixels}) {
		return fmt.Errorf("input %q: shape: got %v, want [n %s] or [n %d] with n > 0", inputName, shape, strings.Trim(fmt.Sprint(l.shape), "[]"), l.pixels)
	}
	if shape[0] > most {
		return tooMany(shape[0], most)
	}
	d.count = shape[0]
	return nil
}

// fromBinary takes the images from the bytes after the JSON.
func (d *draft) fromBinary(in *input, binary []byte, l *loaded) error {
	want := d.count * l.pixels * widths[in.datatype]
	switch {
	case in.hasData:
		return fmt.Errorf("input %q: got data and binary_data_size, want one of them", inputName)
	case in.size != want:
		return fmt.Errorf("input %q: binary_data_size: got %d, want %d for shape %v of %s", inputName, in.size, want, in.shape, in.datatype)
	case len(binary) != want:
		return fmt.Errorf("input %q: got %d bytes of binary data after the JSON, want binary_data_size = %d", inputName, len(binary), want)
	}
	d.images = fromBinary(d.images[:0], binary, in.datatype)
	return finite(d.images)
}

// fromJSON takes the images from the data of the JSON: flat, or nested by dimension.
func (d *draft) fromJSON(in *input, l *loaded) error {
	got := &in.data
	switch want := d.count * l.pixels; {
	case !in.hasData:
		return fmt.Errorf("input %q: got no data", inputName)
	case len(got.values) != want || volume.Of(got.dims) != want:
		return fmt.Errorf("input %q: data: got %d values, want %d for shape %v", inputName, len(got.values), want, in.shape)
	case len(got.dims) > 1 && !slices.Equal(got.dims, in.shape):
		return fmt.Errorf("input %q: data: got nested arrays of shape %v, want %v", inputName, got.dims, in.shape)
	}
	d.images = got.values
	if in.datatype == typeUINT8 {
		return fromPixels(d.images)
	}
	return nil
}

// want finds the outputs: all of the model unless the request names some.
func (d *draft) want(l *loaded) error {
	for _, o := range l.outputs {
		if len(d.outputs) == 0 {
			d.wanted = append(d.wanted, wanted{o, d.binary})
		}
	}
	for _, o := range d.outputs {
		found := l.output(o.name)
		if found == nil {
			return fmt.Errorf("outputs: got %q, want one of %q", o.name, l.names())
		}
		if slices.ContainsFunc(d.wanted, func(w wanted) bool { return w.output == found }) {
			return fmt.Errorf("outputs: got %q twice", o.name)
		}
		w := wanted{found, d.binary}
		if o.binary != nil {
			w.binary = *o.binary
		}
		d.wanted = append(d.wanted, w)
	}
	return nil
}
