// Package terminal draws atoms in a terminal: as a picture if the terminal supports pictures (kitty, iTerm2, sixel), else
// with half blocks, two pixels per character.
package terminal

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"slices"
	"strings"

	"tessera/apps/show/figures"
	"tessera/metrics"
)

// Protocol is a protocol by which a terminal shows pictures.
type Protocol string

// The protocols.
const (
	None   Protocol = "none"
	Blocks Protocol = "blocks" // half blocks in 24-bit colours
	Greys  Protocol = "greys"  // half blocks in the 24 greys of terminals with 256 colours
	Kitty  Protocol = "kitty"  // https://sw.kovidgoyal.net/kitty/graphics-protocol
	ITerm2 Protocol = "iterm2" // https://iterm2.com/documentation-images.html
	Sixel  Protocol = "sixel"  // https://vt100.net/docs/vt3xx-gp/chapter14.html
)

// Protocols lists the protocols.
func Protocols() []string {
	return []string{string(None), string(Blocks), string(Greys), string(Kitty), string(ITerm2), string(Sixel)}
}

// Detect returns the protocol of a terminal according to its environment variables. It does not query the terminal, because
// the answer could mix with typed input. Within tmux and screen, and for unknown terminals, Detect returns half blocks.
func Detect(env func(string) string) Protocol {
	term, program := env("TERM"), env("TERM_PROGRAM")
	switch {
	case env("NO_COLOR") != "" || term == "dumb" || term == "":
		return None
	case env("TMUX") != "" || strings.HasPrefix(term, "screen") || strings.HasPrefix(term, "tmux"):
	case env("KITTY_WINDOW_ID") != "" || term == "xterm-kitty" || term == "xterm-ghostty" || program == "ghostty":
		return Kitty
	case program == "iTerm.app" || program == "WezTerm" || env("LC_TERMINAL") == "iTerm2":
		return ITerm2
	case strings.Contains(term, "sixel") || slices.Contains([]string{"foot", "foot-extra", "mlterm", "contour", "yaft-256color"}, term):
		return Sixel
	}
	if c := env("COLORTERM"); c == "truecolor" || c == "24bit" {
		return Blocks
	}
	if strings.Contains(term, "256") {
		return Greys
	}
	return None
}

// ErrNoPicture is the error for atoms that are not images.
var ErrNoPicture = errors.New("terminal: the atoms are not images")

// Sizes of a picture.
const (
	perRow     = 20
	mostRows   = 3
	pictureGap = 2
	largest    = 700 // approximate larger side of a picture in pixels
	blockSide  = 14  // maximum side of an atom drawn with half blocks, in pixels
	blockRows  = 2
)

// Atoms draws the first atoms, in lines of at most the given number of characters, and returns the number of drawn atoms. It
// returns [ErrNoPicture] for atoms that are not images.
func Atoms(w io.Writer, a *metrics.Atoms, p Protocol, columns int) (shown int, err error) {
	if a == nil || len(a.Shape) < 2 || a.Count < 1 {
		return 0, ErrNoPicture
	}
	if p == None || columns < 1 {
		return 0, nil
	}
	var b bytes.Buffer
	if p == Blocks || p == Greys {
		shown, err = blocks(&b, a, p, columns)
	} else {
		shown, err = pictures(&b, a, p)
	}
	if err != nil {
		return 0, err
	}
	_, err = w.Write(b.Bytes())
	return shown, err
}

func pictures(b *bytes.Buffer, a *metrics.Atoms, p Protocol) (int, error) {
	n := min(a.Count, perRow*mostRows)
	width, height := min(n, perRow)*(a.Shape[1]+pictureGap), (n+perRow-1)/perRow*(a.Shape[0]+pictureGap)
	side := max(width, height)
	picture, err := grid(a, n, min(n, perRow), max(1, largest/side), (side+largest-1)/largest)
	if err != nil {
		return 0, err
	}
	if p == Sixel {
		sixel(b, picture)
		b.WriteByte('\n')
		return n, nil
	}
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		return 0, err
	}
	text := base64.StdEncoding.EncodeToString(file.Bytes())
	if p == ITerm2 {
		fmt.Fprintf(b, "\x1b]1337;File=inline=1;size=%d;width=%dpx;preserveAspectRatio=1:%s\a\n", file.Len(), picture.Rect.Dx(), text)
		return n, nil
	}
	const piece = 4096 // maximum number of bytes of data in one command
	for first := true; first || text != ""; first = false {
		part := text[:min(piece, len(text))]
		text = text[len(part):]
		more := map[bool]int{true: 1, false: 0}[text != ""]
		if first {
			fmt.Fprintf(b, "\x1b_Gf=100,a=T,q=2,m=%d;%s\x1b\\", more, part)
		} else {
			fmt.Fprintf(b, "\x1b_Gm=%d;%s\x1b\\", more, part)
		}
	}
	b.WriteByte('\n')
	return n, nil
}

