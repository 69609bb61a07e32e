package terminal

import (
	"bytes"
	"fmt"
	"image"
	"image/color"

	"tessera/metrics"
)

// blocks draws atoms with half blocks: the upper pixel is the colour of the character, the lower one that of its ground.
func blocks(b *bytes.Buffer, a *metrics.Atoms, p Protocol, columns int) (int, error) {
	shrink := (max(a.Shape[0], a.Shape[1]) + blockSide - 1) / blockSide
	width, height := a.Shape[1]/shrink, a.Shape[0]/shrink
	if width < 1 || height < 1 {
		return 0, ErrNoPicture
	}
	perLine := (columns + 1) / (width + 1)
	if perLine < 1 {
		return 0, nil // the terminal is too narrow for one atom
	}
	n := min(a.Count, perLine*blockRows)
	for first := 0; first < n; first += perLine {
		var line []*image.RGBA
		for i := first; i < min(n, first+perLine); i++ {
			one, err := drawn(a, i, shrink)
			if err != nil {
				return 0, err
			}
			line = append(line, one)
		}
		if first > 0 {
			b.WriteByte('\n')
		}
		for y := 0; y < height; y += 2 {
			for i, one := range line {
				if i > 0 {
					b.WriteString(" ")
				}
				for x := range width {
					halves(b, p, one, x, y)
				}
				b.WriteString("\x1b[0m")
			}
			b.WriteByte('\n')
		}
	}
	return n, nil
}

// halves draws the pixels (x, y) and (x, y+1).
func halves(b *bytes.Buffer, p Protocol, one *image.RGBA, x, y int) {
	upper, lower := one.RGBAAt(x, y), color.RGBA{}
	if y+1 < one.Rect.Dy() {
		lower = one.RGBAAt(x, y+1)
	}
	if p == Greys {
		fmt.Fprintf(b, "\x1b[38;5;%d;48;5;%dm▀", grey(upper), grey(lower))
		return
	}
	fmt.Fprintf(b, "\x1b[38;2;%d;%d;%d;48;2;%d;%d;%dm▀", upper.R, upper.G, upper.B, lower.R, lower.G, lower.B)
}

// grey is the nearest of the colours 232 to 255, which are greys from dark to light.
func grey(c color.RGBA) int {
	return 232 + (int(c.R)*299+int(c.G)*587+int(c.B)*114)*23/255000
}
