package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	npyDescr   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=]?)([a-z][0-9]+)['"]`)
	npyFortran = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	npyShape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9,\s]*)\)`)
)

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
	n, err := product(h.dims)
	if err != nil {
		return array{}, err
	}
	b = b[h.length:]
	if want := int64(n) * int64(size); want != int64(len(b)) {
		return array{}, errSize(want, int64(len(b)))
	}
	a := array{dims: h.dims}
	switch {
	case h.kind == "u1":
		a.bytes = b
		if h.fortran {
			a.bytes = rowMajor(b, h.dims)
		}
	case h.kind == "f4" || h.kind == "f8":
		a.floats = npyFloats(b, size, h.order, n)
		if h.fortran {
			a.floats = rowMajor(a.floats, h.dims)
		}
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
	case "u2", "i2":
		return 2, nil
	case "u4", "i4", "f4":
		return 4, nil
	case "u8", "i8", "f8":
		return 8, nil
	}
	return 0, fmt.Errorf("values of type %.20q are not read: save images as uint8 (0 to 255), float32 or float64, labels as integers", h.kind)
}

func npyFloats(b []byte, size int, order binary.ByteOrder, n int) []float32 {
	floats := make([]float32, n)
	for i := range floats {
		if size == 4 {
			floats[i] = math.Float32frombits(order.Uint32(b[4*i:]))
		} else {
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

// writeNPY writes float32 values, row-major, as NPY version 1.
func writeNPY(w io.Writer, dims []int, values []float32) error {
	var shape strings.Builder
	for _, d := range dims {
		fmt.Fprintf(&shape, "%d, ", d) // Python takes a last comma, and needs it for one axis
	}
	text := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", strings.TrimSuffix(shape.String(), " "))
	const align = 64 // where NumPy wants the values to start
	padding := align - (len(npyMagic)+4+len(text)+1)%align
	text += strings.Repeat(" ", padding) + "\n"
	header := append([]byte(npyMagic), 1, 0)
	header = binary.LittleEndian.AppendUint16(header, uint16(len(text)))
	if _, err := w.Write(append(header, text...)); err != nil {
		return err
	}
	buf := make([]byte, 0, 1<<15)
	for len(values) > 0 {
		n := min(len(values), cap(buf)/4)
		buf = buf[:0]
		for _, v := range values[:n] {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}
