package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// isTable reports whether a value is written under a header of its own: a struct that is there, or an array of tables.
func isTable(v reflect.Value) bool {
	if _, ok := v.Interface().(interface{ TOML() any }); ok {
		return false
	}
	switch v.Kind() {
	case reflect.Struct:
		return true
	case reflect.Pointer:
		return !v.IsNil()
	case reflect.Slice:
		k := v.Type().Elem().Kind()
		return k == reflect.Struct || k == reflect.Interface
	}
	return false
}

// valueText prints a value as TOML; ok is false where there is none.
func valueText(v reflect.Value) (text string, ok bool) {
	if t, ok := v.Interface().(interface{ TOML() any }); ok {
		return valueText(reflect.ValueOf(t.TOML()))
	}
	switch {
	case v.Kind() == reflect.String:
		return stringText(v.String()), true
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), true
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), true
	case v.CanFloat():
		return numberText(v.Float()), true
	case v.Kind() == reflect.Slice && v.IsNil(): // not given
		return "", false
	case v.Kind() == reflect.Slice:
		var items []string
		for i := range v.Len() {
			if item, ok := valueText(v.Index(i)); ok {
				items = append(items, item)
			}
		}
		return "[" + strings.Join(items, ", ") + "]", true
	case v.Kind() == reflect.Interface && !v.IsNil():
		return partText(v)
	}
	return "", false
}

// partText prints a registered part inside another: its name, or an inline table when it has settings.
func partText(v reflect.Value) (text string, ok bool) {
	vocab, known := vocabularyOf(v.Type())
	if !known {
		return "", false
	}
	name := stringText(vocab.nameOf(v.Interface()))
	items := []string{"kind = " + name}
	for _, f := range partFields(v.Interface()) {
		if text, ok := valueText(f.value); ok && !unset(f) {
			items = append(items, keyText(f.key)+" = "+text)
		}
	}
	if len(items) == 1 {
		return name, true
	}
	return "{ " + strings.Join(items, ", ") + " }", true
}

// unset reports whether a field holds a number that its key may not be given: the sign of a setting left open.
func unset(f field) bool {
	var n float64
	switch {
	case f.want == "":
		return false
	case f.value.CanInt():
		n = float64(f.value.Int())
	case f.value.CanUint():
		n = float64(f.value.Uint())
	case f.value.CanFloat():
		n = f.value.Float()
	default:
		return false
	}
	ok, err := satisfies(f.want, n)
	return err == nil && !ok
}

// stringText prints a basic TOML string.
func stringText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// keyText prints a key, in quotes where it needs them.
func keyText(key string) string {
	bare := strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
	if bare && key != "" {
		return key
	}
	return stringText(key)
}

func pathText(path []string) string {
	texts := make([]string, len(path))
	for i, k := range path {
		texts[i] = keyText(k)
	}
	return strings.Join(texts, ".")
}
