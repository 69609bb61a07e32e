package data

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"tessera/internal/lists"
)

// dropOneChannel returns (height, width) for (height, width, 1), and other shapes unchanged.
func dropOneChannel(shape []int) []int {
	if len(shape) == 3 && shape[2] == 1 {
		return shape[:2]
	}
	return shape
}

// array is the content of a file of numbers, row-major: exactly one of bytes, floats, ints and texts is not nil.
type array struct {
	dims   []int
	bytes  []byte
	floats []float32
	ints   []int     // other integers, and 0 and 1 of booleans
	texts  []string  // names or labels
	scaled bool      // floats are in [0,1], whatever the declared scale
	wide   []float64 // the floats as they are in the file, if the reader needs them; otherwise nil
	file   File      // the file, if there is no other array in it
	disk   *disk     // rows that are not in memory, in place of the others
	spans  *spans    // of numbers that float32 may not represent exactly; nil for others
}

type arrayHeader struct {
	kind    string // type in NPY's notation: "u1", "f4", ...
	order   binary.ByteOrder
	fortran bool // column-major: the first axis varies fastest
	dims    []int
	length  int  // length of the header
	exact   bool // numbers are also kept in float64
}

var errNoArray = errors.New("is neither an NPY nor an IDX file, nor one of the other formats that are read: .npz, .safetensors, .csv, .tsv, .parquet, .mtx, PNG, JPEG, GIF, BMP, TIFF, WebP")

func parseArrayHeader(b []byte) (arrayHeader, error) {
	if len(b) == 0 {
		return arrayHeader{}, errors.New("is empty")
	}
	if f := detected(b, "", false); f != nil && f.header != nil {
		return f.header(b)
	}
	return arrayHeader{}, errNoArray
}

func openArray(ctx context.Context, path string, _ *Files) (o Opened, err error) {
	s, _, h, err := arrayStream(ctx, path)
	if err != nil {
		return o, err
	}
	defer s.Close()
	read := func(exact bool) (array, error) { return readArray(ctx, path, exact) }
	p := tablePart{path: path, dims: h.dims, kind: h.kind, read: read}
	if !h.fortran && !s.packed {
		p.extents = []extent{{path: path, at: int64(h.length), last: true, arrayHeader: h}}
	}
	return Opened{parts: []tablePart{p}}, nil
}

// arrayStream opens an NPY or an IDX file, gzipped or not, and reads its header. The caller closes it.
func arrayStream(ctx context.Context, path string) (s *stream, values *bufio.Reader, h arrayHeader, err error) {
	if s, err = openStream(ctx, path); err != nil {
		return nil, nil, h, err
	}
	values = bufio.NewReaderSize(s, npyHeaderMost)
	start, err := values.Peek(npyHeaderMost)
	if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF { // of a short file, or a cut one, what there is may do
		h, err = parseArrayHeader(start)
	}
	if err != nil {
		s.Close()
		return nil, nil, h, err
	}
	_, err = values.Discard(h.length)
	return s, values, h, err
}

// readArray reads an NPY or an IDX file. It reads and allocates no more than the header of the file requires. If exact is set, numbers are
// also kept in float64.
func readArray(ctx context.Context, path string, exact bool) (a array, err error) {
	s, b, h, err := arrayStream(ctx, path)
	if err != nil {
		return a, err
	}
	defer s.Close()
	_, want, err := h.size()
	switch size := s.info.Size(); {
	case err != nil:
	case !s.packed && int64(h.length)+want != size:
		err = errSize(want, size-int64(h.length))
	case s.packed && want/bestRatio > size:
		err = fmt.Errorf("the header says %d bytes follow it, more than a gzip file of %d bytes can hold", want, size)
	case s.packed && want > countFrom && want/countRatio > size:
		err = s.counted(int64(h.length) + want)
	}
	if err != nil {
		return a, err
	}
	h.exact = exact
	if a, err = h.read(b, true); err != nil {
		return a, err
	}
	if _, err := b.Peek(1); err == nil {
		return a, fmt.Errorf("the header says %d bytes in all, the file has more", int64(h.length)+want)
	}
	a.file, err = s.file()
	return a, err
}

