package table

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Suggest returns a suggestion for an invalid name: the nearest valid name, or all of them if none is near.
func Suggest(name string, valid []string) string {
	if len(valid) == 0 {
		return ""
	}
	if near, ok := Nearest(name, valid); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if more := len(valid) - mostListed; more > 0 {
		return fmt.Sprintf("valid: %s and %d more", Quoted(valid[:mostListed]), more)
	}
	return "valid: " + Quoted(valid)
}

const (
	mostListed   = 100 // maximum number of listed names
	mostCompared = 100 // maximum bytes of a compared name: the time is the product of the lengths
)

// Nearest returns the valid name with the same meaning ([synonyms]), else the one nearest to a misspelt name: at most one third of the letters differ, where two swapped
// letters count as one difference, and case and - or _ as none; or one name is a prefix of the other.
func Nearest(name string, valid []string) (string, bool) {
	best, distance := "", 0
	if len(name) > mostCompared {
		return "", false
	}
	if same, ok := byMeaning(name, valid); ok {
		return same, true
	}
	a := plainName(name)
	for _, v := range valid {
		if len(v) > mostCompared {
			continue
		}
		b := plainName(v)
		limit := max(1, max(len(a), len(b))/3)
		d := editDistance(a, b)
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
			if a[:i] == b[:i] && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:] {
				return min(1, levenshtein.ComputeDistance(a, b))
			}
		}
	}
	return levenshtein.ComputeDistance(a, b)
}

// Quoted lists names in double quotes.
func Quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}

// Suggestions for a misspelt key, value or path.

// suggestKey returns a suggestion for an unknown key of a table n: a key of an inner table, the hint of the language, or
// one of the keys.
func (d *Decoder) suggestKey(key string, n *Node, valid []Field, p spot) string {
	if d.Language.Hint != nil {
		_, near := Nearest(key, keysOf(valid))
		if hint := d.Language.Hint(p.part, key, n, p.kind, near); hint != "" {
			return hint
		}
	}
	if p.part == "" {
		if path, ok := d.inside(key, n, valid); ok {
			return fmt.Sprintf("did you mean %q?", path)
		}
	}
	return d.Language.suggest("key", key, keysOf(valid))
}

// suggest is [Suggest]; for a name that [Language.Lacks] knows it explains that instead of suggesting a similar name.
func (l *Language) suggest(what, name string, valid []string) string {
	if _, ok := byMeaning(name, valid); !ok && l != nil && l.Lacks != nil {
		if hint := l.Lacks(what, name); hint != "" {
			return hint
		}
	}
	return Suggest(name, valid)
}

// inside finds the key in the inner tables of a declaration n: "train.epochs" for epochs. Keys of the tables precede keys
// of their parts.
func (d *Decoder) inside(key string, n *Node, fields []Field) (path string, ok bool) {
	if _, ok := byMeaning(key, keysOf(fields)); ok {
		return "", false
	}
	for _, ofKind := range []bool{false, true} {
		for _, f := range fields {
			if f.Value.Kind() != reflect.Struct {
				continue
			}
			own, slot := d.Language.fieldsOf(f.Value, d.kind)
			if (slot != nil) != ofKind {
				continue
			}
			if c := n.Child(f.Key); ofKind && c != nil {
				kind, _ := c.Named(slot.selector.Key).Child(slot.selector.Key).Text()
				part, _ := slot.New(kind)
				own = append(own, Fields(part)...)
			}
			if _, ok := findField(own, key); ok {
				return f.Key + "." + key, true
			}
			if same, ok := byMeaning(key, keysOf(own)); ok {
				return f.Key + "." + same, true
			}
		}
	}
	return "", false
}

// asTable suggests how to write a value as a table: under its only required key or, for true, as the table of defaults; ""
// if neither applies.
func asTable(n *Node, fields []Field, p spot) string {
	var required []Field
	for _, f := range fields {
		if f.Required {
			required = append(required, f)
		}
	}
	text, isText := n.Text()
	switch {
	case isText && len(required) == 1 && required[0].Value.Kind() == reflect.String:
		return fmt.Sprintf("write { %s = %s }", required[0].Key, StringText(text))
	case n.Leaf == true && len(required) == 0 && !strings.HasSuffix(p.part, "]"):
		return "write {}, which has all defaults"
	}
	return ""
}

// bracketed suggests how to write one value as a list, "" if the list does not accept it. It restores the quotes of texts
// in brackets, which a shell usually removed.
func bracketed(n *Node, f Field) string {
	text, isText := n.Text()
	element := reflect.New(f.Value.Type().Elem()).Elem()
	switch {
	case isText && element.Kind() == reflect.String:
		items := []string{text}
		if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
			items = strings.Split(strings.Trim(text, "[]"), ",")
		}
		for i, item := range items {
			items[i] = StringText(strings.Trim(item, ` '"`))
		}
		return "write [" + strings.Join(items, ", ") + "]"
	case n.Leaf != nil && element.Kind() != reflect.String && element.Kind() != reflect.Bool && (Field{f.column, element}).SetNumber(n.Leaf):
		return "write [" + n.Describe() + "]"
	}
	return ""
}

// below returns the rest of a --set path after the name of the declaration, with which headers in a file begin.
func (d *Decoder) below(key string, n *Node, p spot) (path string, ok bool) {
	if p.part != "" || !n.path || len(n.Keys) == 0 || len(d.Path) != 2 {
		return "", false
	}
	if key == d.Path[0] {
		key, n = n.Keys[0], n.table[0]
	}
	if key != d.Path[1] || !n.path || len(n.Keys) == 0 {
		return "", false
	}
	return pathText(Change{Root: n}.Path()), true
}

// noElements reports the indices of a --set path into an empty list.
func (d *Decoder) noElements(n *Node, key string, tables bool, p spot) {
	hint := fmt.Sprintf(`write the whole list: %s=["..."]`, key)
	if tables {
		hint = fmt.Sprintf("write the whole list: %s=[{ ... }]", key)
	}
	for i, k := range n.Keys {
		_, err := strconv.ParseUint(k, 10, 31)
		d.report(p, n.table[i].Key, n, key+": "+badIndex(k, err == nil, 0), hint)
	}
}
