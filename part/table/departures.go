package table

import (
	"fmt"
	"reflect"
	"slices"
)

// Departures is [Writer.Tree] without the settings that have their defaults: the values that base has, a struct of the same type as
// table, and in the tables below those that the constructor of a part and the method Defaults set. Keys are sorted. Two
// declarations that differ only in how they write defaults have equal departures, and so has a declaration in a later version
// of the program that adds a setting with a default.
func (w *Writer) Departures(table, base any, omit ...string) (*Node, error) {
	w.err = nil
	n := w.departures(reflect.ValueOf(table).Elem(), reflect.ValueOf(base).Elem(), "")
	return n.Only(func(key string) bool { return !slices.Contains(omit, key) }), w.err
}

// departures are those of a struct from another one of its type. The name of a part is always among them.
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

// departuresOfPart adds the name of a part and its departures from a new one.
func (w *Writer) departuresOfPart(n *Node, selector string, v reflect.Value, at string) {
	name := w.Language.NameOf(w.Origin, at, v.Interface())
	n.Put(selector, &Node{Leaf: name})
	if fresh, ok := w.Language.of(v.Type()).New(name); ok {
		w.differing(n, Fields(v.Interface()), Fields(fresh), at)
	}
}

// differing adds the fields whose values are not those of bases, which has the same keys.
func (w *Writer) differing(n *Node, fields, bases []Field, at string) {
	for i, f := range fields {
		below := spot{part: at}.key(f.Key).part
		c, d := w.field(f, below), w.field(bases[i], below)
		switch {
		case c == nil && d == nil, c != nil && d != nil && c.String() == d.String():
		case c == nil:
			n.Put(f.Key, NewTable()) // no value, where the default is one
		default:
			n.Put(f.Key, w.lean(c, f.Value, below))
		}
	}
}

// lean removes the defaults from a value that was written as n.
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

// fresh is a new struct like v with the same part, and the defaults that go with it.
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