// read reads the values that follow the header. It converts floats while it reads them, so that only one copy of them is in memory. Memory is
// taken at once if the reader is known to have all values, and otherwise as they come.
func (h arrayHeader) read(r io.Reader, whole bool) (array, error) {
	n, want, err := h.size()
	if err != nil {
		return array{}, err
	}
	if typeOf(h.kind) != Float32 {
		room := want
		if !whole {
			room = min(want, countFrom)
		}
		b, err := readAll(r, want, room)
		if err != nil {
			return array{}, err
		}
		return h.values(b)
	}
	width, _ := h.valueSize()
	a := array{dims: h.dims}
	if !whole {
		n = min(n, countFrom/width)
	}
	a.reserve(h, n)
	piece := make([]byte, min(1<<18, want))
	for got := int64(0); got < want; {
		k, err := io.ReadFull(r, piece[:min(int64(len(piece)), want-got)])
		got += int64(k)
		if a.append(h, piece[:k/width*width]); err == io.EOF || err == io.ErrUnexpectedEOF {
			return a, errSize(want, got)
		} else if err != nil {
			return a, err
		}
	}
	if h.fortran {
		a.rowMajor()
	}
	return a, nil
}

func parseArray(b []byte) (array, error) {
	h, err := parseArrayHeader(b)
	if err != nil {
		return array{}, err
	}
	return h.values(b[h.length:])
}

// size returns the number of values and of their bytes.
func (h arrayHeader) size() (n int, length int64, err error) {
	width, err := h.valueSize()
	if err != nil {
		return 0, 0, err
	}
	return arrayBytes(h.dims, width)
}

func (h arrayHeader) values(b []byte) (array, error) {
	n, want, err := h.size()
	if err != nil {
		return array{}, err
	}
	if want != int64(len(b)) {
		return array{}, errSize(want, int64(len(b)))
	}
	width, _ := h.valueSize()
	a := array{dims: h.dims}
	switch {
	case h.kind == "u1":
		a.bytes = b
	case typeOf(h.kind) == Float32:
		a.reserve(h, n)
		a.append(h, b)
	case h.kind[0] == 'U' || h.kind[0] == 'S':
		a.texts = npyTexts(b, width, h.kind[0], h.order, n)
	default:
		a.ints = make([]int, n)
		decode(a.ints, b, h)
		if i := slices.IndexFunc(a.ints, func(v int) bool { return v < 0 }); h.kind == "u8" && i >= 0 {
			return a, fmt.Errorf("value %d: got %d, want at most %d", i, uint64(a.ints[i]), math.MaxInt64)
		}
	}
	if h.fortran {
		a.rowMajor()
	}
	return a, nil
}

// rowMajor converts the values from column-major to row-major order.
func (a *array) rowMajor() {
	a.bytes, a.floats, a.ints, a.wide = rowMajor(a.bytes, a.dims), rowMajor(a.floats, a.dims), rowMajor(a.ints, a.dims), rowMajor(a.wide, a.dims)
}

func (a *array) reserve(h arrayHeader, n int) {
	a.floats = make([]float32, 0, n)
	if size, err := product(h.dims[min(1, len(h.dims)):]); err == nil && h.kind == "f8" && len(h.dims) > 0 && h.dims[0] > 0 {
		a.spans = newSpans(size)
		if h.exact {
			a.wide = make([]float64, 0, n)
		}
	}
}

func (a *array) numbers(exact bool) {
	if a.ints == nil || len(a.dims) == 0 {
		return
	}
	size := len(a.ints) / max(1, a.dims[0])
	a.floats, a.spans = make([]float32, len(a.ints)), newSpans(size)
	if exact {
		a.wide = make([]float64, len(a.ints))
	}
	for i, n := range a.ints {
		a.floats[i] = float32(n)
		a.spans.add(i%size, float64(n))
		if exact {
			a.wide[i] = float64(n)
		}
	}
	a.ints = nil
}

