package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

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
		"npy floats": {npyBytes("<f8", "False", "(3,)", binary.LittleEndian, []float64{2, -1, math.NaN()}), []int{2, -1, UnknownLabel}},
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

func TestLabelsThatAreNoWholeNumbersAreErrors(t *testing.T) {
	for want, values := range map[string][]float64{"label 1: got 2.5, want a whole number": {1, 2.5}, "label 0: got +Inf, want": {math.Inf(1)}, "label 0: got 1e+30": {1e30}} {
		a, err := parseArray(npyBytes("<f8", "False", fmt.Sprintf("(%d,)", len(values)), binary.LittleEndian, values))
		fatal.If(t, err)
		_, err = a.labels()
		expect.Error(t, err, want, values)
	}
	_, err := array{dims: []int{1}, texts: []string{"a"}}.labels()
	expect.Error(t, err, "the labels are texts, want whole numbers", "texts")
}

func TestFilesThatCannotBeImagesAreNamedWithTheirProblem(t *testing.T) {
	good := idxBytes(idxUint8, []int{2, 1, 3}, []byte{0, 255, 51, 102, 153, 204})
	packed := gzipped(t, bytes.Repeat(good, 500))
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":            {nil, "is empty"},
		"text":             {[]byte("hello, world"), "neither"},
		"idx cut":          {good[:len(good)-1], "the header says 6 bytes follow it, the file has 5"},
		"idx too long":     {append(slices.Clone(good), 0), "6 bytes follow it, the file has 7"},
		"idx header cut":   {good[:9], "ends within"},
		"idx no axes":      {[]byte{0, 0, 8, 0}, "0 axes"},
		"idx huge":         {idxBytes(idxUint8, []int{math.MaxUint32, math.MaxUint32, math.MaxUint32}), "not possible"},
		"idx large claim":  {idxBytes(idxUint8, []int{1 << 20, 1 << 10, 1 << 10}), "the file has 0"},
		"idx no images":    {idxBytes(idxUint8, []int{0, 28, 28}), "no samples"},
		"idx labels":       {idxBytes(idxUint8, []int{3}, []byte{1, 2, 3}), "1 axes"},
		"idx NaN":          {idxBytes(idxFloat32, []int{2, 1, 1}, []float32{1, float32(math.NaN())}), "image 1, row 0, column 0: got NaN"},
		"npy infinite":     {npyBytes("<f4", "False", "(1, 1)", binary.LittleEndian, []float32{float32(math.Inf(1))}), "sample 0, value 0: got +Inf"},
		"npy cut":          {npyBytes("<f4", "False", "(2, 2)", binary.LittleEndian, []float32{1, 2, 3}), "16 bytes follow it, the file has 12"},
		"npy complex":      {npyBytes("<c8", "False", "(1, 1)", binary.LittleEndian, make([]byte, 8)), `"c8"`},
		"npy brain":        {npyBytes("<V2", "False", "(1, 1)", binary.LittleEndian, make([]byte, 2)), `save bfloat16 as float32`},
		"npy wide":         {npyBytes("<f99999999999999999999", "False", "(1, 1)", binary.LittleEndian, make([]byte, 2)), `"f9999999999999999999" are not read: save samples as floats`},
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
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Path != path || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line, an *Error about %s with %q", name, err, path, c.want)
		}
	}
}

// The header declares 2^46 texts of 2^18 bytes each. Their total size overflows to 0, which equals the number of bytes in the
// file.
func TestAnArrayOfMoreBytesThanCanBeCountedIsAnError(t *testing.T) {
	npy := npyHeaderOf("<U65536", []int{1 << 46})
	var npz bytes.Buffer
	if err := writeNPZ(&npz, []namedArray{{"images", func(w io.Writer) error {
		return WriteNPY(w, []int{1, 2}, []float32{1, 2})
	}}, {"names", func(w io.Writer) error {
		_, err := w.Write(npy)
		return err
	}}}); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"x.npy": npy, "x.npz": npz.Bytes()} {
		path := write(t, t.TempDir(), name, content)
		expect.Error(t, expect.Err(ReadRows(t.Context(), path, nil, nil)), "is not possible", name)
	}
}

func TestMissingFilesFoldersAndPipesAreErrors(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{filepath.Join(dir, "nothing"): "not found", dir: "no PNG, JPEG, GIF, BMP, TIFF or WebP images", os.DevNull: "not a file"} {
		var bad *Error
		if _, err := ReadImages(background, path, nil); !errors.As(err, &bad) || bad.Path != path || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an *Error with %q", path, err, want)
		}
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	path := write(t, dir, "a", idxBytes(idxUint8, []int{1, 1, 1}, byte(1)))
	expect.Is(t, expect.Err(ReadImages(ctx, path, nil)), context.Canceled, "a cancelled read gave")
}

func TestImagesTakeTheShapeThatTheCallerNeedsOrAreRefused(t *testing.T) {
	dir := t.TempDir()
	flat := write(t, dir, "flat", npyBytes("|u1", "False", "(2, 6)", binary.LittleEndian, make([]byte, 12)))
	large := write(t, dir, "large.png", claimingPNG(16000, 16000))
	square := write(t, dir, "square", npyBytes("|u1", "False", "(2, 2, 3)", binary.LittleEndian, make([]byte, 12)))
	for _, c := range []struct {
		path  string
		shape []int
		want  string // part of the error; "" for none
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
			expect.Error(t, err, c.want, c.path, "as", c.shape)
		} else if err != nil || c.shape != nil && !slices.Equal(images.Shape, c.shape) {
			t.Errorf("%s as %v: got %v", c.path, c.shape, err)
		}
	}
}

func TestNamesWithALineFeedStayInOneLine(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a\nb.txt"), []byte("no data"), 0o600); err != nil {
		t.Skip("the file system has no such names:", err)
	}
	_, single := ReadRows(t.Context(), filepath.Join(folder, "a\nb.txt"), nil, nil)
	_, format := FormatOf("a\nb.parquet")
	for _, err := range []error{single, format} {
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), `a\nb`) {
			t.Errorf("got %v, want an error of one line that names the file", err)
		}
	}
}
