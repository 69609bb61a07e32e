// Package pictures compares figures with golden pictures in tests.
package pictures

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"testing"
)

// Tolerances of the comparison. Processors that fuse multiplications may draw the edges of letters and lines
// differently. A bound for the whole picture would miss a lost label, so every tile has a bound.
const (
	tolerance = 24 // maximum difference of a colour channel, whose values are 0 to 255
	side      = 16 // side of a tile in pixels; tiles overlap by half, so that no mark is divided among four of them
	mayDiffer = 6  // maximum number of differing pixels in a tile
)

// Golden fails the test unless a picture equals the PNG file at path. With update it writes the picture to a file that is missing or
// differs. Without the comparison, a value that changes in its last bits would change the file.
func Golden(t testing.TB, path string, got image.Image, update bool) {
	t.Helper()
	want, err := read(path)
	if err == nil {
		err = alike(got, want)
	}
	if err != nil && update {
		err = write(path, got)
	}
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

func write(path string, picture image.Image) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(f, picture); err != nil {
		return err
	}
	return f.Close()
}

func read(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return png.Decode(f)
}

// alike returns an error if two pictures differ by more than the tolerances.
func alike(got, want image.Image) error {
	if got.Bounds() != want.Bounds() {
		return fmt.Errorf("the size is %v, want %v", got.Bounds(), want.Bounds())
	}
	cells, size := differing(got, want), got.Bounds()
	for y := range size.Dy()/(side/2) + 1 {
		for x := range size.Dx()/(side/2) + 1 {
			n := cells[image.Pt(x, y)] + cells[image.Pt(x+1, y)] + cells[image.Pt(x, y+1)] + cells[image.Pt(x+1, y+1)]
			if n > mayDiffer {
				at := size.Min.Add(image.Pt(x, y).Mul(side / 2))
				return fmt.Errorf("%d pixels of the tile of %d pixels at %v differ, want at most %d", n, side*side, at, mayDiffer)
			}
		}
	}
	return nil
}

// differing counts the pixels that differ, in cells of half the side of a tile. The result has no entry for cells
// without such pixels.
func differing(a, b image.Image) map[image.Point]int {
	cells, size := map[image.Point]int{}, a.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			if !near(a, b, x, y) {
				cells[image.Pt(x, y).Sub(size.Min).Div(side/2)]++
			}
		}
	}
	return cells
}

func near(a, b image.Image, x, y int) bool {
	r0, g0, b0, a0 := a.At(x, y).RGBA()
	r1, g1, b1, a1 := b.At(x, y).RGBA()
	for _, d := range [4]int{int(r0) - int(r1), int(g0) - int(g1), int(b0) - int(b1), int(a0) - int(a1)} {
		if max(d, -d) > tolerance<<8|tolerance {
			return false
		}
	}
	return true
}
