package serve

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/engine/kernel"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/volume"
	"tessera/losses"
)

// The data types of tensors. Inputs are numbers; outputs are FP32, and BYTES for names of classes.
const (
	typeFP32  = "FP32"
	typeFP64  = "FP64"
	typeUINT8 = "UINT8"
	typeINT32 = "INT32"
	typeINT64 = "INT64"
	typeBytes = "BYTES"
)

// widths contains the size in bytes of one value in the binary extension, by data type.
var widths = map[string]int{typeFP32: 4, typeFP64: 8, typeUINT8: 1, typeINT32: 4, typeINT64: 8}

// Limits of a request. A request that exceeds them is rejected before memory is allocated for it.
const (
	mostOutputs    = 64
	mostDimensions = 64 // maximum number of dimensions of a shape
	deepest        = 8  // maximum depth of nested data
)

type request struct {
	id     string
	hasID  bool
	sent   []sent // inputs with their values
	count  int    // number of samples
	wanted []wanted
	png    bool // the response is the only output as a PNG

	warnings []string // about the values, for the response
}

// unlike warns about samples that are unlike those of the training.
func (r *request) unlike(l *loaded, samples []float32) {
	r.warnings = append(r.warnings, l.seen.Notes(samples, l.names, func(i int) string { return fmt.Sprintf("row %d", i) })...)
}

// sent is an input of a model with its values from a request, row-major.
type sent struct {
	*feature
	values []float32
}

// wanted is an output that a request names.
type wanted struct {
	output *output
	binary bool
}

// draft is the decoded JSON of a request before it is checked against the model.
type draft struct {
	request
	model   *loaded
	most    int // maximum number of samples
	inputs  []input
	outputs []outputDraft
	binary  bool // binary_data_output
}

type input struct {
	name, datatype string
	shape          []int
	data           nested
	hasData        bool
	size           int // binary_data_size; -1 if missing
}

// outputDraft is an output that a request names, with its binary_data if given.
type outputDraft struct {
	name   string
	binary *bool
}

// cut shortens a text from a client for an error message.
func cut(text string) string {
	if len(text) <= 100 {
		return text
	}
	return text[:100] + "..."
}

// raw decodes a raw binary request: the body contains FP32 values of images, and all outputs are returned as binary data.
func (b *buffer) raw(l *loaded, most int) (*request, error) {
	in := l.input(inputName)
	if in == nil {
		return nil, fmt.Errorf("raw binary data: the model has no input %q: send JSON with %s", inputName, l.wantedInputs())
	}
	size := 4 * l.pixels
	if len(b.body) == 0 || len(b.body)%size != 0 {
		return nil, fmt.Errorf("raw binary data: got %d bytes, want a multiple of the %d of an image in FP32", len(b.body), size)
	}
	r := &request{count: len(b.body) / size}
	if r.count > most {
		return nil, in.tooMany(r.count, most)
	}
	b.empty(l)
	values, err := b.fromBinary(b.body, typeFP32)
	r.sent = []sent{{in, values}}
	if err == nil {
		err = in.accepts(values)
	}
	if err == nil {
		r.unlike(l, values)
		err = r.addAll(l, true)
	}
	if err == nil && b.exact {
		l.shift.Centre(values, b.wide)
	}
	return r, err
}

// empty removes the values of the buffer, before it reads a request for a model.
func (b *buffer) empty(l *loaded) {
	b.images, b.wide, b.exact = b.images[:0], b.wide[:0], l.shift != nil
}

// tooMany returns the error for a request with n samples, which is more than most.
func (f *feature) tooMany(n, most int) error {
	what := "images"
	if f.column != losses.Images {
		what = "rows"
	}
	return problemf(http.StatusRequestEntityTooLarge, "input %q: got %d %s, want at most %d; send several requests", f.name, n, what, most)
}

// decode reads a request for at most `most` images: header bytes of JSON, then the binary data.
func (b *buffer) decode(header int, l *loaded, most int) (*request, error) {
	d := &b.draft
	*d = draft{inputs: d.inputs[:0], outputs: d.outputs[:0], request: request{sent: d.sent[:0], wanted: d.wanted[:0]}, model: l, most: most}
	b.empty(l)
	c := &cursor{b: b.body[:header]}
	if err := c.object(func(key string) error { return d.member(c, b, key) }); err != nil {
		return nil, err
	}
	if err := c.end(); err != nil {
		return nil, err
	}
	if err := d.check(b, b.body[header:]); err != nil {
		return nil, err
	}
	return &d.request, d.choose()
}