// valueSize returns the size of one value in bytes; unsupported types are an error.
func (h arrayHeader) valueSize() (int, error) {
	switch h.kind {
	case "u1", "i1", "b1":
		return 1, nil
	case "u2", "i2", "f2", "b2":
		return 2, nil
	case "u4", "i4", "f4":
		return 4, nil
	case "u8", "i8", "f8":
		return 8, nil
	case "V2": // as NumPy writes the type bfloat16 of ml_dtypes
		return 0, fmt.Errorf("values of type %.20q are not read: save bfloat16 as float32, or in a .safetensors file", h.kind)
	}
	if length, err := strconv.Atoi(h.kind[1:]); err == nil && length > 0 && length <= npyTextMost {
		switch h.kind[0] {
		case 'U':
			return 4 * length, nil
		case 'S':
			return length, nil
		}
	}
	return 0, fmt.Errorf("values of type %.20q are not read: save samples as floats or integers, labels as integers or texts", h.kind)
}

func (a *array) append(h arrayHeader, b []byte) {
	width, _ := h.valueSize()
	first, n := len(a.floats), len(b)/width
	a.floats = slices.Grow(a.floats, n)[:first+n]
	decode(a.floats[first:], b, h)
	if a.spans == nil { // of numbers that float32 represents, or of an array without rows
		return
	}
	wide := make([]float64, n)
	decode(wide, b, h)
	for i, v := range wide {
		at := (first + i) % len(a.spans.low)
		if h.fortran { // the rows of a column follow each other
			at = (first + i) / h.dims[0]
		}
		a.spans.add(at, v)
	}
	if h.exact {
		a.wide = append(a.wide, wide...)
	}
}

