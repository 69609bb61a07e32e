package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"
	"tessera/data"
	"tessera/table"
)

// LiteralName is the name of a model from a struct literal that gives none.
const LiteralName = "model"

// Complete returns the checked model that a struct literal declares: a copy with every default in place, as [File.Model] returns
// one. m keeps its values. A field at its zero value takes the default; to set a value that is zero (bias = false, the weight 0),
// give it as a change: ParseSet("encoder.0.bias=false"). Kinds need not be given: the type of a part says its kind.
//
// Parts must be registered, since the run's config.toml names them. The images of [data.FromFloats] are kept as they are. Errors are
// [*table.Diagnostics], which name the model, the part and the key: `model "m": encoder[0] (dense): units: got -3, want an integer > 0`.
func Complete(m *Model, changes ...Set) (*Model, error) {
	if m == nil {
		return nil, errors.New("config: no model to complete")
	}
	name := cmp.Or(m.Name, LiteralName)
	text, err := literalText(m, name)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	f, err := Load(name, text)
	if err != nil {
		return nil, err
	}
	f.images, _ = m.Dataset.Source.(*data.Memory)
	complete, err := f.Model(name, changes...)
	if err != nil {
		return nil, placeless(err)
	}
	return complete, nil
}

// placeless returns diagnostics without lines and carets, which nobody has written; those of changes keep theirs.
func placeless(err error) error {
	var found *table.Diagnostics
	if !errors.As(err, &found) {
		return err
	}
	all := &table.Diagnostics{}
	for _, d := range found.List {
		if d.At.Source != nil && d.At.Source.Set == "" {
			d.At = table.Span{}
		}
		all.List = append(all.List, d)
	}
	return all
}

// literalText writes what a literal gives as a declaration.
func literalText(m *Model, name string) ([]byte, error) {
	given, err := literalKeys(reflect.ValueOf(m).Elem())
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	e.Indent = ""
	err = e.Encode(map[string]any{"model": map[string]any{name: given}})
	return b.Bytes(), err
}

// keys are those of a table, with their values as TOML has them.
type keys = map[string]any

// literalKeys returns the keys that a struct gives: those of its fields that are not zero, and those of its part.
func literalKeys(v reflect.Value) (keys, error) {
	given := keys{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, part := f.Tag.Get("toml"), f.Tag.Get("part")
		switch {
		case !f.IsExported():
		case part != "":
			selector, _, _ := strings.Cut(part, ",")
			if err := literalPart(given, selector, v.Field(i)); err != nil {
				return nil, err
			}
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			inner, err := literalKeys(v.Field(i))
			if err != nil {
				return nil, err
			}
			maps.Copy(given, inner)
		case key != "":
			value, ok, err := literalValue(v.Field(i))
			if err != nil {
				return nil, below(key, err)
			}
			if ok {
				given[key] = value
			}
		}
	}
	return given, nil
}

// literalPart adds the name and the keys of a registered part to the table that it belongs to.
func literalPart(given keys, selector string, v reflect.Value) error {
	if v.IsNil() {
		return nil
	}
	name := language.NameOf(v.Interface())
	if name == "" {
		return fmt.Errorf("%T is not registered: register it, so that a run can name it", v.Interface())
	}
	if other, ok := given[selector]; ok && other != name {
		return fmt.Errorf("%s: got %q, but the part is %q; leave it out", selector, other, name)
	}
	given[selector] = name
	part := v.Elem()
	if part.Kind() == reflect.Pointer {
		if part.IsNil() {
			return fmt.Errorf("got a nil %T; leave the part out, or give its settings", v.Interface())
		}
		part = part.Elem()
	}
	if part.Kind() != reflect.Struct {
		return nil
	}
	inner, err := literalKeys(part)
	maps.Copy(given, inner)
	return err
}

// literalValue returns a field's value as TOML has it; ok is false for one at its zero value.
func literalValue(v reflect.Value) (value any, ok bool, err error) {
	if v.IsZero() {
		return nil, false, nil
	}
	if t, ok := v.Interface().(interface{ TOML() any }); ok {
		return t.TOML(), true, nil
	}
	switch v.Kind() {
	case reflect.Struct:
		inner, err := literalKeys(v)
		return inner, len(inner) > 0, err
	case reflect.Pointer:
		inner, err := literalKeys(v.Elem())
		return inner, true, err
	case reflect.Interface:
		inner := keys{}
		return inner, true, literalPart(inner, "kind", v)
	case reflect.Slice:
		list, err := literalList(v)
		return list, true, err
	case reflect.Map:
		inner, err := literalTables(v)
		return inner, true, err
	}
	return v.Interface(), true, nil
}

// literalList returns the elements of a slice; one at its zero value is a table without keys, or the value itself.
func literalList(v reflect.Value) ([]any, error) {
	list := make([]any, v.Len())
	for i := range list {
		element := v.Index(i)
		value, ok, err := literalValue(element)
		if err != nil {
			return nil, below(fmt.Sprintf("[%d]", i), err)
		}
		switch k := element.Kind(); {
		case ok:
			list[i] = value
		case k == reflect.Struct || k == reflect.Interface || k == reflect.Pointer:
			list[i] = keys{}
		default:
			list[i] = element.Interface()
		}
	}
	return list, nil
}

// literalTables returns the tables of a map by their names. The name of a part is that of its table.
func literalTables(v reflect.Value) (keys, error) {
	tables := keys{}
	for at := v.MapRange(); at.Next(); {
		name, element := at.Key().String(), at.Value()
		value, ok, err := literalValue(element)
		if err != nil {
			return nil, below(name, err)
		}
		if !ok {
			value = keys{}
		}
		if inner, is := value.(keys); is && element.Kind() == reflect.Interface {
			if kind := inner["kind"]; kind != nil && kind != name {
				return nil, fmt.Errorf("%s: the part is %q; its table has the same name", name, kind)
			}
			delete(inner, "kind")
		}
		tables[name] = value
	}
	return tables, nil
}

// below puts a key, or an index, before the path that an error begins with: encoder[0]: ...
func below(key string, err error) error {
	if strings.HasPrefix(err.Error(), "[") {
		return fmt.Errorf("%s%w", key, err)
	}
	return fmt.Errorf("%s: %w", key, err)
}
