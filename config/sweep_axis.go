package config

import (
	"fmt"
	"slices"
	"strings"

	"tessera/part/table"
)

// column is one key of a sweep and the values that it takes.
type column struct {
	key    string   // "loss.1.weight"
	names  []string // of the key
	at     []table.Span
	values []*table.Node
}

// seedKey is the key that a sweep's seeds set.
const seedKey = "train.seed"

// several reports whether the key has different values.
func (c column) several() bool {
	return slices.ContainsFunc(c.values, func(v *table.Node) bool { return v.String() != c.values[0].String() })
}

// change is the change of the key to its i-th value, with the positions in the file.
func (c column) change(i int) table.Change { return table.NewChange(c.names, c.at, c.values[i]) }

// axis is one or several keys that vary together: their i-th values belong to one setting. The columns are equally long.
type axis []column

// row prints the i-th values.
func (a axis) row(i int) string {
	var b strings.Builder
	for _, c := range a {
		b.WriteString(c.values[i].String() + "\x00")
	}
	return b.String()
}

// distinct returns the axis without rows that are there before.
func (a axis) distinct() axis {
	var rows []int
	seen := map[string]bool{}
	for i := range a[0].values {
		if text := a.row(i); !seen[text] {
			rows, seen[text] = append(rows, i), true
		}
	}
	kept := slices.Clone(a)
	for i, c := range a {
		kept[i].values = nil
		for _, row := range rows {
			kept[i].values = append(kept[i].values, c.values[row])
		}
	}
	return kept
}

// axes are those of one model: it is trained with all combinations of their rows.
type axes []axis

// has reports whether an axis has this key.
func (l axes) has(key string) bool {
	return slices.ContainsFunc(l, func(a axis) bool { return slices.ContainsFunc(a, func(c column) bool { return c.key == key }) })
}

// without returns the axes without some keys.
func (l axes) without(gone func(key string) bool) (left axes) {
	for _, a := range l {
		kept := slices.DeleteFunc(slices.Clone(a), func(c column) bool { return gone(c.key) })
		if len(kept) > 0 {
			left = append(left, kept.distinct())
		}
	}
	return left
}

// size is the number of settings, at most mostTrials + 1.
func (l axes) size() int {
	n := 1
	for _, a := range l {
		n = min(n*len(a[0].values), mostTrials+1) // the number is never 0
	}
	return n
}

// choice is the n-th combination: the index of the chosen row of each axis, the last axis varying fastest.
func (l axes) choice(n int) []int {
	choice := make([]int, len(l))
	for i, a := range slices.Backward(l) {
		choice[i] = n % len(a[0].values)
		n /= len(a[0].values)
	}
	return choice
}

// singly lists the combination of all first rows and the combinations that differ from it in one row.
func (l axes) singly() [][]int {
	list := [][]int{make([]int, len(l))}
	for i, a := range l {
		for j := 1; j < len(a[0].values); j++ {
			choice := make([]int, len(l))
			choice[i] = j
			list = append(list, choice)
		}
	}
	return list
}

// changes are those of the model that a combination makes.
func (l axes) changes(choice []int) (changes []table.Change) {
	for i, a := range l {
		for _, c := range a {
			changes = append(changes, c.change(choice[i]))
		}
	}
	return changes
}

// values are the chosen values of some keys, nil for a key that these axes do not have.
func (l axes) values(keys []string, choice []int) []any {
	values := make([]any, len(keys))
	for i, a := range l {
		for _, c := range a {
			if at := slices.Index(keys, c.key); at >= 0 {
				values[at] = c.values[choice[i]].Plain()
			}
		}
	}
	return values
}

// axesReader reads the axes of all models, or of one.
type axesReader struct {
	*table.Decoder
	part string // of the sweep's table, "" or "for.NAME"
	axes axes
}

// at is the name of a key in messages.
func (r *axesReader) at(key string) string { return strings.TrimPrefix(r.part+"."+key, ".") }

