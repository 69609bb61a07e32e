package table

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tessera/part"
)

// KeyOf returns the key of a [part.KeyError], "" for other errors.
func KeyOf(err error) string {
	var of part.KeyError
	errors.As(err, &of)
	return of.Key
}

// fromTOML is implemented by types that decode themselves.
type fromTOML interface{ FromTOML(value any) error }

// value decodes one value into a field. It reports errors and returns whether there were none.
func (d *Decoder) value(n *Node, f Field, p spot) bool {
	before := len(d.Found)
	v := f.Value
	if v.Type() == reflect.TypeFor[*Node]() {
		v.Set(reflect.ValueOf(n))
		return true
	}
	if t, ok := v.Addr().Interface().(fromTOML); ok {
		if err := t.FromTOML(n.Plain()); err != nil {
			d.refuse(n, f, p, err.Error(), "")
		}
		return len(d.Found) == before
	}
	switch v.Kind() {
	case reflect.Interface:
		d.part(n, f, p)
	case reflect.Struct:
		d.table(n, v, p.key(f.Key))
	case reflect.Pointer: // a table that is absent by default
		t := reflect.New(v.Type().Elem())
		d.table(n, t.Elem(), p.key(f.Key))
		v.Set(t)
	case reflect.Slice:
		d.list(n, f, p)
	case reflect.Map:
		d.tables(n, f, p)
	default:
		d.scalar(n, f, p)
	}
	return len(d.Found) == before
}

func (d *Decoder) refuse(n *Node, f Field, p spot, problem, hint string) {
	d.report(p, n.At, n, f.Key+": "+problem, hint)
}

// part decodes a value whose type is the interface of a registry: a name, a table with a kind or, for a field with a bare
// key, the value of that key.
func (d *Decoder) part(n *Node, f Field, p spot) {
	v := f.Value
	vocab := d.Language.of(v.Type())
	if name, key, ok := strings.Cut(f.bare, "."); ok && n.form == scalar {
		text, isText := n.Text()
		if _, err := strconv.ParseInt(text, 10, 64); !isText || errors.Is(err, strconv.ErrRange) { // too large for a number of TOML
			part, _ := vocab.New(name)
			if inner, ok := findField(Fields(part), key); ok && d.value(n, inner.renamed(f.Key), p) {
				v.Set(reflect.ValueOf(part))
				d.Origin.names[p.key(f.Key).part] = name
			}
			return
		}
	}
	p = p.key(f.Key)
	if n = n.Named("kind"); !n.IsTable() {
		d.report(p, n.At, n, fmt.Sprintf("got %s, want a name or a table", n.Describe()), "valid: "+Quoted(vocab.Names()))
		return
	}
	d.selected(n, v, vocab, p, "")
}

// selected decodes the table of the part that its key "kind" names. Without that key the part that v holds remains. A kind that is
// the name of the table is not repeated in messages.
func (d *Decoder) selected(n *Node, v reflect.Value, vocab *Vocabulary, p spot, name string) {
	d.Origin.tables[p.part] = n
	kind := ""
	if !v.IsNil() {
		kind = d.Language.NameOf(d.Origin, p.part, v.Interface())
	}
	selector := Field{&column{Key: "kind"}, reflect.ValueOf(&kind).Elem()}
	kind, ok := d.choose(n, &slot{Vocabulary: vocab, value: v, selector: selector}, p)
	if !ok {
		d.Origin.doubting(p.part).whole = true
		return
	}
	if kind != name {
		p.kind = kind
	}
	d.fill(n, []Field{selector}, "kind", nil, v.Interface(), p)
}

// tables decodes a table of tables with free names, or of parts.
func (d *Decoder) tables(n *Node, f Field, p spot) {
	p = p.key(f.Key)
	if !n.IsTable() {
		d.report(p, n.At, n, fmt.Sprintf("got %s, want tables: [%s.NAME]", n.Describe(), d.header(p)), "")
		return
	}
	all := reflect.MakeMap(f.Value.Type())
	for i, name := range n.Keys {
		item, at := n.table[i], p.key(KeyText(name))
		v := reflect.New(f.Value.Type().Elem()).Elem()
		if v.Kind() == reflect.Interface {
			d.named(item, v, name, at)
		} else {
			d.table(item, v, at)
		}
		if v.Kind() != reflect.Interface || !v.IsNil() {
			all.SetMapIndex(reflect.ValueOf(name), v)
		}
	}
	if all.Len() > 0 {
		f.Value.Set(all)
	}
}

// named decodes the table of a part: the key "kind" or, without it, the name of the table names the part. The value false stands
// for no part: it removes an inherited one.
func (d *Decoder) named(n *Node, v reflect.Value, name string, p spot) {
	if n.Leaf == false {
		return
	}
	vocab := d.Language.of(v.Type())
	part, isKind := vocab.New(name)
	kind := n.Child("kind")
	d.Origin.tables[p.part] = n
	switch {
	case !n.IsTable() && isKind:
		d.noTable(n, Fields(part), nil, p)
	case kind == nil && !isKind:
		d.report(spot{}, n.Key, n, fmt.Sprintf("unknown %s %q", vocab.What, name), d.Language.suggest(vocab.What, name, vocab.Names()))
		d.Origin.doubting(p.part).whole = true
	case kind != nil && isKind && kind.Leaf != name:
		d.report(p, kind.At, kind, fmt.Sprintf("kind: got %s, but %s is the name of another %s", kind.Describe(), name, vocab.What), "give the table another name")
		d.Origin.doubting(p.part).whole = true
	default:
		if isKind {
			v.Set(reflect.ValueOf(part))
			d.Origin.names[p.part] = name
		}
		d.selected(n, v, vocab, p, name)
	}
}

