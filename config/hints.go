package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// What was probably meant by a value or a path that is nearly right.

// asTable says how a value that stands where a table should is written as one: under the one key that must be given, or, of true, as
// the table of all defaults; "" where it does not tell.
func asTable(n *node, fields []field, p place) string {
	var required []field
	for _, f := range fields {
		if f.required {
			required = append(required, f)
		}
	}
	text, isText := n.text()
	switch {
	case isText && len(required) == 1 && required[0].value.Kind() == reflect.String:
		return fmt.Sprintf("write { %s = %s }", required[0].key, stringText(text))
	case n.leaf == true && len(required) == 0 && !strings.HasSuffix(p.part, "]"):
		return "write {}, which has all defaults"
	}
	return ""
}

// bracketed says how one value is written as a list of one, "" where it is none that the list takes. Brackets whose texts lost
// their quotes, to a shell more often than not, get them back.
func bracketed(n *node, f field) string {
	text, isText := n.text()
	element := reflect.New(f.value.Type().Elem()).Elem()
	switch {
	case isText && element.Kind() == reflect.String:
		items := []string{text}
		if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
			items = strings.Split(strings.Trim(text, "[]"), ",")
		}
		for i, item := range items {
			items[i] = stringText(strings.Trim(item, ` '"`))
		}
		return "write [" + strings.Join(items, ", ") + "]"
	case n.leaf != nil && element.Kind() != reflect.String && element.Kind() != reflect.Bool && setNumber(element, n.leaf, f.want):
		return "write [" + describe(n) + "]"
	}
	return ""
}

// below returns what is left of a --set path that names the model first, as the headers of a file do.
func (d *decoder) below(key string, n *node, p place) (path string, ok bool) {
	if p.part != "" || !n.path || len(n.keys) == 0 {
		return "", false
	}
	if key == "model" {
		key, n = n.keys[0], n.table[n.keys[0]]
	}
	if key != d.model || !n.path || len(n.keys) == 0 {
		return "", false
	}
	var keys []string
	for n.path && len(n.keys) > 0 {
		keys, n = append(keys, n.keys[0]), n.table[n.keys[0]]
	}
	return pathText(keys), true
}

// noElements reports the indices of a --set path into a list that has no elements.
func (d *decoder) noElements(n *node, key string, tables bool, p place) (found []finding) {
	for _, k := range n.keys {
		_, err := strconv.ParseUint(k, 10, 31)
		found = append(found, finding{at: n.table[k].key, owner: n.owner, model: d.model, part: p.part, kind: p.kind,
			problem: key + ": " + badIndex(k, err == nil, 0), hint: wholeList(key, tables)})
	}
	return found
}

// wholeList says what to write where a list has no elements that could be changed.
func wholeList(key string, tables bool) string {
	if tables {
		return fmt.Sprintf("write the whole list: %s=[{ ... }]", key)
	}
	return fmt.Sprintf(`write the whole list: %s=["..."]`, key)
}

// noneThere says what to write instead of an index into a list without elements.
func noneThere(key string, elements int) string {
	fields, _ := tableOf(reflect.ValueOf(&Model{}).Elem(), Autoencoder)
	f, ok := findField(fields, key)
	if elements > 0 || !ok {
		return ""
	}
	return wholeList(key, isTable(f.value))
}
