package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tessera/data"
	"tessera/layers"
	"tessera/losses"
	"tessera/table"
)

// headPart is what the head of a name is called in diagnostics.
func headPart(name string) string { return "head." + name }

// heads places the heads, each after what it reads, and reports those that read nothing there is, or themselves.
func (w *walk) heads() {
	left := slices.Sorted(maps.Keys(w.model.Heads))
	for placed := true; placed; {
		placed = false
		for _, name := range slices.Clone(left) {
			h := w.model.Heads[name]
			if !slices.Contains(w.layout.Values(), h.From) {
				continue
			}
			w.head(name, h)
			left = slices.DeleteFunc(left, func(n string) bool { return n == name })
			placed = true
		}
	}
	for _, name := range left {
		w.lost(name, left)
	}
}

// head places one head.
func (w *walk) head(name string, h Head) {
	if problem := misnamedHead(name); problem != "" {
		w.report(headPart(name), "", "", problem)
	}
	var in []int
	if n := w.layout.Size(h.From); n > 0 {
		in = []int{n}
	}
	s := stack{path: headPart(name), part: headPart(name) + ".layers"}
	if w.model.labelled(name) {
		s.size = w.model.Classes()
		s.open = s.size > 0
	}
	list, _ := w.list(s, h.Layers, in)
	w.layout.Heads = append(w.layout.Heads, PlacedHead{name, h.From, list})
	if len(h.Layers) == 0 && w.model.origin.Doubt(headPart(name)) == nil {
		w.report(headPart(name), "", "layers", "layers: got none, want at least one layer")
	}
}

// misnamedHead says what is wrong with the name of a head, "" where nothing is.
func misnamedHead(name string) string {
	if slices.Contains([]string{losses.Code, losses.Output, losses.Atoms, "images", "labels", "views", "loss", "teacher"}, name) {
		return fmt.Sprintf("a head cannot be called %q: the name is reserved", name)
	}
	if name == "" || strings.ContainsAny(name, `./*?[]\ `) {
		return fmt.Sprintf("a head cannot be called %q: the name becomes part of parameter paths", name)
	}
	return ""
}

// lost reports a head that reads what there is not, or one of those that read each other.
func (w *walk) lost(name string, left []string) {
	from := w.model.Heads[name].From
	if w.model.origin.Doubt(headPart(name)).About("from") {
		return
	}
	if !slices.Contains(left, from) {
		w.found = append(w.found, w.model.finding(headPart(name), "", "from", fmt.Sprintf("from: unknown value %q", from), table.Suggest(from, w.layout.Values())))
		return
	}
	chain := []string{name}
	for at := from; at != name; at = w.model.Heads[at].From {
		if !slices.Contains(left, at) || slices.Contains(chain, at) || at < name {
			return // reported for another head
		}
		chain = append(chain, at)
	}
	w.report(headPart(name), "", "from", "from: a cycle: "+strings.Join(append(chain, name), " -> "))
}

// hasHead reports whether a head of that name is declared.
func (m *Model) hasHead(name string) bool {
	_, ok := m.Heads[name]
	return ok
}

// labelled reports whether a loss compares a value with the labels.
func (m *Model) labelled(name string) bool {
	return slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss != nil && l.On == name && l.Loss.Reads().Labels })
}

// Classes is the number of classes of the data set, 0 where it has no labels or where only its files can tell.
func (m *Model) Classes() int {
	if m.Dataset.Source == nil {
		return 0
	}
	n, _ := data.Classes(m.Dataset.Source, m.dirs)
	return n
}

// Resolved returns the model with the numbers of outputs that were left out filled in for images of that shape. The layers
// whose numbers are filled in are copies.
func (m *Model) Resolved(shape []int) *Model {
	resolved := *m
	resolved.Decoder = sizedBy(m.Decoder, stack{open: true, size: product(shape)})
	if m.Heads != nil {
		resolved.Heads = map[string]Head{}
	}
	for name, h := range m.Heads {
		resolved.Heads[name] = Head{h.From, sizedBy(h.Layers, stack{open: m.labelled(name), size: m.Classes()})}
	}
	return &resolved
}

// sizedBy returns a stack whose open layer has the stack's size.
func sizedBy(list []Layer, s stack) []Layer {
	i := s.opened(list)
	if i < 0 || s.size == 0 {
		return list
	}
	list = slices.Clone(list)
	list[i].Layer = copyOf(list[i].Layer)
	list[i].Layer.(layers.Sized).SetOutputUnits(s.size)
	return list
}
