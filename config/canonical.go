package config

import (
	"iter"
	"maps"
	"slices"

	"tessera/part/table"
)

// Canonical returns the settings of a model that differ from their defaults, and its name, as a text. Models that are trained and measured
// alike have equal texts: the order of keys, the spelling of numbers, defaults that are written and the description do not
// count, nor do settings that a later version adds with a default.
func (m *Model) Canonical() []byte {
	defaults, kind := &Model{}, table.NewTable()
	kind.Put("kind", table.NewTable().NewScalar(m.Kind))
	defaults.decode(withDefaults(kind), true, &File{})
	w := &table.Writer{Language: language, Origin: m.origin, Kind: m.Kind}
	n, _ := w.Departures(m.Resolved(m.shape), defaults, "extends", "about") // cannot fail: the parts are registered
	return []byte(table.StringText(m.Name) + " " + n.String() + "\n")
}

// Settings yields the dotted key and the value, as TOML, of every setting of a model, in alphabetical order, defaults and the name
// included.
func (m *Model) Settings() iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		all := keysOfModel(m)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !yield(key, all[key]) {
				return
			}
		}
	}
}
