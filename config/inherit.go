package config

import (
	"fmt"
	"slices"
	"strings"

	"tessera/part/table"
)

// lineage is a model's table, merged with the tables of the models that it extends.
type lineage struct {
	table   *table.Node // nil if the model is not a table
	found   []table.Diagnostic
	partial bool // a model that it extends is unknown: inherited keys are missing
	open    bool // in progress: a model that reaches it again extends itself
}

// lineage returns the merged table of a model and caches it in the file that declares the model.
func (f *File) lineage(name string) *lineage {
	if owner := f.owner(name); owner != f && owner != nil {
		return owner.lineage(name)
	}
	l, ok := f.lineages[name]
	if ok {
		return l
	}
	l = &lineage{open: true}
	f.lineages[name] = l
	n := f.models.Child(name)
	if n.IsTable() {
		f.extend(l, name, n)
	} else {
		l.found, l.partial = []table.Diagnostic{table.Diagnostic{At: n.Key,
			Problem: fmt.Sprintf("got %s, want a table: [model.%s]", n.Describe(), table.KeyText(name))}.In(n)}, true
	}
	l.open = false
	return l
}

// changed is the lineage of a model whose `extends` was changed.
func (f *File) changed(name string, extends *table.Node) *lineage {
	l := &lineage{}
	n := f.owner(name).models.Child(name)
	if !n.IsTable() {
		return l
	}
	l.table = without(n, "extends")
	l.table.Put("extends", extends)
	parent, _ := extends.Text()
	home := f.scope(name, parent)
	if chain := home.ancestors(parent, nil); home == f && slices.Contains(chain, name) {
		l.cycle(append([]string{name}, chain[:slices.Index(chain, name)+1]...), extends)
		return l
	}
	l.found = home.sound(parent)
	f.extend(l, name, l.table)
	return l
}

// extend merges n, the table of a model, into the models that it extends.
func (f *File) extend(l *lineage, name string, n *table.Node) {
	l.table = n
	e := n.Child("extends")
	if e == nil {
		return
	}
	l.partial = true
	parent, ok := e.Text()
	if !ok {
		return // decoding reports an invalid `extends`
	}
	home := f.scope(name, parent).owner(parent)
	if home == nil {
		l.found = append(l.found, table.Diagnostic{At: e.At, Problem: fmt.Sprintf("extends: unknown model %q", parent), Suggestion: f.suggestParent(name, parent)}.In(e))
		return
	}
	base := home.lineage(parent)
	switch {
	case base.open:
		f.cycle(name)
	case !base.partial:
		l.table, l.partial = merging().Lay("", ofKind(without(base.table, "extends"), n.Child("kind")), n), false
	}
}

// cycle reports a cycle of models at the model of the cycle that is first in the file.
func (f *File) cycle(name string) {
	chain := f.ancestors(name, nil)
	first := slices.MinFunc(chain, func(a, b string) int { return f.models.Child(a).Key.Start - f.models.Child(b).Key.Start })
	f.lineage(first).cycle(append(f.ancestors(first, nil), first), f.models.Child(first).Child("extends"))
}

func (l *lineage) cycle(chain []string, extends *table.Node) {
	l.partial = true
	l.found = append(l.found, table.Diagnostic{At: extends.At, Problem: "extends: a cycle: " + strings.Join(chain, " -> ")}.In(extends))
}

// ancestors lists a model of the file and the models of the file that it extends, each once, up to an unknown one or one
// without errors.
func (f *File) ancestors(name string, clean map[string]bool) (list []string) {
	seen := map[string]bool{}
	for f.models.Child(name) != nil && !seen[name] && !clean[name] {
		seen[name] = true
		list = append(list, name)
		name, _ = f.models.Child(name).Child("extends").Text()
	}
	return list
}

// suggestParent suggests the probably intended model, or explains that there is none.
func (f *File) suggestParent(name, parent string) string {
	names := f.Names()
	if len(names) == 1 {
		return "this file declares no other model"
	}
	if _, near := table.Nearest(parent, names); !near && len(names) > mostListed {
		return fmt.Sprintf("`tessera list models` lists all %d", len(names))
	}
	return f.suggest(parent, name)
}

// mostSuggested bounds the number of errors with a suggestion: the time is the number of errors times the number of models.
const mostSuggested = 100

// suggest suggests the probably intended model other than the given one.
func (f *File) suggest(name, not string) string {
	if f.suggested++; f.suggested > mostSuggested {
		return ""
	}
	return table.Suggest(name, slices.DeleteFunc(f.Names(), func(k string) bool { return k == not }))
}
