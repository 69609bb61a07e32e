package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	columnGap    = 2  // number of spaces between two columns
	longestCell  = 28 // cells longer than this do not widen their column on a page
	leastFolding = 24 // if less space remains for a column on a page, its cells start at hanging
	hanging      = 10
)

// columns prints rows in aligned columns. An empty row prints an empty line, after which the column widths are computed
// again.
type columns struct {
	out  io.Writer
	rows [][]string
}

func newTable(out io.Writer) *columns { return &columns{out: out} }

// row adds one row.
func (t *columns) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = cellText(cell)
	}
	t.rows = append(t.rows, texts)
}

// flush prints the rows.
func (t *columns) flush() error {
	var text strings.Builder
	for first, i := 0, 0; i <= len(t.rows); i++ {
		if i == len(t.rows) || len(t.rows[i]) == 0 {
			text.WriteString(inColumns(t.rows[first:i], 0))
			first = i
		}
	}
	t.rows = nil
	_, err := io.WriteString(t.out, text.String())
	return err
}

func cellText(cell any) string {
	if v, ok := cell.(float64); ok {
		return number(v)
	}
	return inLine(fmt.Sprint(cell))
}

// inColumns formats rows as aligned columns of text, one row per line. The last cell of a row may be of any length. On a page
// of width > 0 characters, cells are folded between words, and a cell that does not fit next to a long one begins on the next
// line. With width 0 lines are as long as their rows.
func inColumns(rows [][]string, width int) string {
	p := &columnPrinter{width: width}
	starts := columnStarts(rows, width > 0)
	for _, row := range rows {
		for i, cell := range row {
			p.cell(cell, starts[i])
		}
		p.b.WriteByte('\n')
		p.at = 0
	}
	return p.b.String()
}

// columnStarts returns the position at which each column begins. page reports whether the width is limited.
func columnStarts(rows [][]string, page bool) []int {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if n := utf8.RuneCountInString(cell); i < len(row)-1 && (!page || n <= longestCell) {
				widths[i] = max(widths[i], n)
			}
		}
	}
	starts := make([]int, len(widths))
	for i := 1; i < len(starts); i++ {
		starts[i] = starts[i-1] + widths[i-1] + columnGap
	}
	return starts
}

// columnPrinter writes cells; at is the number of characters in the current line.
type columnPrinter struct {
	b         strings.Builder
	width, at int
}

// cell writes a cell whose column begins at start.
func (p *columnPrinter) cell(text string, start int) {
	if text == "" {
		return
	}
	if p.width > 0 && p.width-start < leastFolding {
		start = min(start, hanging)
	}
	if p.at > 0 && p.at+columnGap > start {
		p.b.WriteByte('\n')
		p.at = 0
	}
	p.space(start - p.at)
	p.fold(text, start)
}

// fold writes a text; continuation lines begin at start.
func (p *columnPrinter) fold(text string, start int) {
	if p.width == 0 {
		p.write(text)
		return
	}
	for i, word := range strings.Split(text, " ") {
		if i > 0 && p.at+1+utf8.RuneCountInString(word) > p.width {
			p.b.WriteByte('\n')
			p.at = 0
			p.space(start)
		} else if i > 0 {
			p.space(1)
		}
		p.write(word)
	}
}

func (p *columnPrinter) space(n int) { p.write(strings.Repeat(" ", n)) }

func (p *columnPrinter) write(text string) {
	p.b.WriteString(text)
	p.at += utf8.RuneCountInString(text)
}
