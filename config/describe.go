package config

import (
	"reflect"
	"slices"
)

// Description is one registered part as `tessera list` shows it.
type Description struct {
	Name  string           `json:"name"`
	About string           `json:"about"`
	Keys  []KeyDescription `json:"keys"`
}

// KeyDescription is one key of a part's table.
type KeyDescription struct {
	Key      string   `json:"key"`
	Want     string   `json:"want"`              // "an integer > 0"
	Default  string   `json:"default,omitempty"` // as TOML; "" where the key must be given or may be left open
	Required bool     `json:"required,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	About    string   `json:"about"`
}

// Vocabularies lists what can be described: "layers", "losses", ...
func Vocabularies() []string {
	var titles []string
	for _, v := range vocabularies {
		titles = append(titles, v.title)
	}
	return titles
}

// Describe lists the parts of one vocabulary with their keys and defaults, sorted by name; ok is false when there is no
// such vocabulary.
func Describe(title string) (list []Description, ok bool) {
	i := slices.IndexFunc(vocabularies, func(v vocabulary) bool { return v.title == title })
	if i < 0 {
		return nil, false
	}
	v := vocabularies[i]
	for _, name := range v.names() {
		list = append(list, Description{Name: name, About: v.about(name), Keys: v.keysOf(name)})
	}
	return list, true
}

// keysOf describes the keys of the table of one part: those of the part, and those that every such table has.
func (v vocabulary) keysOf(name string) []KeyDescription {
	part, _ := v.create(name)
	fields := partFields(part)
	if v.table != nil {
		table := reflect.New(v.table).Elem()
		_, s := tableOf(table, name)
		s.value.Set(reflect.ValueOf(part))
		setDefaults(table)
		own, _ := tableOf(table, name)
		not := []string{s.selector.key}
		if t, ok := table.Addr().Interface().(interface{ refused() []string }); ok {
			not = append(not, t.refused()...)
		}
		fields = append(fields, slices.DeleteFunc(own, func(f field) bool { return slices.Contains(not, f.key) })...)
	}
	keys := []KeyDescription{}
	for _, f := range fields {
		k := KeyDescription{Key: f.key, Want: wanted(f), Required: f.required, Choices: f.choices(), About: f.doc}
		if text, ok := valueText(f.value); ok && !isTable(f.value) && !unset(f) && !f.required {
			k.Default = text
		}
		keys = append(keys, k)
	}
	return keys
}
