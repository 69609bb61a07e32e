package table

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// reader builds the tree of a text from the syntax tree of go-toml, which has the position of every value, with the rules that this
// tree does not check: no key and no table is given twice, and numbers and dates are valid. Only this file uses go-toml.
type reader struct {
	src           *Source
	parser        unstable.Parser
	root, current *Node
	syntax        *Diagnostic  // the first error, after which nothing is read
	invalid       []Diagnostic // values that are not valid, and additions to values that are complete
	twice         []duplicate
	depth         int    // nesting depth of the current value
	dropped       string // header of a duplicate table, whose section is skipped; "" if there is none
}

// duplicate is a duplicate key or table.
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

func readTree(src *Source) *reader {
	p := &reader{src: src, root: NewTable()}
	p.current = p.root
	p.parser.Reset([]byte(src.Text))
	for p.syntax == nil && p.parser.NextExpression() {
		p.expression(p.parser.Expression())
	}
	if err := p.parser.Error(); err != nil {
		p.syntax = p.syntaxError(err)
	}
	return p
}

func (p *reader) syntaxError(err error) *Diagnostic {
	d := &Diagnostic{At: Span{p.src, len(p.src.Text), len(p.src.Text)}, Problem: err.Error()}
	var syntax *unstable.ParserError
	if errors.As(err, &syntax) {
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
	return d
}

func (p *reader) span(r unstable.Range) Span {
	return Span{p.src, int(r.Offset), int(r.Offset + r.Length)}
}

// names returns the names of a dotted key.
func (p *reader) names(it unstable.Iterator) []name {
	var list []name
	for it.Next() {
		list = append(list, name{string(it.Node().Data), p.span(it.Node().Raw)})
	}
	if len(list) > mostNames && p.syntax == nil {
		p.syntax = &Diagnostic{At: list[mostNames].at, Problem: fmt.Sprintf("a key of more than %d names", mostNames)}
	}
	return list
}

func (p *reader) expression(e *unstable.Node) {
	if e.Kind == unstable.KeyValue {
		p.keyValue(p.current, e)
		return
	}
	names := p.names(e.Key())
	if p.dropped != "" && strings.HasPrefix(headerText(names), p.dropped) {
		p.current = NewTable() // a table within a duplicate table
		return
	}
	p.dropped = ""
	p.header(names, e.Kind == unstable.ArrayTable)
}

func headerText(names []name) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%q.", n.text)
	}
	return b.String()
}

// header enters the table of a header. What follows a duplicate header belongs to a table that is not part of the tree.
func (p *reader) header(names []name, element bool) {
	n, last := p.root, names[len(names)-1]
	p.current = NewTable()
	for _, one := range names[:len(names)-1] {
		c := n.Child(one.text)
		if c == nil {
			c = &Node{Key: one.at, At: one.at, form: table}
			n.add(one.text, c)
		}
		if c.header && len(c.Items) > 0 {
			c = c.Items[len(c.Items)-1]
		}
		if !c.IsTable() || c.inline {
			p.complete(one, c)
			return
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
		p.current.Key, p.current.At = last.at, whole
		c.append(p.current)
	case !element && (c == nil || c.IsTable() && !c.header && !c.dotted && !c.inline):
		if c == nil {
			c = NewTable()
			n.add(last.text, c)
		}
		c.Key, c.At, c.header = last.at, whole, true
		p.current = c
	default:
		p.duplicate(n, "table", last, c)
		p.dropped = headerText(names)
	}
}

// complete reports an addition to a value that is no table, or to a table that is given elsewhere.
func (p *reader) complete(n name, first *Node) {
	p.invalid = append(p.invalid, Diagnostic{At: n.at, Problem: fmt.Sprintf("%q is given on line %d: nothing can be added to it here", n.text, first.Key.Place().Line)})
}

func (n *Node) append(item *Node) {
	item.parent, item.name = n, "["+strconv.Itoa(len(n.Items))+"]"
	n.Items = append(n.Items, item)
}

func (p *reader) duplicate(table *Node, what string, n name, first *Node) {
	p.twice = append(p.twice, duplicate{table: table, Diagnostic: Diagnostic{At: n.at,
		Problem: fmt.Sprintf("%s %q is given twice (first on line %d)", what, n.text, first.Key.Place().Line)}})
}

// duplicates returns the errors for duplicate keys and tables, with their declarations and parts.
func (p *reader) duplicates() []Diagnostic {
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

// keyValue adds a key and its value to a table.
func (p *reader) keyValue(n *Node, e *unstable.Node) {
	names := p.names(e.Key())
	for _, one := range names[:len(names)-1] {
		c := n.Child(one.text)
		if c == nil {
			c = &Node{Key: one.at, At: one.at, form: table, dotted: true, path: p.src.Set != ""}
			n.add(one.text, c)
		}
		if !c.dotted {
			p.complete(one, c)
			return
		}
		n = c
	}
	last, whole := names[len(names)-1], p.span(e.Raw)
	if first := n.Child(last.text); first != nil {
		p.duplicate(n, "key", last, first)
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

// value builds the tree of a value. at is its position if the syntax tree has none.
func (p *reader) value(e *unstable.Node, at Span) *Node {
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
		v.form, v.inline = table, true
		for it := e.Children(); it.Next(); {
			p.keyValue(v, it.Node())
		}
	default:
		v.Leaf = p.scalar(e, at)
	}
	return v
}

// moments are the forms of dates and times, after a space or t between them has become a T, and z a Z.
var moments = []string{"2006-01-02", "15:04:05", "15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00"}

// scalar returns the value of a node, and reports one that is not valid.
func (p *reader) scalar(e *unstable.Node, at Span) any {
	text := string(e.Data)
	digits := strings.ReplaceAll(text, "_", "")
	problem := ""
	switch e.Kind {
	case unstable.String:
		return text
	case unstable.Bool:
		return text == "true"
	case unstable.Integer:
		n, err := strconv.ParseInt(digits, 0, 64)
		if err == nil {
			return n
		}
		problem = text + " is out of range for int64"
	case unstable.Float:
		if strings.HasSuffix(digits, "nan") { // with a sign or without
			return math.NaN()
		}
		x, err := strconv.ParseFloat(digits, 64)
		if err == nil {
			return x
		}
		problem = text + " is out of range for float64"
	default:
		moment := strings.NewReplacer(" ", "T", "t", "T", "z", "Z").Replace(text)
		for _, form := range moments {
			if t, err := time.Parse(form, moment); err == nil {
				return t
			}
		}
		problem = text + " is no date or time"
	}
	p.invalid = append(p.invalid, Diagnostic{At: at, Problem: problem})
	return nil
}
