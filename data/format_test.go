package data

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sbinet/npyio/npy"
)

var background = context.Background()

// idxBytes writes an IDX file by the format's description, independently of writeIDX.
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

// npyBytes writes an NPY file of any header.
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
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t *testing.T, dir, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryFormatIsToldByItsContent(t *testing.T) {
	want := []float32{0, 1, 0.2, 0.4, 0.6, 0.8}
	asBytes := []byte{0, 255, 51, 102, 153, 204}
	float64s := []float64{0, 1, 0.2, 0.4, 0.6, 0.8}
	for name, b := range map[string][]byte{
		"idx bytes":            idxBytes(idxUint8, []int{2, 1, 3}, asBytes),
		"idx float32":          idxBytes(idxFloat32, []int{2, 1, 3}, want),
		"idx float64":          idxBytes(idxFloat64, []int{2, 1, 3}, float64s),
		"idx gzipped":          gzipped(t, idxBytes(idxUint8, []int{2, 1, 3}, asBytes)),
		"npy bytes":            npyBytes("|u1", "False", "(2, 1, 3)", binary.LittleEndian, asBytes),
		"npy little float32":   npyBytes("<f4", "False", "(2, 1, 3)", binary.LittleEndian, want),
		"npy big float32":      npyBytes(">f4", "False", "(2, 1, 3)", binary.BigEndian, want),
		"npy float64":          npyBytes("<f8", "False", "(2, 1, 3)", binary.LittleEndian, float64s),
		"npy one channel":      npyBytes("<f8", "False", "(2, 1, 3, 1)", binary.LittleEndian, float64s),
		"npy gzipped":          gzipped(t, npyBytes("<f4", "False", "(2, 1, 3)", binary.LittleEndian, want)),
		"npy first axis first": npyBytes("<f4", "True", "(2, 1, 3)", binary.LittleEndian, []float32{0, 0.4, 1, 0.6, 0.2, 0.8}),
	} {
		images, err := ReadImages(background, write(t, t.TempDir(), "file", b), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := images.Float32(); !slices.Equal(got, want) || !slices.Equal(images.Shape, []int{1, 3}) {
			t.Errorf("%s: got %v of shape %v, want %v of shape [1 3]", name, got, images.Shape, want)
		}
	}
}

func TestRowMajorUndoesAnyOrderOfAxes(t *testing.T) {
	dims := []int{2, 3, 4}
	stored := make([]int, 24) // first axis fastest: the value says where it belongs
	for i := range 2 {
		for j := range 3 {
			for k := range 4 {
				stored[i+2*j+6*k] = 12*i + 4*j + k
			}
		}
	}
	for i, v := range rowMajor(stored, dims) {
		if v != i {
			t.Fatalf("position %d holds %d", i, v)
		}
	}
}

func TestIntegersOfEverySizeAreLabels(t *testing.T) {
	big := binary.BigEndian
	for name, c := range map[string]struct {
		b    []byte
		want []int
	}{
		"idx uint8":  {idxBytes(idxUint8, []int{3}, []byte{0, 9, 255}), []int{0, 9, 255}},
		"idx int8":   {idxBytes(idxInt8, []int{2}, []int8{-1, 9}), []int{-1, 9}},
		"idx int16":  {idxBytes(idxInt16, []int{2}, []int16{-300, 9}), []int{-300, 9}},
		"idx int32":  {idxBytes(idxInt32, []int{2}, []int32{-70000, 9}), []int{-70000, 9}},
		"npy uint8":  {npyBytes("|u1", "False", "(2,)", big, []uint8{200, 9}), []int{200, 9}},
		"npy int8":   {npyBytes("|i1", "False", "(2,)", big, []int8{-1, 9}), []int{-1, 9}},
		"npy uint16": {npyBytes(">u2", "False", "(2,)", big, []uint16{65535, 9}), []int{65535, 9}},
		"npy int32":  {npyBytes(">i4", "False", "(2,)", big, []int32{-70000, 9}), []int{-70000, 9}},
		"npy int64":  {npyBytes("<i8", "False", "(2,)", binary.LittleEndian, []int64{-1 << 40, 9}), []int{-1 << 40, 9}},
	} {
		a, err := parseArray(c.b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := a.labels(); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, c.want)
		}
	}
}

