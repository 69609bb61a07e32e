package table

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Decoder fills structs from trees, by reflection over their tags, and collects the errors.
type Decoder struct {
	Language *Language
	Subject  string   // of the diagnostics, for example `model "NAME"`
	Path     []string // of the header: ["model", "NAME"]
	Partial  bool     // the tree is incomplete: missing keys are not reported, and a table without a kind is not checked
	Found    []Diagnostic
	Origin   *Origin

	kind string // of the outermost table
}

// Decode fills the struct that into points to from the table n. part is the place in the declaration, "" for the whole
// declaration.
func (d *Decoder) Decode(n *Node, into any, part string) {
	if d.Origin == nil {
		d.Origin = newOrigin()
	}
	first := len(d.Found)
	d.table(n, reflect.ValueOf(into).Elem(), spot{part: part})
	for i := range d.Found[first:] {
		if f := &d.Found[first+i]; f.At.Source == nil { // the error is in a default
			*f = f.In(n)
		}
	}
}

// Report adds an error of the value n of a part.
func (d *Decoder) Report(part string, n *Node, problem, suggestion string) {
	d.report(spot{part: part}, n.At, n, problem, suggestion)
}

// ReportKey is Report with the caret at the key of n.
func (d *Decoder) ReportKey(part string, n *Node, problem, suggestion string) {
	d.report(spot{part: part}, n.Key, n, problem, suggestion)
}

func (d *Decoder) report(p spot, at Span, n *Node, problem, suggestion string) {
	d.Found = append(d.Found, Diagnostic{At: at, Subject: d.Subject, Part: p.part, Kind: p.kind, Problem: problem, Suggestion: suggestion, node: n})
}

// spot is the decoder's position in a declaration.
type spot struct {
	part string // "encoder[0]"
	kind string
}

func (p spot) key(key string) spot {
	if p.part != "" {
		key = p.part + "." + key
	}
	return spot{part: key}
}

// header is the header of the table at a place, without the indices of elements.
func (d *Decoder) header(p spot) string {
	keys := strings.Split(p.part, ".")
	for i, k := range keys {
		keys[i], _, _ = strings.Cut(k, "[")
	}
	return pathText(slices.Concat(d.Path, keys))
}

// table fills the struct v and its part from the keys of n.
func (d *Decoder) table(n *Node, v reflect.Value, p spot) {
	fields, s := d.Language.fieldsOf(v, d.kind)
	if s != nil && s.short {
		n = n.Named(s.selector.Key)
	}
	d.Origin.tables[p.part] = n
	around := v.Addr().Interface()
	if s == nil {
		setDefaults(around)
	}
	if !n.IsTable() {
		d.noTable(n, fields, s, p)
		return
	}
	if s == nil {
		d.fill(n, fields, "", around, nil, p)
		return
	}
	kind, ok := d.choose(n, s, p)
	if p.part == "" { // the keys depend on it
		d.kind = cmp.Or(kind, s.or)
		fields, _ = d.Language.fieldsOf(v, d.kind)
	}
	if !ok { // the keys of the struct can still be checked
		d.Origin.doubting(p.part).whole = true
		if text, isText := n.Child(s.selector.Key).Text(); isText { // the keys of the part that was probably meant too
			if near, ok := Nearest(text, s.Names()); ok {
				part, _ := s.New(near)
				all := joined(fields, Fields(part), s.selector.Key)
				misspelt := func(key string) bool { _, ok := Nearest(key, keysOf(all)); return ok }
				d.unknown(n.Only(misspelt), all, spot{part: p.part, kind: near})
			}
		}
		d.values(n, slices.DeleteFunc(fields, func(f Field) bool { return f.Key == s.selector.Key }), p)
		return
	}
	p.kind = kind
	d.fill(n, fields, s.selector.Key, around, s.value.Interface(), p)
}

// fill decodes the keys of a table. The keys of its part come first, because other defaults may depend on them.
func (d *Decoder) fill(n *Node, own []Field, selector string, around, part any, p spot) {
	before, inner := len(d.Found), Fields(part)
	all := joined(own, inner, selector)
	d.unknown(n, all, p)
	d.values(n, inner, p)
	setDefaults(around)
	d.values(n, own, p)
	d.missing(n, all, p)
	if len(d.Found) == before {
		d.check(n, part, all, p)
		d.check(n, around, all, p)
	}
}

// lost reports a value that does not determine its part.
func (d *Decoder) lost(p spot, at Span, n *Node, problem, hint string) {
	d.report(p, at, n, problem, hint)
	d.Origin.doubting(p.part).whole = true
}

