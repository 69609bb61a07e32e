package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/config/part"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// as returns a declaration of another data set.
func as(kind string, keys Files) *Files {
	keys.Kind = kind
	return &keys
}

func TestIDXAndNPYSetsLoadBothSplitsWithLabels(t *testing.T) {
	dir := t.TempDir()
	keys := Files{
		Images:     write(t, dir, "x.npy", npyBytes("|u1", "False", "(2, 4)", binary.LittleEndian, []byte{0, 255, 0, 51, 1, 2, 3, 4})),
		Labels:     write(t, dir, "y.npy", npyBytes("<i8", "False", "(2,)", binary.LittleEndian, []int64{7, -1})),
		TestImages: write(t, dir, "tx.gz", gzipped(t, idxBytes(idxUint8, []int{1, 2, 2}, []byte{255, 0, 0, 0}))),
		TestLabels: write(t, dir, "ty", idxBytes(idxUint8, []int{1}, byte(3))),
		Height:     2, Width: 2,
	}
	for name, source := range map[string]Source{"idx": as("idx", keys), "npy": as("npy", keys)} {
		if shape, ok := source.Shape(nil); !ok || !slices.Equal(shape, []int{2, 2}) {
			t.Errorf("%s: shape %v, %v", name, shape, ok)
		}
		set, err := source.Load(background, nil, Both)
		fatal.If(t, err, name)
		if set.Name != name || !set.HasTest || len(set.Files) != 4 || !slices.Equal(set.Shape, []int{2, 2}) {
			t.Errorf("%s: %+v", name, set)
		}
		if got := set.Train.Float32(); got[1] != 1 || got[3] != 0.2 || !slices.Equal(set.Train.Labels(), []int{7, -1}) {
			t.Errorf("%s: training images %v, labels %v", name, got, set.Train.Labels())
		}
		if got := set.Test.Float32(); got[0] != 1 || !slices.Equal(set.Test.Labels(), []int{3}) {
			t.Errorf("%s: test images %v, labels %v", name, got, set.Test.Labels())
		}
		set, err = source.Load(background, nil, Need{Test: true})
		if err != nil || set.Train != nil || set.Test == nil || !slices.Equal(set.Shape, []int{2, 2}) {
			t.Errorf("%s: the need for test images alone gave %+v, %v", name, set, err)
		}
	}
}

func TestASetWithoutTestImagesLoadsItsImagesWhateverTheNeed(t *testing.T) {
	path := write(t, t.TempDir(), "x", idxBytes(idxUint8, []int{1, 1, 2}, []byte{1, 2}))
	set, err := (&Files{Kind: "idx", Images: path}).Load(background, nil, Need{Test: true})
	fatal.If(t, err)
	if images, err := set.Evaluation(); err != nil || images.Len() != 1 {
		t.Errorf("the evaluation has %v, %v", images, err)
	}
}

