// Package table reads TOML strictly: a text becomes a tree that knows where everything is written, and the tree is decoded into
// tagged structs and registered parts. Every error is found at once, each with its line, a caret, and what was probably meant.
// Trees merge, by inheritance or by --set PATH=VALUE, and structs are written back as TOML with every default.
//
// The structs are the language. A field tagged `toml:"key"` is a key; [part] lists the other tags. What a field holds says what
// its key takes:
//
//   - a string, bool or number; a type with the method Choices() []string takes one of these names, and a type with the methods
//     FromTOML(any) error and TOML() any reads and writes itself
//   - a struct is a table, a pointer to a struct one that is absent by default, a slice of structs an array of tables
//   - a map of structs by name is a table of tables with free names, such as [model.X.head.NAME]
//   - a [*Node] takes whatever stands there; it is not written
//   - an interface of a registry is a part: its name, or a table whose key "kind" has the name. With the tag bare:"NAME.KEY" a
//     number is also one: the key of the part of that name. A slice of them is a list of parts, and in a map of them the name of a
//     table is that of the part, such as [model.X.hook.NAME]
//
// The field of a struct that is tagged part:"kind" is filled by the part that the key "kind" names; the keys of the part then belong to
// the struct's table. part:"kind,short" also takes the name in place of the table. part:"kind,or=NAME" also takes NAME, which is no
// part, and implies it. A slice of tables tagged none:"true" is written when it is empty, too. A field tagged of:"KIND" is a key only where the kind of the outermost table is KIND.
//
// Two methods are asked of structs and parts: Defaults(), which sets what a table's own keys hold where they are not given, after the
// keys of its part were read, and Check() error, which refuses values that do not go together by a [part.KeyError], or several joined.
package table

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"tessera/part"
)

// Language is what tables are made of.
type Language struct {
	Vocabularies []*Vocabulary
	// Hint says what to do about an unknown key of a table n of a kind, "" where there is nothing better to say than which keys
	// there are; near tells whether one of them is probably meant. It may be nil.
	Hint func(key string, n *Node, kind string, near bool) string
}

// Vocabulary is a registry whose type of parts is erased, so that parts can be found by the type of a field.
type Vocabulary struct {
	Title  string       // "layers"
	What   string       // "layer"
	Around reflect.Type // the struct around a part that holds the table's own keys; nil where there is none
	Names  func() []string
	About  func(name string) string
	New    func(name string) (part any, ok bool)

	part  reflect.Type // the interface that every part implements
	named func() map[reflect.Type]string
}

// Words returns the vocabulary of a registry. around is the struct, by its zero value, whose field tagged `part` holds such a
// part; nil where parts stand in fields of other parts only.
func Words[T any](title string, r *part.Registry[T], around any) *Vocabulary {
	return &Vocabulary{
		Title:  title,
		What:   r.What(),
		part:   reflect.TypeFor[T](),
		Around: reflect.TypeOf(around),
		Names:  r.Names,
		About:  func(name string) string { e, _ := r.Lookup(name); return e.About },
		New: func(name string) (any, bool) {
			e, ok := r.Lookup(name)
			if !ok {
				return nil, false
			}
			return e.New(), true
		},
		named: sync.OnceValue(func() map[reflect.Type]string {
			named := map[reflect.Type]string{}
			for _, e := range slices.Backward(r.All()) {
				named[reflect.TypeOf(e.New())] = e.Name
			}
			return named
		}),
	}
}

// Holds reports whether the parts of the vocabulary have that interface type.
func (v *Vocabulary) Holds(part reflect.Type) bool { return v.part == part }

// of finds the vocabulary of an interface type, nil where there is none.
func (l *Language) of(part reflect.Type) *Vocabulary {
	if l != nil {
		for _, v := range l.Vocabularies {
			if v.Holds(part) {
				return v
			}
		}
	}
	return nil
}

// NameOf finds the name of the part at a place of a declaration: that by which it was chosen there, as its origin knows, else that under
// which its type is registered, the first of several; "" where there is none.
func (l *Language) NameOf(o *Origin, at string, part any) string {
	t := reflect.TypeOf(part)
	for _, v := range l.Vocabularies {
		if name, ok := v.named()[t]; ok {
			if o != nil {
				if chosen, ok := v.New(o.names[at]); ok && reflect.TypeOf(chosen) == t {
					return o.names[at]
				}
			}
			return name
		}
	}
	return ""
}

// column is what the tags of a field say.
type column struct {
	Key, Want, Doc string
	Required       bool
	oneof          []string
	of, bare       string
	bounds         bounds
	none           bool  // an empty list says something else than none that is given
	at             []int // of the field in its struct
}

// Field is one key of a table.
type Field struct {
	*column
	Value reflect.Value
}

