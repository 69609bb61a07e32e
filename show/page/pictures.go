package page

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"math"

	"tessera/show/figures"
)

// largestSide is the largest height and width of a picture in a page, in pixels; larger images are shrunk.
const largestSide = 96

// picture is a PNG in base64: what a data URI and the scripts of a page take.
type picture string

// URI is the picture as the source of an <img>.
func (p picture) URI() string { return "data:image/png;base64," + string(p) }

// painter draws images of one shape.
type painter struct {
	shape  []int   // (height, width) or (height, width, channels) of what is drawn
	shrink int     // factor by which images are shrunk, 1 for none
	from   []int   // shape of the images
	most   float64 // the largest magnitude of all vectors of a heat map; 0 for images
}

// forVectors returns a painter whose pictures of vectors share the scale of a heat map: red up to the largest magnitude of all these
// values, blue down to its negative. Images have no common scale.
func (p painter) forVectors(all ...[]float32) painter {
	p.most = 0
	if p.from[0] == 1 && len(p.from) == 2 {
		for _, values := range all {
			for _, v := range values {
				p.most = max(p.most, math.Abs(float64(v)))
			}
		}
	}
	return p
}

// newPainter takes the shape of images. Vectors are drawn as one row.
func newPainter(shape []int) painter {
	if len(shape) == 1 {
		shape = []int{1, shape[0]}
	}
	p := painter{from: shape, shrink: max(1, (max(shape[0], shape[1])+largestSide-1)/largestSide)}
	p.shape = append([]int{max(1, shape[0]/p.shrink), max(1, shape[1]/p.shrink)}, shape[2:]...)
	return p
}

// draw returns the picture of one image, "" for one with values that are not finite.
func (p painter) draw(tone figures.Tone, values []float32) picture {
	drawn, err := p.pixels(tone, p.small(values))
	if err != nil {
		return ""
	}
	return encode(drawn)
}

// pixels draws an image that was shrunk.
func (p painter) pixels(tone figures.Tone, values []float32) (*image.RGBA, error) {
	if p.most == 0 {
		return figures.Pixels(p.shape, tone, values)
	}
	drawn := image.NewRGBA(image.Rect(0, 0, len(values), 1))
	for i, v := range values {
		drawn.SetRGBA(i, 0, figures.Heat(float64(v)/p.most))
	}
	return drawn, nil
}

// small returns the means of squares of an image that is too large, else the image itself.
func (p painter) small(values []float32) []float32 {
	if p.shrink == 1 {
		return values
	}
	channels := 1
	if len(p.from) > 2 {
		channels = p.from[2]
	}
	height, width := p.shape[0], p.shape[1]
	small := make([]float32, height*width*channels)
	for y := range height * p.shrink {
		if y >= p.from[0] {
			break
		}
		for x := range min(width*p.shrink, p.from[1]) {
			for c := range channels {
				small[(y/p.shrink*width+x/p.shrink)*channels+c] += values[(y*p.from[1]+x)*channels+c] / float32(p.shrink*p.shrink)
			}
		}
	}
	return small
}

// encode writes a PNG, with a palette where there are few colours.
func encode(drawn *image.RGBA) picture {
	var b bytes.Buffer
	var shown image.Image = drawn
	if few := withPalette(drawn); few != nil {
		shown = few
	}
	_ = png.Encode(&b, shown) // a buffer takes everything
	return picture(base64.StdEncoding.EncodeToString(b.Bytes()))
}

// withPalette returns the same picture with a palette, nil for more colours than a palette has.
func withPalette(drawn *image.RGBA) *image.Paletted {
	numbers := map[color.RGBA]uint8{}
	var palette color.Palette
	few := image.NewPaletted(drawn.Rect, nil)
	for i := range few.Pix {
		c := color.RGBA{drawn.Pix[4*i], drawn.Pix[4*i+1], drawn.Pix[4*i+2], drawn.Pix[4*i+3]}
		number, ok := numbers[c]
		if !ok {
			if len(palette) == 256 {
				return nil
			}
			number = uint8(len(palette))
			numbers[c] = number
			palette = append(palette, c)
		}
		few.Pix[i] = number
	}
	few.Palette = palette
	return few
}

// heat draws a row of values from 0 to most, one pixel each, from transparent to the colour of bars.
func heat(values []float64, most float64) picture {
	drawn := image.NewRGBA(image.Rect(0, 0, len(values), 1))
	for i, v := range values {
		share := 0.0
		if most > 0 {
			share = min(max(v/most, 0), 1)
		}
		a := uint8(255 * share)
		drawn.SetRGBA(i, 0, color.RGBA{uint8(214 * share), uint8(98 * share), uint8(26 * share), a})
	}
	return encode(drawn)
}
