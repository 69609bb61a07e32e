package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/agnivade/levenshtein"
	"tessera/layers"
)

// Suggest returns what a name that is not among the valid ones was probably meant to be, in words: the nearest one, or all of them
// when none is near.
func Suggest(name string, valid []string) string { return suggest(name, valid) }

// suggest returns what a name that is not among the valid ones was probably meant to be: the nearest one, or all of
// them when none is near.
func suggest(name string, valid []string) string {
	if len(valid) == 0 {
		return ""
	}
	if near, ok := nearest(name, valid); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "valid: " + quoted(valid)
}

// suggestKey is [suggest] for a key that a table n does not have. Who names a key of a table of the model meant that one; who gives
// a layer an activation that it does not take meant a layer of its own.
func suggestKey(key string, n *node, valid []field, p place, model string) string {
	if p.part == "" {
		if path, ok := inside(key, n, valid, model); ok {
			return fmt.Sprintf("did you mean %q?", path)
		}
	}
	_, near := nearest(key, keysOf(valid))
	_, inLayer := layers.Registry.Lookup(p.kind)
	if text, ok := n.child(key).text(); ok && inLayer && !near && key == "activation" {
		if _, ok := layers.Registry.Lookup(text); ok {
			return fmt.Sprintf("here it is a layer of its own: put { kind = %q } after this one", text)
		}
	}
	return suggest(key, keysOf(valid))
}

// inside finds the key in the tables that are among the fields of a model n of that kind: "train.epochs" for epochs. What every
// such table has comes before what one has by its own kind.
func inside(key string, n *node, fields []field, model string) (path string, ok bool) {
	for _, ofKind := range []bool{false, true} {
		for _, f := range fields {
			if f.value.Kind() != reflect.Struct {
				continue
			}
			own, slot := tableOf(f.value, model)
			if (slot != nil) != ofKind {
				continue
			}
			if c := n.child(f.key); ofKind && c != nil {
				kind, _ := spelledOut(c, slot.selector.key).child(slot.selector.key).text()
				part, _ := slot.vocabulary.create(kind)
				own = append(own, partFields(part)...)
			}
			if _, ok := findField(own, key); ok {
				return f.key + "." + key, true
			}
		}
	}
	return "", false
}

// nearest returns the valid name that a misspelt one is near to: at most one third of its letters differ, two swapped
// letters count as one, case and the choice of - or _ as none; or one of the two is the beginning of the other.
func nearest(name string, valid []string) (string, bool) {
	best, distance := "", 0
	for _, v := range valid {
		a, b := plainName(name), plainName(v)
		d, limit := editDistance(a, b), max(1, max(len(a), len(b))/3)
		if d > limit && min(len(a), len(b)) >= 3 && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a)) {
			d = limit
		}
		if d <= limit && (best == "" || d < distance) {
			best, distance = v, d
		}
	}
	return best, best != ""
}

func plainName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// editDistance counts insertions, deletions and replacements, and one swap of neighbours as 1.
func editDistance(a, b string) int {
	if len(a) == len(b) {
		for i := 0; i+1 < len(a); i++ {
			if a[:i]+a[i+1:i+2]+a[i:i+1]+a[i+2:] == b {
				return min(1, levenshtein.ComputeDistance(a, b))
			}
		}
	}
	return levenshtein.ComputeDistance(a, b)
}

func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}
