package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Node is one value of a text with its position: a table, an array or a scalar.
type Node struct {
	Key Span // the key, or the last name of the table's header
	At  Span // the value; for a table or an element with a header, the name in the header

	Keys  []string // keys of a table, in the order of the text
	Items []*Node  // elements of an array
	Leaf  any      // value of a scalar: string, int64, float64, bool or a time

	table  []*Node        // values of Keys
	index  map[string]int // positions in Keys, for a large table
	form   form
	header bool // the table or the array of tables has a header
	path   bool // the table exists only as a name in a --set path
	whole  bool // the table was made from a name; in a merge it replaces the other value, as the name would

	mixed   bool // the name is that of a table and of the elements of an array
	removes bool // the scalar false replaced a table in a merge

	parent *Node  // table or array that contains the value
	name   string // key of the value, or "[0]" for an element
}

// form is the type of a node.
type form byte

const (
	scalar form = iota
	array
	table
)

// indexed is the number of keys from which a table has an index.
const indexed = 12

// NewTable returns an empty table.
func NewTable() *Node { return &Node{form: table} }

// NewScalar returns a scalar with the position of n.
func (n *Node) NewScalar(leaf any) *Node {
	return &Node{Key: n.Key, At: n.At, Leaf: leaf, parent: n.parent, name: n.name}
}

// IsTable reports whether n is a table.
func (n *Node) IsTable() bool { return n != nil && n.form == table }

// IsArray reports whether n is an array.
func (n *Node) IsArray() bool { return n != nil && n.form == array }

// IsPath reports whether n is a table that exists only as a name in a --set path.
func (n *Node) IsPath() bool { return n.IsTable() && n.path }

// IsInline reports whether n is an inline table: { key = value }.
func (n *Node) IsInline() bool {
	return n.IsTable() && !n.header && n.At.Source != nil && strings.HasPrefix(n.At.Source.Text[n.At.Start:], "{")
}

// Put sets a key of a table. It adds the key if it is missing.
func (n *Node) Put(key string, value *Node) {
	if i := n.position(key); i >= 0 {
		n.table[i] = value
		return
	}
	n.Keys, n.table = append(n.Keys, key), append(n.table, value)
	switch {
	case n.index != nil:
		n.index[key] = len(n.Keys) - 1
	case len(n.Keys) >= indexed:
		n.index = make(map[string]int, 2*indexed)
		for i, k := range n.Keys {
			n.index[k] = i
		}
	}
}

// Rename renames a key of a table.
func (n *Node) Rename(key, to string) {
	if i := n.position(key); i >= 0 {
		n.Keys[i], n.table[i].name = to, to
		if n.index != nil {
			delete(n.index, key)
			n.index[to] = i
		}
	}
}

// Nest moves keys of a table to the table under the key into, which it adds if it is missing. names maps them to their names there.
func (n *Node) Nest(into string, names map[string]string) {
	moves := func(key string) bool { return names[key] != "" }
	if !n.IsTable() || !slices.ContainsFunc(n.Keys, moves) {
		return
	}
	by := &Node{Key: n.Key, At: n.At, form: table, path: n.path, parent: n, name: into}
	if c := n.Child(into); c != nil {
		by = c.Named("kind")
	}
	for i, key := range n.Keys {
		if moves(key) {
			by.add(names[key], n.table[i])
		}
	}
	n.Drop(moves)
	n.Put(into, by)
}

// Drop removes keys of a table.
func (n *Node) Drop(drops func(key string) bool) {
	rest := n.Only(func(key string) bool { return !drops(key) })
	n.Keys, n.table, n.index = rest.Keys, rest.table, rest.index
}

// add is like Put for a value whose position is within n.
func (n *Node) add(key string, value *Node) {
	value.parent, value.name = n, key
	n.Put(key, value)
}

// position returns the index of a key in Keys, or -1.
func (n *Node) position(key string) int {
	if n.index == nil {
		return slices.Index(n.Keys, key)
	}
	if i, ok := n.index[key]; ok {
		return i
	}
	return -1
}

// Child returns the value of a key, or nil if n is not a table or has no such key.
func (n *Node) Child(key string) *Node {
	if n == nil || n.form != table {
		return nil
	}
	if i := n.position(key); i >= 0 {
		return n.table[i]
	}
	return nil
}

