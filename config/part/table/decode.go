package table

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part"
)

// Decoder fills structs from trees by reflection over their tags, and collects the errors.
type Decoder struct {
	Language *Language
	Subject  string   // subject of the diagnostics, for example `model "NAME"`
	Path     []string // names in the header: ["model", "NAME"]
	Partial  bool     // the tree is incomplete: missing keys are not reported, and a table without a kind is not checked
	Found    []Diagnostic
	Origin   *Origin

	kind string // kind of the outermost table
}

// Decode fills the struct that into points to from the table n. part is the location of the table in the declaration,
// "" for the whole declaration.
func (d *Decoder) Decode(n *Node, into any, part string) {
	if d.Origin == nil {
		d.Origin = newOrigin()
	}
	first := len(d.Found)
	d.table(n, reflect.ValueOf(into).Elem(), spot{part: part})
	for i := range d.Found[first:] {
		if f := &d.Found[first+i]; f.At.Source == nil { // the error is in a default, so it gets the position of the table
			*f = f.In(n)
		}
	}
}

// Report adds an error in the value n. part is the location of the part with the error.
func (d *Decoder) Report(part string, n *Node, problem, suggestion string) {
	d.report(spot{part: part}, n.At, n, problem, suggestion)
}

// ReportKey is like Report, with the caret at the key of n instead of its value.
func (d *Decoder) ReportKey(part string, n *Node, problem, suggestion string) {
	d.report(spot{part: part}, n.Key, n, problem, suggestion)
}

func (d *Decoder) report(p spot, at Span, n *Node, problem, suggestion string) {
	if n != nil && n.mixed && at == n.At { // reported as given twice
		d.Origin.doubting(p.part).whole = true
		return
	}
	d.Found = append(d.Found, Diagnostic{At: at, Subject: d.Subject, Part: p.part, Kind: p.kind, Problem: problem, Suggestion: suggestion, node: n})
}

// spot is a location in a declaration that the decoder visits.
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

