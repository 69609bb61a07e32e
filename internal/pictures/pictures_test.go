package pictures

import (
	"image"
	"image/color"
	"image/draw"
	"path/filepath"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestAPictureThatDiffersIsFound(t *testing.T) {
	a := image.NewRGBA(image.Rect(0, 0, 20, 20))
	b := image.NewRGBA(image.Rect(0, 0, 20, 20))
	expect.NoError(t, alike(a, b))
	for i := range mayDiffer + 1 {
		expect.NoError(t, alike(a, b), i, "pixels")
		b.SetRGBA(2*i, 5, color.RGBA{R: tolerance + 1})
	}
	if alike(a, b) == nil {
		t.Errorf("%d pixels of a tile differ, which was not found", mayDiffer+1)
	}
	if alike(a, image.NewRGBA(image.Rect(0, 0, 20, 21))) == nil {
		t.Error("another size was not found")
	}
}

// An update leaves a file that the picture equals within the tolerance, and replaces one that differs.
func TestAnUpdateWritesOnlyWhatDiffers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden.png")
	picture := image.NewGray(image.Rect(0, 0, 20, 20))
	colour := func() color.Gray {
		stored, err := read(path)
		fatal.If(t, err)
		return color.GrayModel.Convert(stored.At(0, 0)).(color.Gray)
	}
	for _, step := range []struct{ drawn, stored uint8 }{{100, 100}, {101, 100}, {200, 200}} {
		for i := range picture.Pix {
			picture.Pix[i] = step.drawn
		}
		Golden(t, path, picture, true)
		expect.Equal(t, colour().Y, step.stored, "drawn", step.drawn, "the file has")
	}
}

// The comparison must notice every letter, marker and tick of a figure that is erased, wherever it lies in the grid of
// tiles.
func TestAnErasedMarkOfAGoldenPictureIsFound(t *testing.T) {
	want, err := read("../../apps/show/figures/testdata/curves.png")
	fatal.If(t, err)
	labels := marks(want)
	if len(labels) < 50 {
		t.Fatalf("%d marks in the golden picture, want labels and markers", len(labels))
	}
	for _, mark := range labels {
		around := image.Rect(mark.Min.X/side*side, mark.Min.Y/side*side, mark.Max.X+side, mark.Max.Y+side) // aligned with the grid of tiles
		whole, erased := cut(want, around), cut(want, around)
		draw.Draw(erased, mark, image.White, image.Point{}, draw.Src)
		if alike(erased, whole) == nil {
			t.Errorf("without what is drawn in %v the picture passes", mark)
		}
	}
}

// cut returns a copy of a part of a picture.
func cut(picture image.Image, part image.Rectangle) *image.RGBA {
	c := image.NewRGBA(part.Intersect(picture.Bounds()))
	draw.Draw(c, c.Bounds(), picture, c.Bounds().Min, draw.Src)
	return c
}

// marks returns the bounds of the connected groups of dark or coloured pixels that are about as large as a letter or marker.
func marks(picture image.Image) (found []image.Rectangle) {
	size := picture.Bounds()
	seen := map[image.Point]bool{}
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			if box, n := group(picture, image.Pt(x, y), seen); n >= 12 && box.Dx() <= 24 && box.Dy() <= 24 {
				found = append(found, box)
			}
		}
	}
	return found
}

// group returns the bounds and the number of the inked pixels that are connected with from, without those already in
// seen.
func group(picture image.Image, from image.Point, seen map[image.Point]bool) (box image.Rectangle, n int) {
	for todo := []image.Point{from}; len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[p] || !p.In(picture.Bounds()) || !inked(picture, p) {
			continue
		}
		seen[p] = true
		n++
		box = box.Union(image.Rect(p.X, p.Y, p.X+1, p.Y+1))
		todo = append(todo, p.Add(image.Pt(1, 0)), p.Add(image.Pt(-1, 0)), p.Add(image.Pt(0, 1)), p.Add(image.Pt(0, -1)))
	}
	return box, n
}

// inked reports whether a pixel is drawn, rather than part of the white background.
func inked(picture image.Image, p image.Point) bool {
	r, g, b, _ := picture.At(p.X, p.Y).RGBA()
	return min(r, g, b) < 0xa000
}
