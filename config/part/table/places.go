package table

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// places is the second parser of a text. It builds a tree with the structure of the decoded values and the position of
// each value. BurntSushi/toml has one position per dotted path, and thus none for the second element of an array of
// tables. The syntax tree of go-toml has all positions. Only this file uses go-toml, for positions and, in texts
// that are known to be valid, for values.
//
// places reports duplicate keys and tables and blanks them out of the text, because they would stop the first parser.
type places struct {
	src           *Source
	parser        unstable.Parser
	root, current *Node
	syntax        *Diagnostic
	twice         []duplicate
	masks         []Span
	depth         int    // nesting depth of the current value
	values        bool   // the tree gets the values, too
	unread        bool   // there are values that only BurntSushi/toml reads: dates, and numbers out of range
	dropped       string // header of the duplicate table whose section is being skipped; "" if there is none
	droppedAt     int
}

type duplicate struct {
	Diagnostic
	table *Node // table that already has the key
}

// name is one name of a dotted key.
type name struct {
	text string
	at   Span
}

// Limits, because the time of TOML parsers is quadratic in these numbers.
const (
	mostNames = 100 // maximum number of names in a dotted key
	mostDepth = 200 // maximum depth of nested arrays and inline tables
)

func readPlaces(src *Source, values bool) *places {
	p := &places{src: src, root: NewTable(), values: values}
	p.current = p.root
	p.parser.Reset([]byte(src.Text))
	for p.syntax == nil && p.parser.NextExpression() {
		p.expression(p.parser.Expression())
	}
	if err := p.parser.Error(); err != nil {
		p.syntax = p.syntaxError(err)
	}
	p.endSection(len(src.Text))
	return p
}

func (p *places) syntaxError(err error) *Diagnostic {
	d := &Diagnostic{At: Span{p.src, len(p.src.Text), len(p.src.Text)}, Problem: err.Error()}
	if syntax, ok := errors.AsType[*unstable.ParserError](err); ok {
		d.Problem = syntax.Message
		d.At = p.span(p.parser.Range(syntax.Highlight))
	}
	at := d.At.Start
	d.Suggestion = typo(p.src.Text, at)
	// The position of the parser is in bytes. The message names the whole character.
	if r, size := utf8.DecodeRuneInString(p.src.Text[at:]); size > 1 {
		d.Problem = strings.ReplaceAll(d.Problem, fmt.Sprintf("%#U", p.src.Text[at]), fmt.Sprintf("%#U", r))
		d.At.End = max(d.At.End, at+size)
	}
	d.Problem = parserGot.ReplaceAllString(parserSign.ReplaceAllString(d.Problem, `"$1"`), "got $2, want a $1")
	return d
}

// What the parser says of a sign, such as U+002C ',', and what it wants in its place.
var (
	parserSign = regexp.MustCompile(`U\+[0-9A-F]+ '(.)'`)
	parserGot  = regexp.MustCompile(`^expected (\w+) but got (.*)$`)
)

func (p *places) span(r unstable.Range) Span {
	return Span{p.src, int(r.Offset), int(r.Offset + r.Length)}
}

// names returns the names of a dotted key.
func (p *places) names(it unstable.Iterator) []name {
	var list []name
	for it.Next() {
		list = append(list, name{string(it.Node().Data), p.span(it.Node().Raw)})
	}
	if len(list) > mostNames && p.syntax == nil {
		p.syntax = &Diagnostic{At: list[mostNames].at, Problem: fmt.Sprintf("a key of more than %d names", mostNames)}
	}
	return list
}

func (p *places) expression(e *unstable.Node) {
	if e.Kind == unstable.KeyValue {
		if p.dropped == "" {
			p.keyValue(p.current, e)
		}
		return
	}
	names := p.names(e.Key())
	start := strings.LastIndexByte(p.src.Text[:names[0].at.Start], '\n') + 1
	if p.dropped != "" && strings.HasPrefix(headerText(names), p.dropped) {
		return // a table within a duplicate table
	}
	p.endSection(start)
	if !p.header(names, e.Kind == unstable.ArrayTable) {
		p.dropped, p.droppedAt = headerText(names), start
	}
}

func headerText(names []name) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%q.", n.text)
	}
	return b.String()
}

// endSection blanks out the section of a duplicate table, which ends at end.
func (p *places) endSection(end int) {
	if p.dropped != "" {
		p.masks = append(p.masks, Span{p.src, p.droppedAt, end})
		p.dropped = ""
	}
}

