package table

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

// Describe lists the parts of one vocabulary with their keys and defaults, sorted by name; ok is false when there is no
// such vocabulary.
func (l *Language) Describe(title string) (list []Description, ok bool) {
	i := slices.IndexFunc(l.Vocabularies, func(v *Vocabulary) bool { return v.Title == title })
	if i < 0 {
		return nil, false
	}
	v := l.Vocabularies[i]
	for _, name := range v.Names() {
		list = append(list, Description{Name: name, About: v.About(name), Keys: l.keysOf(v, name)})
	}
	return list, true
}

// keysOf describes the keys of the table of one part: those of the part, and those that every such table has, but for what the
// method Refused() []string of the struct around it says.
func (l *Language) keysOf(v *Vocabulary, name string) []KeyDescription {
	part, _ := v.New(name)
	fields := Fields(part)
	if v.Around != nil {
		table := reflect.New(v.Around)
		own, s := l.fieldsOf(table.Elem(), name)
		s.value.Set(reflect.ValueOf(part))
		setDefaults(table.Interface())
		not := []string{s.selector.Key}
		if t, ok := table.Interface().(interface{ Refused() []string }); ok {
			not = append(not, t.Refused()...)
		}
		fields = append(fields, slices.DeleteFunc(own, func(f Field) bool { return slices.Contains(not, f.Key) })...)
	}
	keys := []KeyDescription{}
	w := &Writer{Language: l}
	for _, f := range fields {
		k := KeyDescription{Key: f.Key, Want: f.wanted(), Required: f.Required, Choices: f.Choices(), About: f.Doc}
		if c := w.field(f, ""); c != nil && !c.header && !f.Required {
			k.Default = c.String()
		}
		keys = append(keys, k)
	}
	return keys
}
