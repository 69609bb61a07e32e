package data

import (
	"bytes"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// A WebP file may declare a canvas of another size than its frame; the memory of the decoder follows from the frame.
func TestAWebPFrameOfAnotherSizeIsRefused(t *testing.T) {
	file := peerFiles(t)["rgb.webp"].File
	frame := file[12:]
	extended := func(width, height int) []byte {
		chunk := append([]byte("VP8X\x0a\x00\x00\x00\x00\x00\x00\x00"), byte(width-1), 0, 0, byte(height-1), 0, 0)
		body := append(append([]byte("WEBP"), chunk...), frame...)
		return append(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body))), body...)
	}
	config, err := webpHeader(bytes.NewReader(file))
	fatal.If(t, err)
	shape := []int{config.Height, config.Width, 3}
	expect.NoError(t, expect.Err(DecodePicture(extended(config.Width, config.Height), shape, nil, nil)), "a canvas of the size of its frame")
	expect.Error(t, expect.Err(DecodePicture(extended(28, 28), []int{28, 28, 3}, nil, nil)), "its canvas is 28x28", "another canvas")
	path := write(t, t.TempDir(), "a.webp", extended(28, 28))
	expect.AnyError(t, expect.Err(ReadRows(t.Context(), path, nil, nil)), "another canvas in a folder")
	for n := range len(file) { // and no panic
		_, _ = webpHeader(bytes.NewReader(file[:n]))
	}
}

func TestOddArraysOfWholeNumbersAreErrors(t *testing.T) {
	for name, file := range map[string][]byte{
		"a number":              npyBytes("<i8", "False", "()", binary.LittleEndian, []int64{5}),
		"more than 2^63":        npyBytes("<u8", "False", "(2, 2)", binary.LittleEndian, []uint64{1, 2, 3, math.MaxUint64}),
		"a number in one place": npyBytes("<i8", "False", "(1,)", binary.LittleEndian, []int64{5}),
	} {
		path := write(t, t.TempDir(), "x.npy", file)
		expect.AnyError(t, expect.Err(Load(t.Context(), &Files{Kind: "npy", Images: path}, Dirs{}, Both)), name)
	}
}

// Numbers of classes that are scattered are names; a number below 0 is unknown.
func TestNegativeLabelsAreNoClasses(t *testing.T) {
	read := &table{labels: []int{-2, 1000, 5000, 1000}}
	classes, err := read.resolve(nil, true)
	if err != nil || !slices.Equal(classes, []string{"1000", "5000"}) || !slices.Equal(read.labels, []int{-1, 0, 1, 0}) {
		t.Errorf("got classes %v, labels %v, %v", classes, read.labels, err)
	}
}

func TestManyNumberedClassesAreNotListed(t *testing.T) {
	s := &Set{Train: &Images{n: 2, labels: []int{3, 20240101}}}
	expect.Equal(t, s.DescribeClasses(), "labels from 3 to 20240101")
}

// Workers get the numbers of a file in float64 where these are needed.
func TestPackedNumbersKeepTheirPrecision(t *testing.T) {
	source := &Files{Kind: "csv", File: write(t, t.TempDir(), "far.csv", "north,a\n5400000.0001,1\n5400000.0002,2\n5400000.0004,3\n"), Scale: Scale{&Standardise{Centre: true}}}
	set, err := Load(t.Context(), source, Dirs{}, Both)
	fatal.If(t, err)
	var b bytes.Buffer
	fatal.If(t, set.Pack(&b))
	other, err := Unpack(b.Bytes())
	fatal.If(t, err)
	if set.Train.wide == nil || !slices.Equal(set.Train.wide, other.Train.wide) {
		t.Errorf("got %v, want %v", other.Train.wide, set.Train.wide)
	}
}

// What complete writes can be read with the keys that read its input.
func TestCompletedCellsHaveTheDecimalCommaOfTheirFile(t *testing.T) {
	for name, text := range map[string]string{"semicolons": "a;b\n1,5;2,5\n;3,5\n", "commas": "a,b\n\"1,5\",\"2,5\"\n,\"3,5\"\n"} {
		in := write(t, t.TempDir(), "in.csv", text)
		out := filepath.Join(t.TempDir(), "out.csv")
		like := &Files{Kind: "csv", File: in, Decimal: ","}
		fatal.If(t, expect.Err(Complete(t.Context(), in, out, []int{2}, like, func(r *Rows) ([]float64, error) { return []float64{0, 0, 0.25, 0}, nil })))
		got, err := ReadRows(t.Context(), out, nil, like)
		if err != nil || !slices.Equal(got.Float32(), []float32{1.5, 2.5, 0.25, 3.5}) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
