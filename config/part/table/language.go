// Package table reads TOML strictly. A text becomes a tree with source positions, which is decoded into tagged structs
// and registered parts. All errors are reported at once, each with its line, a caret and a suggestion. Trees are merged
// by inheritance or by --set PATH=VALUE. Structs are written as TOML with all defaults.
//
// The structs define the language. A field tagged `toml:"key"` is a key; [part] lists the other tags. The type of a
// field determines the values of its key:
//
//   - a string, bool or number; a type with the method Choices() []string accepts one of the listed names; a type with the methods
//     FromTOML(any) error and TOML() any reads and writes itself
//   - a struct is a table, a pointer to a struct is a table that is absent by default, a slice of structs is an array of tables
//   - a map of structs is a table of tables with free names, such as [model.X.head.NAME]
//   - a [*Node] accepts any value; it is not written
//   - an interface of a registry is a part: its name, or a table whose key "kind" is the name. With the tag bare:"NAME.KEY" a
//     number is also accepted: it sets KEY of the part NAME. A slice of such interfaces is a list of parts. In a map of them the
//     name of a table is the name of the part, such as [model.X.hook.average], unless its key "kind" is another name; NAME = false
//     means no part
//
// A field tagged part:"kind" contains the part that the key "kind" names; the keys of the part belong to the table of
// the struct. part:"kind,short" also accepts the name in place of the table. part:"kind,or=NAME" also accepts NAME,
// which is not a part, and makes it the default. A slice of tables tagged none:"true" is written even if it is empty. A list of parts tagged
// single:"true" may be its only element alone, and "" if it is empty. A
// field tagged of:"KIND" is a key only if the kind of the outermost table, or of a part that several names share, is KIND
// or another one of several. A field tagged optional:"true" is not written if it has the zero value. For a number tagged pair:"KEY", the error for an array of two numbers suggests
// to write the second number under KEY.
//
// The flags and arguments of a command are fields as well, tagged flag:"NAME" or arg:"NAME"; [Field.SetText] reads their values.
//
// Structs and parts may implement two methods. Defaults() sets the defaults of a table's keys after the keys of its
// part have been read. Check() error returns a [part.KeyError], or several joined, for inconsistent values.
package table

import (
	"reflect"
	"slices"
	"strings"
	"sync"

	"tessera/config/part"
	"tessera/internal/lists"
)

// Language describes the tables of a file.
type Language struct {
	Vocabularies []*Vocabulary
	// Hint returns a suggestion for an unknown key of the table n, which belongs to a part of the given kind. It
	// returns "" if the list of valid keys should be suggested. near is true if a valid key is similar. Hint may be
	// nil.
	Hint func(part, key string, n *Node, kind string, near bool) string
	// Lacks explains why a well-known name does not exist in a vocabulary. The vocabulary is named by what: "key",
	// "layer", ... It returns "" for other names. Lacks may be nil.
	Lacks func(what, name string) string
}

// Vocabulary is a registry without its type parameter. The type of a field determines its vocabulary.
type Vocabulary struct {
	Title  string       // "layers"
	What   string       // "layer"
	Around reflect.Type // type of the struct that surrounds a part and has the other keys of the table; nil if there is none
	Names  func() []string
	About  func(name string) string
	New    func(name string) (part any, ok bool)

	part  reflect.Type // interface that every part implements
	named func() map[reflect.Type]string
}

// Words returns the vocabulary of a registry. around is a zero value of the struct that has a field, tagged `part`, for a
// part of this registry; nil if these parts occur only in fields of other parts.
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

// Holds reports whether the vocabulary is that of the interface type part.
func (v *Vocabulary) Holds(part reflect.Type) bool { return v.part == part }

// of returns the vocabulary of an interface type, or nil.
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

// Shared is implemented by parts of one type with several names.
type Shared interface {
	PartName() string
	KeySort() string // by which tags of select the keys
}

