package table

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Writer writes structs as TOML, with every default in place.
type Writer struct {
	Language *Language
	Origin   *Origin // knows the names of parts; those of others are found by their type
	Kind     string  // of the outermost table

	out bytes.Buffer
}

// Write returns the text of a table with that path as its header: its values, then its tables. Redundant keys are left
// out: those among omit, and numbers of 0 that their key may not be given, which stand for a setting left open.
func (w *Writer) Write(path []string, table any, omit ...string) []byte {
	fields := slices.DeleteFunc(w.Language.allFields(reflect.ValueOf(table).Elem(), w.Kind), func(f Field) bool { return slices.Contains(omit, f.Key) })
	w.table(path, fields, "[", "]")
	return w.out.Bytes()
}

func (w *Writer) table(path []string, fields []Field, open, end string) {
	if w.out.Len() > 0 {
		w.out.WriteByte('\n')
	}
	fmt.Fprintf(&w.out, "%s%s%s\n", open, pathText(path), end)
	var tables []Field
	for _, f := range fields {
		if f.none && f.Value.Kind() == reflect.Slice && f.Value.Len() == 0 {
			fmt.Fprintf(&w.out, "%s = []\n", KeyText(f.Key))
		} else if isTable(f.Value) {
			tables = append(tables, f)
		} else if text, ok := w.fieldText(f); ok {
			fmt.Fprintf(&w.out, "%s = %s\n", KeyText(f.Key), text)
		}
	}
	for _, f := range tables {
		below := append(slices.Clone(path), f.Key)
		switch f.Value.Kind() {
		case reflect.Slice:
			for i := range f.Value.Len() {
				w.table(below, w.fields(f.Value.Index(i)), "[[", "]]")
			}
		case reflect.Map:
			for _, name := range slices.SortedFunc(slices.Values(f.Value.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
				v := f.Value.MapIndex(name)
				fields := Fields(v.Interface())
				if v.Kind() != reflect.Interface {
					fields = w.fields(v)
				}
				w.table(append(slices.Clone(below), name.String()), fields, "[", "]")
			}
		default:
			w.table(below, w.fields(reflect.Indirect(f.Value)), "[", "]")
		}
	}
}

// fields lists the keys of a table inside of another, that of a part with its kind.
func (w *Writer) fields(v reflect.Value) []Field {
	if v.Kind() == reflect.Interface {
		kind := Field{&column{Key: "kind"}, reflect.ValueOf(w.nameOf(v))}
		return append([]Field{kind}, Fields(v.Interface())...)
	}
	return w.Language.allFields(v, w.Kind)
}

func (w *Writer) nameOf(part reflect.Value) string {
	if name := w.Origin.NameOf(part.Interface()); name != "" {
		return name
	}
	return w.Language.NameOf(part.Interface())
}

// isTable reports whether a value is written under its own header: a struct that is there, an array or a map of tables.
func isTable(v reflect.Value) bool {
	if _, ok := v.Interface().(interface{ TOML() any }); ok {
		return false
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Map:
		return true
	case reflect.Pointer:
		return !v.IsNil() && v.Type() != reflect.TypeFor[*Node]()
	case reflect.Slice:
		k := v.Type().Elem().Kind()
		return k == reflect.Struct || k == reflect.Interface
	}
	return false
}

// fieldText prints the value of a field as TOML; ok is false where there is none.
func (w *Writer) fieldText(f Field) (text string, ok bool) {
	v := f.Value
	if (v.CanInt() || v.CanUint() || v.CanFloat()) && v.IsZero() && !f.bounds.hold(0) {
		return "", false
	}
	if name, key, ok := strings.Cut(f.bare, "."); ok && !v.IsNil() && w.nameOf(v) == name {
		if fields := Fields(v.Interface()); len(fields) == 1 && fields[0].Key == key {
			return w.text(fields[0].Value)
		}
	}
	return w.text(v)
}

func (w *Writer) text(v reflect.Value) (text string, ok bool) {
	if t, ok := v.Interface().(interface{ TOML() any }); ok {
		return w.text(reflect.ValueOf(t.TOML()))
	}
	switch {
	case v.Kind() == reflect.String:
		return StringText(v.String()), true
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10), true
	case v.CanUint():
		return strconv.FormatUint(v.Uint(), 10), true
	case v.CanFloat():
		return NumberText(v.Float()), true
	case v.Kind() == reflect.Slice && v.IsNil(): // not given
		return "", false
	case v.Kind() == reflect.Slice:
		var items []string
		for i := range v.Len() {
			if item, ok := w.text(v.Index(i)); ok {
				items = append(items, item)
			}
		}
		return "[" + strings.Join(items, ", ") + "]", true
	case v.Kind() == reflect.Interface && !v.IsNil():
		return w.partText(v), true
	}
	return "", false
}

// partText prints a part inside another: its name, or an inline table when it has settings.
func (w *Writer) partText(v reflect.Value) string {
	name := StringText(w.nameOf(v))
	items := []string{"kind = " + name}
	for _, f := range Fields(v.Interface()) {
		if text, ok := w.fieldText(f); ok {
			items = append(items, KeyText(f.Key)+" = "+text)
		}
	}
	if len(items) == 1 {
		return name
	}
	return "{ " + strings.Join(items, ", ") + " }"
}

// NumberText prints a float as the shortest TOML value that reads back as the same float.
func NumberText(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// StringText prints a basic TOML string.
func StringText(s string) string {
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

// KeyText prints a key, in quotes where it needs them.
func KeyText(key string) string {
	bare := strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == ""
	if bare && key != "" {
		return key
	}
	return StringText(key)
}
