package data

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestPicturesBecomeImagesAndBack(t *testing.T) {
	colours := image.NewNRGBA(image.Rect(5, 5, 8, 7))
	colours.SetNRGBA(5, 5, color.NRGBA{255, 0, 0, 255})
	colours.SetNRGBA(7, 6, color.NRGBA{10, 20, 30, 255})
	var file bytes.Buffer
	fatal.If(t, png.Encode(&file, colours))
	got, err := DecodePicture(file.Bytes(), []int{2, 3}, nil, nil)
	if want := []byte{76, 255, 255, 255, 255, 18}; err != nil || !slices.Equal(toBytes(got), want) { // transparency over white
		t.Errorf("grey: got %v, %v; want %v", got, err, want)
	}
	got, err = DecodePicture(file.Bytes(), []int{2, 3, 3}, nil, nil)
	if want := append(append([]byte{255, 0, 0}, bytes.Repeat([]byte{255}, 12)...), 10, 20, 30); err != nil || !slices.Equal(toBytes(got), want) {
		t.Errorf("colours: got %v, %v; want %v", got, err, want)
	}
	for _, shape := range [][]int{{3, 2}, {6}, {2, 3, 4}, {-1, -1}} {
		expect.AnyError(t, expect.Err(DecodePicture(file.Bytes(), shape, nil, nil)), "shape", shape)
	}
	expect.Is(t, expect.Err(DecodePicture([]byte("text"), []int{2, 3}, nil, nil)), ErrNoPicture, "a text")
	var b bytes.Buffer
	fatal.If(t, WritePNG(&b, []int{1, 4}, []float32{-1, 0.5, 1, 2}))
	back, err := png.Decode(&b)
	fatal.If(t, err)
	expect.Slice(t, back.(*image.Gray).Pix, []byte{0, 128, 255, 255})
	for _, shape := range [][]int{{3, 2}, {4}, {0, 4}} {
		expect.AnyError(t, WritePNG(&b, shape, []float32{0, 0, 0, 0}), "shape", shape)
	}
	expect.AnyError(t, WritePNG(&b, []int{0, 0}, nil), "no pixels")
}
