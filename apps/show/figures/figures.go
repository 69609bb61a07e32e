// Package figures draws figures of coders, codes, atoms and metrics as PNG, SVG and PDF files. Its inputs are plain data:
// images, codes, atoms, points. Each figure is one file.
//
// The figures of the study (B. Ponchon, report of 2018; Ponchon et al., ISMM 2019, arXiv 1904.00763) and their functions:
//
//	a dense network                            [Network]
//	penalties of the mean activation           [Penalties]
//	originals, reconstructions                 [ImageRows]
//	histograms of codes                        [Histograms]
//	atoms                                      [ImageRows], [Atoms], [WeighedAtoms]
//	dilations and max-approximations           [ImageRows]
//	four metrics over the weight of a penalty  [Curves]
//	the two scatters                           [HoyerScatter], [MSEScatter]
//
// The other figures include [Training], which draws metrics.jsonl, [Pareto], which draws reconstruction error against
// max-approximation error, and [Swept], which draws any metrics over any key of a sweep.
package figures

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"tessera/internal/atomicfile"
)

// Figure is a drawing of a fixed size. Equal inputs give equal files, byte for byte.
type Figure struct {
	width, height int // size of the PNG in pixels; an SVG or PDF has half as many points
	draw          func(draw.Canvas)
	scale         float64 // scale factor of the PNG; 0 means 1

	Omitted []string // labels of measured points that it does not show, because they lack a metric or lie beyond an axis
}

// SetTitle writes a title above the figure; "" does nothing.
func (f *Figure) SetTitle(title string) {
	if title == "" {
		return
	}
	style := textStyle(titleSize)
	strip := pixels(style.Height(title)) + gap
	body, height := f.draw, f.height
	f.width, f.height = max(f.width, 2*margin+pixels(style.Width(title))), height+strip
	f.draw = func(c draw.Canvas) {
		body(draw.Crop(c, 0, 0, 0, -dots(strip)))
		style.YAlign = draw.YTop
		c.FillText(style, vg.Point{X: dots(margin), Y: c.Max.Y - dots(margin)}, title)
	}
}

// SetWidth scales the PNG to the given width in pixels; 0 does nothing. The size of an SVG or PDF does not change, because
// vector graphics can be scaled without loss.
func (f *Figure) SetWidth(pixels int) { f.scale = float64(pixels) / float64(f.width) }

// Save writes the figure atomically, as PNG (144 dpi), SVG or PDF depending on the extension of path.
func (f *Figure) Save(path string) error {
	if err := CheckPath(path); err != nil {
		return err
	}
	if f == nil || f.draw == nil {
		return errors.New("figures: no figure to save: take one that a function of this package returned")
	}
	return atomicfile.Write(path, map[string]func(io.Writer) error{".png": f.writePNG, ".svg": f.writeSVG, ".pdf": f.writePDF}[extension(path)])
}

// CheckPath returns an error for a path with an unknown extension, so that a command can reject it before any work.
func CheckPath(path string) error {
	switch e := extension(path); e {
	case ".png", ".svg", ".pdf":
		return nil
	default:
		return fmt.Errorf("%s: unknown extension %q, want .png, .svg or .pdf", path, e)
	}
}

func extension(path string) string { return strings.ToLower(filepath.Ext(path)) }

// writePNG uses the default compression: the best one makes files only 1 to 6 % smaller and takes ten times as long.
func (f *Figure) writePNG(w io.Writer) error { return png.Encode(w, f.Image()) }

// Image returns the pixels of the PNG.
func (f *Figure) Image() image.Image {
	c := vgimg.NewWith(vgimg.UseWH(dots(f.width), dots(f.height)), vgimg.UseDPI(dpi))
	if f.scale > 0 {
		size := image.Rect(0, 0, int(math.Round(float64(f.width)*f.scale)), int(math.Round(float64(f.height)*f.scale)))
		c = vgimg.NewWith(vgimg.UseImage(image.NewRGBA(size)), vgimg.UseDPI(max(1, int(dpi*f.scale))))
	}
	f.draw(draw.New(c))
	return c.Image()
}

// svgRepairs adds the type of images, and fonts with the same metrics for systems without the fonts of the drawing.
var svgRepairs = [][2]string{
	{`"data:image/jpg;base64,`, `"data:image/png;base64,`},
	{"font-family:Liberation Sans;", "font-family:Liberation Sans,Arial,Helvetica,sans-serif;"},
}

func (f *Figure) writeSVG(w io.Writer) error {
	c := vgsvg.New(dots(f.width), dots(f.height))
	f.draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	text := b.Bytes()
	for _, r := range svgRepairs {
		text = bytes.ReplaceAll(text, []byte(r[0]), []byte(r[1]))
	}
	_, err := w.Write(text)
	return err
}