// list decodes an array: of tables, or of scalars.
func (d *Decoder) list(n *Node, f Field, p spot) {
	element := f.Value.Type().Elem()
	tables := element.Kind() == reflect.Struct || element.Kind() == reflect.Interface
	switch {
	case n.IsTable() && n.path: // of a --set path, without an array to index
		d.noElements(n, f.Key, tables, p)
		return
	case !n.IsArray() && tables:
		d.refuse(n, f, p, fmt.Sprintf("got %s, want an array of tables: [[%s]]", n.Describe(), d.header(p.key(f.Key))), "")
		return
	case !n.IsArray():
		d.refuse(n, f, p, fmt.Sprintf("got %s, want an array", n.Describe()), bracketed(n, f))
		return
	}
	list := reflect.MakeSlice(f.Value.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		one := f.renamed(fmt.Sprintf("%s[%d]", f.Key, i))
		one.Value = list.Index(i)
		switch element.Kind() {
		case reflect.Struct:
			d.table(item, one.Value, p.key(one.Key))
		case reflect.Interface:
			d.part(item, one, p)
		default:
			d.scalar(item, one, p)
		}
	}
	f.Value.Set(list)
}

// scalar decodes a boolean, a number or a string.
func (d *Decoder) scalar(n *Node, f Field, p spot) {
	v := f.Value
	text, isText := n.Text()
	choices := f.Choices()
	switch {
	case choices != nil && !isText:
		d.refuse(n, f, p, fmt.Sprintf("got %s, want a name", n.Describe()), "valid: "+Quoted(choices))
		return
	case choices != nil && !slices.Contains(choices, text):
		d.refuse(n, f, p, fmt.Sprintf("unknown name %q", text), Suggest(text, choices))
		return
	case v.Kind() == reflect.String && isText:
		v.SetString(text)
		return
	case v.Kind() == reflect.Bool:
		if b, ok := n.Leaf.(bool); ok {
			v.SetBool(b)
			return
		}
	case v.Kind() != reflect.String && f.SetNumber(n.Leaf):
		return
	}
	problem, hint := fmt.Sprintf("got %s, want %s", n.Describe(), f.wanted()), ""
	if _, err := strconv.ParseInt(text, 10, 64); isText && errors.Is(err, strconv.ErrRange) && v.Kind() != reflect.String && v.Kind() != reflect.Bool {
		problem = fmt.Sprintf("got %s, which is too large for an integer: want %s", text, f.wanted())
		if v.CanFloat() {
			hint = "write " + text + ".0"
		}
	}
	if hint == "" {
		hint = f.paired(n)
	}
	d.refuse(n, f, p, problem, hint)
}

// paired suggests how to write an array of two numbers as two keys, "" for other values.
func (f Field) paired(n *Node) string {
	if f.pair == "" || len(n.Items) != 2 || !f.SetNumber(n.Items[0].Leaf) || !f.SetNumber(n.Items[1].Leaf) {
		return ""
	}
	first, second := n.Items[0].Describe(), n.Items[1].Describe()
	if first == second {
		return fmt.Sprintf("write %s = %s", f.Key, first)
	}
	return fmt.Sprintf("write %s = %s and %s = %s", f.Key, first, f.pair, second)
}

// SetNumber sets a numeric field to an int64 or float64 if the type can represent the value and the tag allows it.
func (f Field) SetNumber(value any) bool {
	v := f.Value
	whole, isWhole := value.(int64)
	number, isReal := value.(float64)
	if isWhole {
		number = float64(whole)
	}
	if !f.bounds.hold(number) {
		return false
	}
	switch {
	case v.CanFloat() && (isWhole || isReal):
		v.SetFloat(number)
	case v.CanInt() && isWhole && !v.OverflowInt(whole):
		v.SetInt(whole)
	case v.CanUint() && isWhole && whole >= 0 && !v.OverflowUint(uint64(whole)):
		v.SetUint(uint64(whole))
	default:
		return false
	}
	return true
}

// wanted describes the values that a field takes.
func (f Field) wanted() string {
	if c := f.Choices(); c != nil {
		return "one of " + Quoted(c)
	}
	if _, ok := f.Value.Addr().Interface().(fromTOML); ok {
		return "" // the type describes its values
	}
	text := typeText(f.Value.Type())
	if f.Want != "" {
		text += " " + f.Want
	}
	if f.bare != "" {
		text = "a number, " + text
	}
	return text
}

// typeText names a type in the terms of TOML.
func typeText(t reflect.Type) string {
	switch k := t.Kind(); {
	case k == reflect.String:
		return "a string"
	case k == reflect.Bool:
		return "true or false"
	case k >= reflect.Uint && k <= reflect.Uint64:
		return "an integer >= 0"
	case k >= reflect.Int && k <= reflect.Int64:
		return "an integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.Slice && isTable(reflect.Zero(t)):
		return "an array of tables"
	case k == reflect.Slice:
		return "an array, each " + typeText(t.Elem())
	case k == reflect.Interface:
		return "a name or a table"
	}
	return "a table"
}
