package figures

import (
	"fmt"
	"slices"
	"strings"

	"tessera/internal/lists"
	"tessera/internal/volume"
)

// Attending is a model that publishes attention weights as values.
type Attending interface {
	Shape() []int
	Named() []string
	// ShapeOf returns the shape of a named value of one image, nil if there is none.
	ShapeOf(name string) []int
	Value(name string, images []float32) ([]float32, error)
}

// Attention contains images, or means of images, and where the heads of one layer attend in them.
type Attention struct {
	Name   string    // the published value, such as encoder.7.attention
	Class  bool      // the maps are those of the class token; otherwise the mean over all tokens
	Shape  []int     // shape of an image
	Heads  int       // number of heads
	Images []float32 // n x pixels
	Maps   []float32 // n x heads x (height, width): the attention weight that the token of each pixel receives
}

// MostAttended is the number of images over which the mean maps of units are computed at most.
const MostAttended = 1000

// attendedBatch is the number of images whose attention weights are computed together.
const attendedBatch = 100

// AttentionValues lists the published attention weights that can be drawn on the images of a model, in the order of the layers:
// those whose keys are patches, pixels or rows of the images, with or without a class token before them.
func AttentionValues(a Attending) (names []string) {
	for _, name := range a.Named() {
		if s := a.ShapeOf(name); strings.HasSuffix(name, "attention") && len(s) == 3 {
			if height, _, _ := keyGrid(a.Shape(), s); height > 0 {
				names = append(names, name)
			}
		}
	}
	return names
}

// keyGrid returns the grid of tokens that gives the keys of attention weights of a shape (heads, tokens, keys), and whether a
// class token comes before them. The grid has the proportions of the image, or one token for each row; 0 x 0 if neither fits.
func keyGrid(image, weights []int) (height, width int, class bool) {
	if len(image) < 2 {
		return 0, 0, false
	}
	for _, class := range []bool{false, true} {
		keys := weights[2]
		if class {
			keys--
		}
		for h := 1; h <= keys; h++ {
			if keys%h == 0 && h*image[1] == keys/h*image[0] && image[0]%h == 0 && (!class || weights[1] == weights[2]) {
				return h, keys / h, class
			}
		}
	}
	if weights[2] == image[0] {
		return image[0], 1, false
	}
	return 0, 0, false
}

// AttentionOf computes the attention maps of the named value of a model for images.
func AttentionOf(a Attending, name string, images []float32) (*Attention, error) {
	image, shape := a.Shape(), a.ShapeOf(name)
	if !slices.Contains(AttentionValues(a), name) {
		return nil, fmt.Errorf("figures: the model has no attention %q that can be drawn, only %q", name, AttentionValues(a))
	}
	m := &Attention{Name: name, Shape: image, Heads: shape[0], Images: images}
	height, width, class := keyGrid(image, shape)
	m.Class = class
	pixels := volume.Of(image)
	for from := 0; from < len(images); from += attendedBatch * pixels {
		weights, err := a.Value(name, images[from:min(from+attendedBatch*pixels, len(images))])
		if err != nil {
			return nil, err
		}
		for one := range slices.Chunk(weights, shape[1]*shape[2]) { // of one head and image
			m.Maps = append(m.Maps, enlarged(received(one, shape[2], class), height, width, image)...)
		}
	}
	return m, nil
}

// received returns the attention weights that the tokens of the image receive from the class token, or the mean over all tokens.
func received(weights []float32, keys int, class bool) []float32 {
	if class {
		return weights[1:keys]
	}
	mean, n := make([]float32, keys), float32(len(weights)/keys)
	for i, v := range weights {
		mean[i%keys] += v / n
	}
	return mean
}

// enlarged converts a map of height x width tokens to a map of the pixels of an image.
func enlarged(tokens []float32, height, width int, image []int) []float32 {
	pixels := make([]float32, 0, image[0]*image[1])
	for y := range image[0] {
		for x := range image[1] {
			pixels = append(pixels, tokens[y*height/image[0]*width+x*width/image[1]])
		}
	}
	return pixels
}

// OfUnits returns the mean image and the mean maps for each of the given units, weighted by the unit's code where that is positive:
// where the heads attend in images that use the unit. codes has a row for each image. A unit whose code is never positive has
// images of zeros.
func (a *Attention) OfUnits(codes []float32, units []int) *Attention {
	n := len(a.Images) / volume.Of(a.Shape)
	width := len(codes) / n
	m := *a
	m.Images, m.Maps = nil, nil
	for _, unit := range units {
		weights := lists.Of(n, func(i int) float32 { return max(codes[i*width+unit], 0) })
		m.Images = append(m.Images, weighted(a.Images, weights)...)
		m.Maps = append(m.Maps, weighted(a.Maps, weights)...)
	}
	return &m
}

// weighted returns the weighted mean of rows.
func weighted(rows, weights []float32) []float32 {
	n := len(rows) / len(weights)
	mean, sum := make([]float32, n), float32(0)
	for i, w := range weights {
		sum += w
		for j, v := range rows[i*n : (i+1)*n] {
			mean[j] += w * v
		}
	}
	for j := range mean {
		if sum > 0 {
			mean[j] /= sum
		}
	}
	return mean
}

// Rows returns rows of pictures: the images, and for each head the images with its attention in orange. In a
// picture the brightest orange is the most attention, and no orange the least. caption describes the images.
func (a *Attention) Rows(caption string) []ImageRow {
	size := a.Shape[0] * a.Shape[1]
	n := len(a.Maps) / (a.Heads * size)
	rows := []ImageRow{{Caption: caption, Shape: a.Shape, Images: a.Images}}
	by := "mean of all tokens"
	if a.Class {
		by = "class token"
	}
	for h := range a.Heads {
		row := ImageRow{Caption: fmt.Sprintf("%s, head %d (%s)", strings.TrimSuffix(a.Name, ".attention"), h, by), Shape: []int{a.Shape[0], a.Shape[1], 3}, Tone: Unit}
		for i := range n {
			row.Images = append(row.Images, overlaid(a.image(i), a.Maps[(i*a.Heads+h)*size:(i*a.Heads+h+1)*size])...)
		}
		rows = append(rows, row)
	}
	return rows
}

// image returns image i as one grey value for each pixel, from 0 to 1.
func (a *Attention) image(i int) []float32 {
	size, pixels := a.Shape[0]*a.Shape[1], volume.Of(a.Shape)
	grey := make([]float32, size)
	for j, v := range a.Images[i*pixels : (i+1)*pixels] {
		grey[j*size/pixels] += v
	}
	scale(grey, slices.Min(grey))
	return grey
}

// scale maps values linearly to [0,1]: black to 0, and the largest value to 1. Equal values become 0.
func scale(values []float32, black float32) {
	factor := slices.Max(values) - black
	for i := range values {
		if values[i] -= black; factor > 0 {
			values[i] /= factor
		}
	}
}

// overlaid returns a dimmed grey image with a map in orange, as three channels.
func overlaid(grey, attention []float32) []float32 {
	heat, rgb := slices.Clone(attention), make([]float32, 0, 3*len(grey))
	scale(heat, slices.Min(heat))
	for j, g := range grey {
		dim := 0.45 * g * (1 - 0.5*heat[j])
		rgb = append(rgb, dim+heat[j]*(1-dim), dim+0.5*heat[j]*(1-dim), dim)
	}
	return rgb
}
