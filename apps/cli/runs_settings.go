package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tessera/config"
	"tessera/part/table"
)

// compared fills in the settings of each run that differ from the declaration of its model, or from the first run of that model where no
// file declares it.
func (f *runsFlags) compared(runs []listedRun) []listedRun {
	declared, err := f.load()
	if err != nil { // the list of runs does not depend on it
		declared = nil
	}
	bases, first := map[string]map[string]string{}, map[string]map[string]string{}
	for i := range runs {
		r := &runs[i]
		r.Differs = []string{}
		if r.Settings == nil {
			continue
		}
		if first[r.Model] == nil {
			first[r.Model] = r.Settings
		}
		key := fmt.Sprint(r.Model, r.Shape)
		base, ok := bases[key]
		if !ok {
			if base = declaredSettings(declared, r.Model, r.Shape); base == nil {
				base = first[r.Model]
			}
			bases[key] = base
		}
		r.Differs = differing(base, r.Settings)
	}
	return runs
}

// declaredSettings returns the settings of a declared model for samples of a shape, nil if there is none.
func declaredSettings(declared *config.File, name string, shape []int) map[string]string {
	if declared == nil || !slices.Contains(declared.Names(), name) {
		return nil
	}
	m, err := declared.Model(name)
	if err != nil {
		return nil
	}
	if shape != nil {
		m = m.Resolved(shape)
	}
	root, _ := table.Parse(table.NewSource(name, string(config.Fill(m))))
	settings := map[string]string{}
	root.Child("model").Child(name).Leaves("", func(key, value string) { settings[key] = value })
	return settings
}

// differing lists the keys that differ from a base, with their values. A key that only the base has is a default which an earlier version did
// not know, unless the run lacks its whole table.
func differing(base, is map[string]string) []string {
	tables := map[string]bool{}
	for key := range is {
		tables[tableOf(key)] = true
	}
	list, missing := []string{}, map[string]bool{}
	for _, key := range slices.SortedFunc(maps.Keys(is), kindFirst) {
		if key != "about" && base[key] != is[key] {
			list = append(list, key+"="+is[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(base)) {
		if _, ok := is[key]; !ok && !tables[tableOf(key)] && !missing[tableOf(key)] {
			missing[tableOf(key)] = true
			list = append(list, "no "+tableOf(key))
		}
	}
	return list
}

// kindFirst sorts keys, the kind of a table before its other keys.
func kindFirst(a, b string) int {
	first := func(key string) string {
		if table, ok := strings.CutSuffix(key, ".kind"); ok {
			return table + "."
		}
		return key
	}
	return strings.Compare(first(a), first(b))
}

// tableOf is the path of the table that holds a key.
func tableOf(key string) string {
	i := strings.LastIndexByte(key, '.')
	return key[:max(i, 0)]
}
