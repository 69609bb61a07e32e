package config

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Set is one change of a model: --set PATH=VALUE.
type Set struct {
	source *source
	root   *node
	at     span // of the whole change
	passes int  // of Passes, else 0
}

// Passes is a change that a sweep makes by the kind of each of its models: auto-encoders are trained for n epochs, baselines that
// iterate do n iterations, and the others stay as they are.
func Passes(n int) Set { return Set{passes: n} }

// The keys that Passes sets.
const (
	epochsKey     = "train.epochs"
	iterationsKey = "iterations"
)

// index is that of an element, as other languages write it.
var index = regexp.MustCompile(`\[([0-9]+)\]`)

// ParseSet reads PATH=VALUE. PATH is any key of a model, elements of lists by their index from 0 (loss.1.weight);
// VALUE is read as a TOML value, else taken as a string. The error is [*Diagnostics].
func ParseSet(argument string) (Set, error) {
	path, value, ok := strings.Cut(argument, "=")
	src := newSource("", argument)
	src.set = strings.TrimSpace(path)
	fail := func(problem string) (Set, error) {
		f := finding{at: span{src, 0, len(argument)}, problem: problem}
		if dotted := index.ReplaceAllString(src.set, ".$1"); dotted != src.set {
			f.hint = "write " + dotted
		}
		return Set{}, diagnostics([]finding{f})
	}
	switch {
	case invalidUTF8(argument) >= 0:
		return fail("not valid UTF-8")
	case !ok || src.set == "":
		src.set = strings.TrimSpace(argument)
		return fail("want PATH=VALUE, such as train.batch=64")
	case strings.ContainsAny(path, "[]{}#\r\n"):
		return fail("not a path of keys, such as train.batch or loss.1.weight")
	}
	if root, found := parse(src); root != nil && len(found) == 0 && single(root) {
		root.path = true
		return Set{source: src, root: root, at: span{src, 0, len(argument)}}, nil
	}
	quotedSource := newSource("", path+`=""`)
	quotedSource.set = src.set
	root, found := parse(quotedSource)
	if root == nil || len(found) > 0 || !single(root) {
		return fail("not a path of keys, such as train.batch or loss.1.weight")
	}
	leaf := root
	for leaf.table != nil {
		leaf = leaf.table[leaf.keys[0]]
	}
	leaf.leaf = value
	root.path = true
	root.within(src, span{src, len(argument) - len(value), len(argument)})
	return Set{source: src, root: root, at: span{src, 0, len(argument)}}, nil
}

// single reports whether a tree is one path: an argument with line breaks may hold more.
func single(n *node) bool {
	for n.table != nil && (n.path || n.key.src == nil) {
		if len(n.keys) != 1 {
			return false
		}
		n = n.table[n.keys[0]]
	}
	return true
}

// within moves the places of a path, whose value was read from another text, to src.
func (n *node) within(src *source, value span) {
	if n.key.src != nil {
		n.key.src = src
	}
	if n.table == nil {
		n.at = value
		return
	}
	n.at = n.key
	for _, c := range n.table {
		c.within(src, value)
	}
}

// combined lays the --set arguments on each other: together they are one level of keys.
func combined(sets []Set) (*node, []finding) {
	var all *node
	m := merger{sameLevel: true}
	for _, s := range sets {
		if s.root != nil {
			all = m.lay("", all, s.root)
		}
	}
	return all, m.found
}

// suited appends the --set arguments to the changes of a trial, Passes as the key of what the model then is.
func (f *File) suited(model string, changes, sets []Set) []Set {
	passes := func(s Set) bool { return s.passes > 0 }
	if !slices.ContainsFunc(sets, passes) {
		return append(changes, sets...)
	}
	key := epochsKey
	changed := slices.DeleteFunc(slices.Concat(changes, sets), passes)
	if m, _ := f.build(model, changed); m != nil && m.Baseline != nil {
		key = ""
		fields, _ := tableOf(reflect.ValueOf(m.Baseline).Elem(), "")
		if slices.ContainsFunc(fields, func(k field) bool { return k.key == iterationsKey }) {
			key = iterationsKey
		}
	}
	for _, s := range sets {
		if s.passes > 0 {
			if key == "" {
				continue
			}
			s, _ = ParseSet(key + "=" + strconv.Itoa(s.passes)) // which is well formed
		}
		changes = append(changes, s)
	}
	return changes
}
