package doc

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tessera/internal/lists"
)

// Screen describes where a text is shown.
type Screen struct {
	Width  int  // characters in a line; 0 for lines of any length, as in files and pipes
	Colour bool // the output understands colours
}

const (
	gap       = 2  // spaces between two columns
	leastWrap = 24 // least width of a column of long texts
)

// screen collects the text of a document.
type screen struct {
	strings.Builder
	Screen
}

// Text writes the document as text. Tables that are wider than the screen lose their spare columns, and are then folded into
// several tables that repeat the columns that name a row. Control characters in values are spelled out.
func (d *Document) Text(w io.Writer, on Screen) error {
	s := &screen{Screen: on}
	s.heading(d.Title)
	s.blocks(d.Blocks, d.Title != "")
	_, err := io.WriteString(w, s.String())
	return err
}

// blocks writes blocks, an empty line between them; after says that one precedes the first block too. A block that is for programs only
// takes no place.
func (s *screen) blocks(list []Block, after bool) {
	for i, b := range list {
		one := &screen{Screen: s.Screen}
		if b.text(one); one.Len() == 0 {
			continue
		}
		if after && !joins(list, i) {
			s.line("")
		}
		s.WriteString(one.String())
		after = true
	}
}

// joins reports whether a block follows the one before it without an empty line.
func joins(blocks []Block, i int) bool {
	if i == 0 {
		return false
	}
	_, note := blocks[i].(*Note)
	_, after := blocks[i-1].(*Note)
	return note && after
}

func (s *screen) line(text string) { s.WriteString(strings.TrimRight(text, " ") + "\n") }

