package doc

import (
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"tessera/internal/lists"
)

// page collects the HTML of blocks.
type page struct {
	strings.Builder
	level int // of the next heading
}

// HTML writes the blocks of the document as sections of a page, without a frame around them. All texts are escaped.
func (d *Document) HTML(w io.Writer) error {
	_, err := io.WriteString(w, string(HTML(d.Blocks...)))
	return err
}

// HTML returns blocks as HTML for a template.
func HTML(blocks ...Block) template.HTML {
	p := &page{level: 2}
	for _, b := range blocks {
		b.html(p)
	}
	return template.HTML(p.String()) // every text went through esc
}

func esc(text string) string { return html.EscapeString(text) }

// write writes HTML; the arguments are escaped.
func (p *page) write(format string, args ...string) {
	all := lists.Map(args, func(arg string) any { return esc(arg) })
	fmt.Fprintf(p, format, all...)
}

func (p *page) heading(title string) {
	if title != "" {
		fmt.Fprintf(p, "<h%d>%s</h%d>\n", p.level, esc(title), p.level)
	}
}

func (f *Facts) html(p *page) {
	p.heading(f.Title)
	p.WriteString(`<table class="about-it"><tbody>`)
	for _, one := range f.shown(true) {
		p.write(`<tr><th scope="row" title="%s">%s</th><td>%s</td></tr>`, one.About, one.Title, Text(one.Value))
	}
	p.WriteString("</tbody></table>\n")
}

func (t *Table) html(p *page) {
	if t.Folded {
		p.write("<details><summary>%s</summary>", t.Title)
		defer p.WriteString("</details>\n")
	} else {
		p.heading(t.Title)
	}
	heads, rows := t.texts()
	explained := ""
	if len(t.Columns) > 8 { // it is scrolled
		explained = " wide"
	}
	if slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Wrap }) {
		if explained = " explained"; len(t.Columns) > 5 { // its rows are one line high, and it is scrolled
			explained = " wide"
		}
	}
	class := "numbers" + explained
	if len(t.Rows) > 0 && slices.ContainsFunc(t.Rows[0], func(cell any) bool { _, ok := cell.(Shaded); return ok }) {
		class = "confusion"
	}
	p.write(`<div class="scroll"><table class="%s">`, class)
	if slices.ContainsFunc(heads, func(h string) bool { return h != "" }) {
		p.WriteString("<thead><tr>")
		for i, c := range t.Columns {
			p.write(`<th scope="col" title="%s">%s</th>`, c.About, heads[i])
		}
		p.WriteString("</tr></thead>")
	}
	p.WriteString("<tbody>")
	for i, row := range rows {
		p.WriteString("<tr>")
		for j, cell := range row {
			p.cell(t, i, j, cell)
		}
		p.WriteString("</tr>")
	}
	p.WriteString("</tbody></table></div>\n")
	for _, note := range t.Notes {
		p.write(`<p class="note">%s</p>`, note)
	}
}

// cell writes a cell of a table: the first of a row is its heading.
func (p *page) cell(t *Table, row, column int, text string) {
	if column == 0 {
		p.write(`<th scope="row">%s</th>`, text)
		return
	}
	class := ""
	if t.Columns[column].Wrap {
		class = "about"
	}
	if column < len(t.Rows[row]) {
		switch v := t.Rows[row][column].(type) {
		case []Picture:
			p.WriteString(`<td><div class="gallery most">`)
			p.pictures(v)
			p.WriteString("</div></td>")
			return
		case Best:
			class, text = "best", Text(v.Value)
		case Shaded:
			fmt.Fprintf(p, `<td class="%s" style="--share:%.0f" title="%s">%s</td>`, map[bool]string{true: "right", false: "wrong"}[v.Good], 100*v.Share, Text(Percent(v.Share)), text)
			return
		}
	}
	p.write(`<td class="%s">%s</td>`, class, text)
}

func (n *Note) html(p *page) {
	class := "note"
	if n.Level == Warn || n.Level == Failure {
		class = "warning"
	}
	p.WriteString(`<p class="` + class + `">`)
	for i, line := range strings.Split(n.Text, "\n") {
		if i > 0 {
			p.WriteString("<br>")
		}
		p.write("%s", strings.TrimSpace(line))
	}
	p.WriteString("</p>\n")
}

func (f *Figure) html(p *page) {
	p.heading(f.Title)
	if f.About != "" {
		p.write("<p>%s</p>", f.About)
	}
	if len(f.PNG) > 0 {
		p.write(`<div class="drawn"><img src="data:image/png;base64,%s" alt="%s"></div>`+"\n", base64.StdEncoding.EncodeToString(f.PNG), f.Title)
	}
}

