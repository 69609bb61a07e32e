package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"
	"tessera/data"
)

// LiteralName is the name of a model from a struct literal that gives none.
const LiteralName = "model"

// Complete returns the checked model that a struct literal declares: a copy with every default in place, as [File.Model] returns
// one. m keeps its values. A field at its zero value takes the default; to set a value that is zero (bias = false, the weight 0),
// give it as a change: ParseSet("encoder.0.bias=false"). Kinds need not be given: the type of a part says its kind.
//
// Parts must be registered, since the run's config.toml names them. The images of [data.FromFloats] are kept as they are. Errors are
// [*Diagnostics], which name the model, the part and the key: `model "m": encoder[0] (dense): units: got -3, want an integer > 0`.
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
	memory, _ := m.Dataset.Source.(*data.Memory)
	complete, err := f.Model(name, changes...)
	if err == nil && memory != nil && complete.Dataset.Name == data.MemoryName {
		complete.Dataset.Source = memory
		err = complete.fitsImages(memory)
	}
	if err != nil {
		return nil, placeless(err)
	}
	return complete, nil
}

// fitsImages checks what depends on the shape of images that the text does not know.
func (m *Model) fitsImages(images *data.Memory) error {
	shape, ok := images.Shape(nil)
	if !ok || m.Baseline != nil {
		return nil
	}
	if found := m.check(shape); len(found) > 0 {
		return diagnostics(found)
	}
	return nil
}

// placeless returns diagnostics without lines and carets, which nobody has written; those of changes keep theirs.
func placeless(err error) error {
	var found *Diagnostics
	if !errors.As(err, &found) {
		return err
	}
	all := &Diagnostics{}
	for _, d := range found.List {
		if d.Set == "" {
			d.File, d.Line, d.Column, d.Width, d.SourceLine = "", 0, 0, 0, ""
		}
		all.List = append(all.List, d)
	}
	return all
}

// literalText writes what a literal gives as a declaration.
func literalText(m *Model, name string) ([]byte, error) {
	table, err := literalTable(reflect.ValueOf(m).Elem())
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	e.Indent = ""
	if err := e.Encode(map[string]any{"model": map[string]any{name: table}}); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// literalTable returns the keys that a struct gives: those of its fields that are not zero, and those of its part.
func literalTable(v reflect.Value) (map[string]any, error) {
	table := map[string]any{}
	for i := range v.NumField() {
		f, tag := v.Type().Field(i), v.Type().Field(i).Tag
		switch {
		case !f.IsExported():
		case tag.Get("part") != "":
			selector, _, _ := strings.Cut(tag.Get("part"), ",")
			if err := literalPart(table, selector, v.Field(i)); err != nil {
				return nil, err
			}
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			inner, err := literalTable(v.Field(i))
			if err != nil {
				return nil, err
			}
			for key, value := range inner {
				table[key] = value
			}
		case tag.Get("toml") != "":
			value, given, err := literalValue(v.Field(i))
			if err != nil {
				return nil, below(tag.Get("toml"), err)
			}
			if given {
				table[tag.Get("toml")] = value
			}
		}
	}
	return table, nil
}

// literalPart adds the name and the keys of a registered part to the table that it belongs to.
func literalPart(table map[string]any, selector string, v reflect.Value) error {
	if v.IsNil() {
		return nil
	}
	vocab, known := vocabularyOf(v.Type())
	name := ""
	if known {
		name = vocab.nameOf(v.Interface())
	}
	if name == "" {
		return fmt.Errorf("%T is not registered: register it, so that a run can name it", v.Interface())
	}
	if given, ok := table[selector]; ok && given != name {
		return fmt.Errorf("%s: got %q, but the part is %q; leave it out", selector, given, name)
	}
	table[selector] = name
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
	keys, err := literalTable(part)
	for key, value := range keys {
		table[key] = value
	}
	return err
}

// literalValue returns a field's value as TOML has it; given is false for one at its zero value.
func literalValue(v reflect.Value) (value any, given bool, err error) {
	if v.IsZero() {
		return nil, false, nil
	}
	if t, ok := v.Interface().(interface{ TOML() any }); ok {
		return t.TOML(), true, nil
	}
	switch v.Kind() {
	case reflect.Struct:
		table, err := literalTable(v)
		return table, len(table) > 0, err
	case reflect.Pointer:
		table, err := literalTable(v.Elem())
		return table, true, err
	case reflect.Interface:
		table := map[string]any{}
		return table, true, literalPart(table, "kind", v)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			if list[i], given, err = literalValue(v.Index(i)); err != nil {
				return nil, false, below(fmt.Sprintf("[%d]", i), err)
			}
			if !given {
				list[i] = elementZero(v.Index(i))
			}
		}
		return list, true, nil
	}
	return v.Interface(), true, nil
}

// below puts a key, or an index, before the path that an error begins with: encoder[0]: ...
func below(key string, err error) error {
	if strings.HasPrefix(err.Error(), "[") {
		return fmt.Errorf("%s%w", key, err)
	}
	return fmt.Errorf("%s: %w", key, err)
}

// elementZero is an element of a list at its zero value: a table without keys, or the value itself.
func elementZero(v reflect.Value) any {
	if k := v.Kind(); k == reflect.Struct || k == reflect.Interface || k == reflect.Pointer {
		return map[string]any{}
	}
	return v.Interface()
}
