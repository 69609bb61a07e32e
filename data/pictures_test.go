package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// near checks that a colour picture differs from want by at most most.
func near(t *testing.T, what string, m *Images, want [][][]byte, most int) {
	t.Helper()
	if shape := []int{len(want), len(want[0]), 3}; !slices.Equal(m.Shape, shape) {
		t.Errorf("%s: shape %v, want %v", what, m.Shape, shape)
		return
	}
	flat := slices.Concat(slices.Concat(want...)...)
	for i, w := range flat {
		if d := int(m.Bytes(0)[i]) - int(w); d > most || d < -most {
			t.Errorf("%s: byte %d is %d, want %d within %d", what, i, m.Bytes(0)[i], w, most)
			return
		}
	}
}

// copied returns a folder with copies of files of testdata under new names.
func copied(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for to, from := range files {
		b, err := os.ReadFile(filepath.Join("testdata", from))
		fatal.If(t, err)
		write(t, dir, to, b)
	}
	return dir
}

func TestImagesOfEveryFormatAreThoseOfPillow(t *testing.T) {
	o := own(t)
	picture := func(path string) *Images {
		rows, err := ReadRows(background, path, []int{16, 24, 3}, nil)
		fatal.If(t, err)
		return rows.Images
	}
	near(t, "png", picture("testdata/picture.png"), o.Picture, 0)
	near(t, "bmp", picture("testdata/picture.bmp"), o.Picture, 0)
	near(t, "gif", picture("testdata/picture.gif"), o.Gif, 0)
	for orientation := 1; orientation <= 8; orientation++ { // JPEG loses a little
		near(t, fmt.Sprint("EXIF orientation ", orientation), picture(fmt.Sprintf("testdata/turned%d.jpg", orientation)), o.Picture, 12)
	}
}

func TestImagesAreResizedAsByPillow(t *testing.T) {
	o := own(t)
	dir := copied(t, map[string]string{"a.png": "picture.png"})
	for how, want := range map[string][][][]byte{"crop": o.Crop, "pad": o.Pad, "stretch": o.Stretch} {
		source := &Files{Kind: "images", Images: dir, Channels: 3, Size: Size{10, 10}, Resize: how}
		set, err := source.Load(background, nil, Both)
		fatal.If(t, err)
		near(t, how, set.Train, want, 1)
		if shape, ok := source.Shape(nil); !ok || !slices.Equal(shape, set.Shape) {
			t.Errorf("%s: shape %v without decoding, %v with it", how, shape, set.Shape)
		}
		rows, err := ReadRows(background, "testdata/picture.bmp", set.Shape, source) // as the data set does
		fatal.If(t, err)
		near(t, how+" of a file beside it", rows.Images, want, 1)
	}
}

func TestFoldersOfAnyDepthHaveTheClassesOfTheFirstLevel(t *testing.T) {
	dir := copied(t, map[string]string{"owl/a.JPG": "turned1.jpg", "owl/2024/may/b.png": "picture.png", "wren/c.gif": "picture.gif",
		"wren/notes.txt": "birds.csv", "empty/readme.md": "birds.csv", ".hidden/x.png": "picture.png"})
	source := &Files{Kind: "images", Images: dir, Channels: 3}
	set, err := source.Load(background, nil, Both)
	fatal.If(t, err)
	expect.Slice(t, set.Classes, []string{"owl", "wren"}, "classes")
	expect.Slice(t, set.Train.Labels(), []int{0, 0, 1}, "classes")
	want := dir + ": skipped 2 of 5 files, no PNG, JPEG, GIF, BMP, TIFF or WebP images: empty/readme.md, wren/notes.txt"
	if notes, err := source.Inspect(background); err != nil || !slices.Equal(notes, set.Notes) || !slices.Equal(notes, []string{want}) {
		t.Errorf("notes %q, inspected %q, %v, want %q", set.Notes, notes, err, want)
	}
	rows, err := ReadRows(background, dir, []int{16, 24}, source)
	if err != nil || !slices.Equal(rows.Names, []string{"owl/a.JPG", "owl/2024/may/b.png", "wren/c.gif"}) || !slices.Equal(rows.Classes, set.Classes) {
		t.Errorf("rows %+v, %v", rows, err)
	}
	if n, ok := source.Classes(nil); n != 2 || !ok {
		t.Errorf("%d classes, %v", n, ok)
	}
	write(t, dir, "stray.bmp", "BM")
	expect.Error(t, expect.Err(source.Load(background, nil, Both)), "has images (stray.bmp) next to folders of images (owl)", "an image beside classes")
}

