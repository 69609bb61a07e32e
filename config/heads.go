package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tessera/data"
	"tessera/layers"
	"tessera/losses"
	"tessera/part/table"
)

// headPart is the place of a head in diagnostics.
func headPart(name string) string { return "head." + name }

// heads places the heads, each after the value that it reads. It reports heads that read an unknown value or, in a cycle,
// themselves.
func (w *walk) heads() {
	names := slices.Sorted(maps.Keys(w.model.Heads))
	rounds := map[string]int{losses.Code: 1}
	if len(w.layout.Decoder) > 0 {
		rounds[losses.Output] = 1
	}
	for _, name := range names {
		w.round(rounds, name)
	}
	labelled := w.model.labelled()
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rounds[a], rounds[b]) })
	for _, name := range names {
		if rounds[name] > 0 {
			w.head(name, w.model.Heads[name], labelled[name])
		}
	}
	w.lost(slices.DeleteFunc(names, func(name string) bool { return rounds[name] > 0 }))
}

// round returns the pass over the sorted names in which a value is computed, after the value that it reads; 0 if it never
// is.
func (w *walk) round(rounds map[string]int, name string) int {
	r, known := rounds[name]
	h, isHead := w.model.Heads[name]
	if known || !isHead {
		return r
	}
	rounds[name] = 0 // a head in a cycle is never computed
	if r = w.round(rounds, h.From); r > 0 && w.model.hasHead(h.From) && h.From > name {
		r++
	}
	rounds[name] = r
	return r
}

// head places one head. If a loss compares it with labels, the number of classes is the default of its units.
func (w *walk) head(name string, h Head, labelled bool) {
	if problem := misnamedHead(name); problem != "" {
		w.report(headPart(name), "", "", problem, "")
	}
	var in []int
	if n := w.layout.Size(h.From); n > 0 {
		in = []int{n}
	}
	s := stack{path: headPart(name), part: headPart(name) + ".layers"}
	if labelled {
		s.size = w.model.Classes()
		s.open = s.size > 0
		w.tooManyClasses(&s, h.Layers)
		if !s.open && w.model.Dataset.Source != nil {
			w.unsized = data.WhyNoClasses(w.model.Dataset.Source, w.model.dirs)
		}
	}
	list, _ := w.list(s, h.Layers, in)
	w.unsized = ""
	w.layout.index[name] = len(w.layout.Heads)
	w.layout.Heads = append(w.layout.Heads, PlacedHead{name, h.From, list})
	if len(h.Layers) == 0 && w.model.origin.Doubt(headPart(name)) == nil {
		w.report(headPart(name), "", "layers", "layers: got none, want at least one layer", "")
	}
}

// maxClasses bounds the number of units that the labels alone decide: a label such as 20240101 is probably no class, but a date.
const maxClasses = 1 << 16

// tooManyClasses refuses a number of classes that would become an absurd number of units; the size of the stack is then unknown.
func (w *walk) tooManyClasses(s *stack, list []Layer) {
	i := s.opened(list)
	if i < 0 || s.size <= maxClasses {
		return
	}
	w.report(fmt.Sprintf("%s[%d]", s.part, i), list[i].Kind, layers.SizeKey, fmt.Sprintf(
		"%s: the number of classes comes from the largest label (got label %d, want at most %d)", layers.SizeKey, s.size-1, maxClasses-1),
		"number the classes 0, 1, 2, ...")
	s.size = 0
}

// misnamedHead returns the problem of a head's name, "" if it is valid.
func misnamedHead(name string) string {
	if slices.Contains([]string{losses.Code, losses.Output, losses.Atoms, "images", "labels", "views", "loss", "teacher"}, name) {
		return fmt.Sprintf("invalid name %q of a head: the name is reserved", name)
	}
	if name == "" || strings.ContainsAny(name, `./*?[]\ `) {
		return fmt.Sprintf("invalid name %q of a head: parameter paths contain the name", name)
	}
	return ""
}

// lost reports heads that read an unknown value, and each cycle of heads at the first of their names.
func (w *walk) lost(names []string) {
	seen := map[string]int{} // the name from which a head was reached
	inDoubt := func(name string) bool { return w.model.origin.Doubt(headPart(name)).About("from") }
	for i, name := range names {
		if from := w.model.Heads[name].From; !w.model.hasHead(from) && !inDoubt(name) {
			w.report(headPart(name), "", "from", fmt.Sprintf("from: unknown value %q", from), table.Suggest(from, w.layout.Values()))
		}
		var chain []string
		at := name
		for ; seen[at] == 0 && w.model.hasHead(at); at = w.model.Heads[at].From {
			seen[at], chain = i+1, append(chain, at)
		}
		if seen[at] != i+1 || len(chain) == 0 {
			continue
		}
		chain = chain[slices.Index(chain, at):]
		first := slices.Index(chain, slices.Min(chain))
		chain = slices.Concat(chain[first:], chain[:first+1])
		if !inDoubt(chain[0]) {
			w.report(headPart(chain[0]), "", "from", "from: a cycle: "+strings.Join(chain, " -> "), "")
		}
	}
}

// hasHead reports whether a head of that name is declared.
func (m *Model) hasHead(name string) bool {
	_, ok := m.Heads[name]
	return ok
}

// labelled returns the values that a loss compares with the labels.
func (m *Model) labelled() map[string]bool {
	values := map[string]bool{}
	for _, l := range m.Losses {
		if l.Loss != nil && l.Loss.Reads().Labels {
			values[l.On] = true
		}
	}
	return values
}

// Classes is the number of classes of the data set, 0 if it has no labels or if only its files contain the number.
func (m *Model) Classes() int {
	if m.Dataset.Source == nil {
		return 0
	}
	n, _ := data.Classes(m.Dataset.Source, m.dirs)
	return n
}

// Resolved returns the model with all default numbers of outputs for images of that shape. Changed layers are copies.
func (m *Model) Resolved(shape []int) *Model {
	resolved := m.sized(shape)
	resolved.text = Fill(resolved)
	return resolved
}

// sized is Resolved without a text.
func (m *Model) sized(shape []int) *Model {
	resolved := *m
	resolved.Decoder = sizedBy(m.Decoder, stack{open: true, size: product(shape)})
	if m.Heads != nil {
		resolved.Heads = map[string]Head{}
	}
	labelled := m.labelled()
	for name, h := range m.Heads {
		resolved.Heads[name] = Head{h.From, sizedBy(h.Layers, stack{open: labelled[name], size: m.Classes()})}
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
