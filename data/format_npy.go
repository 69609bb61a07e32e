package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// The NPY layout of NumPy (numpy.lib.format, versions 1 to 3): a magic text, the version, the length of the header, the
// header (a Python dictionary with descr, fortran_order and shape), then the values. No library is used, because existing
// libraries trust the header and panic on damaged files.
const npyMagic = "\x93NUMPY"

// npyHeaderMost is the longest header that is read: far more than the header of any array of numbers.
const npyHeaderMost = 1 << 16

var (
	npyDescr   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=]?)([a-zA-Z][0-9]+)['"]`)
	npyFortran = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	npyShape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9,\s]*)\)`)
)

// npyTextMost is the longest text of an array of texts.
const npyTextMost = 1 << 16

// npyHeader describes the values that follow the header of an NPY file.
type npyHeader struct {
	kind    string // "u1", "f4", ...
	order   binary.ByteOrder
	fortran bool // first axis fastest
	dims    []int
	length  int // of the header
}

// parseNPYHeader reads a header from the first bytes of a file.
func parseNPYHeader(b []byte) (h npyHeader, err error) {
	text, length, err := npyHeaderText(b)
	if err != nil {
		return h, err
	}
	descr, fortran, shape := npyDescr.FindSubmatch(text), npyFortran.FindSubmatch(text), npyShape.FindSubmatch(text)
	if descr == nil || fortran == nil || shape == nil {
		return h, fmt.Errorf("the NPY header %q is not that of an array of plain numbers", strings.TrimSpace(string(text[:min(len(text), 200)])))
	}
	h = npyHeader{kind: string(descr[2]), order: binary.LittleEndian, fortran: string(fortran[1]) == "True", length: length}
	if string(descr[1]) == ">" {
		h.order = binary.BigEndian
	}
	for field := range strings.SplitSeq(string(shape[1]), ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue // the comma after the last axis
		}
		d, err := strconv.Atoi(field)
		if err != nil {
			return h, fmt.Errorf("the NPY header says shape (%s)", shape[1])
		}
		h.dims = append(h.dims, d)
	}
	return h, nil
}

// npyHeaderText returns the dictionary and where the values start.
func npyHeaderText(b []byte) (text []byte, length int, err error) {
	if !strings.HasPrefix(string(b[:min(len(b), len(npyMagic))]), npyMagic) {
		return nil, 0, errors.New("is not an NPY file: it does not start with \\x93NUMPY")
	}
	if len(b) < 12 {
		return nil, 0, errors.New("the file ends within the NPY header")
	}
	start, size := 10, int(binary.LittleEndian.Uint16(b[8:]))
	switch version := b[6]; version {
	case 1:
	case 2, 3:
		wide := binary.LittleEndian.Uint32(b[8:])
		if wide > npyHeaderMost {
			return nil, 0, fmt.Errorf("the NPY header claims to be %d bytes long", wide)
		}
		start, size = 12, int(wide)
	default:
		return nil, 0, fmt.Errorf("NPY version %d is not known", version)
	}
	if len(b) < start+size {
		return nil, 0, errors.New("the file ends within the NPY header")
	}
	return b[start : start+size], start + size, nil
}

// parseNPY returns the values of an NPY file.
func parseNPY(b []byte) (array, error) {
	h, err := parseNPYHeader(b)
	if err != nil {
		return array{}, err
	}
	size, err := h.valueSize()
	if err != nil {
		return array{}, err
	}
	n, want, err := arrayBytes(h.dims, size)
	if err != nil {
		return array{}, err
	}
	b = b[h.length:]
	if want != int64(len(b)) {
		return array{}, errSize(want, int64(len(b)))
	}
	a := array{dims: h.dims}
	switch {
	case h.kind == "u1":
		a.bytes = b
		if h.fortran {
			a.bytes = rowMajor(b, h.dims)
		}
	case h.kind[0] == 'f':
		a.floats = npyFloats(b, size, h.order, n)
		if h.fortran {
			a.floats = rowMajor(a.floats, h.dims)
		}
	case h.kind[0] == 'U' || h.kind[0] == 'S':
		a.texts = npyTexts(b, size, h.kind[0], h.order, n)
	default:
		a.ints = npyInts(b, size, h.order, n, h.kind[0] == 'i')
		if h.fortran {
			a.ints = rowMajor(a.ints, h.dims)
		}
	}
	return a, nil
}

// valueSize returns the bytes of one value; types that are not read are an error.
func (h npyHeader) valueSize() (int, error) {
	switch h.kind {
	case "u1", "i1":
		return 1, nil
	case "u2", "i2", "f2":
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
	return 0, fmt.Errorf("values of type %.20q are not read: save samples as uint8 (0 to 255), float16, float32 or float64, labels as integers", h.kind)
}

func npyFloats(b []byte, size int, order binary.ByteOrder, n int) []float32 {
	floats := make([]float32, n)
	for i := range floats {
		switch size {
		case 2:
			floats[i] = fromHalf(order.Uint16(b[2*i:]))
		case 4:
			floats[i] = math.Float32frombits(order.Uint32(b[4*i:]))
		default:
			floats[i] = float32(math.Float64frombits(order.Uint64(b[8*i:])))
		}
	}
	return floats
}

func npyInts(b []byte, size int, order binary.ByteOrder, n int, signed bool) []int {
	ints := make([]int, n)
	for i := range ints {
		var v uint64
		switch at := b[i*size:]; size {
		case 1:
			v = uint64(at[0])
		case 2:
			v = uint64(order.Uint16(at))
		case 4:
			v = uint64(order.Uint32(at))
		case 8:
			v = order.Uint64(at)
		}
		ints[i] = int(v)
		if signed {
			unused := 64 - 8*size
			ints[i] = int(int64(v<<unused) >> unused) // the sign bit fills the rest
		}
	}
	return ints
}

// rowMajor returns values that are stored first axis fastest in the order last axis fastest.
func rowMajor[T any](values []T, dims []int) []T {
	out := make([]T, len(values))
	index := make([]int, len(dims))
	for i := range out {
		from, stride := 0, 1
		for axis, d := range dims {
			from += index[axis] * stride
			stride *= d
		}
		out[i] = values[from]
		for axis := len(dims) - 1; axis >= 0; axis-- {
			if index[axis]++; index[axis] < dims[axis] {
				break
			}
			index[axis] = 0
		}
	}
	return out
}