func TestClassFoldersOfTestImagesAreThoseOfTheTrainingImages(t *testing.T) {
	train := copied(t, map[string]string{"ant/a.png": "picture.png", "bee/b.png": "picture.png", "cat/c.png": "picture.png"})
	fewer := copied(t, map[string]string{"ant/a.png": "picture.png", "cat/c.png": "picture.png"})
	other := copied(t, map[string]string{"ant/a.png": "picture.png", "dog/d.png": "picture.png"})
	flat := copied(t, map[string]string{"a.png": "picture.png", "b.png": "picture.png"})
	three, two := []string{"ant", "bee", "cat"}, []string{"ant", "cat"}
	for name, c := range map[string]struct {
		train, test string
		need        Need
		classes     []string
		labels      []int
	}{
		"fewer classes":         {train, fewer, Both, three, []int{0, 2}},
		"fewer, test only":      {train, fewer, Need{Test: true}, three, []int{0, 2}},
		"no classes":            {train, flat, Both, three, nil},
		"no classes, test only": {train, flat, Need{Test: true}, three, nil},
		"unlabelled training":   {flat, fewer, Need{Test: true}, two, []int{0, 1}},
		"unlabelled, both":      {flat, fewer, Both, two, []int{0, 1}},
		"training not there":    {train + "-gone", fewer, Need{Test: true}, two, []int{0, 1}},
	} {
		set, err := (&Files{Kind: "images", Images: c.train, TestImages: c.test, Channels: 3}).Load(background, nil, c.need)
		if err != nil || !slices.Equal(set.Classes, c.classes) || !slices.Equal(set.Test.Labels(), c.labels) {
			t.Errorf("%s: %+v, %v", name, set, err)
		}
	}
	source := &Files{Kind: "images", Images: train, TestImages: other, Channels: 3}
	_, both := source.Load(background, nil, Both)
	_, test := source.Load(background, nil, Need{Test: true})
	_, inspected := source.Inspect(background)
	for i, err := range []error{both, test, inspected} {
		expect.Error(t, err, other+`: the class folders differ from those of the training images (got "ant dog", want "ant bee cat")`, i, "an unknown class")
	}
}

func TestPNGFoldersSayWhatTheyLeaveOut(t *testing.T) {
	dir := copied(t, map[string]string{"owl/a.png": "picture.png", "owl/b.jpg": "turned1.jpg", "owl/deep/c.png": "picture.png"})
	set, err := (&Files{Kind: "png", Images: dir, Channels: 3}).Load(background, nil, Both)
	if err != nil || set.Train.Len() != 1 || len(set.Notes) != 1 || !strings.Contains(set.Notes[0], `skipped 2 of 3`) || !strings.Contains(set.Notes[0], `name = "images"`) {
		t.Errorf("%+v, %v", set, err)
	}
	jpegs := copied(t, map[string]string{"a.jpg": "turned1.jpg", "b.jpg": "turned2.jpg"})
	_, err = (&Files{Kind: "png", Images: jpegs, Channels: 3}).Load(background, nil, Both)
	expect.As[*Error](t, err, `write name = "images" in the dataset table to read the 2 images`, "JPEG only")
	splits := copied(t, map[string]string{"train/a.png": "picture.png", "test/b.png": "picture.png"})
	if notes, err := (&Files{Kind: "images", Images: splits, Channels: 3}).Inspect(background); err != nil || len(notes) != 1 || !strings.Contains(notes[0], "name each with images and test_images") {
		t.Errorf("folders of splits: %q, %v", notes, err)
	}
}