func (g *Gallery) html(p *page) {
	if len(g.Names) > 0 {
		class := "columns"
		if len(g.Names) > 16 { // they overlap on a narrow page
			class += " many"
		} else if len(g.Names) <= 6 { // there is room for a line of text
			class += " few"
		}
		p.write(`<div class="%s" aria-hidden="true">`, class)
		for _, name := range g.Names {
			p.write(`<span title="%s">%s</span>`, name, name)
		}
		p.WriteString("</div>")
	}
	p.write(`<div class="gallery %s">`, g.Style)
	p.pictures(g.Pictures)
	p.WriteString("</div>\n")
}

// pictures writes pictures: those of units as buttons, and units without a picture as a place where the script of the page puts it.
func (p *page) pictures(list []Picture) {
	for _, one := range list {
		faint := map[bool]string{true: " unused"}[one.Faint]
		switch {
		case one.Unit != "" && len(one.PNG) == 0:
			p.write(`<span class="ref" data-unit="%s" title="%s">%s</span>`, one.Unit, one.About, one.Caption)
			continue
		case one.Unit != "":
			p.write(`<button type="button" class="atom%s" data-unit="%s" aria-label="%s" title="%s">`, faint, one.Unit, one.About, one.About)
		default:
			p.write(`<figure class="atom%s"><div>`, faint)
		}
		for _, png := range one.PNG {
			p.write(`<img src="data:image/png;base64,%s" alt="%s">`, png, one.About)
		}
		if one.Unit != "" {
			p.write("<span>%s</span></button>", one.Caption)
		} else {
			p.write("</div><figcaption>%s</figcaption></figure>", one.Caption)
		}
	}
}

// html draws the lines as a picture of its own size, which needs no script.
func (c *Curves) html(p *page) {
	left, right, low, high := c.bounds()
	p.write(`<figure class="calibration"><svg viewBox="-18 -6 130 124" role="img" aria-label="%s: %s over %s"><rect x="0" y="0" width="100" height="100" class="frame"/>`, c.Title, c.Y, c.X)
	for i, l := range c.Lines {
		var points []string
		for j, x := range l.X {
			points = append(points, fmt.Sprintf("%.1f,%.1f", 100*part(c.scaled(x), left, right), 100-100*part(l.Y[j], low, high)))
		}
		fmt.Fprintf(p, `<polyline class="line%d" points="%s"/>`, i%lineColours, strings.Join(points, " "))
		for j, point := range points {
			x, y, _ := strings.Cut(point, ",")
			fmt.Fprintf(p, `<circle class="line%d" cx="%s" cy="%s" r="1.6"><title>%s</title></circle>`, i%lineColours, x, y,
				esc(fmt.Sprintf("%s: %s at %s", l.Name, Text(l.Y[j]), Text(Exact(l.X[j])))))
		}
	}
	axis := func(x, y float64, anchor, text string) {
		fmt.Fprintf(p, `<text x="%g" y="%g" text-anchor="%s">%s</text>`, x, y, anchor, esc(text))
	}
	ends := [2]float64{left, right}
	if c.Log {
		ends = [2]float64{math.Pow(10, left), math.Pow(10, right)}
	}
	axis(0, 107, "middle", Text(ends[0]))
	axis(100, 107, "middle", Text(ends[1]))
	axis(50, 114, "middle", c.X)
	axis(-2, 100, "end", Text(low))
	axis(-2, 5, "end", Text(high))
	p.write(`<text x="-6" y="50" transform="rotate(-90 -6 50)" text-anchor="middle">%s</text></svg><figcaption>%s`, c.Y, c.About)
	for i, l := range c.Lines {
		if len(c.Lines) > 1 {
			fmt.Fprintf(p, ` <span class="line%d">%s</span>`, i%lineColours, esc(l.Name))
		}
	}
	p.WriteString("</figcaption></figure>\n")
}

// lineColours is the number of colours of lines in the style sheet of pages.
const lineColours = 4

// scaled is the place of x on the axis.
func (c *Curves) scaled(x float64) float64 {
	if c.Log {
		return math.Log10(x)
	}
	return x
}

// bounds returns the ends of both axes.
func (c *Curves) bounds() (left, right, low, high float64) {
	left, low = math.Inf(1), math.Inf(1)
	right, high = math.Inf(-1), math.Inf(-1)
	for _, l := range c.Lines {
		for j, x := range l.X {
			left, right = min(left, c.scaled(x)), max(right, c.scaled(x))
			if !math.IsNaN(l.Y[j]) {
				low, high = min(low, l.Y[j]), max(high, l.Y[j])
			}
		}
	}
	if low >= 0 && high <= 1 { // shares
		low, high = 0, 1
	}
	return left, right, low, high
}

// part is the place of v between two ends, 0 to 1; the middle where they are equal.
func part(v, low, high float64) float64 {
	if high <= low {
		return 0.5
	}
	return (v - low) / (high - low)
}

func (g *Group) html(p *page) {
	if g.Title != "" {
		p.write(`<section aria-label="%s">`, g.Title)
		p.heading(g.Title)
		defer p.WriteString("</section>\n")
	}
	p.level++
	for _, b := range g.Blocks {
		b.html(p)
	}
	p.level--
}