// NameOf returns the name of a part in a declaration. It is the name in the file, which the origin o records by the
// part's location. If there is none, it is the first name under which the type of the part is registered, or "".
func (l *Language) NameOf(o *Origin, at string, part any) string {
	if p, ok := part.(Shared); ok {
		return p.PartName()
	}
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

// column contains the tags of one field of a struct.
type column struct {
	Key, Want, Doc string
	Required       bool
	Tag            reflect.StructTag
	oneof          []string
	of, bare, pair string
	instead        string // key that may replace a required key
	bounds         bounds
	none           bool  // an empty list differs from a missing one
	single         bool  // a list that may be its only element, and "" if it is empty
	optional       bool  // the zero value is not written
	at             []int // index of the field in its struct
}

// Field is one key of a table together with its value.
type Field struct {
	*column
	Value reflect.Value
}

func (f Field) renamed(key string) Field {
	c := *f.column
	c.Key = key
	return Field{&c, f.Value}
}

// schema contains the tags of a struct.
type schema struct {
	columns  []column
	part     []int // index of the field for a part, nil if there is none
	selector int   // index of the column that names the part
	short    bool  // the name may replace the whole table
	or       string
}

var schemas sync.Map // from reflect.Type to *schema

func schemaOf(t reflect.Type) *schema {
	if s, ok := schemas.Load(t); ok {
		return s.(*schema)
	}
	s := &schema{}
	var selector string
	for i := range t.NumField() {
		f := t.Field(i)
		switch key := keyOf(f.Tag); {
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
			s.columns = append(s.columns, column{Key: key, Want: f.Tag.Get("want"), Doc: f.Tag.Get("doc"), Required: f.Tag.Get("required") == "true", Tag: f.Tag,
				oneof: strings.Fields(f.Tag.Get("oneof")), of: f.Tag.Get("of"), bare: f.Tag.Get("bare"), pair: f.Tag.Get("pair"), instead: f.Tag.Get("instead"), none: f.Tag.Get("none") == "true", single: f.Tag.Get("single") == "true",
				optional: f.Tag.Get("optional") == "true", bounds: boundsOf(f.Tag.Get("want")), at: f.Index})
		}
	}
	s.selector = slices.IndexFunc(s.columns, func(c column) bool { return c.Key == selector })
	schemas.Store(t, s)
	return s
}

// keyOf returns the key of a field: in a file, or, of a command, the name of its flag or argument. "" means that the field is none.
func keyOf(tag reflect.StructTag) string {
	for _, name := range []string{"toml", "flag", "arg"} {
		if key, _, _ := strings.Cut(tag.Get(name), ","); key != "" { // a flag may have a letter too
			return key
		}
	}
	return ""
}

// slot is the field of a table that contains a registered part.
type slot struct {
	*Vocabulary
	value    reflect.Value // the field, whose type is an interface
	selector Field         // key that names the part
	short    bool          // the name may replace the whole table
	or       string        // default of the selector if it is not the name of a part; "" if there is none
}

// every matches all kinds of the outermost table.
const every = "*"

// fieldsOf lists the keys of a struct without the keys of its part. It also returns the slot of the part, nil if there
// is none.
func (l *Language) fieldsOf(v reflect.Value, kind string) ([]Field, *slot) {
	schema := schemaOf(v.Type())
	if v.CanAddr() {
		if p, ok := v.Addr().Interface().(Shared); ok {
			kind = p.KeySort()
		}
	}
	fields := make([]Field, 0, len(schema.columns))
	for i := range schema.columns {
		if c := &schema.columns[i]; c.of == "" || slices.Contains(strings.Fields(c.of), kind) || kind == every {
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

// FieldsOf lists the keys of the struct that table points to, without the keys of its part. Of the fields tagged `of`,
// it lists only those of the given kind.
func (l *Language) FieldsOf(table any, kind string) []Field {
	fields, _ := l.fieldsOf(reflect.ValueOf(table).Elem(), kind)
	return fields
}

// Fields lists the keys of the struct that part points to. The struct is a part or a table.
func Fields(part any) []Field {
	v := reflect.ValueOf(part)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	fields, _ := (*Language)(nil).fieldsOf(v.Elem(), "")
	return fields
}

// joined inserts the keys of a part into the keys of its table, after the selecting key.
func joined(own, part []Field, selector string) []Field {
	i := slices.IndexFunc(own, func(f Field) bool { return f.Key == selector }) + 1
	return slices.Concat(own[:i], part, own[i:])
}

// Keys returns the names of the keys of the struct that table points to. Of the fields tagged `of`, it lists only those
// of the given kind.
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
	return lists.Map(fields, func(f Field) string { return f.Key })
}

// Choices returns the values of an enumeration, or of the elements of a list of them, nil for other types.
func (f Field) Choices() []string {
	if len(f.oneof) > 0 {
		return f.oneof
	}
	v := f.Value
	if v.Kind() == reflect.Slice {
		v = reflect.Zero(v.Type().Elem())
	}
	if c, ok := v.Interface().(interface{ Choices() []string }); ok {
		return c.Choices()
	}
	return nil
}

// Malformed returns the error in the field's tag `want`, nil if the tag is valid.
func (f Field) Malformed() error { return f.bounds.malformed }

// IsTable reports whether the field is written under a separate header: a non-nil struct, or an array or map of tables.
func (f Field) IsTable() bool { return isTable(f.Value) }
