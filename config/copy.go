package config

import (
	"reflect"

	"tessera/layers"
)

// copyOf returns a layer with the same settings, those inside of it copied too, so that what a layout fills in (numbers of
// outputs, borrowed shapes) does not change the declaration.
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
