package figures

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The style of all figures.
const (
	dpi = 144 // a pixel is half a point: sharp on screens, a column wide in print

	margin    = 12 // pixels around everything
	gap       = 14 // pixels between blocks and panels
	rule      = 2  // pixels between images and around them
	largest   = 96 // pixels, of an image in a row of images
	rowWidth  = 10*(largest+rule) + rule
	pageWidth = rowWidth + 2*margin // pixels, of figures that could have any width

	titleSize = 10 // points
	labelSize = 9
	tickSize  = 8
	smallSize = 7

	lineWidth   = vg.Length(1.25) // points
	glyphRadius = vg.Length(2.5)
)

// The colours of series, distinguishable with colour blindness (Okabe and Ito), in the order of the study's lines: blue,
// red, green, black, then others.
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xB2, 0xFF}, // blue
	color.RGBA{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
	color.RGBA{0x00, 0x9E, 0x73, 0xFF}, // green
	color.RGBA{0x00, 0x00, 0x00, 0xFF}, // black
	color.RGBA{0xCC, 0x79, 0xA7, 0xFF}, // purple
	color.RGBA{0xE6, 0x9F, 0x00, 0xFF}, // orange
	color.RGBA{0x56, 0xB4, 0xE9, 0xFF}, // sky
}

var (
	ink        = color.Gray{Y: 0x22}
	quiet      = color.Gray{Y: 0x6C} // what is there for comparison
	gridLines  = color.Gray{Y: 0xE4}
	separator  = color.RGBA{0x80, 0x80, 0x80, 0xFF} // between images: neither black nor white
	frameColor = color.RGBA{0xFF, 0xBE, 0x00, 0xFF} // around what is highlighted
	markLine   = palette[1]
)

// dashed is the line style of published points.
var dashed = []vg.Length{4, 2.5}

// series returns the colour of the i-th series.
func series(i int) color.Color { return palette[i%len(palette)] }

// seriesDashes returns the dashes of the i-th series: after the last colour, the colours repeat, dashed, then dotted.
func seriesDashes(i int) []vg.Length {
	return [][]vg.Length{nil, {6, 2}, {1.5, 1.5}}[i/len(palette)%3]
}

// textStyle is text of that many points, its lower left corner at the point where it is drawn.
func textStyle(size vg.Length) text.Style {
	return text.Style{
		Color:   ink,
		Font:    sans(size),
		XAlign:  draw.XLeft,
		YAlign:  draw.YBottom,
		Handler: plot.DefaultTextHandler,
	}
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// themed returns an empty plot with the fonts, lines and colours of all figures.
func themed() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.LineStyle = draw.LineStyle{Color: ink, Width: 0.5}
		a.Tick.LineStyle = a.LineStyle
		a.Tick.Label.Font = sans(tickSize)
		a.Tick.Label.Color = ink
		a.Tick.Length = 4
		a.Padding = 4
	}
	return p
}
