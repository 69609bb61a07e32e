package data

import (
	"image"
	"image/color"
	"image/draw"
	"math"
)

// resized resizes an image without transparency, and rotates it by its orientation, by linear interpolation (a triangle filter, at
// least as wide as a pixel of the result):
//
//	crop     the largest central part with the proportions of the size
//	pad      the entire image, as large as it fits, centred on black
//	stretch  the entire image, out of proportion
//
// Without colour only the grey values of the result are right.
func resized(m image.Image, orientation int, size image.Point, how string, colour bool) image.Image {
	to, from := image.Rectangle{Max: size}, image.Rectangle{Max: turned(m.Bounds().Size(), orientation)}
	s := from.Max
	wide := int64(s.X)*int64(size.Y) > int64(s.Y)*int64(size.X)
	switch {
	case how == "stretch":
	case how == "crop" && wide:
		from = middle(from, image.Pt(share(s.Y, size.X, size.Y), s.Y))
	case how == "crop":
		from = middle(from, image.Pt(s.X, share(s.X, size.Y, size.X)))
	case wide:
		to = middle(to, image.Pt(size.X, share(size.X, s.Y, s.X)))
	default:
		to = middle(to, image.Pt(share(size.Y, s.X, s.Y), size.Y))
	}
	small := scaled(m, stored(from, m.Bounds().Size(), orientation), turned(to.Size(), orientation), colour)
	if small = upright(small, orientation); to.Size() == size {
		return small
	}
	out := canvas(small, image.Rectangle{Max: size})
	draw.Draw(out, to, small, small.Bounds().Min, draw.Src)
	return out
}

// share returns n a / b, rounded, at least 1.
func share(n, a, b int) int {
	return int(max(1, (2*int64(n)*int64(a)+int64(b))/(2*int64(b))))
}

// middle returns the rectangle of the given size in the centre of r.
func middle(r image.Rectangle, size image.Point) image.Rectangle {
	at := r.Min.Add(image.Pt((r.Dx()-size.X)/2, (r.Dy()-size.Y)/2))
	return image.Rectangle{Min: at, Max: at.Add(size)}
}

// turned returns the size of an image after rotation by its orientation, or the size before it.
func turned(size image.Point, orientation int) image.Point {
	if orientation >= 5 {
		return image.Pt(size.Y, size.X)
	}
	return size
}

// stored returns where a rectangle of the rotated image is in the image as its file stores it, which has the given size.
func stored(r image.Rectangle, size image.Point, orientation int) image.Rectangle {
	if orientation >= 5 {
		r = image.Rect(r.Min.Y, r.Min.X, r.Max.Y, r.Max.X)
	}
	right, down := mirrored(orientation)
	if right {
		r.Min.X, r.Max.X = size.X-r.Max.X, size.X-r.Min.X
	}
	if down {
		r.Min.Y, r.Max.Y = size.Y-r.Max.Y, size.Y-r.Min.Y
	}
	return r
}

// scaled returns a part of an image in another size. Luma and chroma of a photo are averaged before they become red, green and blue: there
// are fewer values, and the result is closer to the picture before its compression, because colours outside of [0,255] are clipped last.
// Without colour, the luma is the grey value.
func scaled(m image.Image, from image.Rectangle, size image.Point, colour bool) image.Image {
	planes := planesOf(m, colour)
	values := 0 // of a pixel
	for i := range planes {
		planes[i].filter(from, size)
		values += planes[i].step
	}
	out, most := canvas(m, image.Rectangle{Max: size}), int64(255)
	if isDeep(m.ColorModel()) {
		most = 65535
	}
	level := func(v int64) uint16 { return uint16(min(max((v+1<<31)>>32, 0), most) * (65535 / most)) }
	row := make([]int64, values*size.X)
	for y := range size.Y {
		at := 0
		for i := range planes {
			planes[i].row(y, row[at:], values)
			at += planes[i].step
		}
		for x := range size.X {
			v := row[x*values : (x+1)*values]
			var r, g, b int64
			switch values {
			case 1: // grey
				r, g, b = v[0], v[0], v[0]
			case 3: // luma and chroma, as color.YCbCrToRGB
				l, cb, cr := v[0], v[1]-128<<32, v[2]-128<<32
				r, g, b = l+91881*cr>>16, l-(22554*cb+46802*cr)>>16, l+116130*cb>>16
			case 4: // red, green, blue and alpha
				r, g, b = v[0], v[1], v[2]
			case 8: // the same in 16 bits, the high byte and the low one
				r, g, b = v[0]<<8+v[1], v[2]<<8+v[3], v[4]<<8+v[5]
			}
			out.SetRGBA64(x, y, color.RGBA64{R: level(r), G: level(g), B: level(b), A: 65535})
		}
	}
	return out
}

