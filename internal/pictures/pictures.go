// Package pictures holds figures to golden pictures. It is for tests.
package pictures

import (
	"fmt"
	"image"
	"image/png"
	"os"
	"testing"
)

// The tolerance of pictures: processors that fuse multiplications may put the edges of letters and lines elsewhere.
const (
	tolerance = 24    // of a channel, of 255
	mayDiffer = 0.002 // of all pixels
)

// Golden fails the test unless a picture is that of a PNG file; with update it writes the file first.
func Golden(t testing.TB, path string, got image.Image, update bool) {
	t.Helper()
	if update {
		if err := write(path, got); err != nil {
			t.Fatal(err)
		}
	}
	want, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := alike(got, want); err != nil {
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

// alike compares decoded pixels.
func alike(got, want image.Image) error {
	if got.Bounds() != want.Bounds() {
		return fmt.Errorf("the size is %v, want %v", got.Bounds(), want.Bounds())
	}
	differ, size := 0, got.Bounds()
	for y := range size.Dy() {
		for x := range size.Dx() {
			if !near(got, want, x, y) {
				differ++
			}
		}
	}
	if share := float64(differ) / float64(size.Dx()*size.Dy()); share > mayDiffer {
		return fmt.Errorf("%.2g of the pixels differ", share)
	}
	return nil
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
