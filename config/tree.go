package config

import (
	"fmt"
	"strconv"
	"strings"
)

// node is one value of a declaration with the place where it is written. It is a table, an array, or a scalar.
type node struct {
	key   span // the key, or the last part of the table's header
	at    span // the value; of a table or an element under a header, the header's name
	owner string

	table map[string]*node // nil when it is not a table
	keys  []string         // of table, as they are written
	items []*node          // of an array
	array bool
	leaf  any // of a scalar: string, int64, float64, bool or a time

	header bool // the table has a header of its own
	path   bool // the table stands only for a part of a --set path
	whole  bool // the table replaces what it is laid on, as the name that it was would
}

func newTable() *node { return &node{table: map[string]*node{}} }

// put adds or replaces a key of a table.
func (n *node) put(key string, value *node) {
	if _, ok := n.table[key]; !ok {
		n.keys = append(n.keys, key)
	}
	n.table[key] = value
}

// child returns the value of a key, nil when n is no table or has no such key.
func (n *node) child(key string) *node {
	if n == nil || n.table == nil {
		return nil
	}
	return n.table[key]
}

// value returns the value of a key, or that of "key[1]", an element of an array.
func (n *node) value(key string) *node {
	name, index, ok := strings.Cut(strings.TrimSuffix(key, "]"), "[")
	c := n.child(name)
	if i, err := strconv.Atoi(index); ok && err == nil && c != nil && i < len(c.items) {
		return c.items[i]
	}
	return c
}

// text returns the string that n is.
func (n *node) text() (string, bool) {
	if n == nil || n.table != nil || n.array {
		return "", false
	}
	s, ok := n.leaf.(string)
	return s, ok
}

// plain returns the value without its places.
func (n *node) plain() any {
	switch {
	case n.table != nil:
		m := make(map[string]any, len(n.table))
		for k, v := range n.table {
			m[k] = v.plain()
		}
		return m
	case n.array:
		list := make([]any, len(n.items))
		for i, v := range n.items {
			list[i] = v.plain()
		}
		return list
	}
	return n.leaf
}

// own notes that a model's tables are the ones in which n is written.
func (n *node) own(model string) {
	n.owner = model
	for _, c := range n.table {
		c.own(model)
	}
	for _, c := range n.items {
		c.own(model)
	}
}

// find returns the part of n that a table in it is, such as "encoder[0]".
func (n *node) find(table *node, part string) (string, bool) {
	if n == table {
		return part, true
	}
	for i, c := range n.items {
		if found, ok := c.find(table, fmt.Sprintf("%s[%d]", part, i)); ok {
			return found, true
		}
	}
	for _, k := range n.keys {
		below := place{part: part}.key(k).part
		if found, ok := n.table[k].find(table, below); ok {
			return found, true
		}
	}
	return "", false
}

// holder returns the key of the tables of n that a table is in, and the part of that one that it is.
func (n *node) holder(table *node) (name, part string, ok bool) {
	if n == nil {
		return "", "", false
	}
	for _, k := range n.keys {
		if part, ok := n.table[k].find(table, ""); ok {
			return k, part, true
		}
	}
	return "", "", false
}
