package table

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Writer turns structs into trees. It is the reverse of a [Decoder].
type Writer struct {
	Language *Language
	Origin   *Origin // contains the names of parts; see [Language.NameOf]
	Kind     string  // kind of the outermost table

	// Given omits zero values instead of writing all defaults, so that a struct literal becomes a table with the keys
	// that it sets. Required numbers are always written, because 0 may be one of their valid values. With Given the
	// kind of a part may be empty.
	Given bool

	err error
}

// Tree returns the table of the struct that table points to, without the keys in omit. A 0 that is not a valid value of
// its key means that the key is not set; such a key is omitted. Tree returns an error for a part that is not registered
// or has another name than the declared one.
func (w *Writer) Tree(table any, omit ...string) (*Node, error) {
	w.err = nil
	n := w.table(reflect.ValueOf(table).Elem(), "")
	return n.Only(func(key string) bool { return !slices.Contains(omit, key) }), w.err
}

func (w *Writer) fail(at, format string, args ...any) {
	if problem := fmt.Sprintf(format, args...); w.err == nil && at != "" {
		w.err = fmt.Errorf("%s: %s", at, problem)
	} else if w.err == nil {
		w.err = fmt.Errorf("%s", problem)
	}
}

// table writes a struct and its part as a table. at is its location in the declaration, for example "encoder[0]".
func (w *Writer) table(v reflect.Value, at string) *Node {
	kind := w.Kind
	if w.Given {
		kind = every
	}
	fields, s := w.Language.fieldsOf(v, kind)
	n := NewTable()
	n.header = true
	if s == nil || s.value.IsNil() {
		return w.fields(n, slices.DeleteFunc(fields, func(f Field) bool { // the default kind needs no name
			return s != nil && s.or != "" && f.Key == s.selector.Key && f.Value.String() == s.or
		}), at)
	}
	first := slices.IndexFunc(fields, func(f Field) bool { return f.Key == s.selector.Key }) + 1
	w.part(w.fields(n, fields[:first], at), s.selector.Key, s.value, at)
	return w.fields(n, fields[first:], at)
}

// fields adds to n the keys that have a value.
func (w *Writer) fields(n *Node, fields []Field, at string) *Node {
	for _, f := range fields {
		if c := w.field(f, spot{part: at}.key(f.Key).part); c != nil {
			n.Put(f.Key, c)
		}
	}
	return n
}

// part adds the keys of a part to its table, and the selecting key if it is missing.
func (w *Writer) part(n *Node, selector string, v reflect.Value, at string) {
	if v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
		w.fail(at, "got a nil %T; leave the part out, or give its settings", v.Interface())
		return
	}
	switch given, name := n.Child(selector), w.Language.NameOf(w.Origin, at, v.Interface()); {
	case given != nil && (!w.Given || given.Leaf == name):
	case name == "":
		w.fail(at, "%T is not registered: register it, so that a run can name it", v.Interface())
	case given != nil:
		w.fail(at, "%s: got %s, but the part is %q; leave it out", selector, given.Describe(), name)
	default:
		n.Put(selector, &Node{Leaf: name})
	}
	w.fields(n, Fields(v.Interface()), at)
}

// field returns the value of a key, nil if there is none.
func (w *Writer) field(f Field, at string) *Node {
	v := f.Value
	isNumber := v.CanInt() || v.CanUint() || v.CanFloat()
	switch zero := v.IsZero(); {
	case zero && f.optional:
		return nil
	case zero && isNumber && !f.bounds.hold(0):
		return nil
	case zero && w.Given && !(isNumber && f.Required): // a required number has no default, so that 0 is not written as one
		return nil
	}
	if f.single {
		return w.single(f, at)
	}
	if name, key, ok := strings.Cut(f.bare, "."); ok && !v.IsNil() && w.Language.NameOf(w.Origin, at, v.Interface()) == name {
		if fields := Fields(v.Interface()); len(fields) == 1 && fields[0].Key == key {
			return w.value(fields[0].Value, at)
		}
	}
	if f.none && v.Len() == 0 {
		return &Node{form: array}
	}
	return w.value(v, at)
}

// single returns a list, the only element of a list, or "" for an empty list.
func (w *Writer) single(f Field, at string) *Node {
	list, column := &Node{form: array}, *f.column
	column.single = false
	for i := range f.Value.Len() {
		list.append(w.field(Field{&column, f.Value.Index(i)}, at))
	}
	switch len(list.Items) {
	case 0:
		return &Node{Leaf: ""}
	case 1:
		return list.Items[0]
	}
	return list
}