// Styles of a terminal.
const (
	bold   = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (s *screen) styled(style, text string) string {
	if !s.Colour || text == "" || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// Styled writes a text in the style of a level where colour is wanted: errors are red, warnings yellow.
func Styled(level Level, text string, colour bool) string {
	style := map[Level]string{Failure: red, Warn: yellow, Hint: faint}[level]
	if style == "" {
		return text
	}
	return (&screen{Screen: Screen{Colour: colour}}).styled(style, text)
}

// heading writes the title of a document or a block.
func (s *screen) heading(title string) {
	if title != "" {
		s.folded(s.Width, title, bold)
	}
}

// shown returns the facts for people; those of a page include the minor ones.
func (f *Facts) shown(page bool) []Fact {
	return lists.Only(f.Facts, func(one Fact) bool { return one.Title != "" && one.Value != nil && (page || !one.Minor) })
}

func (f *Facts) text(s *screen) {
	s.heading(f.Title)
	t := &Table{Columns: []Column{{}, {Wrap: true}}}
	for _, one := range f.shown(false) {
		t.Row(one.Title, one.Value)
	}
	t.text(s)
}

// texts returns the titles of the columns and the texts of the cells; each row has a cell for every column.
func (t *Table) texts() (heads []string, rows [][]string) {
	for _, c := range t.Columns {
		title := c.Title
		if c.Unit != "" {
			title += " (" + c.Unit + ")"
		}
		heads = append(heads, title)
	}
	for _, row := range t.Rows {
		texts := make([]string, len(t.Columns))
		for j := range min(len(row), len(texts)) {
			texts[j] = oneLine(Text(row[j]))
		}
		rows = append(rows, texts)
	}
	return heads, rows
}

func (t *Table) text(s *screen) {
	s.heading(t.Title)
	heads, rows := t.texts()
	widths := t.widths(heads, rows)
	shown, left := t.fitting(widths, s.Width)
	for i, part := range t.parts(shown, widths, s.Width) {
		if i > 0 {
			s.line("")
		}
		t.lines(s, part, heads, rows, widths)
	}
	if len(left) > 0 {
		names := lists.Map(left, func(j int) string { return heads[j] })
		s.folded(s.Width, "too narrow for "+strings.Join(names, ", "), faint)
	}
	for _, note := range t.Notes {
		s.folded(s.Width, note, "")
	}
}

// widths returns the width of each column. A column of long texts has the least width that its words need.
func (t *Table) widths(heads []string, rows [][]string) []int {
	widths := make([]int, len(heads))
	for j := range heads {
		widths[j] = utf8.RuneCountInString(heads[j])
		for _, row := range rows {
			widths[j] = max(widths[j], utf8.RuneCountInString(row[j]))
		}
	}
	return widths
}

// least is the width that a column needs.
func (t *Table) least(j int, widths []int) int {
	if t.Columns[j].Wrap {
		return min(widths[j], leastWrap)
	}
	return widths[j]
}

// total is the least width of a line with some columns.
func (t *Table) total(columns, widths []int) int {
	sum := gap * (len(columns) - 1)
	for _, j := range columns {
		sum += t.least(j, widths)
	}
	return sum
}

// fitting leaves out spare columns until a line is as narrow as the screen.
func (t *Table) fitting(widths []int, width int) (shown, left []int) {
	for j, c := range t.Columns {
		if !c.Minor {
			shown = append(shown, j)
		}
	}
	for width > 0 && t.total(shown, widths) > width {
		most := slices.MaxFunc(shown, func(a, b int) int { return t.Columns[a].Spare - t.Columns[b].Spare })
		if t.Columns[most].Spare == 0 {
			break
		}
		shown = slices.DeleteFunc(shown, func(j int) bool { return j == most })
		left = append(left, most)
	}
	slices.Sort(left)
	return shown, left
}

// parts divides columns among tables that are as narrow as the screen. Each repeats the columns that name a row.
func (t *Table) parts(shown, widths []int, width int) (parts [][]int) {
	if width == 0 || len(shown) < 3 || t.total(shown, widths) <= width {
		return [][]int{shown}
	}
	n := min(max(1, t.Heads), len(shown)-1)
	if slices.ContainsFunc(shown[n:], func(j int) bool { return t.total(append(slices.Clone(shown[:n]), j), widths) > width }) {
		n = 1
	}
	part := slices.Clone(shown[:n])
	for _, j := range shown[n:] {
		if len(part) > n && t.total(append(slices.Clone(part), j), widths) > width {
			parts, part = append(parts, part), slices.Clone(shown[:n])
		}
		part = append(part, j)
	}
	return append(parts, part)
}

// lines writes the columns of one part.
func (t *Table) lines(s *screen, part []int, heads []string, rows [][]string, widths []int) {
	own := map[int]int{} // widths of this part
	rest, wraps := s.Width-gap*(len(part)-1), []int{}
	for _, j := range part {
		own[j] = widths[j]
		if t.Columns[j].Wrap && s.Width > 0 {
			wraps = append(wraps, j)
		} else {
			rest -= widths[j]
		}
	}
	slices.SortStableFunc(wraps, func(a, b int) int { return widths[a] - widths[b] })
	for i, j := range wraps { // what a narrow column leaves is for the others
		own[j] = min(widths[j], max(rest/(len(wraps)-i), leastWrap/2)) // the first column may be long
		rest -= own[j]
	}
	if slices.ContainsFunc(part, func(j int) bool { return heads[j] != "" }) {
		t.row(s, part, heads, own, func(int, string) string { return faint })
	}
	for i, row := range rows {
		t.row(s, part, row, own, func(j int, text string) string {
			if j < len(t.Rows[i]) {
				if _, best := t.Rows[i][j].(Best); best {
					return green
				}
			}
			return ""
		})
	}
}

// row writes one row, long texts in several lines.
func (t *Table) row(s *screen, part []int, texts []string, widths map[int]int, style func(int, string) string) {
	cells, height := map[int][]string{}, 1
	for _, j := range part {
		cells[j] = []string{texts[j]}
		if t.Columns[j].Wrap && s.Width > 0 {
			cells[j] = Wrap(texts[j], widths[j])
		}
		height = max(height, len(cells[j]))
	}
	for k := range height {
		var line strings.Builder
		for i, j := range part {
			text := ""
			if k < len(cells[j]) {
				text = cells[j][k]
			}
			pad := strings.Repeat(" ", max(0, widths[j]-utf8.RuneCountInString(text)))
			shown := s.styled(style(j, text), text)
			switch {
			case t.Columns[j].Right:
				line.WriteString(pad + shown)
			case i < len(part)-1:
				line.WriteString(shown + pad)
			default:
				line.WriteString(shown)
			}
			if i < len(part)-1 {
				line.WriteString(strings.Repeat(" ", gap))
			}
		}
		s.line(line.String())
	}
}

// Wrap breaks a text between words into lines. A word that is longer than a line is broken.
func Wrap(text string, width int) (lines []string) {
	return wrap(strings.Split(text, " "), width, false)
}

// paragraph breaks a text between words into lines. A command in backticks stays in one line, also if that is longer than the screen, so that it
// can be copied.
func paragraph(text string, width int) []string {
	var words []string
	open := false
	for word := range strings.SplitSeq(text, " ") {
		if open {
			words[len(words)-1] += " " + word
		} else {
			words = append(words, word)
		}
		open = open != (strings.Count(word, "`")%2 == 1)
	}
	return wrap(words, width, true)
}

func wrap(words []string, width int, whole bool) (lines []string) {
	width = max(width, 1)
	line := ""
	for _, word := range words {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		} else if line != "" {
			line += " "
		}
		for line == "" && utf8.RuneCountInString(word) > width && !(whole && strings.Contains(word, "`")) {
			r := []rune(word)
			lines, word = append(lines, string(r[:width])), string(r[width:])
		}
		line += word
	}
	return append(lines, line)
}

// folded writes a paragraph.
func (s *screen) folded(width int, text, style string) {
	if width == 0 {
		width = math.MaxInt
	}
	for _, line := range paragraph(oneLine(text), width) {
		s.line(s.styled(style, line))
	}
}

func (n *Note) line() string {
	if n.Level == Info || n.Level == "" {
		return n.Text
	}
	return string(n.Level) + ": " + n.Text
}

func (n *Note) text(s *screen) {
	width := s.Width
	if width == 0 {
		width = math.MaxInt
	}
	for i, text := range strings.Split(n.line(), "\n") {
		for _, line := range paragraph(oneLine(text), width) {
			s.line(Styled(n.Level, line, s.Colour && i == 0))
		}
	}
}

func (f *Figure) text(s *screen) {
	if f.Path != "" {
		s.line(strings.ToLower(f.Title) + "  " + oneLine(f.Path))
	}
}

func (g *Gallery) text(*screen) {}

// table lists the ends of the lines.
func (c *Curves) table() *Table {
	t := &Table{Title: c.Title, Columns: []Column{{Title: ""}, {Title: "first"}, {Title: "last"}, {Title: c.X}, {}}}
	for _, l := range c.Lines {
		if n := len(l.Y); n > 0 {
			t.Row(l.Name, l.Y[0], l.Y[n-1], Text(Exact(l.X[0]))+" to "+Text(Exact(l.X[n-1])), sparks(l.Y))
		}
	}
	return t
}

func (c *Curves) text(s *screen) { c.table().text(s) }

// sparks draws a line of at most 40 characters from the least value to the largest.
func sparks(values []float64) string {
	const marks, most = "▁▂▃▄▅▆▇█", 40
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(values) == 0 {
		return ""
	}
	low, high := slices.Min(values), slices.Max(values)
	n := min(len(values), most)
	var b strings.Builder
	for i := range n {
		v := values[i*(len(values)-1)/max(1, n-1)]
		b.WriteRune([]rune(marks)[int(7*part(v, low, high)+0.5)])
	}
	return b.String()
}

func (g *Group) text(s *screen) {
	s.heading(g.Title)
	s.blocks(g.Blocks, false)
}

// oneLine spells out line feeds and tabs too, which would break a line.
func oneLine(text string) string { return Spelled(text, "") }

// Spelled writes control characters, which would command a terminal, as \u001b, as TOML and JSON do, and bytes that are not UTF-8 as
// \x9b. Marks that change the direction of writing count as control characters. Those in keep stay.
func Spelled(text, keep string) string {
	control := func(r rune) bool {
		return unicode.In(r, unicode.Cc, unicode.Bidi_Control) && !strings.ContainsRune(keep, r)
	}
	if strings.IndexFunc(text, control) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case control(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
