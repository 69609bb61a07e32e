package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parse reads a source into a tree of values and places. Values come from BurntSushi/toml; places from the syntax tree
// of go-toml, because BurntSushi's keep one place per dotted path and thus not that of the second element of an array
// of tables. The findings are syntax errors, after which the tree is nil, and duplicates, which are left out of it.
func parse(src *source) (*node, []finding) {
	p := &placer{src: src, root: newTable()}
	p.current = p.root
	p.parser.Reset([]byte(src.text))
	for p.parser.NextExpression() {
		p.expression(p.parser.Expression())
	}
	if err := p.parser.Error(); err != nil {
		return nil, []finding{p.syntaxError(err)}
	}
	p.endSection(len(src.text))
	var values map[string]any
	if _, err := toml.Decode(p.masked(), &values); err != nil {
		p.attribute()
		return nil, append(p.found, valueError(src, err))
	}
	fill(p.root, values)
	p.attribute()
	return p.root, p.found
}

// fill sets the scalars of a tree from the decoded values, which have the same structure.
func fill(n *node, value any) {
	switch v := value.(type) {
	case map[string]any:
		for k, x := range v {
			if c := n.child(k); c != nil {
				fill(c, x)
			}
		}
	case []map[string]any:
		for i := range min(len(v), len(n.items)) {
			fill(n.items[i], v[i])
		}
	case []any:
		for i := range min(len(v), len(n.items)) {
			fill(n.items[i], v[i])
		}
	default:
		n.leaf = value
	}
}

// placer builds the tree of places, expression by expression.
type placer struct {
	src           *source
	parser        unstable.Parser
	root, current *node
	found         []finding
	within        []*node // the tables of the findings
	masks         []span
	dropped       string // the header of a table that was given before, whose section is left out; "" for none
	droppedAt     int
}

// name is one part of a dotted key.
type name struct {
	text string
	at   span
}

func (p *placer) span(r unstable.Range) span {
	return span{p.src, int(r.Offset), int(r.Offset + r.Length)}
}

func (p *placer) names(it unstable.Iterator) []name {
	var list []name
	for it.Next() {
		list = append(list, name{string(it.Node().Data), p.span(it.Node().Raw)})
	}
	return list
}

func (p *placer) expression(e *unstable.Node) {
	if e.Kind == unstable.KeyValue {
		if p.dropped == "" {
			p.keyValue(p.current, e)
		}
		return
	}
	names := p.names(e.Key())
	start := strings.LastIndexByte(p.src.text[:names[0].at.start], '\n') + 1
	header := headerText(names)
	if p.dropped != "" && strings.HasPrefix(header, p.dropped) {
		return // a table of the table that was given before
	}
	p.endSection(start)
	if !p.header(names, e.Kind == unstable.ArrayTable) {
		p.dropped, p.droppedAt = header, start
	}
}

func headerText(names []name) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%q.", n.text)
	}
	return b.String()
}

// endSection masks the section of a table that was given before.
func (p *placer) endSection(end int) {
	if p.dropped != "" {
		p.masks = append(p.masks, span{p.src, p.droppedAt, end})
		p.dropped = ""
	}
}

// header enters the table that a header names, and reports whether it is a new one.
func (p *placer) header(names []name, element bool) bool {
	n, last := p.root, names[len(names)-1]
	for _, part := range names[:len(names)-1] {
		c := n.child(part.text)
		if c == nil {
			c = newTable()
			c.key, c.at = part.at, part.at
			n.put(part.text, c)
		}
		if len(c.items) > 0 {
			c = c.items[len(c.items)-1]
		}
		if c.table == nil {
			return true // BurntSushi reports it
		}
		n = c
	}
	whole := span{p.src, names[0].at.start, last.at.end}
	c := n.child(last.text)
	switch {
	case element && (c == nil || c.array && c.header):
		if c == nil {
			c = &node{key: last.at, at: whole, array: true, header: true}
			n.put(last.text, c)
		}
		item := newTable()
		item.key, item.at = last.at, whole
		c.items = append(c.items, item)
		p.current = item
		return true
	case !element && (c == nil || c.table != nil && !c.header):
		if c == nil {
			c = newTable()
			n.put(last.text, c)
		}
		c.key, c.at, c.header = last.at, whole, true
		p.current = c
		return true
	}
	p.duplicate(n, "table", last, c)
	return false
}

func (p *placer) duplicate(table *node, what string, n name, first *node) {
	p.within = append(p.within, table)
	p.found = append(p.found, finding{at: n.at,
		problem: fmt.Sprintf("%s %q is given twice (first on line %d)", what, n.text, first.key.position().line)})
}

