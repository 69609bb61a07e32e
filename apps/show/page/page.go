// Package page writes runs, sweeps and comparisons as self-contained HTML files with curves, atoms, images, settings and the
// commands that reproduce them. `tessera report` writes these pages, and `tessera ui` serves them.
//
// Texts of runs pass through html/template, which escapes them. A page contains a content security policy that allows only its own
// scripts, by their hash, and no requests. Charts are drawn by uPlot, which is in assets with its licence.
package page

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/internal/numeral"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// files contains the templates and the assets of pages.
//
//go:embed assets templates
var files embed.FS

func asset(name string) string {
	text, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(fmt.Sprintf("page: %s: %v", name, err)) // it is embedded
	}
	return string(text)
}

// script contains all scripts of a page, style all of its style sheets. Like the templates they are read when the first page is written,
// not whenever the command starts.
var (
	script = sync.OnceValue(func() string {
		return "/*!\n" + asset("LICENSE-uplot") + "*/\n" + asset("uplot.min.js") + asset("page.js") + asset("charts.js") + asset("run.js") + asset("sweep.js") + asset("live.js")
	})
	style = sync.OnceValue(func() string { return asset("uplot.min.css") + asset("page.css") })
)

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"blocks": func(list []doc.Block) template.HTML { return doc.HTML(list...) }, "block1": func(b doc.Block) template.HTML { return doc.HTML(b) },
	}).ParseFS(files, "templates/*.html"))
})

// frame is the data of the template around the body of a page.
type frame struct {
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
	Live   bool // the page is served by `tessera ui`
	Data   any  // data for the scripts
	Body   any  // data for the template
}

// write renders a page with the named template.
func write(w io.Writer, name string, f frame) error {
	hash := sha256.Sum256([]byte(script()))
	f.Policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(hash[:]) + "'"
	if f.Live {
		f.Policy = strings.Replace(f.Policy, "form-action 'none'", "form-action 'self'; connect-src 'self'", 1)
	}
	f.Style, f.Script = template.CSS(style()), template.JS(script()) // files of this package
	f.Data = listed(reflect.ValueOf(f.Data)).Interface()
	if err := templates().ExecuteTemplate(w, name, f); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}

// listed returns a copy of a value in which no list is nil. JSON writes nil as null, and the scripts go through every list.
func listed(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			return listed(v.Elem())
		}
	case reflect.Pointer:
		if !v.IsNil() && v.Type().Elem().Kind() == reflect.Struct {
			at := reflect.New(v.Type().Elem())
			at.Elem().Set(listed(v.Elem()))
			return at
		}
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			list.Index(i).Set(listed(v.Index(i)))
		}
		return list
	case reflect.Map:
		if !v.IsNil() {
			all := reflect.MakeMapWithSize(v.Type(), v.Len())
			for _, key := range v.MapKeys() {
				all.SetMapIndex(key, listed(v.MapIndex(key)))
			}
			return all
		}
	case reflect.Struct:
		all := reflect.New(v.Type()).Elem()
		all.Set(v)
		for field, of := range v.Fields() {
			if name := field.Tag.Get("json"); name != "" && name != "-" {
				all.FieldByIndex(field.Index).Set(listed(of))
			}
		}
		return all
	}
	return v
}

// Report is the page of one or several runs.
type Report struct {
	Runs []*Run
	Live string // URL path of the events of `tessera ui`, "" for a file
}

// runData is the data of one run that the scripts of the page read.
type runData struct {
	ID      string             `json:"id"`
	Kind    string             `json:"kind"`            // "atom" or "unit"
	Noun    string             `json:"noun"`            // noun for a sample: "image" or "sample"
	Units   map[int]unitDetail `json:"units,omitempty"` // nil if their use was not measured
	Use     string             `json:"use,omitempty"`   // definition of the use, in words
	Images  map[int]string     `json:"images,omitempty"`
	Called  map[int]string     `json:"called,omitempty"` // names of samples, by their numbers
	Classes []string           `json:"classes,omitempty"`
	Vectors bool               `json:"vectors,omitempty"`
	Names   []string           `json:"names,omitempty"` // names of the columns of vectors; nil if there are none, or too many
	Samples []Sample           `json:"samples,omitempty"`
}

// Write renders the page.
func (r *Report) Write(w io.Writer) error {
	if r == nil || len(r.Runs) == 0 || slices.Contains(r.Runs, nil) {
		return errors.New("page: no run to report: give at least one, and no nil")
	}
	charts := &Charts{}
	var all []runData
	var labels []string
	for i, run := range r.Runs {
		run.ID = fmt.Sprintf("run-%d", i+1)
		charts.Runs = append(charts.Runs, run.Curves)
		run.data.ID, run.data.Samples = run.ID, run.Samples
		all = append(all, run.data)
		labels = append(labels, run.Label)
	}
	unit := commonUnit(charts.Runs)
	if r.Live != "" || slices.ContainsFunc(charts.Runs, func(c Curve) bool { return len(c.Epochs) > 1 }) { // one epoch is no curve
		charts.Panels = panelsOf(charts.Runs, unit)
	}
	title := strings.Join(labels, ", ")
	body := struct {
		*Report
		Charts  *Charts
		Columns []doc.Block
		Title   string
	}{r, charts, r.numbers(), title}
	data := map[string]any{"charts": charts, "runs": all, "live": r.Live, "unit": unit}
	return write(w, "report.html", frame{Title: title + " - Tessera", Live: r.Live != "", Data: data, Body: body})
}