// grid draws n atoms in columns, after shrinking them by a whole factor; each pixel becomes a square of the given scale.
func grid(a *metrics.Atoms, n, columns, scale, shrink int) (*image.RGBA, error) {
	height, width := max(1, a.Shape[0]/shrink), max(1, a.Shape[1]/shrink)
	stepX, stepY := width*scale+pictureGap, height*scale+pictureGap
	picture := image.NewRGBA(image.Rect(0, 0, columns*stepX-pictureGap, (n+columns-1)/columns*stepY-pictureGap))
	draw.Draw(picture, picture.Rect, image.NewUniform(color.RGBA{90, 90, 90, 255}), image.Point{}, draw.Src)
	for i := range n {
		one, err := drawn(a, i, shrink)
		if err != nil {
			return nil, err
		}
		left, top := i%columns*stepX, i/columns*stepY
		for y := range height * scale {
			for x := range width * scale {
				picture.SetRGBA(left+x, top+y, one.RGBAAt(x/scale, y/scale))
			}
		}
	}
	return picture, nil
}

// drawn draws atom i, shrunk by a whole factor: each pixel is the mean of a square.
func drawn(a *metrics.Atoms, i, shrink int) (*image.RGBA, error) {
	pixels := a.Pixels()
	values := a.Values[i*pixels : (i+1)*pixels]
	shape := append([]int{max(1, a.Shape[0]/shrink), max(1, a.Shape[1]/shrink)}, a.Shape[2:]...)
	if shrink == 1 {
		return figures.Pixels(shape, figures.Signed, values)
	}
	channels := 1
	if len(shape) > 2 {
		channels = shape[2]
	}
	small := make([]float32, shape[0]*shape[1]*channels)
	for y := range min(shape[0]*shrink, a.Shape[0]) {
		for x := range min(shape[1]*shrink, a.Shape[1]) {
			for c := range channels {
				small[(y/shrink*shape[1]+x/shrink)*channels+c] += values[(y*a.Shape[1]+x)*channels+c]
			}
		}
	}
	return figures.Pixels(shape, figures.Signed, small)
}

// blocks draws atoms with half blocks: the upper pixel is the foreground colour of the character, the lower one the
// background.
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

// halves draws the pixels (x, y) and (x, y+1) as one character.
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

// grey returns the number of the nearest colour among 232 to 255, which are greys from dark to light.
func grey(c color.RGBA) int {
	return 232 + (int(c.R)*299+int(c.G)*587+int(c.B)*114)*23/255000
}

// sixelLevels is the number of levels of each primary colour in a sixel picture; its palette has at most 216 colours.
const sixelLevels = 6

// sixel writes a picture as sixels: bands of six rows, and within a band, for every colour, one character for each column.
func sixel(b *bytes.Buffer, picture *image.RGBA) {
	width, height := picture.Rect.Dx(), picture.Rect.Dy()
	fmt.Fprintf(b, "\x1bPq\"1;1;%d;%d", width, height)
	defined := map[int]bool{}
	for top := 0; top < height; top += 6 {
		var order []int // colours of the band
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

// sixelColor returns the number of the nearest colour of the palette.
func sixelColor(c color.RGBA) int {
	level := func(v uint8) int { return (int(v)*(sixelLevels-1) + 127) / 255 }
	return (level(c.R)*sixelLevels+level(c.G))*sixelLevels + level(c.B)
}

func percent(level int) int { return level * 100 / (sixelLevels - 1) }

// runs writes sixels with run-length encoding.
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
