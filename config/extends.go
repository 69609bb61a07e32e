package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// merged returns a model's table, laid on those of the models that it extends. changed replaces the model's own
// `extends` where it is not nil. The table is partial when one of these models is not known: what it would inherit is
// missing then.
func (f *File) merged(name string, changed *node) (n *node, found []finding, partial bool) {
	n = f.root.child("model").table[name]
	if n.table == nil {
		return nil, []finding{{at: n.key, owner: name, problem: fmt.Sprintf("got %s, want a table: [model.%s]", describe(n), keyText(name))}}, true
	}
	if changed != nil {
		n = n.without("extends")
		n.put("extends", changed)
	}
	return f.inherit(n, []string{name})
}

// inherit lays n, the table of the last model of chain, on the models that it extends. A mistake is reported for the
// first model of the chain only when it is its own: the other models are checked themselves.
func (f *File) inherit(n *node, chain []string) (merged *node, found []finding, partial bool) {
	e := n.child("extends")
	if e == nil {
		return n, nil, false
	}
	models := f.root.child("model")
	parent, ok := e.text()
	if !ok {
		return n, nil, true // decoding reports what extends should be
	}
	next := models.table[parent]
	if next == nil {
		if len(chain) == 1 {
			others := slices.DeleteFunc(slices.Clone(models.keys), func(k string) bool { return k == chain[0] })
			found = append(found, finding{at: e.at, owner: e.owner, problem: fmt.Sprintf("extends: unknown model %q", parent), hint: suggestParent(parent, others)})
		}
		return n, found, true
	}
	if i := slices.Index(chain, parent); i >= 0 {
		return n, f.cycle(n, chain, i), true
	}
	if next.table == nil {
		return n, nil, true
	}
	base, found, partial := f.inherit(next, append(chain, parent))
	if partial {
		return n, found, true
	}
	var m merger // a file has no --set paths, so that nothing can be found
	return m.lay("", base.without("extends").ofKind(n.child("kind")), n), found, false
}

// suggestParent is [suggest], with a word where there is no other model at all.
func suggestParent(parent string, others []string) string {
	if len(others) == 0 {
		return "this file declares no other model; `tessera check --fill MODEL` prints a shipped one to copy"
	}
	hint := suggest(parent, others)
	if _, near := nearest(parent, others); !near {
		hint += "; outside of this folder `tessera check --fill MODEL` prints a shipped one to copy"
	}
	return hint
}

// cycle reports a chain of models that comes back to chain[i], once: for that model of the cycle that stands first in
// the file, when it is the one that is being checked.
func (f *File) cycle(n *node, chain []string, i int) []finding {
	if i > 0 {
		return nil
	}
	for _, k := range f.root.child("model").keys {
		if k == chain[0] {
			break
		}
		if slices.Contains(chain, k) {
			return nil
		}
	}
	first := f.root.child("model").table[chain[0]].child("extends")
	if first == nil {
		first = n.child("extends")
	}
	return []finding{{at: first.at, owner: chain[0], problem: "extends: a cycle: " + strings.Join(append(slices.Clone(chain), chain[0]), " -> ")}}
}

// without returns a table less one key.
func (n *node) without(key string) *node {
	c := *n
	c.keys = slices.DeleteFunc(slices.Clone(n.keys), func(k string) bool { return k == key })
	c.table = maps.Clone(n.table)
	delete(c.table, key)
	return &c
}

// withDefaults lays a model's table on what holds where it says nothing.
func withDefaults(n *node) *node {
	text := implicit
	if kind, ok := n.child("kind").text(); ok && kind != Autoencoder {
		text = implicitBaseline
	}
	root, _ := parse(newSource("", text))
	root.nowhere()
	kind := n.child("kind")
	var m merger
	merged := m.lay("", root, n.without("kind"))
	if kind != nil {
		merged.put("kind", kind)
	}
	return merged
}

// nowhere forgets where a tree is written.
func (n *node) nowhere() {
	n.key, n.at = span{}, span{}
	for _, c := range n.table {
		c.nowhere()
	}
	for _, c := range n.items {
		c.nowhere()
	}
}