// WriteList renders the list of the runs and sweeps of a folder, for `tessera ui`. The rows are data of the script live.js.
func WriteList(w io.Writer, name string, rows any) error {
	return write(w, "list.html", frame{Title: name + " - Tessera", Live: true, Data: map[string]any{"list": rows}, Body: name})
}

// numbers tabulates the metrics of several runs side by side; nil for one run, whose document has them.
func (r *Report) numbers() []doc.Block {
	var heads []string
	var results []*metrics.Result
	on := []any{"measured on"}
	for _, run := range r.Runs {
		report, _ := run.Document.Data.(*evaluation.Report)
		heads = append(heads, run.Label)
		if report == nil {
			results, on = append(results, nil), append(on, nil)
			continue
		}
		measured, _ := run.Document.Find("measured_on")
		results, on = append(results, report.Result), append(on, measured.Value)
	}
	if len(r.Runs) < 2 {
		return nil
	}
	return []doc.Block{&doc.Group{Title: "Numbers", Blocks: show.NumberTables("metric", heads, results, on)}}
}

// round rounds to four significant digits, so that the data of a page stay small; NaN and infinities become 0.
func round(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
	return r
}

func compare(a, b float64) int { return cmp.Compare(a, b) }

// largestSide is the largest height and width of a picture in a page, in pixels; larger images are shrunk.
const largestSide = 96

// painter draws images of one shape.
type painter struct {
	shape  []int   // (height, width) or (height, width, channels) of a picture
	shrink int     // factor by which images are shrunk, 1 for none
	from   []int   // shape of the images
	most   float64 // largest magnitude of all vectors in a heat map; 0 for images
}

// forVectors returns a painter whose pictures of vectors have one colour scale, from blue for the negative of the largest
// magnitude of all values to red for this magnitude. For images it returns the painter unchanged.
func (p painter) forVectors(all ...[]float32) painter {
	p.most = 0
	if p.row() {
		for _, values := range all {
			for _, v := range values {
				p.most = max(p.most, math.Abs(float64(v)))
			}
		}
	}
	return p
}

// scale explains the colours of vectors.
func (p painter) scale() string {
	column := "each value"
	if p.shrink > 1 {
		column = fmt.Sprintf("%d values, the largest of them", p.shrink)
	}
	return fmt.Sprintf("Each row has one column for %s. White is 0, red is positive up to %s, blue is negative down to -%s, in all pictures alike.", column, numeral.Float(p.most), numeral.Float(p.most))
}

// style returns the class of a gallery.
func (p painter) style(name string) string {
	if p.row() {
		name += " vectors"
	}
	return name
}

// newPainter returns a painter for images of a shape. Vectors are drawn as one row.
func newPainter(shape []int) painter {
	if len(shape) == 1 {
		shape = []int{1, shape[0]}
	}
	p := painter{from: shape, shrink: max(1, (max(shape[0], shape[1])+largestSide-1)/largestSide)}
	p.shape = append([]int{max(1, shape[0]/p.shrink), max(1, shape[1]/p.shrink)}, shape[2:]...)
	if p.row() {
		p.shape[1] = (shape[1] + p.shrink - 1) / p.shrink
	}
	return p
}

// draw returns the picture of one image as a PNG in base64, "" if it has non-finite values.
func (p painter) draw(tone figures.Tone, values []float32) string {
	drawn, err := p.pixels(tone, p.small(values))
	if err != nil {
		return ""
	}
	return encode(drawn)
}

// pixels draws an image that is already shrunk.
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

// row reports whether a picture is one row: that of a vector.
func (p painter) row() bool { return p.from[0] == 1 && len(p.from) == 2 }

// small shrinks an image that is too large: each pixel of the result is the mean of a square of pixels. Of a vector, whose neighbours need
// not be alike, it is the value of largest magnitude. Other images are returned unchanged.
func (p painter) small(values []float32) []float32 {
	if p.shrink == 1 {
		return values
	}
	if p.row() {
		small := make([]float32, p.shape[1])
		for x, v := range values {
			if most := &small[x/p.shrink]; math.Abs(float64(v)) > math.Abs(float64(*most)) {
				*most = v
			}
		}
		return small
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

// encode encodes an image as PNG in base64, with a palette if it has few colours.
func encode(drawn *image.RGBA) string {
	var b bytes.Buffer
	var shown image.Image = drawn
	if few := withPalette(drawn); few != nil {
		shown = few
	}
	_ = png.Encode(&b, shown) // a buffer takes everything
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// withPalette returns the same picture with a palette, nil if it has too many colours.
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
func heat(values []float64, most float64) string {
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
