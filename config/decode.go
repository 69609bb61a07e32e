package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// decoder fills the structs of a model from a tree, by reflection over their tags, and collects what is wrong.
type decoder struct {
	model   string
	kind    string // of the model
	partial bool   // part of the model is unknown: nothing is missing, and a table without a kind cannot be judged
	found   []finding
	origin  *origin
}

// origin is where the parts of a model are written, by part: "" is the model itself.
type origin struct {
	tables map[string]*node
	doubts map[string]*doubt
}

// doubt is what is not known of a part because its table has mistakes.
type doubt struct {
	keys  []field // keys whose values are wrong, or that a misspelt key was probably meant to be
	whole bool    // the part itself is not known
}

// doubt is what is not known of a part, nil where all is.
func (o *origin) doubt(part string) *doubt {
	if o == nil {
		return nil // a model made in Go
	}
	return o.doubts[part]
}

// about reports whether a key that is in doubt is of a sort.
func (d *doubt) about(sort func(field) bool) bool {
	return d != nil && (d.whole || slices.ContainsFunc(d.keys, sort))
}

// shape reports whether the doubt may concern the shape of a layer's output: numbers may, names may not.
func (d *doubt) shape() bool {
	return d.about(func(f field) bool {
		k := f.value.Kind()
		return k != reflect.Bool && k != reflect.Interface && f.choices() == nil
	})
}

// values reports whether the doubt may concern the range of a layer's output: an activation may, and so may inner layers.
func (d *doubt) values() bool {
	return d.about(func(f field) bool { return f.choices() != nil || isTable(f.value) })
}

// place is where in a model the decoder is.
type place struct {
	part string // "encoder[0]"
	kind string
}

func (p place) key(key string) place {
	if p.part != "" {
		key = p.part + "." + key
	}
	return place{part: key}
}

func (p place) element(i int) place {
	return place{part: fmt.Sprintf("%s[%d]", p.part, i)}
}

// keys are those that lead to the place, without the indices of elements.
func (p place) keys() []string {
	keys := strings.Split(p.part, ".")
	for i, k := range keys {
		keys[i], _, _ = strings.Cut(k, "[")
	}
	return keys
}

func (d *decoder) report(p place, at span, owner, problem, hint string) {
	d.found = append(d.found, finding{at: at, owner: owner, model: d.model, part: p.part, kind: p.kind, problem: problem, hint: hint})
}

func (d *decoder) doubt(p place) *doubt {
	if d.origin.doubts[p.part] == nil {
		d.origin.doubts[p.part] = &doubt{}
	}
	return d.origin.doubts[p.part]
}

// table fills the struct v, whose fields are the keys of n.
func (d *decoder) table(n *node, v reflect.Value, p place) {
	d.origin.tables[p.part] = n
	fields, slot := tableOf(v, d.kind)
	if slot == nil {
		setDefaults(v)
		d.keys(n, fields, fields, p)
		return
	}
	if slot.short {
		n = spelledOut(n, slot.selector.key)
		d.origin.tables[p.part] = n
	}
	if n.table == nil {
		d.noTable(n, slot, p)
		return
	}
	kind, ok := d.choose(n, v, slot, p)
	if !ok { // the keys that every such table has can still be judged
		d.doubt(p).whole = true
		fields, _ = tableOf(v, Autoencoder)
		if v.Type() == reflect.TypeFor[Model]() {
			d.kind = Autoencoder
		}
		d.values(n, slices.DeleteFunc(fields, func(f field) bool { return f.key == slot.selector.key }), p)
		return
	}
	p.kind = kind
	if v.Type() == reflect.TypeFor[Model]() {
		d.kind = kind
	}
	fields, _ = tableOf(v, kind)
	var part []field
	if !slot.value.IsNil() {
		part = partFields(slot.value.Interface())
	}
	all := allFields(v, kind)
	before := len(d.found)
	d.unknown(n, all, p)
	d.values(n, part, p)
	setDefaults(v)
	d.values(n, fields, p)
	d.missing(n, all, p)
	if len(d.found) == before && !slot.value.IsNil() {
		d.check(n, slot.value.Interface(), all, p)
		d.check(n, v.Addr().Interface(), all, p)
	}
}

// noTable reports a value that should be the table of a part.
func (d *decoder) noTable(n *node, s *slot, p place) {
	want, hint := "a table", ""
	if s.short {
		want = "a name or a table"
	} else if text, ok := n.text(); ok {
		hint = fmt.Sprintf("write { %s = NAME }, NAME one of %s", s.selector.key, quoted(s.vocabulary.names()))
		if near, ok := nearest(text, s.vocabulary.names()); ok {
			hint = fmt.Sprintf("write { %s = %s }", s.selector.key, stringText(near))
		}
	}
	d.report(p, n.at, n.owner, fmt.Sprintf("got %s, want %s", describe(n), want), hint)
	d.doubt(p).whole = true
}

// spelledOut takes a name for the table that it stands for.
func spelledOut(n *node, key string) *node {
	if _, ok := n.text(); !ok {
		return n
	}
	t := &node{key: n.key, at: n.at, owner: n.owner, table: map[string]*node{}}
	t.put(key, n)
	return t
}

