package config

import (
	"reflect"
	"slices"
)

// ofKind returns a model's table as one of the kind that another table gives, nil where it gives none. What models of both
// kinds have stays, such as the data set and the seed; all other keys are dropped.
func (n *node) ofKind(kind *node) *node {
	is, ok := kind.text()
	if !ok {
		return n
	}
	was, ok := n.child("kind").text()
	if !ok {
		was = Autoencoder
	}
	changed := n.without("kind")
	if was != is {
		fields, _ := tableOf(reflect.ValueOf(&Model{}).Elem(), "")
		changed = changed.only(keysOf(fields))
		for _, f := range fields {
			c := changed.child(f.key)
			if f.value.Kind() != reflect.Struct || c == nil || c.table == nil {
				continue
			}
			if inner, slot := tableOf(f.value, is); slot == nil {
				changed.put(f.key, c.only(keysOf(inner)))
			}
		}
	}
	changed.put("kind", kind)
	return changed
}

// only returns a table less the keys that are not among those.
func (n *node) only(keys []string) *node {
	c := *n
	c.table, c.keys = map[string]*node{}, nil
	for _, k := range n.keys {
		if slices.Contains(keys, k) {
			c.put(k, n.table[k])
		}
	}
	return &c
}