func (w *Writer) value(v reflect.Value, at string) *Node {
	if t, ok := v.Interface().(interface{ TOML() any }); ok {
		switch own := t.TOML().(type) {
		case nil:
			return nil
		case map[string]any:
			return w.inline(own, at)
		default:
			return w.value(reflect.ValueOf(own), at)
		}
	}
	switch kind := v.Kind(); {
	case kind == reflect.String:
		return &Node{Leaf: v.String()}
	case kind == reflect.Bool:
		return &Node{Leaf: v.Bool()}
	case v.CanUint() && v.Uint() > math.MaxInt64:
		return &Node{Leaf: v.Uint()}
	case v.CanUint():
		return &Node{Leaf: int64(v.Uint())}
	case v.CanInt():
		return &Node{Leaf: v.Int()}
	case v.CanFloat():
		return &Node{Leaf: v.Float()}
	case kind == reflect.Struct:
		return w.table(v, at)
	case kind == reflect.Slice && !v.IsNil():
		return w.list(v, at)
	case kind == reflect.Map:
		return w.tables(v, at)
	case kind == reflect.Interface && !v.IsNil():
		n := NewTable()
		if w.part(n, "kind", v, at); len(n.Keys) == 1 {
			return n.table[0]
		}
		return n
	case kind == reflect.Pointer && !v.IsNil() && v.Type() != reflect.TypeFor[*Node]():
		return w.table(v.Elem(), at)
	}
	return nil
}

func (w *Writer) inline(values map[string]any, at string) *Node {
	n := NewTable()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		n.Put(key, w.value(reflect.ValueOf(values[key]), spot{part: at}.key(KeyText(key)).part))
	}
	return n
}

// list returns an array. Tables in the array have headers.
func (w *Writer) list(v reflect.Value, at string) *Node {
	list := &Node{form: array, header: isTable(v)}
	for i := range v.Len() {
		c := w.value(v.Index(i), fmt.Sprintf("%s[%d]", at, i))
		if c == nil {
			c = NewTable()
		}
		if list.header {
			c = c.Named("kind")
		}
		list.append(c)
	}
	return list
}

// tables returns a table of tables. It omits the kind of a part if it is the name of the table.
func (w *Writer) tables(v reflect.Value, at string) *Node {
	all := NewTable()
	all.header, all.path = true, true
	for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
		name := key.String()
		below := spot{part: at}.key(KeyText(name)).part
		c := w.value(v.MapIndex(key), below)
		if c == nil {
			c = NewTable()
		}
		if c = c.Named("kind"); v.Type().Elem().Kind() == reflect.Interface && c.Child("kind").isText(name) {
			c = c.Only(func(key string) bool { return key != "kind" })
		}
		c.header = true
		all.Put(name, c)
	}
	return all
}

// isTable reports whether a value is written under a separate header: a non-nil struct, an array or a map of tables.
func isTable(v reflect.Value) bool {
	if _, ok := v.Interface().(interface{ TOML() any }); ok {
		return false
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Map:
		return true
	case reflect.Pointer:
		return !v.IsNil() && v.Type() != reflect.TypeFor[*Node]()
	case reflect.Slice:
		k := v.Type().Elem().Kind()
		return k == reflect.Struct || k == reflect.Interface
	}
	return false
}

// TOML prints a table of a [Writer] under the header path: first the values, then the tables.
func (n *Node) TOML(path ...string) []byte {
	var out bytes.Buffer
	n.print(&out, path, "[", "]")
	return out.Bytes()
}

func (n *Node) print(out *bytes.Buffer, path []string, open, end string) {
	if !n.path {
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintf(out, "%s%s%s\n", open, pathText(path), end)
	}
	for i, c := range n.table {
		if !c.header {
			fmt.Fprintf(out, "%s = %s\n", KeyText(n.Keys[i]), c.String())
		}
	}
	for i, c := range n.table {
		below := append(slices.Clone(path), n.Keys[i])
		if c.header && c.IsTable() {
			c.print(out, below, "[", "]")
		}
		for _, item := range c.Items {
			if c.header {
				item.print(out, below, "[[", "]]")
			}
		}
	}
}

// String prints a value on one line, as TOML.
func (n *Node) String() string {
	var items []string
	for i, c := range n.table {
		items = append(items, KeyText(n.Keys[i])+" = "+c.String())
	}
	for _, c := range n.Items {
		items = append(items, c.String())
	}
	switch leaf := n.Leaf.(type) {
	case string:
		return StringText(leaf)
	case float64:
		return NumberText(leaf)
	}
	switch n.form {
	case table:
		return "{ " + strings.Join(items, ", ") + " }"
	case array:
		return "[" + strings.Join(items, ", ") + "]"
	}
	return fmt.Sprint(n.Leaf)
}

