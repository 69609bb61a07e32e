package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"
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
	var file struct{ Model map[string]map[string]any }
	_, _ = toml.Decode(string(Fill(m)), &file) // what Fill writes is TOML
	all := map[string]string{"name": strconv.Quote(m.Name)}
	flatten(all, "", file.Model[m.Name])
	return all
}

// flatten adds the values below a key.
func flatten(all map[string]string, key string, value any) {
	at := func(below string) string {
		if key == "" {
			return below
		}
		return key + "." + below
	}
	switch v := value.(type) {
	case map[string]any:
		for k, below := range v {
			flatten(all, at(k), below)
		}
	case []map[string]any:
		for i, below := range v {
			flatten(all, at(strconv.Itoa(i)), below)
		}
	case []any:
		for i, below := range v {
			flatten(all, at(strconv.Itoa(i)), below)
		}
	case string:
		all[key] = strconv.Quote(v)
	default:
		all[key] = fmt.Sprint(v)
	}
}
