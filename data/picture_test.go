package data

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"

	"tessera/internal/fatal"
)

func TestPicturesBecomeImagesAndBack(t *testing.T) {
	colours := image.NewNRGBA(image.Rect(5, 5, 8, 7))
	colours.SetNRGBA(5, 5, color.NRGBA{255, 0, 0, 255})
	colours.SetNRGBA(7, 6, color.NRGBA{10, 20, 30, 255})
	var file bytes.Buffer
	fatal.If(t, png.Encode(&file, colours))
	got, err := DecodePicture(file.Bytes(), []int{2, 3})
	if want := []byte{76, 255, 255, 255, 255, 18}; err != nil || !slices.Equal(toBytes(got), want) { // transparency over white
		t.Errorf("grey: got %v, %v; want %v", got, err, want)
	}
	got, err = DecodePicture(file.Bytes(), []int{2, 3, 3})
	if want := append(append([]byte{255, 0, 0}, bytes.Repeat([]byte{255}, 12)...), 10, 20, 30); err != nil || !slices.Equal(toBytes(got), want) {
		t.Errorf("colours: got %v, %v; want %v", got, err, want)
	}
	for _, shape := range [][]int{{3, 2}, {6}, {2, 3, 4}, {-1, -1}} {
		if _, err := DecodePicture(file.Bytes(), shape); err == nil {
			t.Errorf("shape %v: no error", shape)
		}
	}
	if _, err := DecodePicture([]byte("text"), []int{2, 3}); !errors.Is(err, ErrNoPicture) {
		t.Errorf("a text: %v", err)
	}
	var b bytes.Buffer
	fatal.If(t, WritePNG(&b, []int{1, 4}, []float32{-1, 0.5, 1, 2}))
	back, err := png.Decode(&b)
	fatal.If(t, err)
	if got := back.(*image.Gray).Pix; !slices.Equal(got, []byte{0, 128, 255, 255}) {
		t.Errorf("got %v", got)
	}
	for _, shape := range [][]int{{3, 2}, {4}, {0, 4}} {
		if err := WritePNG(&b, shape, []float32{0, 0, 0, 0}); err == nil {
			t.Errorf("shape %v: no error", shape)
		}
	}
	if err := WritePNG(&b, []int{0, 0}, nil); err == nil {
		t.Error("no pixels: no error")
	}
}
