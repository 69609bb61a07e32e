package table

import (
	"slices"
	"strconv"
	"strings"
)

// Origin records where a declaration was written: the tables of its parts, the names of the parts, and doubts about
// parts whose tables have errors. Parts are identified by their location, such as "encoder[0]" or "optimizer.schedule";
// "" is the declaration itself. A declaration made in Go has a nil Origin.
type Origin struct {
	tables map[string]*Node
	doubts map[string]*Doubt
	names  map[string]string
}

func newOrigin() *Origin {
	return &Origin{map[string]*Node{}, map[string]*Doubt{}, map[string]string{}}
}

// Doubt records which settings of a part are unknown because its table has errors. A nil Doubt means that all settings
// are known.
type Doubt struct {
	fields []Field // keys that have invalid values or are similar to a misspelt key
	whole  bool    // the part itself is unknown
}

// Table returns the table of a part, or nil.
func (o *Origin) Table(part string) *Node {
	if o == nil {
		return nil
	}
	return o.tables[part]
}

// Doubt returns the doubt about a part, or nil.
func (o *Origin) Doubt(part string) *Doubt {
	if o == nil {
		return nil
	}
	return o.doubts[part]
}

// DoubtWithin reports whether there is a doubt about a part or a part of it, such as an element of its lists.
func (o *Origin) DoubtWithin(part string) bool {
	if o == nil {
		return false
	}
	for name := range o.doubts {
		if rest, within := strings.CutPrefix(name, part); within && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// doubting returns the doubt about a part. It creates the doubt if necessary.
func (o *Origin) doubting(part string) *Doubt {
	if o.doubts[part] == nil {
		o.doubts[part] = &Doubt{}
	}
	return o.doubts[part]
}

// Find sets the position of a diagnostic about a part. It is the position of the key or of its element ("key[1]"), else
// of the part's kind, if the declaration of the table does not inherit it, else of its table, else of the declaration.
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
		if c := n.value(k); c != nil && c.At.Source != nil && (k == key || c.Subject() == n.Subject()) {
			d.At, d.node = c.At, c
			return d
		}
	}
	d.At, d.node = n.At, n
	return d
}

// Any reports whether the part itself is in doubt, or a key that satisfies a condition.
func (d *Doubt) Any(is func(Field) bool) bool {
	return d != nil && (d.whole || slices.ContainsFunc(d.fields, is))
}

// About reports whether the part itself or the given key is in doubt.
func (d *Doubt) About(key string) bool { return d.Any(func(f Field) bool { return f.Key == key }) }

// Merger merges tables, and collects errors for invalid indices.
type Merger struct {
	// Selector returns, for the name of a table, the key that names the part of the table. nil means "kind" for all
	// tables.
	Selector func(table string) string
	// Keeps reports whether a key of base remains when over is merged into base. nil keeps all keys if over has the
	// same selector or none, and else no keys.
	Keeps func(table, key string, base, over *Node) bool
	// Adapt returns over as it is merged into base; nil merges it as it is.
	Adapt func(table string, base, over *Node) *Node
	// SameLevel means that base and over are both --set arguments of one command, so that no kind is inherited.
	SameLevel bool
	Found     []Diagnostic
}

// Combine merges the changes of one command into one tree. It returns nil if there are no changes.
func (m Merger) Combine(changes []Change) (*Node, []Diagnostic) {
	var all *Node
	m.SameLevel = true
	for _, c := range changes {
		all = m.Merge("", all, c.Root)
	}
	return all, m.Found
}

// Merge merges over into base, two values of the same key, and returns the result. Tables are merged, other values are
// replaced. If the kind of a table changes, only the keys of over remain. If over is a table and base is a name, base
// counts as { kind = name }. Indices in a --set path select elements of an array. base is not changed.
func (m *Merger) Merge(key string, base, over *Node) *Node {
	if base != nil && over.Leaf == false && (base.IsTable() || base.removes) {
		removing := *over
		removing.removes = true
		return &removing
	}
	if base == nil || !over.IsTable() || over.whole {
		return over
	}
	_, named := base.Text()
	base = base.Named(m.selector(key))
	if m.Adapt != nil {
		over = m.Adapt(key, base, over)
	}
	switch {
	case base.IsArray() && len(base.Items) > 0 && (over.path || base.namesAll(over.Keys)):
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
		merged.Put(k, m.Merge(k, merged.Child(k), over.table[i]))
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

// SameKind reports whether the kind of a table stays the same when over is merged into base. selector is the key of the
// kind.
func SameKind(selector string, base, over *Node) bool {
	is, ok := over.Child(selector).Text()
	if !ok {
		return true
	}
	was, _ := base.Child(selector).Text()
	return was == is
}

// namesAll reports whether all keys are names of elements of an array; see named.
func (n *Node) namesAll(keys []string) bool {
	return len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return n.named(key) < 0 })
}

// named returns the index of the element of an array of tables whose key "name" is the text key. Elements without a name have their
// kind as name. It returns -1 if there is not exactly one.
func (n *Node) named(key string) int {
	at := -1
	for i, item := range n.Items {
		name, ok := item.Child("name").Text()
		if !ok {
			name, _ = item.Child("kind").Text()
		}
		switch {
		case name != key:
		case at >= 0:
			return -1
		default:
			at = i
		}
	}
	return at
}

// elements merges elements into the array base, which over selects by their index, or by their name; the value false leaves an
// element out.
func (m *Merger) elements(key string, base, over *Node) *Node {
	merged := *base
	merged.Items = slices.Clone(base.Items)
	for i, k := range over.Keys {
		at, err := strconv.ParseUint(k, 10, 31)
		if i := base.named(k); err != nil && i >= 0 {
			at, err = uint64(i), nil
		}
		if err != nil || int(at) >= len(merged.Items) {
			m.Found = append(m.Found, Diagnostic{At: over.table[i].Key, node: over,
				Problem: key + ": " + badIndex(k, err == nil, len(merged.Items))})
			continue
		}
		merged.Items[at] = m.Merge("", merged.Items[at], over.table[i])
	}
	merged.Items = slices.DeleteFunc(merged.Items, func(item *Node) bool { return item.removes })
	return &merged
}
