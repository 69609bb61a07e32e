package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"tessera/losses"
)

// resolveNames replaces the names of layers by their paths in all keys that name values or parameters: "trunk.mean" becomes
// "encoder.6.mean", and the glob "trunk.*" becomes "encoder.6.*".
func (m *Model) resolveNames() {
	paths := map[string]string{}
	for path, list := range m.stackLists() {
		for i, l := range list {
			if l.Name != "" && paths[l.Name] == "" && m.misnamedValue("layer", l.Name) == "" {
				paths[l.Name] = layerPath(path, i)
			}
		}
	}
	if len(paths) == 0 {
		return
	}
	for _, v := range []any{m.Encoder, m.Decoder, m.Heads, m.Losses, m.Constraints, m.Freeze, m.Start, m.Players, m.Hooks} {
		replaceNames(reflect.ValueOf(v), func(text string) string {
			name, _, _ := strings.Cut(text, ".")
			if path := paths[name]; path != "" {
				return path + text[len(name):]
			}
			return text
		})
	}
}

// stackLists returns the layers of the encoder, the decoder and the heads by the paths of these stacks.
func (m *Model) stackLists() map[string][]Layer {
	all := map[string][]Layer{"encoder": m.Encoder, "decoder": m.Decoder}
	for name, h := range m.Heads {
		all[headPart(name)] = h.Layers
	}
	return all
}

// replaceNames applies a function to every text of a part, except for names and kinds, and for texts that are one of a list.
func replaceNames(v reflect.Value, replace func(string) string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			replaceNames(v.Elem(), replace)
		}
	case reflect.Slice:
		for i := range v.Len() {
			replaceNames(v.Index(i), replace)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			one := reflect.New(v.Type().Elem()).Elem() // values of a map cannot be set
			one.Set(v.MapIndex(key))
			replaceNames(one, replace)
			v.SetMapIndex(key, one)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Tag.Get("oneof") == "" && f.IsExported() && f.Tag.Get("toml") != "name" && f.Tag.Get("toml") != "kind" {
				replaceNames(v.Field(i), replace)
			}
		}
	case reflect.String:
		if _, choices := v.Interface().(interface{ Choices() []string }); !choices && v.CanSet() {
			v.SetString(replace(v.String()))
		}
	}
}

// reservedValues lists the names that no value of a model can have in addition to its own.
var reservedValues = []string{losses.Code, losses.Output, losses.Atoms, losses.Images, losses.Labels, "views", "loss", "teacher", Previous}

// misnamedValue returns the reason why a head or a layer cannot have a name, "" if it can.
func (m *Model) misnamedValue(what, name string) string {
	_, drawn := m.Drawn[name]
	switch {
	case slices.Contains(reservedValues, name) || what == "layer" && slices.Contains([]string{"encoder", "decoder", "head"}, name):
		return fmt.Sprintf("invalid name %q of a %s: the name is reserved", name, what)
	case name == "" || strings.ContainsAny(name, `./*?[]\ `):
		return fmt.Sprintf("invalid name %q of a %s: parameter paths contain the name", name, what)
	case m.hasColumn(name):
		return fmt.Sprintf("invalid name %q of a %s: the data set has a column of this name", name, what)
	case drawn:
		return fmt.Sprintf("invalid name %q of a %s: a drawn column has this name", name, what)
	case what == "layer" && (m.hasHead(name) || m.Hooks[name] != nil):
		return fmt.Sprintf("invalid name %q of a layer: a head or a hook has this name", name)
	}
	return ""
}