func TestImagesOfDifferentSizesSayWhatToWrite(t *testing.T) {
	dir := copied(t, map[string]string{"a.png": "picture.png"})
	write(t, dir, "b.png", pngBytes(t, image.NewGray(image.Rect(0, 0, 7, 5)), func(x, y int) color.Color { return color.Gray{byte(x)} }))
	source := &Files{Kind: "images", Images: dir, Channels: 1}
	_, loaded := source.Load(background, nil, Both)
	_, inspected := source.Inspect(background)
	for _, err := range []error{loaded, inspected} {
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Dataset != "images" || !strings.Contains(err.Error(), "write size = [16, 24]") {
			t.Errorf("two sizes: %v", err)
		}
	}
	source.Size = Size{16, 24}
	if set, err := source.Load(background, nil, Both); err != nil || set.Train.Len() != 2 {
		t.Errorf("with the size: %v", err)
	}
}

func TestSizesAreOneOrTwoNumbers(t *testing.T) {
	for _, c := range []struct {
		value any
		want  Size
		ok    bool
	}{{int64(8), Size{8, 8}, true}, {[]any{int64(4), int64(6)}, Size{4, 6}, true}, {int64(0), Size{}, true}, {int64(-1), Size{}, false},
		{[]any{int64(4)}, Size{}, false}, {"8x8", Size{}, false}, {[]any{int64(4), 2.5}, Size{}, false}, {int64(1 << 40), Size{}, false}} {
		var s Size
		if err := s.FromTOML(c.value); (err == nil) != c.ok || c.ok && s != c.want {
			t.Errorf("size = %v: %+v, %v", c.value, s, err)
		}
	}
}

func TestDamagedAndBoastfulImagesAreErrors(t *testing.T) {
	jpeg, err := os.ReadFile("testdata/turned6.jpg")
	fatal.If(t, err)
	bmp, err := os.ReadFile("testdata/picture.bmp")
	fatal.If(t, err)
	large := slices.Clone(bmp)
	large[20], large[24] = 0x40, 0x40 // 4 million columns and rows
	long := slices.Clone(bmp)
	long[19] = 0x20 // 8192 more columns
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"jpeg cut": {jpeg[:len(jpeg)/2], ""}, "bmp cut": {bmp[:len(bmp)/2], ""}, "bmp huge": {large, "more than"}, "bmp claim": {long, "cut short"},
		"gif head": {[]byte("GIF89a"), ""},
	} {
		_, err := ReadImages(background, write(t, t.TempDir(), "some file", c.b), nil)
		expect.As[*Error](t, err, c.want, name)
	}
	for cut := range len(jpeg) { // the reader of EXIF never reads beyond
		orientation(jpeg[:cut])
	}
	for i := range 200 {
		changed := slices.Clone(jpeg)
		changed[i] ^= 0xff
		if o := orientation(changed); o < 1 || o > 8 {
			t.Errorf("byte %d changed: orientation %d", i, o)
		}
	}
}

func TestAllPicturesThatCannotBeReadAreNamed(t *testing.T) {
	jpeg, err := os.ReadFile("testdata/turned6.jpg")
	fatal.If(t, err)
	dir := t.TempDir()
	write(t, dir, "a.jpg", jpeg)
	for _, name := range []string{"b.jpg", "c.jpg"} {
		write(t, dir, name, jpeg[:len(jpeg)/2])
	}
	f := &Files{Kind: "images", File: dir, Channels: 3, Size: Size{8, 8}}
	_, err = f.Load(t.Context(), nil, Both)
	expect.Error(t, err, "b.jpg: cannot be read")
	expect.Error(t, err, "delete it and others that cannot be read, or move them out of the folder: "+filepath.Join(dir, "c.jpg"))
}