func TestFilesThatCannotBeImagesAreNamedWithTheirProblem(t *testing.T) {
	good := idxBytes(idxUint8, []int{2, 1, 3}, []byte{0, 255, 51, 102, 153, 204})
	packed := gzipped(t, bytes.Repeat(good, 500))
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":            {nil, "neither"},
		"text":             {[]byte("hello, world"), "neither"},
		"idx cut":          {good[:len(good)-1], "the header says 6 bytes follow it, the file has 5"},
		"idx too long":     {append(slices.Clone(good), 0), "6 bytes follow it, the file has 7"},
		"idx header cut":   {good[:9], "ends within"},
		"idx no axes":      {[]byte{0, 0, 8, 0}, "0 axes"},
		"idx huge":         {idxBytes(idxUint8, []int{math.MaxUint32, math.MaxUint32, math.MaxUint32}), "not possible"},
		"idx large claim":  {idxBytes(idxUint8, []int{1 << 20, 1 << 10, 1 << 10}), "the file has 0"},
		"idx no images":    {idxBytes(idxUint8, []int{0, 28, 28}), "no images"},
		"idx labels":       {idxBytes(idxUint8, []int{3}, []byte{1, 2, 3}), "1 axes"},
		"idx integers":     {idxBytes(idxInt32, []int{1, 1, 1}, int32(7)), "uint8"},
		"idx NaN":          {idxBytes(idxFloat32, []int{2, 1, 1}, []float32{1, float32(math.NaN())}), "image 1 holds the value NaN"},
		"npy infinite":     {npyBytes("<f4", "False", "(1, 1)", binary.LittleEndian, []float32{float32(math.Inf(1))}), "row 0 holds the value +Inf"},
		"npy cut":          {npyBytes("<f4", "False", "(2, 2)", binary.LittleEndian, []float32{1, 2, 3}), "16 bytes follow it, the file has 12"},
		"npy complex":      {npyBytes("<c8", "False", "(1, 1)", binary.LittleEndian, make([]byte, 8)), `"c8"`},
		"npy half":         {npyBytes("<f2", "False", "(1, 1)", binary.LittleEndian, make([]byte, 2)), `"f2"`},
		"npy wide":         {npyBytes("<f99999999999999999999", "False", "(1, 1)", binary.LittleEndian, make([]byte, 2)), `"f9999999999999999999" are not read: save images as uint8`},
		"npy objects":      {npyBytes("|O", "False", "(1, 1)", binary.LittleEndian, make([]byte, 8)), "plain numbers"},
		"npy negative":     {npyBytes("|u1", "False", "(-1, 1)", binary.LittleEndian, []byte{}), "plain numbers"},
		"npy overflow":     {npyBytes("|u1", "False", "(99999999999999999999, 1)", binary.LittleEndian, []byte{}), "shape"},
		"npy version":      {[]byte(npyMagic + "\x09\x00aaaaaaaaaa"), "version 9"},
		"npy header cut":   {[]byte(npyMagic + "\x01\x00\xff\x00{}    "), "ends within"},
		"npy header claim": {[]byte(npyMagic + "\x02\x00\xff\xff\xff\xff{}"), "claims"},
		"gzip cut":         {packed[:len(packed)/2], "cut short"},
		"gzip damaged":     {append(packed[:len(packed)-8:len(packed)-8], 1, 2, 3, 4, 5, 6, 7, 8), "checksum"},
		"gzip header cut":  {packed[:5], "cut short"},
		"png cut":          {[]byte(pngMagic + "\x00\x00"), "cut short"},
		"png huge":         {claimingPNG(100000, 100000), "more than 268435456 pixels"},
	} {
		path := write(t, t.TempDir(), "some file", c.b)
		_, err := ReadImages(background, path, nil)
		var bad *Error
		if !errors.As(err, &bad) || bad.Path != path || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line, an *Error about %s with %q", name, err, path, c.want)
		}
	}
}

func TestMissingFilesFoldersAndPipesAreErrors(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "nothing"): "not found", dir: "no .png files", os.DevNull: "not a file"} {
		var bad *Error
		if _, err := ReadImages(background, path, nil); !errors.As(err, &bad) || bad.Path != path || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an *Error with %q", path, err, want)
		}
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	path := write(t, dir, "a", idxBytes(idxUint8, []int{1, 1, 1}, byte(1)))
	if _, err := ReadImages(ctx, path, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled read gave %v", err)
	}
}

