package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
)

// Fill writes a model as TOML with every default in place and inheritance resolved. The text declares that one model;
// it decodes to the same model, and is what a run keeps to be trained again from.
func Fill(m *Model) []byte {
	var b bytes.Buffer
	w := &writer{out: &b, kind: m.Kind}
	w.table([]string{"model", m.Name}, modelFields(m), "[", "]")
	return b.Bytes()
}

type writer struct {
	out  *bytes.Buffer
	kind string // of the model
}

// modelFields lists the keys of a model that say something.
func modelFields(m *Model) []field {
	return slices.DeleteFunc(allFields(reflect.ValueOf(m).Elem(), m.Kind), func(f field) bool {
		return f.key == "extends" || f.key == "about" && m.About == "" || f.key == "kind" && m.Baseline == nil
	})
}

// allFields lists the keys of a table with those of its part, which follow the selecting key.
func allFields(v reflect.Value, kind string) []field {
	if v.Kind() == reflect.Interface {
		vocab, _ := vocabularyOf(v.Type())
		name := vocab.nameOf(v.Interface())
		return append([]field{{key: "kind", value: reflect.ValueOf(name)}}, partFields(v.Interface())...)
	}
	fields, s := tableOf(v, kind)
	if s == nil || s.value.IsNil() {
		return fields
	}
	i := slices.IndexFunc(fields, func(f field) bool { return f.key == s.selector.key }) + 1
	return slices.Concat(fields[:i], partFields(s.value.Interface()), fields[i:])
}

// table writes one table: its header, its values, then its tables.
func (w *writer) table(path []string, fields []field, open, end string) {
	if w.out.Len() > 0 {
		w.out.WriteByte('\n')
	}
	fmt.Fprintf(w.out, "%s%s%s\n", open, pathText(path), end)
	var tables []field
	for _, f := range fields {
		if isTable(f.value) {
			tables = append(tables, f)
		} else if text, ok := valueText(f.value); ok && !unset(f) {
			fmt.Fprintf(w.out, "%s = %s\n", keyText(f.key), text)
		}
	}
	for _, f := range tables {
		below := append(slices.Clone(path), f.key)
		if f.value.Kind() != reflect.Slice {
			w.table(below, allFields(reflect.Indirect(f.value), w.kind), "[", "]")
			continue
		}
		for i := range f.value.Len() {
			w.table(below, allFields(f.value.Index(i), w.kind), "[[", "]]")
		}
	}
}
