package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"tessera/table"
)

// Difference is a key that two declarations set differently.
type Difference struct {
	Key string // loss.1.weight
	Was string // as TOML; "" where the key is not there
	Is  string
}

// String prints the key with both values.
func (d Difference) String() string {
	switch {
	case d.Was == "":
		return fmt.Sprintf("%s: got %s, want nothing", d.Key, d.Is)
	case d.Is == "":
		return fmt.Sprintf("%s: got nothing, want %s", d.Key, d.Was)
	}
	return fmt.Sprintf("%s: got %s, want %s", d.Key, d.Is, d.Was)
}

// Differences lists what a declaration sets differently than an earlier one, defaults included, sorted by key; of models of
// different kinds the kind alone.
func Differences(was, is *Model) (list []Difference) {
	if was.Kind != is.Kind {
		return []Difference{{"kind", strconv.Quote(was.Kind), strconv.Quote(is.Kind)}}
	}
	before, after := keysOfModel(was), keysOfModel(is)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if before[key] != after[key] {
			list = append(list, Difference{key, before[key], after[key]})
		}
	}
	return list
}

// keysOfModel lists all keys of a model with their values.
func keysOfModel(m *Model) map[string]string {
	all := map[string]string{"name": table.StringText(m.Name)}
	filled(m).Leaves("", func(key, value string) { all[key] = value })
	return all
}