func TestImagesTakeTheShapeThatTheCallerNeedsOrAreRefused(t *testing.T) {
	dir := t.TempDir()
	flat := write(t, dir, "flat", npyBytes("|u1", "False", "(2, 6)", binary.LittleEndian, make([]byte, 12)))
	large := write(t, dir, "large.png", claimingPNG(16000, 16000))
	square := write(t, dir, "square", npyBytes("|u1", "False", "(2, 2, 3)", binary.LittleEndian, make([]byte, 12)))
	for _, c := range []struct {
		path  string
		shape []int
		want  string // of the error, "" for none
	}{
		{flat, []int{2, 3}, ""}, {flat, []int{6}, ""}, {flat, nil, ""}, {square, []int{2, 3}, ""}, {square, []int{6}, ""},
		{square, []int{3, 2}, "the images are 2x3, want 3x2"},
		{flat, []int{7}, "each row has 6 values (6), want 7"},
		{square, []int{28, 28}, "the images are 2x3, want 28x28"},
		{large, []int{6, 5}, "the images are 16000x16000, want 6x5"},
		{large, []int{30}, "each row has 256000000 values (16000x16000), want 30"},
		{large, []int{6, 5, 3}, "the images are 16000x16000x3, want 6x5x3"},
	} {
		images, err := ReadImages(background, c.path, c.shape)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s as %v: got %v, want %q", c.path, c.shape, err, c.want)
			}
		} else if err != nil || c.shape != nil && !slices.Equal(images.Shape, c.shape) {
			t.Errorf("%s as %v: got %v", c.path, c.shape, err)
		}
	}
}

func TestImagesAreWrittenAndReadBackInEveryFormat(t *testing.T) {
	dir := t.TempDir()
	values := make([]float32, 3*2*4*3)
	for i := range values {
		values[i] = float32(i*3%256) / 255
	}
	for _, shape := range [][]int{{2, 4}, {2, 4, 3}} {
		pixels, _ := product(shape)
		for _, name := range []string{"a.npy", "a.idx", "a.idx.gz", "images-idx3-ubyte", "images-idx3-ubyte.gz", "folder", "one.png"} {
			path := filepath.Join(dir, by(shape), name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			written := values[:3*pixels]
			if name == "one.png" {
				written = values[:pixels]
			}
			if err := WriteImages(path, shape, written); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			images, err := ReadImages(background, path, shape)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if got := images.Float32(); !slices.Equal(got, written) {
				t.Errorf("%s: read back %v, want %v", path, got, written)
			}
		}
	}
	entries, _ := os.ReadDir(filepath.Join(dir, "2x4"))
	if len(entries) != 7 {
		t.Errorf("the folder holds %v: something was left beside", entries)
	}
}

func TestBytesAreRoundedAndClippedAndFloatsAreKept(t *testing.T) {
	values := []float32{-3, 0.499 / 255, 0.501 / 255, 0.5, 254.6 / 255, 1, 7, float32(math.NaN())}
	if got, want := toBytes(values), []byte{0, 0, 1, 128, 255, 255, 255, 0}; !bytes.Equal(got, want) {
		t.Errorf("bytes %v, want %v", got, want)
	}
	path := filepath.Join(t.TempDir(), "codes.npy")
	codes := []float32{-3, 7, 1e-20, 0.1, 5, 6}
	if err := WriteImages(path, []int{3}, codes); err != nil {
		t.Fatal(err)
	}
	back, err := ReadImages(background, path, []int{3})
	if err != nil || !slices.Equal(back.Float32(), codes) {
		t.Errorf("codes read back as %v, %v", back, err)
	}
}

func TestImagesAreWrittenIntoAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "empty"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(path, 0o755), os.Symlink("empty", link)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link + "/"} {
		if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o755), WriteImages(name, []int{1, 3}, make([]float32, 6))); err != nil {
			t.Fatal(err)
		}
		if images, err := ReadImages(background, link, nil); err != nil || images.Len() != 2 {
			t.Errorf("%s: read back %v, %v", name, images, err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("the folder holds %v: something was left", entries)
	}
}

func TestOutputsThatCannotBeWrittenAreRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "full/old.png", []byte("x"))
	for _, c := range []struct {
		name  string
		shape []int
		n     int
		want  string
	}{
		{"codes.idx", []int{3}, 6, ".npy"},
		{"codes", []int{3}, 6, ".npy"},
		{"a.jpg", []int{1, 3}, 6, ".npy, .idx, .idx.gz or .png"},
		{"two.png", []int{1, 3}, 6, "2 images"},
		{"full", []int{1, 3}, 6, "not empty"},
		{"five.npy", []int{1, 3}, 5, "5 values"},
		{"folder", []int{1, 3, 2}, 6, "channels"},
		{"no/such/folder.npy", []int{1, 3}, 6, "no such file"},
	} {
		err := WriteImages(filepath.Join(dir, c.name), c.shape, make([]float32, c.n))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
	var disk *fs.PathError
	if err := WriteImages(filepath.Join(dir, "no/folder.npy"), []int{1}, nil); !errors.As(err, &disk) {
		t.Errorf("a missing folder gave %v, want a *fs.PathError", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder holds %v: something was left", entries)
	}
}

// npyio is an independent reader and writer of the format.
func TestNPYFilesAgreeWithAnotherImplementation(t *testing.T) {
	values := []float32{1.5, -2, 3e-9, 4, 5, 6}
	for _, dims := range [][]int{{6}, {2, 3}, {1, 2, 3}} {
		var b bytes.Buffer
		if err := writeNPY(&b, dims, values); err != nil {
			t.Fatal(err)
		}
		if start := b.Len() - 4*len(values); start%64 != 0 {
			t.Errorf("the values of %v start at %d, want a multiple of 64", dims, start)
		}
		r, err := npy.NewReader(&b)
		if err != nil {
			t.Fatal(err)
		}
		var got []float32
		if err := r.Read(&got); err != nil || !slices.Equal(got, values) || !slices.Equal(r.Header.Descr.Shape, dims) {
			t.Errorf("npyio reads %v of shape %v, %v; want %v of %v", got, r.Header.Descr.Shape, err, values, dims)
		}
	}
	var b bytes.Buffer
	if err := npy.Write(&b, []float64{1, 2, 3}); err != nil {
		t.Fatal(err)
	}
	a, err := parseNPY(b.Bytes())
	if err != nil || !slices.Equal(a.floats, []float32{1, 2, 3}) || !slices.Equal(a.dims, []int{3}) {
		t.Errorf("a file of npyio is read as %v, %v", a, err)
	}
}

func FuzzArraysNeverPanic(f *testing.F) {
	f.Add(idxBytes(idxUint8, []int{2, 1, 3}, []byte{0, 255, 51, 102, 153, 204}))
	f.Add(idxBytes(idxFloat64, []int{1, 1, 1}, 0.5))
	f.Add(idxBytes(idxInt16, []int{2}, []int16{1, 2}))
	f.Add(npyBytes("<f4", "True", "(2, 2)", binary.LittleEndian, []float32{1, 2, 3, 4}))
	f.Add(npyBytes("|u1", "False", "(2,)", binary.LittleEndian, []byte{1, 2}))
	f.Add(npyBytes("<i8", "False", "()", binary.LittleEndian, []int64{1}))
	f.Add([]byte(npyMagic + "\x02\x00\x02\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dims, headerErr := arrayDims(b)
		a, err := parseArray(b)
		if err != nil {
			return
		}
		if headerErr != nil || !slices.Equal(dims, a.dims) {
			t.Fatalf("the header alone says %v (%v), the file %v", dims, headerErr, a.dims)
		}
		n, err := product(a.dims)
		if err != nil || n != len(a.bytes)+len(a.floats)+len(a.ints) {
			t.Fatalf("dims %v (%v) hold %d values", a.dims, err, len(a.bytes)+len(a.floats)+len(a.ints))
		}
		a.labels()
		if images, err := a.images(); err == nil && images.Len() != a.dims[0] {
			t.Fatalf("%d images of dims %v", images.Len(), a.dims)
		}
	})
}

// pngBytes encodes an image whose pixels are given by f.
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
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
