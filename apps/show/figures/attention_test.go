package figures

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// attending is a model with given attention weights.
type attending struct {
	image  []int
	shapes map[string][]int
	values []float32
}

func (a attending) Shape() []int              { return a.image }
func (a attending) ShapeOf(name string) []int { return a.shapes[name] }
func (a attending) Value(string, []float32) ([]float32, error) {
	return a.values, nil
}

func (a attending) Named() (names []string) {
	for name := range a.shapes {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestAttentionIsDrawnWhereItsKeysArePartsOfTheImage(t *testing.T) {
	a := attending{image: []int{8, 4, 3}, shapes: map[string][]int{
		"encoder.0.attention": {2, 8, 8}, "encoder.1.attention": {1, 9, 9}, "encoder.2.attention": {1, 8, 7}, "encoder.3.attention": {1, 10, 10},
		"encoder.4.attention": {3, 32, 32}, "encoder.5.cross_attention": {2, 5, 8}, "encoder.6.cross_attention": {2, 5, 9}, "encoder.6": {8, 8, 8},
	}}
	want := []string{"encoder.0.attention", "encoder.1.attention", "encoder.4.attention", "encoder.5.cross_attention"}
	expect.Slice(t, AttentionValues(a), want)
	a.image = []int{9, 4}
	if height, width, class := keyGrid(a.image, []int{1, 9, 9}); height != 9 || width != 1 || class {
		t.Errorf("rows: got %d x %d, class token %v", height, width, class)
	}
	a.image = []int{32}
	if got := AttentionValues(a); got != nil {
		t.Errorf("vectors: got %q", got)
	}
}

// Two images of 2 x 4 pixels have 1 x 2 tokens and a class token. Each token of the image is a square of 2 x 2 pixels.
func TestMapsAreTheWeightsOfTheTokens(t *testing.T) {
	a := attending{image: []int{2, 4}, shapes: map[string][]int{"class.attention": {1, 3, 3}, "mean.attention": {1, 2, 2}},
		values: []float32{0.5, 0.3, 0.2, 9, 9, 9, 9, 9, 9, 0.1, 0.9, 0, 9, 9, 9, 9, 9, 9}}
	images := []float32{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 1}
	m, err := AttentionOf(a, "class.attention", images)
	fatal.If(t, err)
	if want := []float32{0.3, 0.3, 0.2, 0.2, 0.3, 0.3, 0.2, 0.2, 0.9, 0.9, 0, 0, 0.9, 0.9, 0, 0}; !slices.Equal(m.Maps, want) || !m.Class {
		t.Errorf("got %v, want %v", m.Maps, want)
	}
	u := m.OfUnits([]float32{0, 3, -1, 1, 0, 0}, []int{1, 2}) // codes of 2 images and 3 units
	for i, want := range []float32{0.3, 0.3, 0.2, 0.2, 0.3, 0.3, 0.2, 0.2, 0, 0, 0, 0, 0, 0, 0, 0} {
		expect.Near(t, u.Maps[i], want, 1e-6, "of units: value", i)
	}
	if both := m.OfUnits([]float32{3, 1}, []int{0}); math.Abs(float64(both.Maps[0])-(3*0.3+0.9)/4) > 1e-6 || both.Images[0] != 0.75 {
		t.Errorf("of a unit of both images: map %v, image %v", both.Maps, both.Images)
	}
	a.values = []float32{0.2, 0.8, 0.4, 0.6, 1, 0, 0, 1}
	if m, err = AttentionOf(a, "mean.attention", images); err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{0.3, 0.3, 0.7, 0.7} {
		expect.Near(t, m.Maps[i], want, 1e-6, "mean of all tokens: value", i)
	}
	rows := m.Rows("images")
	if len(rows) != 2 || rows[1].Caption != "mean, head 0 (mean of all tokens)" {
		t.Errorf("got the rows %+v", rows)
	}
	if orange := rows[1].Images[6]; orange != 1 { // red of the third pixel, where the attention is largest
		t.Errorf("the red of the place with the most attention is %g", orange)
	}
	expect.AnyError(t, expect.Err(AttentionOf(a, "other", images)), "an unknown value is drawn")
}
