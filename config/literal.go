package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"tessera/data"
	"tessera/layers"
	"tessera/part/table"
)

// LiteralName is the default name of a model from a struct literal.
const LiteralName = "model"

// Complete returns the checked model of a struct literal: a copy with all defaults, as from [File.Model]. m is not changed.
// A field with the zero value gets the default. To set a zero value (bias = false, weight 0), pass a change:
// ParseSet("encoder.0.bias=false"). Required numbers, such as the last weight of
// a schedule (losses.Linear), are taken as they are. Kinds are optional: the type of a part determines its kind.
//
// Parts must be registered, because the run's config.toml names them. The images of [data.FromFloats] are not copied.
// Errors are [*table.Diagnostics], which name the model, the part and the key: `model "m": encoder[0] (dense): units: got
// -3, want an integer > 0`.
func Complete(m *Model, changes ...Set) (*Model, error) {
	if m == nil {
		return nil, errors.New("config: the model is nil")
	}
	name := cmp.Or(m.Name, LiteralName)
	tree, err := (&table.Writer{Language: language, Given: true}).Tree(m)
	if err != nil {
		return nil, fmt.Errorf("model %q: %w", name, err)
	}
	root, models := table.NewTable(), table.NewTable()
	root.Put("model", models)
	models.Put(name, tree)
	f := newFile(table.NewSource(name, ""), root)
	f.images, _ = m.Dataset.Source.(*data.Memory)
	complete, err := f.Model(name, changes...)
	if err != nil {
		return nil, err
	}
	return complete, nil
}

// Difference is a key with different values in two declarations.
type Difference struct {
	Key string // loss.1.weight
	Was string // as TOML; "" if the key is missing
	Is  string
}

// String prints the key with both values.
func (d Difference) String() string {
	switch {
	case d.Was == "":
		return fmt.Sprintf("%s: got %s, want nothing", d.Key, d.Is)
	case d.Is == "":
		return fmt.Sprintf("%s: got nothing, want %s", d.Key, d.Was)
	}
	return fmt.Sprintf("%s: got %s, want %s", d.Key, d.Is, d.Was)
}

// Differences lists the keys, sorted, whose values differ between a declaration and an earlier one, defaults included. For
// models of different kinds it lists only the kind.
func Differences(was, is *Model) (list []Difference) {
	if was.Kind != is.Kind {
		return []Difference{{"kind", strconv.Quote(was.Kind), strconv.Quote(is.Kind)}}
	}
	before, after := keysOfModel(was), keysOfModel(is)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if before[key] != after[key] {
			list = append(list, Difference{key, before[key], after[key]})
		}
	}
	return list
}

// keysOfModel lists all keys of a model with their values.
func keysOfModel(m *Model) map[string]string {
	all := map[string]string{"name": table.StringText(m.Name)}
	n, _ := filled(m)
	n.Leaves("", func(key, value string) { all[key] = value })
	return all
}

// copyOf returns a deep copy of a layer: a layout sets numbers of outputs and borrowed shapes without changing the
// declaration.
func copyOf(l layers.Layer) layers.Layer {
	v := reflect.ValueOf(l)
	if l == nil || v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return l
	}
	c := reflect.New(v.Elem().Type())
	c.Elem().Set(v.Elem())
	for i := range c.Elem().NumField() {
		f := c.Elem().Field(i)
		if f.Kind() != reflect.Slice || f.IsNil() || !f.CanSet() || f.Type().Elem() != reflect.TypeFor[layers.Layer]() {
			continue
		}
		list := reflect.MakeSlice(f.Type(), f.Len(), f.Len())
		for k := range f.Len() {
			if inner, ok := f.Index(k).Interface().(layers.Layer); ok {
				list.Index(k).Set(reflect.ValueOf(copyOf(inner)))
			}
		}
		f.Set(list)
	}
	return c.Interface().(layers.Layer)
}
