package table

import (
	"slices"
	"strconv"
)

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