// choose creates the part that the selecting key names. Without that key the part that is there already stays.
func (d *decoder) choose(n *node, v reflect.Value, s *slot, p place) (kind string, ok bool) {
	sel := s.selector
	valid := s.vocabulary.names()
	implied := sel.value.String()
	if v.Type() == reflect.TypeFor[Model]() {
		valid = append([]string{Autoencoder}, valid...)
		implied = Autoencoder
	}
	c := n.child(sel.key)
	if c == nil {
		if implied == "" && !d.partial {
			d.report(p, n.at, n.owner, fmt.Sprintf("missing key %q", sel.key), "valid: "+quoted(valid))
		}
		sel.value.SetString(implied)
		return implied, implied != ""
	}
	name, isText := c.text()
	if !isText {
		d.report(p, c.at, c.owner, fmt.Sprintf("%s: got %s, want a name", sel.key, describe(c)), "valid: "+quoted(valid))
		return "", false
	}
	if !slices.Contains(valid, name) {
		d.report(p, c.at, c.owner, fmt.Sprintf("unknown %s %q", noun(sel.key, s.vocabulary), name), suggest(name, valid))
		return "", false
	}
	sel.value.SetString(name)
	if part, ok := s.vocabulary.create(name); ok {
		s.value.Set(reflect.ValueOf(part))
	}
	return name, true
}

// noun is what the value of a selecting key is called.
func noun(key string, v vocabulary) string {
	if key == "kind" {
		return "kind"
	}
	return v.what
}

func setDefaults(v reflect.Value) {
	switch t := v.Addr().Interface().(type) {
	case interface{ defaults() }:
		t.defaults()
	case interface{ Defaults() }: // the table of another package
		t.Defaults()
	}
}

// keys fills the fields of a table that has no kind.
func (d *decoder) keys(n *node, fields, all []field, p place) {
	if n.table == nil {
		d.report(p, n.at, n.owner, fmt.Sprintf("got %s, want a table", describe(n)), asTable(n, all, p))
		d.doubt(p).whole = true
		return
	}
	d.unknown(n, all, p)
	d.values(n, fields, p)
	d.missing(n, all, p)
}

// unknown reports the keys of n that are none of the fields.
func (d *decoder) unknown(n *node, fields []field, p place) {
	for _, key := range n.keys {
		if _, ok := findField(fields, key); ok {
			continue
		}
		c, what := n.table[key], "key"
		if c.table != nil || c.array && c.header {
			what = "table"
		}
		hint := suggestKey(key, n, fields, p, d.kind)
		if path, ok := d.below(key, c, p); ok {
			hint = fmt.Sprintf("paths begin below the model: did you mean %q?", path)
		}
		d.report(p, c.key, c.owner, fmt.Sprintf("unknown %s %q", what, key), hint)
		doubt := d.doubt(p)
		if near, ok := nearest(key, keysOf(fields)); ok {
			f, _ := findField(fields, near)
			doubt.keys = append(doubt.keys, f)
		}
	}
}

// values decodes the keys that are given into the fields.
func (d *decoder) values(n *node, fields []field, p place) {
	for _, f := range fields {
		if c := n.child(f.key); c != nil && !d.value(c, f, p) {
			doubt := d.doubt(p)
			doubt.keys = append(doubt.keys, f)
		}
	}
}

// missing reports required keys that are not given, unless a misspelt key was probably meant to be them.
func (d *decoder) missing(n *node, fields []field, p place) {
	for _, f := range fields {
		if !f.required || n.child(f.key) != nil || d.partial {
			continue
		}
		if q := d.origin.doubts[p.part]; q.about(func(g field) bool { return g.key == f.key }) {
			continue
		}
		at, owner := locate(n, "")
		d.report(p, at, owner, fmt.Sprintf("missing key %q", f.key), "want "+wanted(f))
		d.doubt(p).keys = append(d.doubt(p).keys, f)
	}
}

// check asks a part, or the table around it, what is wrong with its settings together.
func (d *decoder) check(n *node, part any, fields []field, p place) {
	c, ok := part.(interface{ Check() error })
	if !ok {
		return
	}
	err := c.Check()
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			d.refuted(n, one, fields, p)
		}
	} else if err != nil {
		d.refuted(n, err, fields, p)
	}
}

// refuted reports what a part says is wrong with one of its settings.
func (d *decoder) refuted(n *node, err error, fields []field, p place) {
	key := keyOf(err, fields)
	at, owner := locate(n, key)
	d.report(p, at, owner, err.Error(), "")
	q := d.doubt(p)
	if f, ok := findField(fields, key); ok {
		q.keys = append(q.keys, f)
	} else {
		q.whole = true
	}
}

// locate finds where a table gives a key, or an element of one ("key[1]"): its value, else the kind's, else the table's
// name.
func locate(n *node, key string) (span, string) {
	for _, k := range []string{key, "kind", "name"} {
		if c := n.value(k); c != nil && c.at.src != nil {
			return c.at, c.owner
		}
	}
	return n.at, n.owner
}