// header returns the TOML header of the table at p, without the indices of elements.
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
	if p.part == "" { // the kind of the outermost table determines which keys are valid
		d.kind = cmp.Or(kind, s.or)
		fields, _ = d.Language.fieldsOf(v, d.kind)
	}
	if !ok { // without a part, the keys of the struct can still be checked
		d.Origin.doubting(p.part).whole = true
		if text, isText := n.Child(s.selector.Key).Text(); isText { // and so can the keys of the part that was probably meant
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
	d.unknown(n, all, p, refusedOf(around)...)
	d.values(n, inner, p)
	setDefaults(around)
	d.values(n, own, p)
	d.missing(n, all, p)
	if len(d.Found) == before {
		d.check(n, part, all, p)
		d.check(n, around, all, p)
	}
}

// unknownPart reports a value that does not name a valid part.
func (d *Decoder) unknownPart(p spot, at Span, n *Node, problem, hint string) {
	d.report(p, at, n, problem, hint)
	d.Origin.doubting(p.part).whole = true
}

// noTable reports that n is not a table although a table is required.
func (d *Decoder) noTable(n *Node, fields []Field, s *slot, p spot) {
	want, hint := "a table", ""
	if s == nil {
		hint = asTable(n, fields, p)
	} else if s.short {
		want = "a name or a table"
	} else if text, ok := n.Text(); ok {
		hint = fmt.Sprintf("write { %s = NAME }; %s", s.selector.Key, s.all())
		if near, ok := Nearest(text, s.Names()); ok {
			hint = fmt.Sprintf("write { %s = %s }", s.selector.Key, StringText(near))
		}
	}
	d.unknownPart(p, n.At, n, fmt.Sprintf("got %s, want %s", n.Describe(), want), hint)
}

// choose creates the part that the selecting key names. Without that key, an existing part remains. ok is false if
// there is no valid part.
func (d *Decoder) choose(n *Node, s *slot, p spot) (kind string, ok bool) {
	key, selected := s.selector.Key, s.selector.Value
	var also []string
	if s.or != "" {
		also = append(also, s.or)
	}
	c := n.Child(key)
	if c == nil {
		implied := cmp.Or(s.or, selected.String())
		if implied == "" && !d.Partial {
			d.report(p, n.At, n, fmt.Sprintf("missing key %q", key), s.all(also...))
		}
		selected.SetString(implied)
		return implied, implied != ""
	}
	name, isText := c.Text()
	if !isText {
		d.report(p, c.At, c, fmt.Sprintf("%s: got %s, want a name", key, c.Describe()), s.all(also...))
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
		d.report(p, c.At, c, fmt.Sprintf("unknown %s %q", noun, name), d.Language.suggest(s.What, name, append(also, s.Names()...)))
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

// refusedOf lists the keys of a struct that do not apply to its part: those of its method Refused() []string.
func refusedOf(around any) []string {
	if t, ok := around.(interface{ Refused() []string }); ok {
		return t.Refused()
	}
	return nil
}

// unknown reports the keys of n that are not in fields, and suggests those that are not refused.
func (d *Decoder) unknown(n *Node, fields []Field, p spot, refused ...string) {
	valid := slices.DeleteFunc(slices.Clone(fields), func(f Field) bool { return slices.Contains(refused, f.Key) })
	for i, key := range n.Keys {
		if _, ok := findField(fields, key); ok {
			continue
		}
		c, what := n.table[i], "key"
		if c.IsTable() || c.IsArray() && c.header {
			what = "table"
		}
		hint := d.suggestKey(key, n, valid, p)
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

// values decodes the values of the keys that n contains into the fields.
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

// missing reports missing required keys, unless n contains a misspelt key that is similar.
func (d *Decoder) missing(n *Node, fields []Field, p spot) {
	given := func(key string) bool { return n.Child(key) != nil || d.Origin.Doubt(p.part).About(key) }
	for _, f := range fields {
		if !f.Required || d.Partial || given(f.Key) || f.instead != "" && given(f.instead) {
			continue
		}
		hint := f.wanted()
		if hint != "" {
			hint = "want " + hint
		} else if f.Doc != "" {
			hint = f.Doc
		}
		d.Found = append(d.Found, n.find(Diagnostic{Subject: d.Subject, Part: p.part, Kind: p.kind,
			Problem: fmt.Sprintf("missing key %q", f.Key), Suggestion: hint}, ""))
		doubt := d.Origin.doubting(p.part)
		doubt.fields = append(doubt.fields, f)
	}
}

// check reports the errors from the Check method of a part or of the struct around it.
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

// KeyOf returns the key of a [part.KeyError], and "" for other errors.
func KeyOf(err error) string {
	var of part.KeyError
	errors.As(err, &of)
	return of.Key
}

// fromTOML is implemented by types that decode themselves.
type fromTOML interface{ FromTOML(value any) error }

// value decodes one value into a field. It reports errors, and returns true if there were none.
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
	case reflect.Pointer: // the field is a table that is absent by default
		t := reflect.New(v.Type().Elem())
		d.table(n, t.Elem(), p.key(f.Key))
		v.Set(t)
	case reflect.Slice:
		if text, isText := n.Text(); !f.single || n.IsArray() || n.IsTable() && n.path && n.Child("0") != nil {
			d.list(n, f, p)
		} else if !isText || text != "" {
			d.items(&Node{Items: []*Node{n}}, f, p, func(int) string { return f.Key })
		}
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

// part decodes a value whose type is the interface of a registry. The value is a name, a table with a kind or, for a
// field with a bare key, a number for that key.
func (d *Decoder) part(n *Node, f Field, p spot) {
	v := f.Value
	vocab := d.Language.of(v.Type())
	if name, key, ok := strings.Cut(f.bare, "."); ok && n.form == scalar {
		text, isText := n.Text()
		if _, err := strconv.ParseInt(text, 10, 64); !isText || errors.Is(err, strconv.ErrRange) { // the number is too large for TOML
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
		d.report(p, n.At, n, fmt.Sprintf("got %s, want a name or a table", n.Describe()), vocab.all())
		return
	}
	d.selected(n, v, vocab, p, "")
}

// selected decodes the table of the part that its key "kind" names. Without that key, the part in v remains. Messages
// omit a kind that is equal to name, the name of the table.
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

// tables decodes a table whose keys are free names. The values are tables or parts.
func (d *Decoder) tables(n *Node, f Field, p spot) {
	p = p.key(f.Key)
	if !n.IsTable() {
		d.report(p, n.At, n, fmt.Sprintf("got %s, want tables: [%s.NAME]", n.Describe(), d.header(p)), "")
		return
	}
	all := reflect.MakeMap(f.Value.Type())
	for i, name := range n.Keys {
		item, at := n.table[i], p.key(KeyText(name))
		if item.removes {
			continue // an inherited table is left out
		}
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

// named decodes the table of a part whose kind is the key "kind" or, without it, the name of the table. The value false
// means no part; it removes an inherited part. Without one the name must be a kind.
func (d *Decoder) named(n *Node, v reflect.Value, name string, p spot) {
	vocab := d.Language.of(v.Type())
	part, isKind := vocab.New(name)
	if n.Leaf == false && isKind {
		return
	}
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

// list decodes an array of tables or of scalars.
func (d *Decoder) list(n *Node, f Field, p spot) {
	element := f.Value.Type().Elem()
	tables := element.Kind() == reflect.Struct || element.Kind() == reflect.Interface
	switch {
	case n.IsTable() && n.path: // an index in a --set path, but no array to index
		d.noElements(n, f.Key, tables, p)
		return
	case !n.IsArray() && tables:
		hint := ""
		text, isText := n.Text()
		switch {
		case n.IsTable() && n.Child("0") != nil: // a path as those of --set
			hint = "a file declares an array whole; `--set` and the table `set` of a sweep change one element of it"
		case n.IsTable() && n.header:
			hint = "the header of an element has double brackets"
		case n.IsTable():
			hint = "write [{ ... }]"
		case isText:
			hint = fmt.Sprintf("write [{ kind = %s }]", StringText(text))
		}
		d.refuse(n, f, p, fmt.Sprintf("got %s, want an array of tables: [[%s]]", n.Describe(), d.header(p.key(f.Key))), hint)
		return
	case !n.IsArray():
		d.refuse(n, f, p, fmt.Sprintf("got %s, want an array", n.Describe()), bracketed(n, f))
		return
	}
	d.items(n, f, p, func(i int) string { return fmt.Sprintf("%s[%d]", f.Key, i) })
}

// items decodes the elements of an array; key names one of them.
func (d *Decoder) items(n *Node, f Field, p spot, key func(i int) string) {
	element := f.Value.Type().Elem()
	list := reflect.MakeSlice(f.Value.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		one := f.renamed(key(i))
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
	if whole, ok := n.Leaf.(int64); ok && v.CanInt() && (whole > MostWhole || whole < -MostWhole) {
		hint = fmt.Sprintf("whole numbers are at most %d", MostWhole)
	}
	if hint == "" {
		hint = f.paired(n)
	}
	d.refuse(n, f, p, problem, hint)
}

// paired returns a suggestion to write an array of two numbers as two keys. It returns "" for other values.
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

// MostWhole is the largest whole number, and its negative the smallest, that a key accepts, except for seeds. Sizes, counts and
// numbers of steps are multiplied with each other: the product of two of them is representable.
const MostWhole = math.MaxInt32

// SetNumber sets a numeric field to an int64 or float64. It reports false if the type cannot represent the value or the
// tag does not allow it.
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
	case v.CanInt() && isWhole && -MostWhole <= whole && whole <= MostWhole:
		v.SetInt(whole)
	case v.CanUint() && isWhole && whole >= 0 && !v.OverflowUint(uint64(whole)):
		v.SetUint(uint64(whole))
	default:
		return false
	}
	return true
}

// wanted describes the values that a field accepts.
func (f Field) wanted() string {
	if c := f.Choices(); c != nil {
		return "one of " + Quoted(c)
	}
	if _, ok := f.Value.Addr().Interface().(fromTOML); ok {
		return "" // FromTOML describes the valid values in its error
	}
	text := typeText(f.Value.Type())
	if f.single {
		text = typeText(f.Value.Type().Elem()) + ", or an array of these"
	}
	if f.Want != "" {
		text += " " + f.Want
	}
	if f.bare != "" {
		text = "a number, " + text
	}
	return text
}

// typeText returns the name of a type in TOML's terms.
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
