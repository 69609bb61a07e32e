package table

import (
	"slices"
	"strconv"
)

// Origin is where the parts of a declaration are written, what is not known of them because their tables have errors, and
// under which names they were chosen. A part is "encoder[0]", "optimizer.schedule", ..., "" the declaration itself. A nil Origin,
// of what was made in Go, knows nothing.
type Origin struct {
	tables map[string]*Node
	doubts map[string]*Doubt
	names  map[string]string
}

func newOrigin() *Origin {
	return &Origin{map[string]*Node{}, map[string]*Doubt{}, map[string]string{}}
}

// Doubt is what is not known of a part because its table has errors. A nil Doubt is none.
type Doubt struct {
	fields []Field // keys whose values are wrong, or that a misspelt key was probably meant to be
	whole  bool    // the part itself is not known
}

// Table returns the table of a part, nil where there is none.
func (o *Origin) Table(part string) *Node {
	if o == nil {
		return nil
	}
	return o.tables[part]
}

// Doubt returns what is not known of a part, nil where all is.
func (o *Origin) Doubt(part string) *Doubt {
	if o == nil {
		return nil
	}
	return o.doubts[part]
}

// doubting is Doubt, to be written to.
func (o *Origin) doubting(part string) *Doubt {
	if o.doubts[part] == nil {
		o.doubts[part] = &Doubt{}
	}
	return o.doubts[part]
}

// Find gives a diagnostic of a part the place of one of its keys, or of an element of one ("key[1]"), else that of its kind, else
// its table's, else that of the declaration.
func (o *Origin) Find(d Diagnostic, key string) Diagnostic {
	if n := o.Table(d.Part); n != nil {
		d = n.find(d, key)
	}
	if root := o.Table(""); d.At.Source == nil && root != nil {
		d = d.In(root)
	}
	return d
}

func (n *Node) find(d Diagnostic, key string) Diagnostic {
	for _, k := range []string{key, "kind", "name"} {
		if c := n.value(k); c != nil && c.At.Source != nil {
			d.At, d.node = c.At, c
			return d
		}
	}
	d.At, d.node = n.At, n
	return d
}

// Any reports whether there is a doubt that is of a sort: the part itself, or a key that is takes.
func (d *Doubt) Any(is func(Field) bool) bool {
	return d != nil && (d.whole || slices.ContainsFunc(d.fields, is))
}

// About reports whether the part itself or one of its keys is in doubt.
func (d *Doubt) About(key string) bool { return d.Any(func(f Field) bool { return f.Key == key }) }

// Merger lays tables on each other and collects the indices that lead nowhere.
type Merger struct {
	// Selector is the key of a table that chooses the part whose keys the table holds; nil stands for "kind" in all of them.
	Selector func(table string) string
	// Keeps reports whether a key of base stays in a table that over is laid on; nil keeps all of a table whose selector is the
	// same in over or not given there, and nothing of others.
	Keeps func(table, key string, base, over *Node) bool
	// SameLevel says that both are --set arguments of one command: no kind is an inherited one.
	SameLevel bool
	Found     []Diagnostic
}

// Combine lays the changes on each other: together they are one level of keys. It returns nil where there are none.
func (m Merger) Combine(changes []Change) (*Node, []Diagnostic) {
	var all *Node
	m.SameLevel = true
	for _, c := range changes {
		all = m.Lay("", all, c.Root)
	}
	return all, m.Found
}

// Lay lays over on base, both the value of a key, and returns the result: tables merge, everything else replaces. When the
// kind of a table changes, only the keys of over remain. A table laid on a name takes it for { kind = name }. A part of a
// --set path laid on an array goes into the element of that index. base is not changed.
func (m *Merger) Lay(key string, base, over *Node) *Node {
	if base == nil || !over.IsTable() || over.whole {
		return over
	}
	_, named := base.Text()
	base = base.Named(m.selector(key))
	switch {
	case base.IsArray() && over.path && len(base.Items) > 0:
		return m.elements(key, base, over)
	case !base.IsTable():
		return over
	}
	merged := base
	if m.SameLevel {
		merged = base.Only(func(string) bool { return true })
	} else {
		merged = base.Only(func(k string) bool { return m.keeps(key, k, base, over) })
	}
	merged.whole = merged.whole || named && m.SameLevel
	if !over.path {
		merged.Key, merged.At, merged.parent, merged.name = over.Key, over.At, over.parent, over.name
	}
	for i, k := range over.Keys {
		merged.Put(k, m.Lay(k, merged.Child(k), over.table[i]))
	}
	return merged
}

func (m *Merger) selector(table string) string {
	if m.Selector == nil {
		return "kind"
	}
	return m.Selector(table)
}

func (m *Merger) keeps(table, key string, base, over *Node) bool {
	if m.Keeps != nil {
		return m.Keeps(table, key, base, over)
	}
	return SameKind(m.selector(table), base, over)
}

// SameKind reports whether a table that over is laid on stays of its kind: the value of the selecting key.
func SameKind(selector string, base, over *Node) bool {
	is, ok := over.Child(selector).Text()
	if !ok {
		return true
	}
	was, _ := base.Child(selector).Text()
	return was == is
}

// elements lays a part of a --set path, whose keys are indices, on an array.
func (m *Merger) elements(key string, base, over *Node) *Node {
	merged := *base
	merged.Items = slices.Clone(base.Items)
	for i, k := range over.Keys {
		at, err := strconv.ParseUint(k, 10, 31)
		if err != nil || int(at) >= len(merged.Items) {
			m.Found = append(m.Found, Diagnostic{At: over.table[i].Key, node: over,
				Problem: key + ": " + badIndex(k, err == nil, len(merged.Items))})
			continue
		}
		merged.Items[at] = m.Lay("", merged.Items[at], over.table[i])
	}
	return &merged
}
