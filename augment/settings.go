package augment

import (
	"fmt"
	"reflect"
	"slices"

	"tessera/part"
	"tessera/part/table"
)

// Check returns an error if images do not have that shape, (height, width) or (height, width, channels), or else the first
// invalid setting of a as a [part.KeyError]: a value that its tags do not allow or for which its method Check() error returns
// an error. Prepare begins with it, because augmentations made in Go have any settings; declarations in TOML are checked when
// they are read.
func Check(a Augmentation, shape []int) error {
	if err := checkShape(shape); err != nil {
		return err
	}
	v := reflect.ValueOf(a)
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("got a nil %T", a)
	}
	if v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct {
		tried := reflect.New(v.Elem().Type()) // a copy: goroutines may share a
		tried.Elem().Set(v.Elem())
		for _, f := range table.Fields(tried.Interface()) {
			if err := allowed(f, f.Value); err != nil {
				return err
			}
		}
	}
	if c, ok := a.(interface{ Check() error }); ok {
		return c.Check()
	}
	return nil
}

// allowed reports a number, an element of a list of numbers, or a text that a field's tags do not allow.
func allowed(f table.Field, v reflect.Value) error {
	ok, want := true, f.Want
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			if err := allowed(f, v.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case v.CanFloat():
		f.Value = v
		ok = f.SetNumber(v.Float())
	case v.CanInt():
		f.Value = v
		ok = f.SetNumber(v.Int())
	case v.Kind() == reflect.String && f.Choices() != nil:
		ok, want = slices.Contains(f.Choices(), v.String()), "one of "+table.Quoted(f.Choices())
	}
	if ok {
		return nil
	}
	if want == "" {
		want = "a number"
	}
	return part.KeyErrorf(f.Key, "got %v, want %s", v, want)
}
