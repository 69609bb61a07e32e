// Package figures draws figures of coders, codes, atoms and metrics as PNG, SVG and PDF files. Its inputs are plain data: images,
// codes, atoms, points. Each figure is one file.
//
// The figures of the study (B. Ponchon, report of 2018; Ponchon et al., ISMM 2019, arXiv 1904.00763) and their functions:
//
//	a dense network                            [Network]
//	penalties of the mean activation           [Penalties]
//	originals, reconstructions                 [ImageRows]
//	histograms of codes                        [Histograms]
//	atoms                                      [ImageRows], [Atoms]
//	dilations and max-approximations           [ImageRows]
//	four metrics over the weight of a penalty  [Curves]
//	the two scatters                           [HoyerScatter], [MSEScatter]
//
// and three more: [Training] draws metrics.jsonl, [Pareto] reconstruction against max-approximation, [Swept] any metrics over
// any key of a sweep.
package figures

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"path/filepath"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"

	"tessera/internal/atomicfile"
)

// Figure is a drawing of a fixed size. Equal inputs give equal files, byte for byte.
type Figure struct {
	width, height int // pixels of the PNG; an SVG or PDF has half as many points
	draw          func(draw.Canvas)
}

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

// CheckPath reports a path with an unknown extension, so that a command can refuse it before any work.
func CheckPath(path string) error {
	switch e := extension(path); e {
	case ".png", ".svg", ".pdf":
		return nil
	default:
		return fmt.Errorf("%s: unknown extension %q, want .png, .svg or .pdf", path, e)
	}
}

func extension(path string) string { return strings.ToLower(filepath.Ext(path)) }

func (f *Figure) writePNG(w io.Writer) error {
	return (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(w, f.Image())
}

// Image returns the pixels of the PNG.
func (f *Figure) Image() image.Image {
	c := vgimg.NewWith(vgimg.UseWH(dots(f.width), dots(f.height)), vgimg.UseDPI(dpi))
	f.draw(draw.New(c))
	return c.Image()
}

// svgRepairs add the type of images, and fonts with the same metrics for systems that lack the fonts of the drawing.
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

// pdfCanvas writes the letters that the encoding of fonts in PDF files, CP1252, does not have.
type pdfCanvas struct{ *vgpdf.Canvas }

// FillString implements [vg.Canvas].
func (c pdfCanvas) FillString(f font.Face, at vg.Point, text string) {
	c.Canvas.FillString(f, at, strings.NewReplacer("β", "beta", "\u2212", "-").Replace(text))
}

// DrawImage implements [vg.Canvas]. Images would take the transparency of the last colour.
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

// dots is the length of that number of pixels of the PNG.
func dots(pixels int) vg.Length { return vg.Length(pixels) * vg.Inch / dpi }

// pixels is the least number of pixels that hold a length.
func pixels(l vg.Length) int { return int(l.Dots(dpi) + 0.999) }