func TestCodesKeepNamesAndLabels(t *testing.T) {
	o := own(t)
	rows, err := ReadRows(background, "testdata/codes.npz", []int{5}, nil)
	fatal.If(t, err)
	for _, name := range []string{"x.npz", "x.csv"} {
		path := filepath.Join(t.TempDir(), name)
		fatal.If(t, WriteRows(path, "codes", []int{5}, slices.Concat(o.Samples...), *rows))
		back, err := ReadRows(background, path, []int{5}, nil)
		fatal.If(t, err)
		holds(t, name, back.Images, o.Samples, 0)
		if !slices.Equal(back.Names, []string{"a", "b", "c", "d", "e", "f"}) || !slices.Equal(back.Labels(), []int{2, 0, 2, 1, -1, 0}) || !slices.Equal(back.Classes, []string{"k", "l", "m"}) {
			t.Errorf("%s: names %q, labels %v of %q", name, back.Names, back.Labels(), back.Classes)
		}
	}
	one := write(t, t.TempDir(), "one.npy", append(npyHeaderOf("<f4", []int{5}), make([]byte, 20)...))
	if alone, err := ReadRows(background, one, []int{5}, nil); err != nil || alone.Len() != 1 {
		t.Errorf("a vector alone: %v", err)
	}
	expect.AnyError(t, expect.Err(ReadRows(background, one, []int{4}, nil)), "a vector of another length is taken")
}

// Files of several images, written by Pillow, are said by check and by a training; cut or circular files of pages have a number of pages too.
func TestFilesOfSeveralImagesAreSaid(t *testing.T) {
	f := &Files{Kind: "images", File: "testdata/pages", Channels: 1, Resize: resizes[0]}
	const want = "testdata/pages: 3 files of 5 with more than one image, of which the first is read: a.tif has 3, b.tiff has 3, c.gif has 3; save each image as a file to read all"
	notes, err := f.Inspect(t.Context())
	fatal.If(t, err)
	set, err := Load(t.Context(), f, nil, Both)
	fatal.If(t, err)
	if !slices.Contains(notes, want) || !slices.Contains(set.Notes, want) {
		t.Errorf("got the notes %q and %q, want %q", notes, set.Notes, want)
	}
	for _, name := range []string{"a.tif", "c.gif"} {
		b, err := os.ReadFile("testdata/pages/" + name)
		fatal.If(t, err)
		for n := range b {
			if got := pages(write(t, t.TempDir(), name, b[:n])); got < 1 || got > 3 {
				t.Errorf("%s: %d bytes: got %d images", name, n, got)
			}
		}
	}
	b, err := os.ReadFile("testdata/pages/e.tif")
	fatal.If(t, err)
	first := binary.LittleEndian.Uint32(b[4:])
	binary.LittleEndian.PutUint32(b[int(first)+2+12*int(binary.LittleEndian.Uint16(b[first:])):], first)
	expect.Equal(t, pages(write(t, t.TempDir(), "round.tif", b)), mostPages, "a circle of directories has")
}

// folderOf writes pictures, given by their pixels (value, 8 or 16 bits), of 4x4.
func folderOf(t *testing.T, of map[string]color.Color) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "photos")
	for name, c := range of {
		var m draw.Image = image.NewNRGBA(image.Rect(0, 0, 4, 4))
		if _, deep := c.(color.Gray16); deep {
			m = image.NewGray16(m.Bounds())
		}
		draw.Draw(m, m.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
		var b bytes.Buffer
		fatal.If(t, png.Encode(&b, m))
		write(t, folder, name, b.Bytes())
	}
	return folder
}