// header enters the table of a header and reports whether the table is new.
func (p *places) header(names []name, element bool) bool {
	n, last := p.root, names[len(names)-1]
	for _, one := range names[:len(names)-1] {
		c := n.Child(one.text)
		if c == nil {
			c = &Node{Key: one.at, At: one.at, form: table}
			n.add(one.text, c)
		}
		if len(c.Items) > 0 {
			c = c.Items[len(c.Items)-1]
		}
		if !c.IsTable() {
			return true // BurntSushi/toml reports this error
		}
		n = c
	}
	whole := Span{p.src, names[0].at.Start, last.at.End}
	c := n.Child(last.text)
	switch {
	case element && (c == nil || c.IsArray() && c.header):
		if c == nil {
			c = &Node{Key: last.at, At: whole, form: array, header: true}
			n.add(last.text, c)
		}
		p.current = &Node{Key: last.at, At: whole, form: table}
		c.append(p.current)
		return true
	case !element && (c == nil || c.IsTable() && !c.header):
		if c == nil {
			c = NewTable()
			n.add(last.text, c)
		}
		c.Key, c.At, c.header = last.at, whole, true
		p.current = c
		return true
	}
	p.duplicate(n, "table", last, c)
	if c.mixed = c.header && element == c.IsTable(); c.mixed {
		p.twice[len(p.twice)-1].Suggestion = "single brackets begin a table and double ones an element of an array: write one of them"
	}
	return false
}

func (n *Node) append(item *Node) {
	item.parent, item.name = n, "["+strconv.Itoa(len(n.Items))+"]"
	n.Items = append(n.Items, item)
}

func (p *places) duplicate(table *Node, what string, n name, first *Node) {
	p.twice = append(p.twice, duplicate{table: table, Diagnostic: Diagnostic{At: n.at,
		Problem: fmt.Sprintf("%s %q is given twice (first on line %d)", what, n.text, first.Key.Place().Line)}})
}

// duplicates returns the errors for duplicate keys and tables, with their declarations and parts.
func (p *places) duplicates() []Diagnostic {
	var found []Diagnostic
	for _, d := range p.twice {
		if names := d.table.Path(); len(names) >= 2 {
			d.Subject, d.Part = d.table.Subject(), partOf(names[2:])
			if d.Part != "" {
				d.Kind, _ = d.table.Child("kind").Text()
			}
		}
		found = append(found, d.In(d.table))
	}
	return found
}

func (p *places) keyValue(n *Node, e *unstable.Node) {
	names := p.names(e.Key())
	for _, one := range names[:len(names)-1] {
		c := n.Child(one.text)
		if c == nil {
			c = &Node{Key: one.at, At: one.at, form: table, path: p.src.Set != ""}
			n.add(one.text, c)
		}
		if !c.IsTable() {
			return // BurntSushi/toml reports this error
		}
		n = c
	}
	last, whole := names[len(names)-1], p.span(e.Raw)
	if first := n.Child(last.text); first != nil {
		p.duplicate(n, "key", last, first)
		p.masks = append(p.masks, p.withComma(whole))
		return
	}
	at := Span{p.src, last.at.End, whole.End}
	for at.Start < at.End && strings.IndexByte(" \t=", p.src.Text[at.Start]) >= 0 {
		at.Start++
	}
	v := p.value(e.Value(), at)
	v.Key = last.at
	n.add(last.text, v)
}

// withComma extends the span of a key in an inline table by the comma that follows it.
func (p *places) withComma(s Span) Span {
	rest := p.src.Text[s.End:]
	if blank := len(rest) - len(strings.TrimLeft(rest, " \t\r\n")); blank < len(rest) && rest[blank] == ',' {
		s.End += blank + 1
	}
	return s
}

// value builds the tree of a value. at is its position if the syntax tree has none.
func (p *places) value(e *unstable.Node, at Span) *Node {
	if e.Raw.Length > 0 && e.Kind != unstable.InlineTable {
		at = p.span(e.Raw)
	}
	v := &Node{Key: at, At: at}
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > mostDepth && p.syntax == nil {
		p.syntax = &Diagnostic{At: at, Problem: fmt.Sprintf("more than %d nested arrays or inline tables", mostDepth)}
	}
	switch e.Kind {
	case unstable.Array:
		v.form = array
		for it := e.Children(); it.Next(); {
			item := at
			if raw := it.Node().Raw; raw.Length > 0 {
				item = p.span(raw)
			}
			v.append(p.value(it.Node(), item))
		}
	case unstable.InlineTable:
		v.form = table
		for it := e.Children(); it.Next(); {
			p.keyValue(v, it.Node())
		}
	default:
		if p.values {
			v.Leaf = p.scalar(e)
		}
	}
	return v
}

// scalar returns the value of a node as BurntSushi/toml does, which decides for texts that are not known to be valid.
func (p *places) scalar(e *unstable.Node) any {
	text := string(e.Data)
	digits := strings.ReplaceAll(text, "_", "")
	switch e.Kind {
	case unstable.String:
		return text
	case unstable.Bool:
		return text == "true"
	case unstable.Integer:
		if n, err := strconv.ParseInt(digits, 0, 64); err == nil {
			return n
		}
	case unstable.Float:
		if x, err := strconv.ParseFloat(digits, 64); err == nil {
			return x
		}
	}
	p.unread = true
	return nil
}

// masked returns the text with duplicates blanked out. Line numbers stay the same.
func (p *places) masked() string {
	if len(p.masks) == 0 {
		return p.src.Text
	}
	text := []byte(p.src.Text)
	for _, m := range p.masks {
		for i := m.Start; i < m.End; i++ {
			if text[i] != '\n' && text[i] != '\r' {
				text[i] = ' '
			}
		}
	}
	return string(text)
}
