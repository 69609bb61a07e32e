package data

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

func TestImagesAreWrittenAndReadBackInEveryFormat(t *testing.T) {
	dir := t.TempDir()
	values := lists.Of(3*2*4*3, func(i int) float32 { return float32(i*3%256) / 255 })
	for _, shape := range [][]int{{2, 4}, {2, 4, 3}} {
		pixels, _ := product(shape)
		for _, name := range []string{"a.npy", "a.idx", "a.idx.gz", "images-idx3-ubyte", "images-idx3-ubyte.gz", "folder", "one.png"} {
			path := filepath.Join(dir, by(shape), name)
			fatal.If(t, os.MkdirAll(filepath.Dir(path), 0o755))
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
			expect.Slice(t, images.Float32(), written, path, "read back")
		}
	}
	entries, _ := os.ReadDir(filepath.Join(dir, "2x4"))
	expect.Equal(t, len(entries), 7, "the folder holds", entries, "something was left beside")
}

func TestBytesAreRoundedAndClippedAndFloatsAreKept(t *testing.T) {
	values := []float32{-3, 0.499 / 255, 0.501 / 255, 0.5, 254.6 / 255, 1, 7, float32(math.NaN())}
	expect.Equal(t, string(toBytes(values)), string([]byte{0, 0, 1, 128, 255, 255, 255, 0}), "bytes")
	path := filepath.Join(t.TempDir(), "codes.npy")
	codes := []float32{-3, 7, 1e-20, 0.1, 5, 6}
	fatal.If(t, WriteImages(path, []int{3}, codes))
	back, err := ReadImages(background, path, []int{3})
	if err != nil || !slices.Equal(back.Float32(), codes) {
		t.Errorf("codes read back as %v, %v", back, err)
	}
}

func TestImagesAreWrittenIntoAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "empty"), filepath.Join(dir, "link")
	fatal.If(t, errors.Join(os.Mkdir(path, 0o755), os.Symlink("empty", link)))
	for _, name := range []string{path, link + "/"} {
		fatal.If(t, errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o755), WriteImages(name, []int{1, 3}, make([]float32, 6))))
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
	write(t, dir, "full/old.png", "x")
	for _, c := range []struct {
		name  string
		shape []int
		n     int
		want  string
	}{
		{"codes.idx", []int{3}, 6, ".npy"},
		{"codes", []int{3}, 6, ".npy"},
		{"a.jpg", []int{1, 3}, 6, ".csv, .csv.gz, .idx, .idx.gz, .npy, .npz or .png"},
		{"two.png", []int{1, 3}, 6, "2 images"},
		{"full", []int{1, 3}, 6, "not empty"},
		{"five.npy", []int{1, 3}, 5, "5 values"},
		{"folder", []int{1, 3, 2}, 6, "channels"},
		{"no/such/folder.npy", []int{1, 3}, 6, "no such file"},
	} {
		err := WriteImages(filepath.Join(dir, c.name), c.shape, make([]float32, c.n))
		expect.Error(t, err, c.want, c.name)
	}
	expect.As[*fs.PathError](t, WriteImages(filepath.Join(dir, "no/folder.npy"), []int{1}, nil), "", "a missing folder gave")
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder holds %v: something was left", entries)
	}
}