// noTable reports a value that should be a table.
func (d *Decoder) noTable(n *Node, fields []Field, s *slot, p spot) {
	want, hint := "a table", ""
	if s == nil {
		hint = asTable(n, fields, p)
	} else if s.short {
		want = "a name or a table"
	} else if text, ok := n.Text(); ok {
		hint = fmt.Sprintf("write { %s = NAME }, NAME one of %s", s.selector.Key, Quoted(s.Names()))
		if near, ok := Nearest(text, s.Names()); ok {
			hint = fmt.Sprintf("write { %s = %s }", s.selector.Key, StringText(near))
		}
	}
	d.lost(p, n.At, n, fmt.Sprintf("got %s, want %s", n.Describe(), want), hint)
}

// choose creates the part that the selecting key names. Without that key an existing part remains.
func (d *Decoder) choose(n *Node, s *slot, p spot) (kind string, ok bool) {
	key, selected := s.selector.Key, s.selector.Value
	valid := func() []string { // only needed for an error
		if s.or != "" {
			return append([]string{s.or}, s.Names()...)
		}
		return s.Names()
	}
	c := n.Child(key)
	if c == nil {
		implied := cmp.Or(s.or, selected.String())
		if implied == "" && !d.Partial {
			d.report(p, n.At, n, fmt.Sprintf("missing key %q", key), "valid: "+Quoted(valid()))
		}
		selected.SetString(implied)
		return implied, implied != ""
	}
	name, isText := c.Text()
	if !isText {
		d.report(p, c.At, c, fmt.Sprintf("%s: got %s, want a name", key, c.Describe()), "valid: "+Quoted(valid()))
		return "", false
	}
	part, ok := s.New(name)
	switch {
	case ok:
		s.value.Set(reflect.ValueOf(part))
		d.Origin.names[p.part] = name
	case s.or == "" || name != s.or:
		noun := key
		if key != "kind" {
			noun = s.What
		}
		d.report(p, c.At, c, fmt.Sprintf("unknown %s %q", noun, name), d.Language.suggest(s.What, name, valid()))
		return "", false
	}
	selected.SetString(name)
	return name, true
}

func setDefaults(table any) {
	if t, ok := table.(interface{ Defaults() }); ok {
		t.Defaults()
	}
}

// unknown reports the keys of n that are not fields.
func (d *Decoder) unknown(n *Node, fields []Field, p spot) {
	for i, key := range n.Keys {
		if _, ok := findField(fields, key); ok {
			continue
		}
		c, what := n.table[i], "key"
		if c.IsTable() || c.IsArray() && c.header {
			what = "table"
		}
		hint := d.suggestKey(key, n, fields, p)
		if path, ok := d.below(key, c, p); ok {
			hint = fmt.Sprintf("paths begin below the %s: did you mean %q?", d.Path[0], path)
		}
		d.report(p, c.Key, c, fmt.Sprintf("unknown %s %q", what, key), hint)
		doubt := d.Origin.doubting(p.part)
		if near, ok := Nearest(key, keysOf(fields)); ok {
			f, _ := findField(fields, near)
			doubt.fields = append(doubt.fields, f)
		}
	}
}

// values decodes the given keys into the fields.
func (d *Decoder) values(n *Node, fields []Field, p spot) {
	for _, f := range fields {
		c := n.Child(f.Key)
		if c == nil {
			if f.Value.Kind() == reflect.Struct {
				setDefaults(f.Value.Addr().Interface())
			}
			continue
		}
		if !d.value(c, f, p) {
			doubt := d.Origin.doubting(p.part)
			doubt.fields = append(doubt.fields, f)
		}
	}
}

// missing reports missing required keys, unless a similar misspelt key was given.
func (d *Decoder) missing(n *Node, fields []Field, p spot) {
	for _, f := range fields {
		if !f.Required || n.Child(f.Key) != nil || d.Partial || d.Origin.Doubt(p.part).About(f.Key) {
			continue
		}
		d.Found = append(d.Found, n.find(Diagnostic{Subject: d.Subject, Part: p.part, Kind: p.kind,
			Problem: fmt.Sprintf("missing key %q", f.Key), Suggestion: "want " + f.wanted()}, ""))
		doubt := d.Origin.doubting(p.part)
		doubt.fields = append(doubt.fields, f)
	}
}

// check reports the errors of the Check method of a part or of the struct around it.
func (d *Decoder) check(n *Node, part any, fields []Field, p spot) {
	c, ok := part.(interface{ Check() error })
	if !ok {
		return
	}
	err := c.Check()
	if err == nil {
		return
	}
	list := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		list = several.Unwrap()
	}
	for _, one := range list {
		key := KeyOf(one)
		d.Found = append(d.Found, n.find(Diagnostic{Subject: d.Subject, Part: p.part, Kind: p.kind, Problem: one.Error()}, key))
		doubt := d.Origin.doubting(p.part)
		if f, ok := findField(fields, key); ok {
			doubt.fields = append(doubt.fields, f)
		} else {
			doubt.whole = true
		}
	}
}
