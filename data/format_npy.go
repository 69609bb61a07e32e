package data

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"tessera/internal/lists"
)

// npyMagic is the beginning of a file in NumPy's NPY layout (numpy.lib.format, versions 1 to 3): magic bytes, the version, the
// length of the header, the header (a Python dictionary with descr, fortran_order and shape), then the values. No library is
// used, because existing libraries trust the header and panic on damaged files.
const npyMagic = "\x93NUMPY"

// npyHeaderMost is the maximum length of a header: far more than the header of any array of numbers.
const npyHeaderMost = 1 << 16

var (
	npyDescr   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=]?)([a-zA-Z][0-9]+)['"]`)
	npyFortran = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	npyShape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([0-9L,\s]*)\)`) // Python 2 wrote 12L
)

// npyTextMost is the maximum length of a text in an array of texts.
const npyTextMost = 1 << 16

func init() {
	RegisterFormat(Format{Dataset: "npy", About: "your own vectors or images in NumPy's .npy files: uint8 or floats; (n,p), (n,h,w) or (n,h,w,c)", Sort: SingleFiles,
		Suffixes: []string{".npy"}, Is: begins(npyMagic), Open: openArray, header: parseNPYHeader, write: written.npy, fill: fillNPY})
}

func parseNPYHeader(b []byte) (h arrayHeader, err error) {
	text, length, err := npyHeaderText(b)
	if err != nil {
		return h, err
	}
	descr, fortran, shape := npyDescr.FindSubmatch(text), npyFortran.FindSubmatch(text), npyShape.FindSubmatch(text)
	if descr == nil || fortran == nil || shape == nil {
		return h, fmt.Errorf("the NPY header %q is not that of an array of plain numbers", strings.TrimSpace(string(text[:min(len(text), 200)])))
	}
	h = arrayHeader{kind: string(descr[2]), order: binary.LittleEndian, fortran: string(fortran[1]) == "True", length: length}
	if string(descr[1]) == ">" {
		h.order = binary.BigEndian
	}
	for field := range strings.SplitSeq(string(shape[1]), ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue // the comma after the last axis
		}
		d, err := strconv.Atoi(strings.TrimSuffix(field, "L"))
		if err != nil {
			return h, fmt.Errorf("the NPY header says shape (%s)", shape[1])
		}
		h.dims = append(h.dims, d)
	}
	return h, nil
}

// npyHeaderText returns the dictionary, and the offset at which the values start.
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

// rowMajor converts values from column-major to row-major order.
func rowMajor[T any](values []T, dims []int) []T {
	if values == nil {
		return nil
	}
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

// fromHalf returns the value of an IEEE 754 binary16: 1 sign bit, 5 exponent bits, 10 fraction bits.
func fromHalf(h uint16) float32 {
	const rebias = (127 - 15) << 23
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)<<13
	if rest-1<<23 < 0x1e<<23 { // neither 0, subnormal, infinite nor NaN
		return math.Float32frombits(sign | rest + rebias)
	}
	return math.Float32frombits(sign | rareHalf(rest>>13))
}

// rareHalf returns the bits of zero, subnormal and infinite numbers and of NaN without their sign.
func rareHalf(h uint32) uint32 {
	if h < 1<<10 { // fraction * 2^-24, which is exact
		return math.Float32bits(float32(h) * (1.0 / (1 << 24)))
	}
	return 0xff<<23 | h&0x3ff<<13
}

// fromBrain returns the value of a bfloat16: the upper half of a float32.
func fromBrain(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// npyTexts returns texts of size bytes each, padded with zeros: UTF-32 (kind U) or bytes (kind S).
func npyTexts(b []byte, size int, kind byte, order binary.ByteOrder, n int) []string {
	texts := make([]string, n)
	for i := range texts {
		one := b[i*size : (i+1)*size]
		if kind == 'S' {
			texts[i] = strings.TrimRight(string(one), "\x00")
			continue
		}
		var text strings.Builder
		for at := 0; at < size; at += 4 {
			if r := order.Uint32(one[at:]); r != 0 {
				text.WriteRune(rune(min(r, utf8.MaxRune+1))) // what is not a character is written as U+FFFD
			}
		}
		texts[i] = text.String()
	}
	return texts
}

// npyHeaderOf returns the header of an array, NPY version 1.
func npyHeaderOf(descr string, dims []int) []byte {
	var shape strings.Builder
	for _, d := range dims {
		fmt.Fprintf(&shape, "%d, ", d) // Python takes a last comma, and needs it for one axis
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, strings.TrimSuffix(shape.String(), " "))
	const align = 64 // alignment of the values that NumPy expects
	padding := align - (len(npyMagic)+4+len(text)+1)%align
	text += strings.Repeat(" ", padding) + "\n"
	header := append([]byte(npyMagic), 1, 0)
	header = binary.LittleEndian.AppendUint16(header, uint16(len(text)))
	return append(header, text...)
}

func (out written) npy(w io.Writer) error {
	if _, err := w.Write(npyHeaderOf("<f4", out.dims)); err != nil {
		return err
	}
	return out.pieces(func(values []float32) error {
		for piece := range slices.Chunk(values, 1<<13) {
			if err := binary.Write(w, binary.LittleEndian, piece); err != nil {
				return err
			}
		}
		return nil
	})
}

// WriteNPY writes float32 values, row-major, as an array with axes dims in NumPy's format NPY, version 1.
func WriteNPY(w io.Writer, dims []int, values []float32) error {
	return written{dims: dims, pieces: func(do func([]float32) error) error { return do(values) }}.npy(w)
}

// writeNPYInts writes integers as int64.
func writeNPYInts(w io.Writer, values []int) error {
	wide := lists.Map(values, func(v int) int64 { return int64(v) })
	_, err := w.Write(npyHeaderOf("<i8", []int{len(values)}))
	return cmp.Or(err, binary.Write(w, binary.LittleEndian, wide))
}

// writeNPYTexts writes texts as UTF-32, padded with zeros to the longest.
func writeNPYTexts(w io.Writer, texts []string) error {
	longest := 1
	for _, t := range texts {
		longest = max(longest, utf8.RuneCountInString(t))
	}
	padded := make([]rune, 0, longest*len(texts))
	for i, t := range texts {
		padded = append(padded, []rune(t)...)
		padded = padded[:(i+1)*longest]
	}
	_, err := w.Write(npyHeaderOf(fmt.Sprintf("<U%d", longest), []int{len(texts)}))
	return cmp.Or(err, binary.Write(w, binary.LittleEndian, padded))
}