func TestWhatReadingChangesOfPicturesIsSaidOnce(t *testing.T) {
	red, grey, deep := color.NRGBA{255, 0, 0, 255}, color.NRGBA{9, 9, 9, 255}, color.Gray16{2000}
	const colours, depths = "coloured pictures are read in grey: write channels = 3", "1 of 2 pictures have 16 bits per channel, the others 8"
	for _, c := range []struct {
		pictures map[string]color.Color
		channels int
		size     int
		want     string // "" for no note
	}{
		{map[string]color.Color{"a.png": grey, "b.png": red}, 0, 0, colours},
		{map[string]color.Color{"a.png": grey, "b.png": red}, 1, 0, ""},
		{map[string]color.Color{"a.png": grey, "b.png": red}, 1, 8, "2 of 2 pictures are smaller than size and are enlarged"},
		{map[string]color.Color{"a.png": grey, "b.png": red}, 3, 4, ""},
		{map[string]color.Color{"a.png": grey, "b.png": color.NRGBA{7, 7, 7, 255}}, 1, 2, ""},
		{map[string]color.Color{"a.png": grey, "b.png": deep}, 1, 0, depths},
		{map[string]color.Color{"a.png": color.Gray16{9}, "b.png": deep}, 1, 0, ""},
	} {
		source := &Files{Kind: "images", File: folderOf(t, c.pictures), Channels: c.channels, Size: Size{c.size, c.size}, Resize: "crop"}
		set, err := Load(t.Context(), source, Dirs{}, Both)
		fatal.If(t, err)
		inspected, err := source.Inspect(t.Context())
		fatal.If(t, err)
		for _, notes := range [][]string{set.Notes, inspected} {
			if n := len(notes); c.want == "" && n > 0 || c.want != "" && (n != 1 || !strings.HasPrefix(notes[0], source.File+": "+c.want)) {
				t.Errorf("got the notes %q, want %q", notes, c.want)
			}
		}
	}
	s, err := SketchPictures(t.Context(), folderOf(t, map[string]color.Color{"a.png": color.NRGBA{255, 255, 255, 255}, "b.png": deep}))
	if err != nil || s.High != 1 || s.HighDeep > 0.04 || !strings.Contains(s.Depths, depths) {
		t.Errorf("got %+v, %v, want dark pictures of 16 bits beside white ones", s, err)
	}
}

// Pictures that no decoder reads are named with the line that saves them as an array. The file is the head of a TIFF of floats of 32 bits.
func TestPicturesOfUnknownKindsNameTheWayOut(t *testing.T) {
	entries := [][3]uint32{{256, 4, 1}, {257, 4, 1}, {258, 3, 32}, {259, 3, 1}, {262, 3, 1}, {273, 4, 0}, {277, 3, 1}, {278, 4, 1}, {279, 4, 4}, {339, 3, 3}}
	tiff := append([]byte("II*\x00\x08\x00\x00\x00"), byte(len(entries)), 0)
	for _, e := range entries {
		tiff = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(tiff, uint16(e[0])), uint16(e[1]))
		tiff = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(tiff, 1), e[2])
	}
	folder := filepath.Join(t.TempDir(), "cells")
	write(t, folder, "a.tif", append(tiff, make([]byte, 8)...))
	for _, err := range []error{
		expect.Err(Load(t.Context(), &Files{Kind: "images", File: folder, Channels: 1}, Dirs{}, Both)),
		expect.Err(SketchPictures(t.Context(), folder)),
		expect.Err(ReadRows(t.Context(), filepath.Join(folder, "a.tif"), nil, nil)),
	} {
		expect.Error(t, err, "numpy.save('cells.npy'", "a TIFF of floats")
	}
}

func TestDecodedPicturesHaveTheNamesOfTheSamples(t *testing.T) {
	names := []string{"owl/p000.jpg", "p000.jpg", "P000.png", "../../etc/passwd", "", "a:b?.v2", strings.Repeat("ä", 300), ".hidden"}
	got := pngNames(len(names), names)
	expect.Slice(t, got[:6], []string{"owl-p000.png", "p000.png", "P000-00002.png", "etc-passwd.png", "00004.png", "a-b-.v2.png"})
	for _, name := range got {
		if len(name) > 255 || filepath.Base(name) != name || strings.HasPrefix(name, ".") {
			t.Errorf("%q is no name of a file", name)
		}
	}
	folder := filepath.Join(t.TempDir(), "out")
	fatal.If(t, WriteRows(folder, "images", []int{1, 1}, []float32{0, 1}, Rows{Names: []string{"x", "y"}}))
	back, err := ReadRows(t.Context(), folder, nil, nil)
	fatal.If(t, err)
	expect.Slice(t, back.Names, []string{"x.png", "y.png"})
	expect.Slice(t, pngNames(2, nil), []string{"00000.png", "00001.png"})
}
