package config

import (
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

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
