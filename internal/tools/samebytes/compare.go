package main

import (
	"maps"
	"slices"
	"strconv"
)

// missing replaces a value that only base has.
const missing = "missing"

// evalNote says in words what was measured. Its wording is no result.
const evalNote = "eval note"

// A difference is a value that differs between base and now.
type difference struct{ key, base, now string }

// compare returns the values of base that differ, sorted by name, and the names that only now has.
func compare(base, now values) (different []difference, added []string) {
	for _, key := range slices.Sorted(maps.Keys(base)) {
		value, ok := now[key]
		if key == evalNote {
			continue
		}
		if !ok {
			value = missing
		}
		if !ok || !equal(base[key], value) {
			different = append(different, difference{key, base[key], value})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if _, ok := base[key]; !ok {
			added = append(added, key)
		}
	}
	return different, added
}

// equal compares texts, and numbers by their value: 1e-3 and 0.001 are equal.
func equal(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}
