package laws

import (
	"fmt"
	"reflect"
)

// Set gives the setting of part, a pointer to a struct, whose TOML key is key that value. Embedded structs are searched
// too.
func Set(part any, key string, value any) error {
	field, ok := setting(reflect.ValueOf(part).Elem(), key)
	if !ok {
		return fmt.Errorf("%T has no key %q", part, key)
	}
	v := reflect.ValueOf(value)
	if t, ok := field.Addr().Interface().(interface{ FromTOML(any) error }); ok && v.Type() != field.Type() {
		if v.CanInt() {
			value = v.Int() // as TOML is read
		}
		return t.FromTOML(value)
	}
	if v.Type().AssignableTo(field.Type()) {
		field.Set(v)
		return nil
	}
	if v.Kind() != field.Kind() && !(v.CanInt() && field.CanFloat()) {
		return fmt.Errorf("%T: %s: got %T, want %s", part, key, value, field.Type())
	}
	field.Set(v.Convert(field.Type()))
	return nil
}

func setting(part reflect.Value, key string) (reflect.Value, bool) {
	for i := range part.NumField() {
		f := part.Type().Field(i)
		if f.Tag.Get("toml") == key {
			return part.Field(i), true
		}
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			if v, ok := setting(part.Field(i), key); ok {
				return v, true
			}
		}
	}
	return reflect.Value{}, false
}