// plane contains values of an image, step bytes for every x by y pixels.
type plane struct {
	pix                []byte
	stride, step, x, y int

	across, down []taps
	line         []uint32
}

// planesOf returns the values of an image without transparency; without colour, only those that its grey values need.
func planesOf(m image.Image, colour bool) []plane {
	switch m := m.(type) {
	case *image.Gray:
		return []plane{{pix: m.Pix, stride: m.Stride, step: 1, x: 1, y: 1}}
	case *image.YCbCr:
		luma := plane{pix: m.Y, stride: m.YStride, step: 1, x: 1, y: 1}
		if !colour {
			return []plane{luma}
		}
		x, y := 1, 1
		switch m.SubsampleRatio {
		case image.YCbCrSubsampleRatio422:
			x = 2
		case image.YCbCrSubsampleRatio420:
			x, y = 2, 2
		case image.YCbCrSubsampleRatio440:
			y = 2
		case image.YCbCrSubsampleRatio411:
			x = 4
		case image.YCbCrSubsampleRatio410:
			x, y = 4, 2
		}
		return []plane{luma, {pix: m.Cb, stride: m.CStride, step: 1, x: x, y: y}, {pix: m.Cr, stride: m.CStride, step: 1, x: x, y: y}}
	}
	whole := image.Rectangle{Max: m.Bounds().Size()}
	if isDeep(m.ColorModel()) {
		deep := image.NewRGBA64(whole)
		draw.Draw(deep, whole, m, m.Bounds().Min, draw.Src)
		return []plane{{pix: deep.Pix, stride: deep.Stride, step: 8, x: 1, y: 1}}
	}
	rgba, ok := m.(*image.RGBA)
	if !ok {
		rgba = image.NewRGBA(whole)
		draw.Draw(rgba, whole, m, m.Bounds().Min, draw.Src)
	}
	return []plane{{pix: rgba.Pix, stride: rgba.Stride, step: 4, x: 1, y: 1}}
}

// filter prepares for a part of the image, in its pixels, in another size.
func (p *plane) filter(from image.Rectangle, size image.Point) {
	p.across, p.down = triangles(from.Min.X, from.Max.X, p.x, size.X), triangles(from.Min.Y, from.Max.Y, p.y, size.Y)
	p.line = make([]uint32, (from.Max.X+p.x-1)/p.x*p.step)
}

// row writes row y of the result, times 2^32, to dst, whose pixels are apart values apart.
func (p *plane) row(y int, dst []int64, apart int) {
	left := p.across[0].first * p.step
	line := p.line[left:]
	clear(line)
	for k, w := range p.down[y].weights {
		row := p.pix[(p.down[y].first+k)*p.stride+left:]
		for i, v := range row[:len(line)] {
			line[i] += w * uint32(v)
		}
	}
	for x, t := range p.across {
		for c := range p.step {
			sum, at := int64(0), t.first*p.step+c
			for _, w := range t.weights {
				sum += int64(w) * int64(p.line[at])
				at += p.step
			}
			dst[x*apart+c] = sum
		}
	}
}

// taps are the weights of consecutive values.
type taps struct {
	first   int
	weights []uint32
}

// triangles returns n triangles over the pixels from low to high, for values of which each belongs to several pixels. The weights of a
// triangle are multiples of 2^-16 with the sum 1, so that all sums are exact, and the same on every machine.
func triangles(low, high, pixels, n int) []taps {
	all := make([]taps, n)
	size, value := int64(high-low), 2*int64(n)*int64(pixels) // of the part, and of a value, in units of which a pixel has 2n
	half := max(2*size, value)
	for i := range all {
		centre := 2*int64(n)*int64(low) + (2*int64(i)+1)*size
		first := max(int64(low/pixels), (centre-half+value/2)/value) // the first value whose centre may be within the triangle
		var sums []int64
		for j, sum := first, int64(0); j <= int64((high-1)/pixels) && j*value+value/2 < centre+half; j++ {
			distance := max(j*value+value/2-centre, centre-j*value-value/2)
			sum += max(0, half-distance)
			sums = append(sums, sum)
		}
		weights, before := make([]uint32, len(sums)), uint32(0)
		for k, sum := range sums {
			until := uint32(math.Round(float64(sum) / float64(sums[len(sums)-1]) * (1 << 16)))
			weights[k], before = until-before, until
		}
		all[i] = taps{first: int(first), weights: weights}
	}
	return all
}
