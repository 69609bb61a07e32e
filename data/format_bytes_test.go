package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

var background = context.Background()

// idxBytes returns an IDX file according to the description of the format, independently of writeIDX.
func idxBytes(kind byte, dims []int, values ...any) []byte {
	var b bytes.Buffer
	b.Write([]byte{0, 0, kind, byte(len(dims))})
	for _, d := range dims {
		binary.Write(&b, binary.BigEndian, uint32(d))
	}
	for _, v := range values {
		binary.Write(&b, binary.BigEndian, v)
	}
	return b.Bytes()
}

// npyBytes returns an NPY file with any header.
func npyBytes(descr, fortran, shape string, order binary.ByteOrder, values any) []byte {
	text := "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n"
	b := append([]byte(npyMagic), 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	w := bytes.NewBuffer(append(b, text...))
	binary.Write(w, order, values)
	return w.Bytes()
}

func gzipped(t *testing.T, b []byte) []byte {
	t.Helper()
	return wrapped(t, b, gzip.DefaultCompression)
}

func write[T string | []byte](t testing.TB, dir, name string, content T) string {
	t.Helper()
	path := filepath.Join(dir, name)
	fatal.If(t, os.MkdirAll(filepath.Dir(path), 0o755))
	fatal.If(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func textFile(t *testing.T, name, text string) string {
	t.Helper()
	return write(t, t.TempDir(), name, text)
}

// The description is https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. The tests of package export use
// NumPy itself.
func TestNPYFilesAreThoseOfTheDescription(t *testing.T) {
	values := []float32{1.5, -2, 3e-9, 4, 5, 6}
	for shape, dims := range map[string][]int{"(6,)": {6}, "(2, 3,)": {2, 3}, "(1, 2, 3,)": {1, 2, 3}} {
		var b bytes.Buffer
		fatal.If(t, WriteNPY(&b, dims, values))
		expect.Equal(t, (b.Len()-4*len(values))%64, 0, "the values of", dims, "start at")
		text := b.Bytes()
		start := 10 + int(binary.LittleEndian.Uint16(text[8:]))
		header, got := string(text[10:start]), make([]float32, len(values))
		if _, err := binary.Decode(text[start:], binary.LittleEndian, got); err != nil || !slices.Equal(got, values) ||
			string(text[:8]) != "\x93NUMPY\x01\x00" || !strings.Contains(header, "'descr': '<f4'") || !strings.Contains(header, "'shape': "+shape) {
			t.Errorf("got %q, values %v, %v; want %v of %s", header, got, err, values, shape)
		}
	}
	header := "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"
	header += strings.Repeat(" ", 117-len(header)) + "\n" // as NumPy writes it
	b := bytes.NewBufferString("\x93NUMPY\x01\x00\x76\x00" + header)
	fatal.If(t, binary.Write(b, binary.LittleEndian, []float64{1, 2, 3}))
	a, err := parseArray(b.Bytes())
	if err != nil || !slices.Equal(a.floats, []float32{1, 2, 3}) || !slices.Equal(a.dims, []int{3}) {
		t.Errorf("a file of NumPy is read as %v, %v", a, err)
	}
}

func FuzzArraysNeverPanic(f *testing.F) {
	f.Add(idxBytes(idxUint8, []int{2, 1, 3}, []byte{0, 255, 51, 102, 153, 204}))
	f.Add(idxBytes(idxFloat64, []int{1, 1, 1}, 0.5))
	f.Add(idxBytes(idxInt16, []int{2}, []int16{1, 2}))
	f.Add(idxBytes(idxInt16, []int{1, 1, 2}, []int16{1, 2}))
	f.Add(npyBytes("<f4", "True", "(2, 2)", binary.LittleEndian, []float32{1, 2, 3, 4}))
	f.Add(npyBytes("|u1", "False", "(2,)", binary.LittleEndian, []byte{1, 2}))
	f.Add(npyBytes("<i8", "False", "()", binary.LittleEndian, []int64{1}))
	f.Add([]byte(npyMagic + "\x02\x00\x02\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, headerErr := parseArrayHeader(b)
		a, err := parseArray(b)
		if err != nil {
			return
		}
		if headerErr != nil || !slices.Equal(h.dims, a.dims) {
			t.Fatalf("the header alone says %v (%v), the file %v", h.dims, headerErr, a.dims)
		}
		n, err := product(a.dims)
		if err != nil || n != len(a.bytes)+len(a.floats)+len(a.ints) {
			t.Fatalf("dims %v (%v) hold %d values", a.dims, err, len(a.bytes)+len(a.floats)+len(a.ints))
		}
		a.labels()
		if images, err := a.images(false); err == nil && images.Len() != a.dims[0] {
			t.Fatalf("%d images of dims %v", images.Len(), a.dims)
		}
	})
}

// pngBytes returns a PNG file of an image with the pixels f(x, y).
func pngBytes(t *testing.T, img interface {
	image.Image
	Set(x, y int, c color.Color)
}, f func(x, y int) color.Color) []byte {
	t.Helper()
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			img.Set(x, y, f(x, y))
		}
	}
	var b bytes.Buffer
	fatal.If(t, png.Encode(&b, img))
	return b.Bytes()
}
