package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value decodes one value into a field. It reports what is wrong and returns whether nothing was.
func (d *decoder) value(n *node, f field, p place) bool {
	before := len(d.found)
	v := f.value
	if t, ok := v.Addr().Interface().(interface{ FromTOML(any) error }); ok {
		if err := t.FromTOML(n.plain()); err != nil {
			d.refuse(n, f, p, err.Error(), "")
		}
		return len(d.found) == before
	}
	switch v.Kind() {
	case reflect.Interface:
		d.part(n, v, p.key(f.key))
	case reflect.Struct:
		d.table(n, v, p.key(f.key))
	case reflect.Pointer: // a table that is absent by default
		t := reflect.New(v.Type().Elem())
		d.table(n, t.Elem(), p.key(f.key))
		v.Set(t)
	case reflect.Slice:
		d.list(n, f, p)
	default:
		d.scalar(n, f, p)
	}
	return len(d.found) == before
}

func (d *decoder) refuse(n *node, f field, p place, problem, hint string) {
	d.report(p, n.at, n.owner, f.key+": "+problem, hint)
}

// part decodes a value whose type is the interface of a registry: a name, or a table with a kind.
func (d *decoder) part(n *node, v reflect.Value, p place) {
	vocab, ok := vocabularyOf(v.Type())
	if !ok {
		d.report(p, n.at, n.owner, fmt.Sprintf("no registry of %s", v.Type()), "")
		return
	}
	if n = spelledOut(n, "kind"); n.table == nil {
		d.report(p, n.at, n.owner, fmt.Sprintf("got %s, want a name or a table", describe(n)), "valid: "+quoted(vocab.names()))
		return
	}
	d.origin.tables[p.part] = n
	kind := vocab.nameOf(v.Interface())
	selector := field{key: "kind", value: reflect.ValueOf(&kind).Elem()}
	kind, ok = d.choose(n, v, &slot{value: v, vocabulary: vocab, selector: selector}, p)
	if !ok {
		d.doubt(p).whole = true
		return
	}
	p.kind = kind
	fields := partFields(v.Interface())
	before := len(d.found)
	d.keys(n, fields, append([]field{selector}, fields...), p)
	if len(d.found) == before {
		d.check(n, v.Interface(), fields, p)
	}
}

// list decodes an array: of tables, or of scalars.
func (d *decoder) list(n *node, f field, p place) {
	element := f.value.Type().Elem()
	tables := element.Kind() == reflect.Struct || element.Kind() == reflect.Interface
	if n.table != nil && n.path { // of a --set path, with nothing that it could lead into
		d.found = append(d.found, d.noElements(n, f.key, tables, p)...)
		return
	}
	if !n.array {
		want, hint := "an array", ""
		if !tables {
			hint = bracketed(n, f)
		}
		if tables {
			want = fmt.Sprintf("an array of tables: [[%s]]", pathText(append([]string{"model", d.model}, p.key(f.key).keys()...)))
		}
		d.refuse(n, f, p, fmt.Sprintf("got %s, want %s", describe(n), want), hint)
		return
	}
	list := reflect.MakeSlice(f.value.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		at := p.key(f.key).element(i)
		switch element.Kind() {
		case reflect.Struct:
			d.table(item, list.Index(i), at)
		case reflect.Interface:
			d.part(item, list.Index(i), at)
		default:
			one := f
			one.key, one.value = fmt.Sprintf("%s[%d]", f.key, i), list.Index(i)
			d.scalar(item, one, p)
		}
	}
	f.value.Set(list)
}

// scalar decodes a boolean, a number or a string.
func (d *decoder) scalar(n *node, f field, p place) {
	v := f.value
	text, isText := n.text()
	choices := f.choices()
	switch {
	case choices != nil:
		if !isText {
			d.refuse(n, f, p, fmt.Sprintf("got %s, want a name", describe(n)), "valid: "+quoted(choices))
		} else if !slices.Contains(choices, text) {
			d.refuse(n, f, p, fmt.Sprintf("unknown name %q", text), suggest(text, choices))
		} else {
			v.SetString(text)
		}
		return
	case v.Kind() == reflect.String:
		if isText {
			v.SetString(text)
			return
		}
	case v.Kind() == reflect.Bool:
		if b, ok := n.leaf.(bool); ok {
			v.SetBool(b)
			return
		}
	default:
		if setNumber(v, n.leaf, f.want) {
			return
		}
	}
	if _, err := strconv.ParseInt(text, 10, 64); isText && errors.Is(err, strconv.ErrRange) && v.Kind() != reflect.String && v.Kind() != reflect.Bool {
		hint := ""
		if v.CanFloat() {
			hint = "write " + text + ".0"
		}
		d.refuse(n, f, p, fmt.Sprintf("got %s, which is too large for an integer: want %s", text, wanted(f)), hint)
		return
	}
	d.refuse(n, f, p, fmt.Sprintf("got %s, want %s", describe(n), wanted(f)), "")
}

// setNumber sets a numeric field when it can hold the value and want allows it.
func setNumber(v reflect.Value, value any, want string) bool {
	whole, isWhole := value.(int64)
	real, isReal := value.(float64)
	if isWhole {
		real = float64(whole)
	}
	if ok, err := satisfies(want, real); !ok || err != nil {
		return false
	}
	switch {
	case v.CanFloat() && (isWhole || isReal):
		v.SetFloat(real)
	case v.CanInt() && isWhole && !v.OverflowInt(whole):
		v.SetInt(whole)
	case v.CanUint() && isWhole && whole >= 0 && !v.OverflowUint(uint64(whole)):
		v.SetUint(uint64(whole))
	default:
		return false
	}
	return true
}

// wanted describes the values that a field takes.
func wanted(f field) string {
	if c := f.choices(); c != nil {
		return "one of " + quoted(c)
	}
	if _, ok := f.value.Addr().Interface().(interface{ FromTOML(any) error }); ok {
		return "" // the type says what it wants
	}
	text := typeText(f.value.Type())
	if f.want != "" {
		text += " " + f.want
	}
	return text
}

// typeText names a type as users of TOML do.
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

// describe names a value as it was given.
func describe(n *node) string {
	switch {
	case n.table != nil:
		return "a table"
	case n.array:
		return "an array"
	}
	switch v := n.leaf.(type) {
	case string:
		return shortened(strconv.Quote(v))
	case float64:
		return numberText(v)
	case time.Time:
		return "a date or time"
	}
	return fmt.Sprint(n.leaf)
}

func shortened(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:36]) + `..."`
	}
	return text
}

// numberText prints a float as the shortest TOML value that reads back as the same float.
func numberText(v float64) string {
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
