package terminal

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
)

// A sixel picture has at most this many levels of each primary colour, so that its palette has at most 216 colours.
const sixelLevels = 6

// sixel writes a picture as sixels: bands of six rows, and within a band, for every colour, one character for each column.
func sixel(b *bytes.Buffer, picture *image.RGBA) {
	width, height := picture.Rect.Dx(), picture.Rect.Dy()
	fmt.Fprintf(b, "\x1bPq\"1;1;%d;%d", width, height)
	defined := map[int]bool{}
	for top := 0; top < height; top += 6 {
		var order []int // the colours of the band
		used := map[int][]byte{}
		for y := top; y < min(top+6, height); y++ {
			for x := range width {
				c := sixelColor(picture.RGBAAt(x, y))
				if used[c] == nil {
					used[c] = make([]byte, width)
					order = append(order, c)
				}
				used[c][x] |= 1 << (y - top)
			}
		}
		for i, c := range order {
			if i > 0 {
				b.WriteByte('$') // back to the left of the band
			}
			if !defined[c] {
				defined[c] = true
				r, g, l := c/(sixelLevels*sixelLevels), c/sixelLevels%sixelLevels, c%sixelLevels
				fmt.Fprintf(b, "#%d;2;%d;%d;%d", c, percent(r), percent(g), percent(l))
			}
			fmt.Fprintf(b, "#%d", c)
			runs(b, used[c])
		}
		b.WriteByte('-')
	}
	b.WriteString("\x1b\\")
}

// sixelColor is the number of the nearest colour of the palette.
func sixelColor(c color.RGBA) int {
	level := func(v uint8) int { return (int(v)*(sixelLevels-1) + 127) / 255 }
	return (level(c.R)*sixelLevels+level(c.G))*sixelLevels + level(c.B)
}

func percent(level int) int { return level * 100 / (sixelLevels - 1) }

// runs writes sixels, equal ones as their number.
func runs(b *bytes.Buffer, sixels []byte) {
	for i := 0; i < len(sixels); {
		n := 1
		for i+n < len(sixels) && sixels[i+n] == sixels[i] {
			n++
		}
		if c := sixels[i] + '?'; n > 3 {
			fmt.Fprintf(b, "!%d%c", n, c)
		} else {
			b.Write(bytes.Repeat([]byte{c}, n))
		}
		i += n
	}
}