// renamed is the field under another key.
func (f Field) renamed(key string) Field {
	c := *f.column
	c.Key = key
	return Field{&c, f.Value}
}

// schema is what the tags of a struct say.
type schema struct {
	columns  []column
	part     []int // of the field that a part fills, nil where there is none
	selector int   // the column that names the part
	short    bool  // the name may stand for the whole table
	or       string
}

var schemas sync.Map // of reflect.Type to *schema

func schemaOf(t reflect.Type) *schema {
	if s, ok := schemas.Load(t); ok {
		return s.(*schema)
	}
	s := &schema{}
	var selector string
	for i := range t.NumField() {
		f := t.Field(i)
		switch key := f.Tag.Get("toml"); {
		case f.Tag.Get("part") != "":
			var options string
			selector, options, _ = strings.Cut(f.Tag.Get("part"), ",")
			s.part, s.short = f.Index, options == "short"
			s.or = strings.TrimPrefix(options, "or=")
			if s.short {
				s.or = ""
			}
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			for _, c := range schemaOf(f.Type).columns {
				c.at = append([]int{i}, c.at...)
				s.columns = append(s.columns, c)
			}
		case key != "" && f.IsExported():
			s.columns = append(s.columns, column{Key: key, Want: f.Tag.Get("want"), Doc: f.Tag.Get("doc"), Required: f.Tag.Get("required") == "true",
				oneof: strings.Fields(f.Tag.Get("oneof")), of: f.Tag.Get("of"), bare: f.Tag.Get("bare"), none: f.Tag.Get("none") == "true", bounds: boundsOf(f.Tag.Get("want")), at: f.Index})
		}
	}
	s.selector = slices.IndexFunc(s.columns, func(c column) bool { return c.Key == selector })
	schemas.Store(t, s)
	return s
}

// slot is the field of a table that a registered part fills.
type slot struct {
	*Vocabulary
	value    reflect.Value // of interface type
	selector Field         // the key that names the part
	short    bool          // the name may stand for the whole table
	or       string        // a name that is no part and implied; "" where there is none
}

// every stands for all kinds of the outermost table.
const every = "*"

// fieldsOf lists the keys of a table's struct, those of its part excluded, and its slot, nil where it has none.
func (l *Language) fieldsOf(v reflect.Value, kind string) ([]Field, *slot) {
	schema := schemaOf(v.Type())
	fields := make([]Field, 0, len(schema.columns))
	for i := range schema.columns {
		if c := &schema.columns[i]; c.of == "" || c.of == kind || kind == every {
			fields = append(fields, Field{c, v.FieldByIndex(c.at)})
		}
	}
	if schema.part == nil {
		return fields, nil
	}
	selector := &schema.columns[schema.selector]
	value := v.FieldByIndex(schema.part)
	return fields, &slot{l.of(value.Type()), value, Field{selector, v.FieldByIndex(selector.at)}, schema.short, schema.or}
}

// FieldsOf lists the keys of the table of a struct, given by a pointer, but for those of its part: of those tagged `of` the ones of
// that kind.
func (l *Language) FieldsOf(table any, kind string) []Field {
	fields, _ := l.fieldsOf(reflect.ValueOf(table).Elem(), kind)
	return fields
}

// Fields lists the keys of a part, or of the table of a struct, given by a pointer.
func Fields(part any) []Field {
	v := reflect.ValueOf(part)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	fields, _ := (*Language)(nil).fieldsOf(v.Elem(), "")
	return fields
}

// joined lists the keys of a table with those of its part, which follow the selecting key.
func joined(own, part []Field, selector string) []Field {
	i := slices.IndexFunc(own, func(f Field) bool { return f.Key == selector }) + 1
	return slices.Concat(own[:i], part, own[i:])
}

// Keys lists the keys of the table of a struct, or of a part, given by a pointer: of those tagged `of` the ones of that kind.
func Keys(table any, kind string) []string { return keysOf((*Language)(nil).FieldsOf(table, kind)) }

func findField(fields []Field, key string) (Field, bool) {
	for _, f := range fields {
		if f.Key == key {
			return f, true
		}
	}
	return Field{}, false
}

func keysOf(fields []Field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.Key
	}
	return keys
}

// Choices lists the only values of an enumeration, nil for other types.
func (f Field) Choices() []string {
	if len(f.oneof) > 0 {
		return f.oneof
	}
	if c, ok := f.Value.Interface().(interface{ Choices() []string }); ok {
		return c.Choices()
	}
	return nil
}

// Malformed says what is wrong with the field's tag `want`, nil where nothing is.
func (f Field) Malformed() error { return f.bounds.malformed }

// IsTable reports whether the field is written under its own header: a struct that is there, or an array or a map of tables.
func (f Field) IsTable() bool { return isTable(f.Value) }