// pdfCanvas can write letters that CP1252, the font encoding of PDF files, lacks.
type pdfCanvas struct{ *vgpdf.Canvas }

func (c pdfCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.Canvas.FillString(f, at, strings.NewReplacer("β", "beta", "\u2212", "-").Replace(text))
}

// DrawImage implements [vg.Canvas]. Without it, images would inherit the transparency of the last colour.
func (c pdfCanvas) DrawImage(area vg.Rectangle, picture image.Image) {
	c.SetColor(color.Black)
	c.Canvas.DrawImage(area, picture)
}

func (f *Figure) writePDF(w io.Writer) error {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC()) // else the file has the time of its writing
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultCatalogSort(true)
	c := vgpdf.New(dots(f.width), dots(f.height))
	f.draw(draw.New(pdfCanvas{c}))
	_, err := c.WriteTo(w)
	return err
}

// dots returns a number of pixels of the PNG as a length.
func dots(pixels int) vg.Length { return vg.Length(pixels) * vg.Inch / dpi }

// pixels returns the smallest number of pixels that covers a length.
func pixels(l vg.Length) int { return int(l.Dots(dpi) + 0.999) }

// Style of all figures.
const (
	dpi = 144 // resolution of the PNG: a pixel is half a point

	margin    = 12 // space around the figure, in pixels
	gap       = 14 // space between blocks and panels, in pixels
	rule      = 2  // width of the lines between and around images, in pixels
	largest   = 96 // maximum size of an image in a row of images, in pixels
	rowWidth  = 10*(largest+rule) + rule
	pageWidth = rowWidth + 2*margin // width of figures without a natural width, in pixels

	titleSize = 10 // size of titles, in points
	labelSize = 9
	tickSize  = 8
	smallSize = 7

	lineWidth   = vg.Length(1.25) // width of lines, in points
	glyphRadius = vg.Length(2.5)
)

// palette contains the colours of series, distinguishable with colour blindness (Okabe and Ito), in the order of the study's
// lines: blue, red, green, black, then others.
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
	quiet      = color.Gray{Y: 0x6C} // colour of published and other reference points
	gridLines  = color.Gray{Y: 0xE4}
	separator  = color.RGBA{0x80, 0x80, 0x80, 0xFF} // colour of the lines between images, which is neither black nor white
	frameColor = color.RGBA{0xFF, 0xBE, 0x00, 0xFF} // colour of the frames around highlighted cells
	deadColor  = color.RGBA{0xD5, 0x5E, 0x00, 0xFF} // colour of the lines that cross out dead units
	barColor   = color.RGBA{0x00, 0x72, 0xB2, 0xFF} // colour of the bars of effects
	markLine   = palette[1]
)

// dashed is the line style of published points.
var dashed = []vg.Length{4, 2.5}

func series(i int) color.Color { return palette[i%len(palette)] }

// seriesDashes returns the line style of the i-th series: when the colours repeat, lines are dashed, then dotted.
func seriesDashes(i int) []vg.Length {
	return [][]vg.Length{nil, {6, 2}, {1.5, 1.5}}[i/len(palette)%3]
}

// textStyle returns the style of text of a given size, positioned by its lower left corner.
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

// block is a drawing with a caption above it; a figure is a stack of blocks.
type block struct {
	caption       string
	width, height int // size in pixels, without the caption
	draw          func(draw.Canvas)
}

// captionHeight returns the height in pixels of a caption with the space below it.
func (b block) captionHeight() int {
	if b.caption == "" {
		return 0
	}
	return pixels(textStyle(labelSize).Height(b.caption)) + 6
}

// picture returns a block that shows unscaled pixels.
func picture(caption string, pixels image.Image) block {
	size := pixels.Bounds().Size()
	return block{caption: caption, width: size.X, height: size.Y, draw: func(c draw.Canvas) {
		c.DrawImage(c.Rectangle, pixels)
	}}
}

// stack returns a figure of blocks one below the other, wide enough for the widest block and caption.
func stack(blocks []block) *Figure {
	f := &Figure{height: 2*margin - gap}
	style := textStyle(labelSize)
	for _, b := range blocks {
		f.width = max(f.width, 2*margin+b.width, 2*margin+pixels(style.Width(b.caption)))
		f.height += b.captionHeight() + b.height + gap
	}
	height := f.height
	f.draw = func(c draw.Canvas) {
		top := margin
		for _, b := range blocks {
			top += b.captionHeight()
			if b.caption != "" {
				c.FillText(style, vg.Point{X: dots(margin), Y: dots(height-top+6) - style.FontExtents().Descent/2}, b.caption)
			}
			b.draw(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: vg.Point{X: dots(margin), Y: dots(height - top - b.height)},
				Max: vg.Point{X: dots(margin + b.width), Y: dots(height - top)},
			}})
			top += b.height + gap
		}
	}
	return f
}