// attribute says of which model, or sweep, and part the findings are.
func (p *placer) attribute() {
	for i := range p.found {
		f := &p.found[i]
		if name, part, ok := p.root.child("model").holder(p.within[i]); ok {
			f.model, f.owner, f.part = name, name, part
			if part != "" {
				f.kind, _ = p.within[i].child(selector(part)).text()
			}
		}
		if name, part, ok := p.root.child("sweep").holder(p.within[i]); ok {
			f.sweep, f.owner, f.part = name, sweepOwner(name), part
		}
	}
}

// keyValue adds a key and its value to a table.
func (p *placer) keyValue(n *node, e *unstable.Node) {
	names := p.names(e.Key())
	for _, part := range names[:len(names)-1] {
		c := n.child(part.text)
		if c == nil {
			c = newTable()
			c.key, c.at, c.path = part.at, part.at, p.src.set != ""
			n.put(part.text, c)
		}
		if c.table == nil {
			return // BurntSushi reports it
		}
		n = c
	}
	last, whole := names[len(names)-1], p.span(e.Raw)
	if first := n.child(last.text); first != nil {
		p.duplicate(n, "key", last, first)
		p.masks = append(p.masks, p.withComma(whole))
		return
	}
	at := span{p.src, last.at.end, whole.end}
	for at.start < at.end && strings.IndexByte(" \t=", p.src.text[at.start]) >= 0 {
		at.start++
	}
	v := p.value(e.Value(), at)
	v.key = last.at
	n.put(last.text, v)
}

// withComma widens the place of a key of an inline table by the comma that follows it.
func (p *placer) withComma(s span) span {
	rest := p.src.text[s.end:]
	if blank := len(rest) - len(strings.TrimLeft(rest, " \t\r\n")); blank < len(rest) && rest[blank] == ',' {
		s.end += blank + 1
	}
	return s
}

// value builds the tree of a value; at is its place, where the syntax tree does not tell.
func (p *placer) value(e *unstable.Node, at span) *node {
	if e.Raw.Length > 0 && e.Kind != unstable.InlineTable {
		at = p.span(e.Raw)
	}
	v := &node{key: at, at: at}
	switch e.Kind {
	case unstable.Array:
		v.array = true
		for it := e.Children(); it.Next(); {
			item := at
			if raw := it.Node().Raw; raw.Length > 0 {
				item = p.span(raw)
			}
			v.items = append(v.items, p.value(it.Node(), item))
		}
	case unstable.InlineTable:
		v.table = map[string]*node{}
		for it := e.Children(); it.Next(); {
			p.keyValue(v, it.Node())
		}
	}
	return v
}

// masked returns the text with duplicates blanked out, line by line in place.
func (p *placer) masked() string {
	text := []byte(p.src.text)
	for _, m := range p.masks {
		for i := m.start; i < m.end; i++ {
			if text[i] != '\n' && text[i] != '\r' {
				text[i] = ' '
			}
		}
	}
	return string(text)
}

func (p *placer) syntaxError(err error) finding {
	f := finding{at: span{p.src, len(p.src.text), len(p.src.text)}, problem: err.Error()}
	var syntax *unstable.ParserError
	if errors.As(err, &syntax) {
		f.problem = syntax.Message
		f.at = p.span(p.parser.Range(syntax.Highlight))
	}
	f.hint = p.slip(f.at.start)
	// The parser counts in bytes: name the whole character.
	if r, size := utf8.DecodeRuneInString(p.src.text[f.at.start:]); size > 1 {
		f.problem = strings.ReplaceAll(f.problem, fmt.Sprintf("%#U", p.src.text[f.at.start]), fmt.Sprintf("%#U", r))
		f.at.end = max(f.at.end, f.at.start+size)
	}
	return f
}

// slip says what to do about the commonest slips in a value: a text without quotes, a decimal comma.
func (p *placer) slip(at int) string {
	text := p.src.text
	line := text[strings.LastIndexByte(text[:at], '\n')+1:]
	line, _, _ = strings.Cut(line, "\n")
	_, value, ok := strings.Cut(line, "=")
	value = strings.TrimSpace(value)
	switch {
	case !ok:
		return ""
	case decimalComma.MatchString(value):
		return "numbers have a decimal point"
	case bareWord.MatchString(value):
		return "put text in quotes"
	}
	return ""
}

var (
	decimalComma = regexp.MustCompile(`^[-+]?[0-9]+,[0-9]+$`)
	bareWord     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*$`)
)

func valueError(src *source, err error) finding {
	f := finding{at: span{src, 0, 0}, problem: err.Error()}
	var value toml.ParseError
	if errors.As(err, &value) {
		f.problem = value.Message
		at := min(max(value.Position.Start, 0), len(src.text))
		f.at = span{src, at, min(at+max(value.Position.Len, 1), len(src.text))}
	}
	return f
}
