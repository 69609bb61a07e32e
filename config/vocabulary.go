package config

import (
	"reflect"
	"strings"

	"tessera/augment"
	"tessera/constraints"
	"tessera/data"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
	"tessera/part"
)

// vocabulary is a registry whose part type is erased, so that parts can be found by the type of a field.
type vocabulary struct {
	title  string       // "layers"
	what   string       // "layer"
	part   reflect.Type // the interface that every part implements
	table  reflect.Type // the struct around a part that holds the table's own keys; nil where there is none
	names  func() []string
	about  func(name string) string
	create func(name string) (any, bool)
}

// vocabularies lists what models.toml is made of. A new registry is one line here.
var vocabularies = []vocabulary{
	erase("layers", layers.Registry, Layer{}),
	erase("losses", losses.Registry, Loss{}),
	erase("constraints", constraints.Registry, Constraint{}),
	erase("optimizers", optim.Registry, Optimizer{}),
	erase("schedules", optim.Schedules, Schedule{}),
	erase("augmentations", augment.Registry, nil),
	erase("inits", layers.Inits, nil),
	erase("datasets", data.Registry, Dataset{}),
	erase("baselines", Baselines, Model{}),
}

func erase[T any](title string, r *part.Registry[T], table any) vocabulary {
	v := vocabulary{
		title: title,
		what:  r.What(),
		part:  reflect.TypeFor[T](),
		names: r.Names,
		about: func(name string) string { e, _ := r.Lookup(name); return e.About },
		create: func(name string) (any, bool) {
			e, ok := r.Lookup(name)
			if !ok {
				return nil, false
			}
			return e.New(), true
		},
	}
	if table != nil {
		v.table = reflect.TypeOf(table)
	}
	return v
}

// vocabularyOf finds the registry of an interface type.
func vocabularyOf(part reflect.Type) (vocabulary, bool) {
	for _, v := range vocabularies {
		if v.part == part {
			return v, true
		}
	}
	return vocabulary{}, false
}

// nameOf finds the name under which a part is registered, by its type.
func (v vocabulary) nameOf(part any) string {
	for _, name := range v.names() {
		if p, _ := v.create(name); reflect.TypeOf(p) == reflect.TypeOf(part) {
			return name
		}
	}
	return ""
}

// field is one key of a table.
type field struct {
	key, want, doc string
	oneof          []string
	required       bool
	value          reflect.Value
}

// slot is the field of a table that a registered part fills.
type slot struct {
	value      reflect.Value // of interface type
	vocabulary vocabulary
	selector   field // the key that names the part
	short      bool  // the name may stand for the whole table
}

// tableOf lists the keys of a table's struct, those of its part excluded, and its slot. A field tagged `of` is left
// out where the table is of another kind.
func tableOf(v reflect.Value, kind string) (fields []field, s *slot) {
	var sel string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if of := f.Tag.Get("of"); of != "" && of != kind {
			continue
		}
		if tag := f.Tag.Get("part"); tag != "" {
			vocab, _ := vocabularyOf(f.Type)
			name, option, _ := strings.Cut(tag, ",")
			s, sel = &slot{value: v.Field(i), vocabulary: vocab, short: option == "short"}, name
			continue
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			inner, _ := tableOf(v.Field(i), kind)
			fields = append(fields, inner...)
			continue
		}
		if key := f.Tag.Get("toml"); key != "" && f.IsExported() {
			fields = append(fields, field{key: key, want: f.Tag.Get("want"), doc: f.Tag.Get("doc"),
				oneof: strings.Fields(f.Tag.Get("oneof")), required: f.Tag.Get("required") == "true", value: v.Field(i)})
		}
	}
	if s != nil {
		for _, f := range fields {
			if f.key == sel {
				s.selector = f
			}
		}
	}
	return fields, s
}

// partFields lists the keys of a part.
func partFields(part any) []field {
	v := reflect.ValueOf(part)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	fields, _ := tableOf(v.Elem(), "")
	return fields
}

func findField(fields []field, key string) (field, bool) {
	for _, f := range fields {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	return keys
}

// choices lists the only values of an enumeration, nil for other types.
func (f field) choices() []string {
	if len(f.oneof) > 0 {
		return f.oneof
	}
	if c, ok := f.value.Interface().(interface{ Choices() []string }); ok {
		return c.Choices()
	}
	return nil
}

// selectionKeys are the keys of a data set's table that every data set has.
var selectionKeys = func() []string {
	fields, _ := tableOf(reflect.ValueOf(&data.Selection{}).Elem(), "")
	return keysOf(fields)
}()