// Leaves calls yield with the dotted path and the text of every scalar value.
func (n *Node) Leaves(path string, yield func(path, text string)) {
	if n.form == scalar {
		yield(path, n.String())
	}
	below := func(key string, c *Node) { c.Leaves(strings.TrimPrefix(path+"."+key, "."), yield) }
	for i, c := range n.table {
		below(n.Keys[i], c)
	}
	for i, c := range n.Items {
		below(strconv.Itoa(i), c)
	}
}

// Departures is like [Writer.Tree], but without the settings that have their defaults. The defaults of table are the
// values of base, a struct of the same type. The defaults of the tables below are set by the constructor of a part and
// the method Defaults. Keys are sorted. Two declarations that differ only in whether they write defaults have equal
// departures. The departures also stay the same if a later version of the program adds a setting with a default.
func (w *Writer) Departures(table, base any, omit ...string) (*Node, error) {
	w.err = nil
	n := w.departures(reflect.ValueOf(table).Elem(), reflect.ValueOf(base).Elem(), "")
	return n.Only(func(key string) bool { return !slices.Contains(omit, key) }), w.err
}

// departures returns the keys of v whose values differ from those of base, a struct of the same type. The name of a
// part is always included.
func (w *Writer) departures(v, base reflect.Value, at string) *Node {
	n := NewTable()
	fields, s := w.Language.fieldsOf(v, w.Kind)
	bases, _ := w.Language.fieldsOf(base, w.Kind)
	if s != nil && !s.value.IsNil() {
		w.departuresOfPart(n, s.selector.Key, s.value, at)
		fields = slices.DeleteFunc(fields, func(f Field) bool { return f.Key == s.selector.Key })
		bases = slices.DeleteFunc(bases, func(f Field) bool { return f.Key == s.selector.Key })
	}
	w.differing(n, fields, bases, at)
	return n.sorted()
}

// departuresOfPart adds the name of a part, and the settings in which it differs from a new part of that name.
func (w *Writer) departuresOfPart(n *Node, selector string, v reflect.Value, at string) {
	name := w.Language.NameOf(w.Origin, at, v.Interface())
	n.Put(selector, &Node{Leaf: name})
	if fresh, ok := w.Language.of(v.Type()).New(name); ok {
		w.differing(n, Fields(v.Interface()), Fields(fresh), at)
	}
}

// differing adds the fields whose values differ from those of bases, which has the same keys.
func (w *Writer) differing(n *Node, fields, bases []Field, at string) {
	for i, f := range fields {
		below := spot{part: at}.key(f.Key).part
		c, d := w.field(f, below), w.field(bases[i], below)
		switch {
		case c == nil && d == nil, c != nil && d != nil && c.String() == d.String():
		case d == nil && !f.none && c.form == array && len(c.Items) == 0: // an empty list that means the same as no list
		case c == nil:
			n.Put(f.Key, NewTable()) // no value, although the default is a value
		default:
			n.Put(f.Key, w.lean(c, f.Value, below))
		}
	}
}

// lean returns n, the written form of v, without defaults.
func (w *Writer) lean(n *Node, v reflect.Value, at string) *Node {
	if n.form == scalar || !isTable(v) && v.Kind() != reflect.Interface {
		return n
	}
	switch v.Kind() {
	case reflect.Pointer:
		return w.lean(n, v.Elem(), at)
	case reflect.Struct:
		return w.departures(v, w.fresh(v), at)
	case reflect.Interface:
		p := NewTable()
		w.departuresOfPart(p, "kind", v, at)
		return p.sorted()
	case reflect.Slice:
		if n.form != array { // the only element alone
			return w.lean(n, v.Index(0), at)
		}
		list := &Node{form: array}
		for i := range v.Len() {
			list.append(w.lean(n.Items[i], v.Index(i), fmt.Sprintf("%s[%d]", at, i)))
		}
		return list
	}
	all := NewTable()
	for i, key := range n.Keys {
		all.Put(key, w.lean(n.table[i], v.MapIndex(reflect.ValueOf(key)), spot{part: at}.key(KeyText(key)).part))
	}
	return all.sorted()
}

// fresh returns a new struct of the type of v, with the same part and with the defaults for this part.
func (w *Writer) fresh(v reflect.Value) reflect.Value {
	other := reflect.New(v.Type())
	if _, s := w.Language.fieldsOf(v, w.Kind); s != nil {
		_, o := w.Language.fieldsOf(other.Elem(), w.Kind)
		o.value.Set(s.value)
		o.selector.Value.Set(s.selector.Value)
	}
	setDefaults(other.Interface())
	return other.Elem()
}

// sorted returns a table with its keys in alphabetical order.
func (n *Node) sorted() *Node {
	s := NewTable()
	for _, key := range slices.Sorted(slices.Values(n.Keys)) {
		s.Put(key, n.Child(key))
	}
	return s
}