// value returns the value of a key; "key[1]" is an element of an array.
func (n *Node) value(key string) *Node {
	name, index, ok := strings.Cut(strings.TrimSuffix(key, "]"), "[")
	c := n.Child(name)
	if i, err := strconv.Atoi(index); ok && err == nil && c != nil && 0 <= i && i < len(c.Items) {
		return c.Items[i]
	}
	return c
}

// Text returns the string value of n.
func (n *Node) Text() (string, bool) {
	if n == nil || n.form != scalar {
		return "", false
	}
	s, ok := n.Leaf.(string)
	return s, ok
}

func (n *Node) isText(text string) bool {
	is, ok := n.Text()
	return ok && is == text
}

// Plain returns the value as plain Go values, without positions.
func (n *Node) Plain() any {
	switch n.form {
	case table:
		m := make(map[string]any, len(n.Keys))
		for i, k := range n.Keys {
			m[k] = n.table[i].Plain()
		}
		return m
	case array:
		list := make([]any, len(n.Items))
		for i, v := range n.Items {
			list[i] = v.Plain()
		}
		return list
	}
	return n.Leaf
}

// Describe returns the value for a message, as written in the text.
func (n *Node) Describe() string {
	switch n.form {
	case table:
		return "a table"
	case array:
		return "an array"
	}
	switch v := n.Leaf.(type) {
	case string:
		text := []rune(strconv.Quote(v))
		if len(text) > 40 {
			return string(text[:36]) + `..."`
		}
		return string(text)
	case float64:
		return NumberText(v)
	case time.Time:
		return "a date or time"
	}
	return fmt.Sprint(n.Leaf)
}

// Named returns the table { key = n } if n is a string. Such a string is a name in place of a table. Other values are
// returned unchanged.
func (n *Node) Named(key string) *Node {
	if _, ok := n.Text(); !ok {
		return n
	}
	t := &Node{Key: n.Key, At: n.At, form: table, parent: n.parent, name: n.name}
	t.Put(key, n)
	return t
}

// Only returns a copy of a table with the keys for which keep returns true.
func (n *Node) Only(keep func(key string) bool) *Node {
	c := *n
	c.Keys, c.table, c.index = make([]string, 0, len(n.Keys)), make([]*Node, 0, len(n.Keys)), nil
	for i, k := range n.Keys {
		if keep(k) {
			c.Put(k, n.table[i])
		}
	}
	return &c
}

// Path returns the path of n in its file, and nil for a --set argument or a default.
func (n *Node) Path() []string {
	if n == nil || n.At.Source != nil && n.At.Source.Set != "" {
		return nil
	}
	var names []string
	for ; n.parent != nil; n = n.parent {
		names = append(names, n.name)
	}
	slices.Reverse(names)
	return names
}

// Subject returns the name of the declaration that contains n for messages: `model "NAME"` for the table [model.NAME],
// "" if there is none.
func (n *Node) Subject() string {
	if names := n.Path(); len(names) >= 2 {
		return Subject(names[0], names[1])
	}
	return ""
}

// Subject returns the name of a declaration for messages: `model "NAME"` for the table [model.NAME].
func Subject(what, name string) string { return fmt.Sprintf("%s %q", what, name) }

// partOf joins keys and indices to the location of a part: "encoder[0].init".
func partOf(names []string) string {
	return strings.ReplaceAll(strings.Join(names, "."), ".[", "[")
}

// WithoutPositions removes the positions of a tree and returns it.
func (n *Node) WithoutPositions() *Node {
	n.Key, n.At, n.parent = Span{}, Span{}, nil
	for _, c := range n.table {
		c.WithoutPositions()
	}
	for _, c := range n.Items {
		c.WithoutPositions()
	}
	return n
}

// NumberText returns the shortest TOML text that is read as the same float.
func NumberText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// StringText returns s as a basic TOML string.
func StringText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// KeyText returns a TOML key, in quotes if necessary.
func KeyText(key string) string {
	bare := strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
	if bare && key != "" {
		return key
	}
	return StringText(key)
}
