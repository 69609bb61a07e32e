package doc

import (
	"fmt"
	"io"
	"strings"
)

// markdown collects the text of a document.
type markdown struct {
	strings.Builder
	level int // of the next heading
}

// Markdown writes the document as Markdown.
func (d *Document) Markdown(w io.Writer) error {
	m := &markdown{level: 1}
	m.heading(d.Title)
	m.level = 2
	for _, b := range d.Blocks {
		b.markdown(m)
	}
	_, err := io.WriteString(w, strings.TrimRight(m.String(), "\n")+"\n")
	return err
}

func (m *markdown) heading(title string) {
	if title != "" {
		fmt.Fprintf(m, "%s %s\n\n", strings.Repeat("#", m.level), oneLine(title))
	}
}

// line writes a row of a table.
func (m *markdown) line(cells []string) {
	for _, cell := range cells {
		m.WriteString("| " + strings.ReplaceAll(oneLine(cell), "|", `\|`) + " ")
	}
	m.WriteString("|\n")
}

func (f *Facts) markdown(m *markdown) {
	m.heading(f.Title)
	for _, one := range f.shown(true) {
		fmt.Fprintf(m, "- %s: %s\n", one.Title, oneLine(Text(one.Value)))
	}
	m.WriteString("\n")
}

func (t *Table) markdown(m *markdown) {
	m.heading(t.Title)
	heads, rows := t.texts()
	m.line(heads)
	rules := make([]string, len(heads))
	for i, c := range t.Columns {
		rules[i] = map[bool]string{true: "---:", false: "---"}[c.Right]
	}
	m.line(rules)
	for _, row := range rows {
		m.line(row)
	}
	m.WriteString("\n")
	for _, note := range t.Notes {
		m.WriteString(note + "\n\n")
	}
}

func (n *Note) markdown(m *markdown) { m.WriteString(n.line() + "\n\n") }

func (f *Figure) markdown(m *markdown) {
	m.heading(f.Title)
	if f.Path != "" {
		fmt.Fprintf(m, "![%s](%s)\n\n", f.Title, f.Path)
	}
	if f.About != "" {
		m.WriteString(f.About + "\n\n")
	}
}

func (g *Gallery) markdown(*markdown) {}

func (c *Curves) markdown(m *markdown) { c.table().markdown(m) }

func (g *Group) markdown(m *markdown) {
	m.heading(g.Title)
	m.level++
	for _, b := range g.Blocks {
		b.markdown(m)
	}
	m.level--
}