// member reads a member of the request.
func (d *draft) member(c *cursor, b *buffer, key string) (err error) {
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
		d.inputs, b.images = d.inputs[:0], b.images[:0]
		b.wide = b.wide[:0]
		err := c.array(func() error {
			if len(d.inputs) == len(d.model.inputs) {
				return fmt.Errorf("got more than %d, want %s", len(d.inputs), d.model.wantedInputs())
			}
			from := len(b.images)
			d.inputs = append(d.inputs, input{size: -1, data: nested{buffer: b, from: from, most: from + d.most*d.model.widest, text: d.model.text, named: d.model.named, holed: d.model.vacant != nil, places: d.model.places}})
			return c.object(func(key string) error { return d.inputs[len(d.inputs)-1].member(c, key) })
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
		in.data.dims, in.data.leaf, in.data.texts, in.data.beside, in.data.classes, in.data.entries = nil, 0, false, nil, nil, false
		in.data.buffer.images = in.data.buffer.images[:in.data.from]
		if in.data.buffer.exact {
			in.data.buffer.wide = in.data.buffer.wide[:in.data.from]
		}
		err = in.data.read(c, 0)
		in.data.to = len(in.data.values())
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

// check checks the inputs against the model and stores their values in the request.
func (d *draft) check(b *buffer, binary []byte) (err error) {
	if len(d.inputs) == 0 {
		return fmt.Errorf("inputs: got none, want %s", d.model.wantedInputs())
	}
	d.count = -1
	var holes []int
	var beside []map[string][]float32
	for i := range d.inputs {
		in := &d.inputs[i]
		f := d.model.input(in.name)
		switch {
		case f == nil:
			return fmt.Errorf("inputs: got %q, want %s", cut(in.name), d.model.wantedInputs())
		case slices.ContainsFunc(d.sent, func(s sent) bool { return s.feature == f }):
			return fmt.Errorf("inputs: got %q twice", in.name)
		}
		if err := in.fits(f, d.count, d.most); err != nil {
			return err
		}
		d.count = in.shape[0]
		if in.size >= 0 {
			if binary, err = in.fromBinary(binary, d.count*f.size*widths[in.datatype]); err != nil {
				return err
			}
		}
		if err := in.values(f); err != nil {
			return err
		}
		d.unknown(f, in)
		if f.column == losses.Images {
			d.unlike(d.model, b.images[in.data.from:in.data.to])
			holes, beside = in.fill(d.model), in.data.beside
		}
		d.sent = append(d.sent, sent{feature: f})
	}
	if name := d.inputs[len(d.inputs)-1].name; len(binary) > 0 {
		return fmt.Errorf("input %q: got %d bytes of binary data, want binary_data_size in its parameters", name, len(binary))
	}
	if f := d.model.input(data.ObservedColumn); f != nil {
		if err := d.observe(b, f, holes); err != nil {
			return err
		}
	}
	if err := d.derive(b, beside); err != nil {
		return err
	}
	for i := range d.sent { // the buffer has grown for all of them
		data := d.inputs[i].data
		d.sent[i].values = b.images[data.from:data.to]
		if b.exact && d.sent[i].feature.scaled {
			d.model.shift.Centre(d.sent[i].values, b.wide[data.from:data.to])
			for _, k := range holes {
				d.sent[i].values[k] -= d.sent[i].values[k] // 0, and NaN of models that encode what is there
			}
		}
	}
	return nil
}

// fill replaces the missing values of samples, null in the request, and returns the places of those that the model has learned to do without.
func (in *input) fill(l *loaded) (holes []int) {
	b := in.data.buffer
	values := b.images[in.data.from:in.data.to]
	for k, v := range values {
		if v == v {
			continue
		}
		mean, ok := l.seen.Means[k%l.pixels]
		switch {
		case !ok:
			values[k], holes = l.vacant[k%l.pixels], append(holes, k)
		case b.exact:
			b.wide[in.data.from+k] = mean
			fallthrough
		default:
			values[k] = float32(mean)
		}
	}
	return holes
}

// unknown warns about texts that no fitted sample has.
func (d *draft) unknown(f *feature, in *input) {
	count, first := 0, ""
	for _, name := range in.data.classes {
		if name == "" || slices.Contains(f.classes, name) {
			continue
		}
		if count++; count == 1 {
			first = name
		}
	}
	if count > 0 {
		d.warnings = append(d.warnings, fmt.Sprintf("input %q has %s that no sample of the training has, the first %q: they count as an unknown class", f.name, numeral.Of(count, "text"), cut(first)))
	}
}

// observe adds the input that says which values are there, for a request without it: those that are not null.
func (d *draft) observe(b *buffer, f *feature, holes []int) (err error) {
	if i := slices.IndexFunc(d.sent, func(s sent) bool { return s.feature == f }); i >= 0 {
		for _, k := range holes {
			b.images[d.inputs[i].data.from+k] = 0
		}
		return nil
	}
	values, err := d.append(b, f)
	for k := range values {
		values[k] = 1
	}
	for _, k := range holes {
		values[k] = 0
	}
	return err
}

// derive adds the inputs that follow from texts, such as their number of tokens, for a request without them.
func (d *draft) derive(b *buffer, beside []map[string][]float32) error {
	for _, f := range d.model.inputs {
		if len(beside) == 0 || beside[0][f.column] == nil || slices.ContainsFunc(d.sent, func(s sent) bool { return s.feature == f }) {
			continue
		}
		values, err := d.append(b, f)
		if err != nil {
			return err
		}
		for i, columns := range beside {
			copy(values[i*f.size:(i+1)*f.size], columns[f.column])
		}
	}
	return nil
}

// append adds an input and returns its values, to be written.
func (d *draft) append(b *buffer, f *feature) (values []float32, err error) {
	from, n := len(b.images), d.count*f.size
	if b.images, err = room(b, b.images, from+n); err != nil {
		return nil, err
	}
	b.images = b.images[:from+n]
	d.inputs = append(d.inputs, input{data: nested{from: from, to: from + n}})
	d.sent = append(d.sent, sent{feature: f})
	return b.images[from:], nil
}

// fits compares type and shape of an input with the model. The other inputs have count samples; -1 if there are no other
// inputs.
func (in *input) fits(f *feature, count, most int) error {
	if !slices.Contains(f.datatypes, in.datatype) {
		if in.datatype == typeUINT8 && f.column == losses.Images {
			return fmt.Errorf("input %q: datatype UINT8: %w", in.name, errNoPixels)
		}
		return fmt.Errorf("input %q: datatype: got %q, want %s", in.name, cut(in.datatype), strings.Join(f.datatypes, ", "))
	}
	if in.datatype == typeBytes && f.classes != nil && in.size < 0 && !in.data.texts { // a text is missing in all samples
		values := in.data.buffer.images[in.data.from:in.data.to]
		in.data.texts, in.data.classes = !slices.ContainsFunc(values, func(v float32) bool { return v == v }), make([]string, len(values))
	}
	if isText := in.datatype == typeBytes; isText != in.data.texts || isText && in.size >= 0 {
		return fmt.Errorf("input %q: datatype %s: want data with %s", in.name, in.datatype, map[bool]string{true: "one string for each text", false: "numbers"}[isText])
	} else if isText {
		if len(in.shape) == 0 || volume.Of(in.shape) != in.shape[0] {
			return fmt.Errorf("input %q: shape: got %v, want [n] for n texts", in.name, in.shape)
		}
		in.shape = []int{in.shape[0], f.size}
	}
	if in.data.entries && f.column != losses.Images {
		return fmt.Errorf("input %q: data: got rows by the names of their entries, want numbers", in.name)
	}
	flat := []int{f.size}
	want := fmt.Sprintf("[n %d]", f.size)
	if len(f.shape) > 1 {
		want = fmt.Sprintf("[n %s] or %s", strings.Trim(fmt.Sprint(f.shape), "[]"), want)
	}
	one := len(in.shape) == 1 && f.size == 1 && f.column != losses.Images
	if !one && len(in.shape) < 2 || in.shape[0] < 1 || !one && !slices.Equal(in.shape[1:], f.shape) && !slices.Equal(in.shape[1:], flat) {
		return fmt.Errorf("input %q: shape: got %v, want %s with n > 0", in.name, in.shape, want)
	}
	switch n := in.shape[0]; {
	case n > most:
		return f.tooMany(n, most)
	case count >= 0 && n != count:
		return fmt.Errorf("input %q: shape: got %d rows, want %d as of the input before", in.name, n, count)
	}
	return nil
}

// indices replaces the names of classes by their indices. Another name, and null, is an unknown class, which not every reader accepts.
func (in *input) indices(f *feature) error {
	for i, name := range in.data.classes {
		at := slices.Index(f.classes, name)
		if at < 0 && f.accepts([]float32{data.UnknownLabel}) != nil {
			return fmt.Errorf("input %q: data: value %d: got %q, want one of %s", in.name, i, cut(name), table.Quoted(f.classes))
		}
		in.data.buffer.images[in.data.from+i] = float32(at)
	}
	return nil
}

// values checks the values of an input, and scales them.
func (in *input) values(f *feature) error {
	got, want := &in.data, in.shape[0]*f.size
	if in.size < 0 {
		switch {
		case !in.hasData:
			return fmt.Errorf("input %q: got no data", in.name)
		case got.to-got.from != want || volume.Of(got.dims) != want:
			return fmt.Errorf("input %q: data: got %d values, want %d for shape %v", in.name, got.to-got.from, want, in.shape)
		case len(got.dims) > 1 && !slices.Equal(got.dims, in.shape):
			return fmt.Errorf("input %q: data: got nested arrays of shape %v, want %v", in.name, got.dims, in.shape)
		}
	}
	if err := in.indices(f); err != nil {
		return err
	}
	values := got.buffer.images[got.from:got.to]
	holed := f.column == losses.Images && got.holed
	if k := slices.IndexFunc(values, func(v float32) bool { return (got.holed || got.named) && v != v }); k >= 0 && !holed {
		return fmt.Errorf("input %q: data: value %d: got null, want a number", in.name, k)
	}
	if f.within != nil {
		want := ""
		if f.whole {
			want = "a whole number from "
		}
		for i, v := range values {
			if !(v >= f.within[0] && v <= f.within[1]) || f.whole && v != float32(int(v)) {
				return fmt.Errorf("input %q: data: value %d: got %s, want %s%s to %s", in.name, i, plain(v), want, plain(f.within[0]), plain(f.within[1]))
			}
		}
	}
	if f.whole && f.within == nil {
		if err := wholeNumbers(in.name, values); err != nil {
			return err
		}
	}
	if in.datatype == typeUINT8 && in.size < 0 {
		if err := fromPixels(values); err != nil {
			return err
		}
	}
	return f.accepts(values)
}

// accepts returns an error for a value that the model has never computed with: an index outside of a vocabulary, or a number outside of
// the bounds of a drawn column.
func (f *feature) accepts(values []float32) error {
	for _, r := range f.readers {
		if bad, ok := errors.AsType[*data.Error](r.Accepts(f.column, values)); ok {
			return fmt.Errorf("input %q: data: %s", f.name, bad.Problem)
		}
	}
	return nil
}

// plain returns the text of a number: whole ones below 10^9 without an exponent.
func plain(v float32) string {
	if v == float32(math.Trunc(float64(v))) && math.Abs(float64(v)) < 1e9 {
		return strconv.FormatFloat(float64(v), 'f', -1, 32)
	}
	return strconv.FormatFloat(float64(v), 'g', -1, 32)
}

// fromBinary reads the values of an input from binary data, and returns the remaining bytes, which belong to the next inputs.
func (in *input) fromBinary(binary []byte, want int) (rest []byte, err error) {
	switch {
	case in.hasData:
		return nil, fmt.Errorf("input %q: got data and binary_data_size, want one of them", in.name)
	case in.size != want:
		return nil, fmt.Errorf("input %q: binary_data_size: got %d, want %d for shape %v of %s", in.name, in.size, want, in.shape, in.datatype)
	case len(binary) < want:
		return nil, fmt.Errorf("input %q: got %d bytes of binary data after the JSON, want binary_data_size = %d", in.name, len(binary), want)
	}
	b := in.data.buffer
	in.data.from = len(b.images)
	if _, err = b.fromBinary(binary[:want], in.datatype); err != nil && statusOf(err) == http.StatusBadRequest {
		err = fmt.Errorf("input %q: %w", in.name, err)
	}
	in.data.to = len(b.images)
	return binary[want:], err
}

// wholeNumbers returns an error unless all values are whole numbers below 2^24, which float32 represents exactly.
func wholeNumbers(name string, values []float32) error {
	for i, v := range values {
		if v != float32(int(v)) || v >= 1<<24 || v <= -1<<24 {
			return fmt.Errorf("input %q: data: value %d: got %v, want a whole number between -2^24 and 2^24", name, i, v)
		}
	}
	return nil
}

// choose finds the requested outputs. If the request names none, they are the default outputs of the model.
func (d *draft) choose() (err error) {
	if len(d.outputs) == 0 {
		return d.addAll(d.model, d.binary)
	}
	for _, o := range d.outputs {
		binary := d.binary
		if o.binary != nil {
			binary = *o.binary
		}
		if err := d.add(d.model, o.name, binary); err != nil {
			return fmt.Errorf("outputs: %w", err)
		}
	}
	return nil
}

// addAll requests all outputs that can be computed from the inputs of the request.
func (r *request) addAll(l *loaded, binary bool) (err error) {
	for _, o := range l.outputs {
		if missing := r.lacks(o); missing == nil {
			r.wanted = append(r.wanted, wanted{o, binary})
		} else {
			err = cmp.Or(err, missing)
		}
	}
	if len(r.wanted) > 0 {
		return nil
	}
	return fmt.Errorf("outputs: %w", err)
}

func (r *request) add(l *loaded, name string, binary bool) error {
	o := l.output(name)
	if o == nil {
		return fmt.Errorf("got %q, want one of %s", cut(name), table.Quoted(l.outputNames()))
	}
	if slices.ContainsFunc(r.wanted, func(w wanted) bool { return w.output == o }) {
		return fmt.Errorf("got %q twice", name)
	}
	if err := r.lacks(o); err != nil {
		return err
	}
	r.wanted = append(r.wanted, wanted{o, binary})
	return nil
}

// lacks returns an error if an output depends on an input that the request does not contain.
func (r *request) lacks(o *output) error {
	for _, f := range o.inputs {
		if !slices.ContainsFunc(r.sent, func(s sent) bool { return s.feature == f }) {
			names := lists.Map(r.sent, func(s sent) string { return s.name })
			how := ""
			if f.drawn {
				how = " (drawn in training, so that a request chooses its values)"
			}
			return fmt.Errorf("%q is computed from the input %q%s, which was not sent: got %s", o.name, f.name, how, table.Quoted(names))
		}
	}
	return nil
}

// rows returns the values from which an output is computed, row-major. If it is computed from several inputs, each row is the
// concatenation of their values, stored in the i-th slice of the buffer's joined rows.
func (b *buffer) rows(q *request, o *output, i int) (rows []float32, err error) {
	values := func(f *feature) []float32 {
		return q.sent[slices.IndexFunc(q.sent, func(s sent) bool { return s.feature == f })].values
	}
	if len(o.inputs) == 1 {
		return values(o.inputs[0]), nil
	}
	for len(b.joined) <= i {
		b.joined = append(b.joined, nil)
	}
	if rows, err = room(b, b.joined[i][:0], q.count*o.batch.in); err != nil {
		return nil, err
	}
	for k := range q.count {
		for _, f := range o.inputs {
			rows = append(rows, values(f)[k*f.size:(k+1)*f.size]...)
		}
	}
	b.joined[i] = rows
	return rows, nil
}

// keep appends a number of a request, which is valid, in float64.
func (b *buffer) keep(text []byte) (err error) {
	if len(b.wide) == cap(b.wide) {
		b.wide, err = room(b, b.wide, max(2*len(b.wide), 1024))
	}
	v, _ := strconv.ParseFloat(string(text), 64)
	b.wide = append(b.wide, v)
	return err
}

// keepBinary appends numbers of a request in float64; images contains them in float32.
func (b *buffer) keepBinary(images []float32, bytes []byte, datatype string) (err error) {
	if b.wide, err = room(b, b.wide, len(b.wide)+len(images)); err != nil {
		return err
	}
	for i, v := range images {
		wide := float64(v)
		switch datatype {
		case typeFP64:
			wide = math.Float64frombits(binary.LittleEndian.Uint64(bytes[8*i:]))
		case typeINT64:
			wide = float64(int64(binary.LittleEndian.Uint64(bytes[8*i:])))
		case typeINT32:
			wide = float64(int32(binary.LittleEndian.Uint32(bytes[4*i:])))
		}
		b.wide = append(b.wide, wide)
	}
	return nil
}

// fromBinary appends the values of little-endian bytes and returns them. The number of bytes is a multiple of the width of the type.
// UINT8 values are pixels: they are divided by 255, like the pixels of training images. NaN and infinite values are an error.
func (b *buffer) fromBinary(bytes []byte, datatype string) (values []float32, err error) {
	from := len(b.images)
	if b.images, err = room(b, b.images, from+len(bytes)/widths[datatype]); err != nil {
		return nil, err
	}
	b.images = fromBinary(b.images, bytes, datatype)
	if b.exact {
		if err := b.keepBinary(b.images[from:], bytes, datatype); err != nil {
			return nil, err
		}
	}
	return b.images[from:], finite(b.images[from:])
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
	case typeINT32:
		for ; len(b) >= 4; b = b[4:] {
			dst = append(dst, float32(int32(binary.LittleEndian.Uint32(b))))
		}
	case typeINT64:
		for ; len(b) >= 8; b = b[8:] {
			dst = append(dst, float32(int64(binary.LittleEndian.Uint64(b))))
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
