package pictures

import (
	"image"
	"testing"
)

func TestAPictureThatDiffersIsFound(t *testing.T) {
	a := image.NewRGBA(image.Rect(0, 0, 20, 20))
	b := image.NewRGBA(image.Rect(0, 0, 20, 20))
	if err := alike(a, b); err != nil {
		t.Error(err)
	}
	b.Pix[400] = tolerance + 1
	if alike(a, b) == nil {
		t.Error("one pixel of 400 differs, which was not found")
	}
	if alike(a, image.NewRGBA(image.Rect(0, 0, 20, 21))) == nil {
		t.Error("another size was not found")
	}
}
