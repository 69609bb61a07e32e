package table

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"
)

// places turns the syntax tree of go-toml, whose values are raw text with its position, into a tree. It reports keys and tables that
// are given twice, and leaves them out.
type places struct {
	src           *Source
	parser        unstable.Parser
	root, current *Node
	syntax        *Diagnostic
	twice         []duplicate
	depth         int    // nesting depth of the current value
	dropped       string // header of the duplicate table whose section is being skipped; "" if there is none
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

func readPlaces(src *Source) *places {
	p := &places{src: src, root: NewTable()}
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
	if p.dropped != "" && strings.HasPrefix(headerText(names), p.dropped) {
		return // a table within a duplicate table
	}
	if p.dropped = ""; !p.header(names, e.Kind == unstable.ArrayTable) {
		p.dropped = headerText(names)
	}
}

func headerText(names []name) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%q.", n.text)
	}
	return b.String()
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
		if !c.IsTable() || c.IsInline() {
			p.duplicate(n, "table", one, c)
			return false
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
	case !element && (c == nil || c.IsTable() && !c.header && !c.dotted && !c.IsInline()):
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
			c = &Node{Key: one.at, At: one.at, form: table, dotted: true, path: p.src.Set != ""}
			n.add(one.text, c)
		}
		if !c.IsTable() || c.header || c.IsInline() {
			p.duplicate(n, "key", one, c)
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
		var err error
		if v.Leaf, err = scalarOf(e.Kind, string(e.Data)); err != nil && p.syntax == nil {
			p.syntax = &Diagnostic{At: at, Problem: err.Error()}
		}
	}
	return v
}

// scalarOf returns the value of a text that the parser accepts as one of this kind.
func scalarOf(kind unstable.Kind, text string) (any, error) {
	digits := strings.ReplaceAll(text, "_", "")
	switch kind {
	case unstable.String:
		return text, nil
	case unstable.Bool:
		return text == "true", nil
	case unstable.Integer:
		n, err := strconv.ParseInt(digits, 0, 64)
		if err != nil {
			err = fmt.Errorf("%s is out of range for int64", text)
		}
		return n, err
	case unstable.Float:
		x, err := strconv.ParseFloat(strings.TrimLeft(digits, "+"), 64)
		if strings.HasSuffix(digits, "nan") { // with any sign
			return math.NaN(), nil
		}
		if err != nil {
			err = fmt.Errorf("%s is out of range for float64", text)
		}
		return x, err
	}
	for _, layout := range times {
		if at, err := time.Parse(layout, strings.Replace(strings.ToUpper(text), " ", "T", 1)); err == nil {
			return at, nil
		}
	}
	return nil, fmt.Errorf("%s is no date or time", text)
}

// times lists the forms of dates and times.
var times = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "15:04:05", "15:04"}
