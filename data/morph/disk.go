package morph

import "math"

// A disk of radius r is {(dx,dy): dx*dx + dy*dy <= r*r}: radius 1 is the 3x3 cross. halfWidths[dy] is the largest dx of
// row dy, for dy = 0..r; it falls from r to 0.
func halfWidths(radius int) []int {
	widths := make([]int, radius+1)
	for dy := range widths {
		widths[dy] = isqrt(radius*radius - dy*dy)
	}
	return widths
}

// isqrt returns the largest integer whose square is at most n; math.Sqrt may be one off only for n beyond 2^52.
func isqrt(n int) int { return int(math.Sqrt(float64(n))) }

// outside is the key of a pixel that does not exist: below every number.
const outside = math.MinInt32

// dilate writes the dilation of src by the disk with these half widths to dst; row and wide hold one row each.
// Row by row, the maximum over windows of growing width is taken along the row and then spread to the rows above and
// below that the disk reaches with that width: O(radius) steps per pixel.
func (g grid) dilate(dst, src []int32, widths []int, row, wide []int32) {
	radius := len(widths) - 1
	if radius == 0 {
		copy(dst, src)
		return
	}
	if radius == 1 {
		g.dilateCross(dst, src)
		return
	}
	for i := range dst {
		dst[i] = outside
	}
	stride := g.width * g.channels
	for y := range g.height {
		copy(row, src[y*stride:(y+1)*stride])
		for width, dy := 0, radius; ; width++ {
			for ; dy >= 0 && widths[dy] == width; dy-- {
				if y-dy >= 0 {
					raise(dst[(y-dy)*stride:(y-dy+1)*stride], row)
				}
				if dy > 0 && y+dy < g.height {
					raise(dst[(y+dy)*stride:(y+dy+1)*stride], row)
				}
			}
			if width == radius {
				break
			}
			widen(wide, row, g.channels)
			row, wide = wide, row
		}
	}
}

// raise sets each a[i] to the greater of a[i] and b[i].
func raise(a, b []int32) {
	b = b[:len(a)]
	for i, v := range b {
		a[i] = max(a[i], v)
	}
}

// widen writes the maximum of each value and its two neighbours in the row (at distance step) to dst.
func widen(dst, src []int32, step int) {
	copy(dst, src)
	if len(src) > step {
		raise(dst[:len(src)-step], src[step:])
		raise(dst[step:], src[:len(src)-step])
	}
}

// dilateCross is dilate for radius 1, the study's structuring element, in one pass.
func (g grid) dilateCross(dst, src []int32) {
	stride := g.width * g.channels
	for y := range g.height {
		mid := src[y*stride : (y+1)*stride]
		up, down := mid, mid
		if y > 0 {
			up = src[(y-1)*stride : y*stride]
		}
		if y < g.height-1 {
			down = src[(y+1)*stride : (y+2)*stride]
		}
		crossRow(dst[y*stride:(y+1)*stride], up, mid, down, g.channels)
	}
}

// crossRow writes the maximum over the cross for one row; left and right neighbours are step values away.
func crossRow(dst, up, mid, down []int32, step int) {
	n := len(dst)
	up, mid, down = up[:n], mid[:n], down[:n]
	if step == 1 { // three values of the row stay in registers
		left, centre := mid[0], mid[0]
		for i, right := range mid[1:] {
			dst[i] = max(max(up[i], down[i]), max(left, right), centre)
			left, centre = centre, right
		}
		dst[n-1] = max(max(up[n-1], down[n-1]), left, centre)
		return
	}
	widen(dst, mid, step)
	raise(dst, up)
	raise(dst, down)
}