// readAxes reads `set`, `zip` and `random`, and those of single models in `for`.
func (p *sweepPlan) readAxes(d *table.Decoder) {
	common := axesReader{Decoder: d}
	common.read(p.table.axesTable)
	p.common, p.own = common.axes, map[string]axes{}
	if p.table.For == nil {
		return
	}
	if !p.table.For.IsTable() {
		d.Report("", p.table.For, "for: want tables: [sweep.NAME.for.MODEL.set]", "")
		return
	}
	for _, name := range p.table.For.Keys {
		n := p.table.For.Child(name)
		if !slices.Contains(p.models, name) {
			d.ReportKey("for", n, fmt.Sprintf("%q is no model of this sweep", name), table.Suggest(name, p.models))
			continue
		}
		own := axesReader{Decoder: d, part: "for." + name}
		var t axesTable
		d.Decode(n, &t, own.part)
		own.read(t)
		p.own[name] = own.axes
	}
}

// read reads the keys of a grid, then paired keys, then random ones.
func (r *axesReader) read(t axesTable) {
	for _, c := range r.columns("set", t.Set, r.values) {
		r.add("set", axis{c})
	}
	r.zip(t.Zip)
	r.random(t.Random)
}

// add adds an axis whose keys no other axis has.
func (r *axesReader) add(part string, a axis) {
	for _, c := range a {
		if r.axes.has(c.key) {
			r.Report(r.at(part), c.values[0], fmt.Sprintf("%s is given twice", c.key), "give it in one of set, zip and random")
			return
		}
	}
	r.axes = append(r.axes, a)
}

// columns reads the keys of a table and of the tables in it; read reads the values of one.
func (r *axesReader) columns(part string, n *table.Node, read func(part, key string, n *table.Node) []*table.Node) []column {
	if n == nil {
		return nil
	}
	if !n.IsTable() {
		r.Report(r.part, n, fmt.Sprintf("%s: want a table: [sweep.NAME.%s]", part, r.at(part)), "")
		return nil
	}
	return r.below(part, n, column{}, read)
}

// below reads the keys of a table whose own key is before.
func (r *axesReader) below(part string, n *table.Node, before column, read func(part, key string, n *table.Node) []*table.Node) (list []column) {
	for _, k := range n.Keys {
		v := n.Child(k)
		c := column{names: append(slices.Clone(before.names), k), at: append(slices.Clone(before.at), v.Key)}
		c.key = strings.Join(c.names, ".")
		switch {
		case strings.Contains(k, "."):
			r.ReportKey(r.at(part), v, fmt.Sprintf("unknown key %q", k), "write the path without quotes")
		case c.key == seedKey:
			r.ReportKey(r.at(part), v, `the seed is set by the sweep's key "seeds"`, "write seeds = [1, 2, 3] above")
		case v.IsTable() && !isSpread(v):
			list = append(list, r.below(part, v, c, read)...)
		default:
			if c.values = read(part, c.key, v); len(c.values) > 0 {
				list = append(list, c)
			}
		}
	}
	return list
}

// values reads a value, a list or a range.
func (r *axesReader) values(part, key string, n *table.Node) []*table.Node {
	switch {
	case isSpread(n):
		return spreadOut(r.Decoder, n, r.at(part)+"."+key)
	case n.IsArray():
		if len(n.Items) == 0 {
			r.Report(r.at(part), n, key+": got an empty list, want at least one value", "")
		}
		if part == "set" { // pairs may repeat one of their values
			refuseRepeated(r.Decoder, r.at(part), key, n.Items)
		}
		return n.Items
	}
	return []*table.Node{n}
}

// refuseRepeated reports repeated values of a list: their trials would be equal.
func refuseRepeated(d *table.Decoder, part, key string, list []*table.Node) {
	first := map[string]int{}
	for i, v := range list {
		text := v.String()
		if at, ok := first[text]; ok {
			d.Report(part, v, fmt.Sprintf("%s[%d]: %s is given before, as %s[%d]", key, i, v.Describe(), key, at), "leave it out")
		} else {
			first[text] = i
		}
	}
}