func TestArraysThatDoNotFitTogetherAreNamed(t *testing.T) {
	dir := t.TempDir()
	two := write(t, dir, "two", idxBytes(idxUint8, []int{2, 2, 2}, make([]byte, 8)))
	wide := write(t, dir, "wide", idxBytes(idxUint8, []int{2, 2, 3}, make([]byte, 12)))
	flat := write(t, dir, "flat", idxBytes(idxUint8, []int{2, 6}, make([]byte, 12)))
	labels := write(t, dir, "labels", idxBytes(idxUint8, []int{3}, make([]byte, 3)))
	floats := write(t, dir, "floats", idxBytes(idxFloat32, []int{2}, []float32{0, 0.5}))
	for _, c := range []struct {
		keys       Files
		path, want string
	}{
		{Files{Images: two, Labels: labels}, labels, "3 labels for 2 samples"},
		{Files{Images: two, Labels: floats}, floats, "label 1: got 0.5, want a whole number"},
		{Files{Images: two, Labels: wide}, wide, "one label per image"},
		{Files{Images: two, TestImages: wide}, wide, "the test images differ from the training images (got 2x3, want 2x2)"},
		{Files{Images: flat, Height: 4, Width: 1}, flat, "6 values, but height = 4"},
		{Files{Images: flat, Height: math.MaxInt, Width: math.MaxInt}, flat, "not possible"},
		{Files{Images: two, Height: 4, Width: 1}, two, "the images are 2x2, but the keys say height = 4"},
		{Files{Images: filepath.Join(dir, "none")}, filepath.Join(dir, "none"), "not found"},
	} {
		source := as("idx", c.keys)
		_, err := source.Load(background, nil, Both)
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Path != c.path || bad.Dataset != "idx" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want an *Error about %s with %q", c.keys, err, c.path, c.want)
		}
	}
	for key, keys := range map[string]Files{
		"test_labels": {TestLabels: "x"}, "height": {Height: 1}, "width": {Width: 1},
	} {
		var bad part.KeyError
		if err := keys.Check(); !errors.As(err, &bad) || bad.Key != key {
			t.Errorf("%+v: got %v, want an error at %s", keys, err, key)
		}
	}
	if shape, ok := (&Files{Kind: "npy", Images: flat, Height: 1, Width: 2}).Shape(nil); !ok || !slices.Equal(shape, []int{1, 2, 3}) {
		t.Errorf("rows of 6 values as 1x2 have shape %v, %v, want three channels", shape, ok)
	}
}

func TestPNGFoldersLoadInTheOrderOfNamesWithClassesAsLabels(t *testing.T) {
	dir := t.TempDir()
	rect := image.Rect(0, 0, 3, 2)
	grey := func(base int) func(x, y int) color.Color {
		return func(x, y int) color.Color { return color.Gray{byte(base + 3*y + x)} }
	}
	for name, base := range map[string]int{"train/shoe/b.png": 40, "train/bag/2.png": 20, "train/bag/1.PNG": 10, "train/shoe/a.png": 30, "test/bag/x.png": 50, "test/shoe/x.png": 60} {
		write(t, dir, name, pngBytes(t, image.NewGray(rect), grey(base)))
	}
	write(t, dir, "train/bag/notes.txt", "not an image")
	write(t, dir, "train/.hidden/z.png", "not an image")
	source := &Files{Kind: "png", Images: filepath.Join(dir, "train"), TestImages: filepath.Join(dir, "test"), Channels: 1}
	if shape, ok := source.Shape(nil); !ok || !slices.Equal(shape, []int{2, 3}) {
		t.Errorf("shape %v, %v", shape, ok)
	}
	set, err := source.Load(background, nil, Both)
	fatal.If(t, err)
	for i, base := range []byte{10, 20, 30, 40} {
		expect.Slice(t, set.Train.Bytes(i), []byte{base, base + 1, base + 2, base + 3, base + 4, base + 5}, "image", i)
	}
	if !slices.Equal(set.Train.Labels(), []int{0, 0, 1, 1}) || !slices.Equal(set.Classes, []string{"bag", "shoe"}) ||
		!slices.Equal(set.Test.Labels(), []int{0, 1}) || len(set.Files) != 2 {
		t.Errorf("labels %v, classes %v, test labels %v, files %v", set.Train.Labels(), set.Classes, set.Test.Labels(), set.Files)
	}
	write(t, dir, "test/hat/x.png", pngBytes(t, image.NewGray(rect), grey(0)))
	expect.As[*Error](t, expect.Err(source.Load(background, nil, Both)), "bag hat shoe", "other classes in the test folder gave")
}

