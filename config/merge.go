package config

import (
	"fmt"
	"slices"
	"strconv"

	"tessera/attack"
)

// selector is the key of a table that chooses the part whose keys the table holds: kind, and name for a data set.
func selector(table string) string {
	if table == "dataset" {
		return "name"
	}
	return "kind"
}

// merger lays tables on each other and collects the indices that lead nowhere.
type merger struct {
	sameLevel bool // both are --set arguments of one command: no kind is an inherited one
	found     []finding
}

// lay lays over on base and returns the result: tables merge, everything else replaces. When the kind of a table
// changes, only the keys of over remain; of a model, see [node.ofKind]. A table laid on a name takes it for { kind = name }. A part of a --set path
// laid on an array goes into the element of that index. base is not changed.
//
// An attack has no kind but a method: one that becomes fgsm loses what only pgd has. A data set has no kind but a name:
// what is taken of the images (fit, limit, validation) stays when it changes, and the keys that only the old set knows do
// not.
func (m *merger) lay(key string, base, over *node) *node {
	if base == nil || over.table == nil || over.whole {
		return over
	}
	_, named := base.text()
	base = spelledOut(base, selector(key))
	switch {
	case base.array && over.path:
		return m.elements(key, base, over)
	case base.table == nil:
		return over
	}
	merged := *base
	merged.table, merged.keys = map[string]*node{}, nil
	merged.whole = merged.whole || named && m.sameLevel
	if !over.path {
		merged.key, merged.at, merged.owner = over.key, over.at, over.owner
	}
	for _, k := range base.keys {
		if m.sameLevel || inherits(key, k, base, over) {
			merged.put(k, base.table[k])
		}
	}
	for _, k := range over.keys {
		merged.put(k, m.lay(k, merged.table[k], over.table[k]))
	}
	return &merged
}

// inherits reports whether over keeps a key of base.
func inherits(table, key string, base, over *node) bool {
	if table == "adversarial" {
		method, _ := over.child("method").text()
		return method != string(attack.FGSM) || !slices.Contains(pgdKeys, key)
	}
	sel := selector(table)
	is, ok := over.child(sel).text()
	if !ok {
		return true
	}
	if was, _ := base.child(sel).text(); was == is {
		return true
	}
	return table == "dataset" && slices.Contains(selectionKeys, key)
}

// elements lays a part of a --set path, whose keys are indices, on an array.
func (m *merger) elements(key string, base, over *node) *node {
	merged := *base
	merged.items = slices.Clone(base.items)
	for _, k := range over.keys {
		i, err := strconv.ParseUint(k, 10, 31)
		if err != nil || int(i) >= len(merged.items) {
			m.found = append(m.found, finding{at: over.table[k].key, owner: over.owner,
				problem: key + ": " + badIndex(k, err == nil, len(merged.items)), hint: noneThere(key, len(merged.items))})
			continue
		}
		merged.items[i] = m.lay("", merged.items[i], over.table[k])
	}
	return &merged
}

func badIndex(key string, number bool, n int) string {
	switch {
	case !number:
		return fmt.Sprintf("got %q, want an index: 0 is the first element", key)
	case n == 0:
		return fmt.Sprintf("index %s is out of range: there are no elements", key)
	}
	return fmt.Sprintf("index %s is out of range: the elements are 0 to %d", key, n-1)
}
