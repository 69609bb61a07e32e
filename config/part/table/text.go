package table

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"tessera/internal/numeral"
)

// SetText sets a field from a text, as a flag or a setting KEY=VALUE gives it: `0.5`, `true`, `10m` or `1,2,3` for a list. The error is of the
// form `got 0, want an integer > 0`.
func (f Field) SetText(text string) error {
	v := f.Value
	if v.Kind() == reflect.Slice {
		list := reflect.MakeSlice(v.Type(), 0, 1)
		for item := range strings.SplitSeq(text, ",") {
			one := Field{f.column, reflect.New(v.Type().Elem()).Elem()}
			if err := one.SetText(strings.TrimSpace(item)); err != nil {
				return err
			}
			list = reflect.Append(list, one.Value)
		}
		v.Set(list)
		return nil
	}
	before := reflect.ValueOf(v.Interface())
	if !f.setText(text) {
		return fmt.Errorf("got %s, want %s%s", textual(text), f.Wanted(), f.near(text))
	}
	if c, ok := v.Interface().(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			v.Set(before)
			return err
		}
	}
	return nil
}

// setText reports whether the text is a valid value, and sets the field if so.
func (f Field) setText(text string) bool {
	v, choices := f.Value, f.Choices()
	switch {
	case choices != nil && !slices.Contains(choices, text):
		return false
	case v.Type() == reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		if err != nil || !f.bounds.hold(float64(d)) {
			return false
		}
		v.SetInt(int64(d))
		return true
	case v.Kind() == reflect.String:
		v.SetString(text)
		return true
	case v.Kind() == reflect.Bool:
		yes, err := strconv.ParseBool(text)
		v.SetBool(yes && err == nil)
		return err == nil
	case v.CanUint():
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil || v.OverflowUint(n) || !f.bounds.hold(float64(n)) {
			return false
		}
		v.SetUint(n)
		return true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return f.SetNumber(n)
	}
	if f.isBytes() {
		n, ok := numeral.ParseBytes(text)
		return ok && f.SetNumber(n)
	}
	n, err := strconv.ParseFloat(text, 64)
	return err == nil && f.SetNumber(n)
}

// isBytes reports whether the field, tagged unit:"bytes", is a number of bytes, whose text may have a unit.
func (f Field) isBytes() bool { return f.Tag.Get("unit") == "bytes" }

// Wanted describes the valid values of a field, or of the elements of a list: "an integer > 0", "one of linf, l2".
func (f Field) Wanted() string {
	t := f.Value.Type()
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch c := f.Choices(); {
	case c != nil:
		return "one of " + strings.Join(c, ", ")
	case t == reflect.TypeFor[time.Duration]():
		return strings.TrimSuffix("a duration "+f.Want, " ") + ", as in 30s or 10m"
	}
	text := typeText(t)
	if f.Want != "" {
		text = strings.TrimSuffix(text, " >= 0") + " " + f.Want
	}
	if f.isBytes() {
		text = "bytes, such as 500MiB or 2GB"
	}
	return text
}

// near suggests the choice that is most similar to a text.
func (f Field) near(text string) string {
	if near, ok := Nearest(text, f.Choices()); ok && text != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// textual returns a value for a message, in quotes unless it is a number.
func textual(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return strconv.Quote(text)
}
