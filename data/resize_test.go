package data

import (
	"fmt"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// triangle is the mean of the values of a line from low to high under triangle i of n, in floats.
func triangle(at func(int) float64, low, high, i, n int) float64 {
	width := max(1, float64(high-low)/float64(n))
	centre := float64(low) + (float64(i)+0.5)*float64(high-low)/float64(n)
	sum, weights := 0.0, 0.0
	for x := low; x < high; x++ {
		w := max(0, 1-math.Abs(float64(x)+0.5-centre)/width)
		sum, weights = sum+w*at(x), weights+w
	}
	return sum / weights
}

// testPictures returns a smooth picture in the types of the decoders.
func testPictures(size image.Point) map[string]image.Image {
	r := image.Rectangle{Max: size}
	all := map[string]image.Image{"grey": image.NewGray(r), "rgba": image.NewRGBA(r), "nrgba": image.NewNRGBA(r), "16 bits": image.NewRGBA64(r), "16 bits, grey": image.NewGray16(r), "cmyk": image.NewCMYK(r)}
	for y := range size.Y {
		for x := range size.X {
			wave := func(k, phase float64) uint16 {
				return uint16(32768 + 20000*math.Sin(float64(x)/9+k*float64(y)/14+phase))
			}
			for _, m := range all {
				m.(interface{ Set(x, y int, c color.Color) }).Set(x, y, color.RGBA64{wave(1, 0), wave(-1, 1), wave(0.5, 2), 65535})
			}
		}
	}
	for _, ratio := range []image.YCbCrSubsampleRatio{image.YCbCrSubsampleRatio444, image.YCbCrSubsampleRatio422, image.YCbCrSubsampleRatio420, image.YCbCrSubsampleRatio440, image.YCbCrSubsampleRatio411, image.YCbCrSubsampleRatio410} {
		m := image.NewYCbCr(r, ratio)
		for y := range size.Y {
			for x := range size.X {
				c := color.YCbCrModel.Convert(all["rgba"].At(x, y)).(color.YCbCr)
				m.Y[m.YOffset(x, y)], m.Cb[m.COffset(x, y)], m.Cr[m.COffset(x, y)] = c.Y, c.Cb, c.Cr
			}
		}
		all[ratio.String()] = m
	}
	return all
}

func TestPartsOfImagesAreScaledByTriangles(t *testing.T) {
	size := image.Pt(43, 31)
	for name, m := range testPictures(size) {
		most := 0.501                      // a level
		if m, ok := m.(*image.YCbCr); ok { // chroma has its place in the middle of its pixels
			most = map[image.YCbCrSubsampleRatio]float64{image.YCbCrSubsampleRatio444: 1, image.YCbCrSubsampleRatio422: 6, image.YCbCrSubsampleRatio440: 6,
				image.YCbCrSubsampleRatio420: 9, image.YCbCrSubsampleRatio411: 20, image.YCbCrSubsampleRatio410: 25}[m.SubsampleRatio]
		}
		shift := 8
		if isDeep(m.ColorModel()) {
			shift = 0
		}
		for _, c := range []struct {
			from image.Rectangle
			to   image.Point
		}{{image.Rectangle{Max: size}, image.Pt(8, 7)}, {image.Rect(7, 3, 38, 30), image.Pt(5, 12)}, {image.Rect(5, 1, 32, 28), image.Pt(45, 36)}, {image.Rectangle{Max: size}, image.Pt(1, 1)}} {
			got := scaled(m, c.from, c.to, true)
			for _, p := range []image.Point{{}, c.to.Sub(image.Pt(1, 1)), c.to.Div(2)} {
				for channel := range 3 {
					level := func(c color.Color) float64 {
						r, g, b, _ := c.RGBA()
						return float64([]uint32{r, g, b}[channel] >> shift)
					}
					want := triangle(func(y int) float64 {
						return triangle(func(x int) float64 { return level(m.At(x, y)) }, c.from.Min.X, c.from.Max.X, p.X, c.to.X)
					}, c.from.Min.Y, c.from.Max.Y, p.Y, c.to.Y)
					if got := level(got.At(p.X, p.Y)); math.Abs(got-want) > most {
						t.Errorf("%s, %v to %v, channel %d of %v: %v, the mean under the triangle is %v", name, c.from, c.to, channel, p, got, want)
					}
				}
			}
			if luma, ok := m.(*image.YCbCr); ok {
				alone := scaled(&image.Gray{Pix: luma.Y, Stride: luma.YStride, Rect: luma.Rect}, c.from, c.to, true)
				expect.Slice(t, scaled(m, c.from, c.to, false).(*image.RGBA).Pix, alone.(*image.RGBA).Pix, name, c.from, "to", c.to, "grey is not the luma")
			}
		}
	}
}

func TestWeightsOfTrianglesSumToOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		low, pixels, n := random.IntN(50), 1<<random.IntN(3), 1+random.IntN(300)
		high := low + 1 + random.IntN(1000)
		for i, taps := range triangles(low, high, pixels, n) {
			sum := uint32(0)
			for _, w := range taps.weights {
				sum += w
			}
			if last := taps.first + len(taps.weights) - 1; sum != 1<<16 || taps.first < low/pixels || last > (high-1)/pixels {
				t.Fatalf("pixels %d to %d in %d, %d: weights %v from %d on", low, high, n, i, taps.weights, taps.first)
			}
		}
	}
}

func TestRotatedImagesAreResizedAsByPillow(t *testing.T) {
	o := own(t)
	for orientation := 1; orientation <= 8; orientation++ {
		dir := copied(t, map[string]string{"a.jpg": fmt.Sprintf("turned%d.jpg", orientation)})
		for how, want := range map[string][][][]byte{"crop": o.Crop, "pad": o.Pad, "stretch": o.Stretch} {
			set, err := (&Files{Kind: "images", Images: dir, Channels: 3, Size: Size{10, 10}, Resize: how}).Load(background, nil, Both)
			fatal.If(t, err)
			near(t, fmt.Sprint(how, ", orientation ", orientation), set.Train, want, 9) // JPEG loses a little
		}
	}
}