// decode converts the bytes of numbers. The kinds of large files have loops that the compiler compiles without calls.
func decode[T float32 | float64 | int](dst []T, b []byte, h arrayHeader) {
	width, _ := h.valueSize()
	if h.order == binary.BigEndian && width > 1 {
		b = slices.Clone(b)
		for value := range slices.Chunk(b, width) {
			slices.Reverse(value)
		}
	}
	var number func(b []byte) T
	switch h.kind {
	case "f2":
		for i := range dst {
			dst[i] = T(fromHalf(binary.LittleEndian.Uint16(b[2*i:])))
		}
		return
	case "b2":
		for i := range dst {
			dst[i] = T(fromBrain(binary.LittleEndian.Uint16(b[2*i:])))
		}
		return
	case "f4":
		for i := range dst {
			dst[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		return
	case "f8":
		for i := range dst {
			dst[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
		return
	case "u1", "b1":
		number = func(b []byte) T { return T(b[0]) }
	case "i1":
		number = func(b []byte) T { return T(int8(b[0])) }
	case "u2":
		number = func(b []byte) T { return T(binary.LittleEndian.Uint16(b)) }
	case "i2":
		number = func(b []byte) T { return T(int16(binary.LittleEndian.Uint16(b))) }
	case "u4":
		number = func(b []byte) T { return T(binary.LittleEndian.Uint32(b)) }
	case "i4":
		number = func(b []byte) T { return T(int32(binary.LittleEndian.Uint32(b))) }
	case "u8":
		number = func(b []byte) T { return T(binary.LittleEndian.Uint64(b)) }
	case "i8":
		number = func(b []byte) T { return T(int64(binary.LittleEndian.Uint64(b))) }
	}
	for i := range dst {
		dst[i] = number(b[i*width:])
	}
}

// images returns the array as images of shape dims[1:]; images with one channel become (height, width). If missing is true,
// NaN means a missing entry.
func (a array) images(missing bool) (*Images, error) {
	if len(a.dims) < 2 || len(a.dims) > 4 {
		return nil, fmt.Errorf("the array has %d axes, want (images, values), (images, height, width) or "+
			"(images, height, width, channels)", len(a.dims))
	}
	if a.texts != nil {
		return nil, errors.New("the values are texts, want numbers")
	}
	if a.dims[0] == 0 {
		return nil, errors.New("there are no samples in it")
	}
	shape := dropOneChannel(a.dims[1:])
	if a.bytes != nil {
		return NewBytes(shape, a.bytes, nil)
	}
	if a.disk != nil {
		return a.onDisk(shape)
	}
	a.numbers(false)
	images, err := NewFloats(shape, a.floats, nil)
	if err != nil {
		return nil, err
	}
	images.missing, images.wide = missing, a.wide
	if err := a.spans.overflow(); err != nil {
		return nil, err
	}
	if place, v := images.notFinite(); place != "" {
		return nil, fmt.Errorf("%s: got %v, want a finite number%s", place, v, hintOf(v))
	}
	images.finite = true
	return images, nil
}

// otherFormat replaces the error for a file that is not an array file if another data set could read the file.
func otherFormat(path string, err error) error {
	if other := reads(path); errors.Is(err, errNoArray) && other != "" {
		return &Error{Path: path, Problem: "labels and columns are read from .npy and IDX files", Hint: fmt.Sprintf(
			"save them as .npy files, or samples, labels and columns in one file, which name = %q reads", other)}
	}
	return err
}

// reads returns the name of a data set that can read the file, "" if there is none.
func reads(path string) string {
	start, _ := head(path, formatHead)
	if f := detected(start, path, false); f != nil {
		return f.Dataset
	}
	return ""
}

// labels returns the array as labels: whole numbers, also saved as floats, of which NaN is unknown.
func (a array) labels() ([]int, error) {
	if len(a.dims) != 1 {
		return nil, fmt.Errorf("the array has %d axes, want one label per image", len(a.dims))
	}
	switch {
	case a.texts != nil:
		return nil, errors.New("the labels are texts, want whole numbers; a .csv or .npz file may have names of classes")
	case a.ints != nil:
		return a.ints, nil
	case a.floats == nil:
		return lists.Map(a.bytes, func(b byte) int { return int(b) }), nil
	}
	labels := make([]int, len(a.floats))
	for i, v := range a.floats {
		if labels[i] = int(v); v != v {
			labels[i] = UnknownLabel
		} else if !(v > -wholeBound && v < wholeBound) || float32(labels[i]) != v {
			return nil, fmt.Errorf("label %d: got %v, want a whole number", i, v)
		}
	}
	return labels, nil
}

// The values of [Files.Axes].
const (
	channelsLast  = "nhwc"
	channelsFirst = "nchw"
)

func (f *Files) sampleShape(dims []int) ([]int, error) {
	if len(dims) == 4 && f.Axes == channelsFirst {
		dims = []int{dims[0], dims[2], dims[3], dims[1]}
	}
	in := dropOneChannel(dims[1:])
	values, err := product(in)
	if err != nil {
		return nil, err
	}
	size, err := product([]int{f.Height, f.Width})
	switch {
	case err != nil:
		return nil, err
	case len(in) > 1 && f.Height > 0 && (in[0] != f.Height || in[1] != f.Width):
		return nil, fmt.Errorf("the images are %s, but the keys say height = %d, width = %d", by(in), f.Height, f.Width)
	case len(in) > 1 || f.Height == 0:
		return in, nil
	case values == 0 || values%size != 0:
		return nil, fmt.Errorf("each image has %d values, but height = %d, width = %d", values, f.Height, f.Width)
	}
	return dropOneChannel([]int{f.Height, f.Width, values / size}), nil
}

// interpret returns the samples of an array, and an error doubt if they are probably not what the user intended.
func (f *Files) interpret(a array) (images *Images, doubt *Error, err error) {
	dims := a.dims
	if len(dims) == 4 && f.Axes == channelsFirst {
		a = a.channelsLast()
	}
	integers := a.ints != nil || a.disk != nil && a.disk.isWhole()
	if images, err = f.plain(a); err != nil {
		return nil, nil, err
	}
	shape, err := f.sampleShape(dims)
	if err != nil {
		return nil, nil, err
	}
	if images, err = images.WithShape(shape); err != nil {
		return nil, nil, err
	}
	return images, f.doubt(dims, images, integers), nil
}

// plain returns the array as images; numbers that represent the pixels of 8-bit or 16-bit images are divided by 255 or 65535.
func (f *Files) plain(a array) (*Images, error) {
	a.numbers(f.Scale.subtracts())
	if divisor := f.Scale.divisor(); divisor != 0 && !a.scaled {
		for i := range a.floats {
			a.floats[i] /= divisor
		}
	}
	return a.images(f.Missing != nil)
}

// mostDoubted is the largest value of a byte: floats up to this value are doubtful as images, because they may be unscaled bytes.
const mostDoubted = 255

// doubt returns an error if the values of an array are probably not what the user intended.
func (f *Files) doubt(dims []int, images *Images, integers bool) *Error {
	if len(dims) == 2 && len(images.Shape) == 3 && f.Axes == channelsFirst {
		return &Error{
			Problem: fmt.Sprintf("axes = %q is for arrays of four axes, but rows of values are read as height, width, channels", channelsFirst),
			Hint:    "save the array with the shape (n, channels, height, width), or leave axes out if each row has the channels last",
		}
	}
	few := []int{1, 3, 4} // channels of an image
	if len(dims) == 4 && f.Axes == "" && slices.Contains(few, dims[1]) && dims[3] > 4 {
		return &Error{
			Problem: fmt.Sprintf("its axes (%d, %d, %d, %d) look like samples, channels, height, width", dims[0], dims[1], dims[2], dims[3]),
			Hint: fmt.Sprintf("write axes = %q in the dataset table, or axes = %q if these are %d rows of %d columns with %d channels",
				channelsFirst, channelsLast, dims[1], dims[2], dims[3]),
		}
	}
	if len(images.Shape) < 2 || images.floats == nil && images.disk == nil || images.isBytes() || len(f.Scale) > 0 {
		return nil
	}
	low, high := images.Range()
	if integers && low >= 0 && high > mostDoubted && high <= 65535 {
		return &Error{
			Problem: fmt.Sprintf("its values, integers, reach from %g to %g: they look like pixels of 16 bits", low, high),
			Hint:    `write scale = "uint16" in the dataset table to divide them by 65535, or scale = 1 to use them as they are`,
		}
	}
	if low >= 0 && high > 2 && high <= mostDoubted {
		return &Error{
			Problem: fmt.Sprintf("its values, floats, reach from %g to %g: they look like bytes from 0 to 255", low, high),
			Hint:    `write scale = "bytes" in the dataset table to divide them by 255, or scale = 1 to use them as they are`,
		}
	}
	return nil
}

func (a array) channelsLast() array {
	n, channels, pixels := a.dims[0], a.dims[1], a.dims[2]*a.dims[3]
	return array{dims: []int{n, a.dims[2], a.dims[3], channels}, disk: a.disk, ints: moveChannels(a.ints, n, channels, pixels), texts: a.texts, spans: a.spans,
		bytes: moveChannels(a.bytes, n, channels, pixels), floats: moveChannels(a.floats, n, channels, pixels),
		wide: moveChannels(a.wide, n, channels, pixels)}
}

func moveChannels[T any](values []T, n, channels, pixels int) []T {
	if values == nil {
		return nil
	}
	out := make([]T, len(values))
	for i := range n {
		for c := range channels {
			for p := range pixels {
				out[(i*pixels+p)*channels+c] = values[(i*channels+c)*pixels+p]
			}
		}
	}
	return out
}