func TestPNGColoursBecomeGreyOrChannels(t *testing.T) {
	dir := t.TempDir()
	rect := image.Rect(0, 0, 4, 1)
	colours := []color.NRGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {200, 200, 200, 0}}
	write(t, dir, "c.png", pngBytes(t, image.NewNRGBA(rect), func(x, _ int) color.Color { return colours[x] }))
	set, err := (&Files{Kind: "png", Images: dir, Channels: 1}).Load(background, nil, Both)
	fatal.If(t, err)
	if got, want := set.Train.Bytes(0), []byte{76, 150, 29, 255}; !slices.Equal(got, want) { // 0.299, 0.587, 0.114 of 255
		t.Errorf("grey is %v, want %v", got, want)
	}
	set, err = (&Files{Kind: "png", Images: dir, Channels: 1, Background: "black"}).Load(background, nil, Both)
	if err != nil || set.Train.Bytes(0)[3] != 0 {
		t.Errorf("over black: got %v, %v; want 0 for the transparent pixel", set, err)
	}
	set, err = (&Files{Kind: "png", Images: dir, Channels: 3}).Load(background, nil, Both)
	fatal.If(t, err)
	if got, want := set.Train.Bytes(0), []byte{255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255}; !slices.Equal(got, want) || !slices.Equal(set.Shape, []int{1, 4, 3}) {
		t.Errorf("channels are %v of shape %v, want %v", got, set.Shape, want)
	}
	// Grey of 16 bits, and grey in a palette, are grey all the same.
	for name, img := range map[string]interface {
		image.Image
		Set(x, y int, c color.Color)
	}{"deep": image.NewGray16(rect), "palette": image.NewPaletted(rect, color.Palette{color.Gray{0}, color.Gray{100}})} {
		path := write(t, t.TempDir(), name, pngBytes(t, img, func(x, _ int) color.Color { return color.Gray{byte(100 * (x % 2))} }))
		images, err := ReadImages(background, path, nil)
		if err != nil || !slices.Equal(toBytes(images.Float32()), []byte{0, 100, 0, 100}) {
			t.Errorf("%s: %v, %v", name, images, err)
		}
	}
}

// claimingPNG returns a grey PNG file that ends after a header with the given size.
func claimingPNG(height, width uint32) []byte {
	return append(bombPNG(width, height, 8, 0), "\x00\x00\x00\x00IDAT\x35\xaf\x06\x1e"...)
}

func TestABrokenLinkInAPNGFolderIsNamed(t *testing.T) {
	for _, name := range []string{"1.png", "class/1.png"} {
		dir := t.TempDir()
		link := filepath.Join(dir, name)
		fatal.If(t, errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink("nowhere", link)))
		var bad *Error
		if _, err := ReadImages(background, dir, nil); !errors.As(err, &bad) || bad.Path != link || !strings.Contains(err.Error(), "link") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPNGFilesOfAnotherSizeOrDamagedOnesAreNamed(t *testing.T) {
	black := func(int, int) color.Color { return color.Black }
	good := pngBytes(t, image.NewGray(image.Rect(0, 0, 5, 4)), black)
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"size":    {pngBytes(t, image.NewGray(image.Rect(0, 0, 4, 5)), black), "the image is 5x4 (height x width), the first one is 4x5"},
		"cut":     {good[:len(good)-20], "unexpected EOF"},
		"garbage": {[]byte("not a PNG file at all"), "png"},
		"empty":   {nil, "cut short"},
		"huge":    {claimingPNG(100000, 100000), "the header says 100000x100000 (height x width), more than"},
		"larger":  {claimingPNG(16384, 16384), "the image is 16384x16384 (height x width), the first one is 4x5"},
	} {
		dir := t.TempDir()
		write(t, dir, "1.png", good)
		path := write(t, dir, "2.png", c.b)
		_, err := (&Files{Kind: "png", Images: dir, Channels: 1}).Load(background, nil, Both)
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Path != path || bad.Dataset != "png" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an *Error about %s with %q", name, err, path, c.want)
		}
	}
	// The first file gives the size, but no memory for every image before the others agree with it.
	dir := t.TempDir()
	write(t, dir, "0.png", claimingPNG(16384, 16384))
	for i := range 1000 {
		write(t, dir, fmt.Sprintf("s%03d.png", i), good)
	}
	expect.Error(t, expect.Err((&Files{Kind: "png", Images: dir, Channels: 1}).Load(background, nil, Both)), "s000.png: the image is 4x5", "a large first file")
	var key part.KeyError
	if err := (&Files{Kind: "png", Channels: 2}).Check(); !errors.As(err, &key) || key.Key != "channels" {
		t.Errorf("two channels: %v", err)
	}
}
