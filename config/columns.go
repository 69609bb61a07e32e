package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tessera/data"
	"tessera/losses"
	"tessera/part/table"
)

// WithColumns returns the model for a data set with these columns besides images and labels. [File.Model] knows them if the files of the
// data set are there; a run keeps those that its model reads.
func (m *Model) WithColumns(columns []data.Column) *Model {
	other := *m
	other.columns = slices.Clone(columns)
	return &other
}

// Columns describes the columns besides images and labels that the model reads, as far as they are known.
func (m *Model) Columns() (list []data.Column) {
	for _, c := range m.columns {
		if slices.Contains(m.Dataset.reads, c.Name) {
			list = append(list, c)
		}
	}
	return list
}

// know sets the columns of the data set. Those of a run's declaration are not known: the files may have changed since.
func (m *Model) know(f *File) {
	if m.Dataset.Source == nil {
		return
	}
	m.columns = data.ColumnsOf(m.Dataset.Source, f.Dirs)
	if f.Trained {
		for i, c := range m.columns {
			m.columns[i] = data.Column{Name: c.Name}
		}
	}
	m.Dataset.reads = m.readColumns()
}

// readColumns lists the further columns that the model reads, sorted.
func (m *Model) readColumns() (names []string) {
	add := func(list []string) {
		for _, name := range list {
			if m.hasColumn(name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	for _, l := range m.Losses {
		if l.Loss != nil {
			add(l.Names())
		}
	}
	stacks := [][]Layer{m.Encoder, m.Decoder}
	for _, h := range m.Heads {
		add(h.From)
		stacks = append(stacks, h.Layers)
	}
	for _, l := range slices.Concat(stacks...) {
		add(l.From)
	}
	slices.Sort(names)
	return names
}

// hasColumn reports whether the data set has a further column of that name.
func (m *Model) hasColumn(name string) bool {
	return slices.ContainsFunc(m.columns, func(c data.Column) bool { return c.Name == name })
}

// Column describes a column by its name: images, labels, or a further one; ok is false if there is none. A column whose type is not known
// has no shape.
func (l *Layout) Column(name string) (c data.Column, ok bool) {
	switch name {
	case losses.Images:
		return data.Column{Name: name, Shape: l.Input, Type: data.Float32}, true
	case losses.Labels:
		return data.Column{Name: name, Type: data.Whole}, true
	}
	if i := slices.IndexFunc(l.Columns, func(c data.Column) bool { return c.Name == name }); i >= 0 {
		return l.Columns[i], true
	}
	return c, false
}

// shapeOfColumn is the shape of a column as a value: one axis for one number, nil if it is not known.
func shapeOfColumn(c data.Column) []int {
	switch {
	case c.Type == "":
		return nil
	case c.Name != losses.Images && len(c.Shape) == 0:
		return []int{1}
	}
	return c.Shape
}

// nameable lists the columns and values that can be named.
func (w *walk) nameable() []string {
	names := append(w.layout.Values(), losses.Images, losses.Labels)
	for _, c := range w.layout.Columns {
		names = append(names, c.Name)
	}
	return names
}

// existing lists what can be named, for a message.
func (w *walk) existing() string {
	var columns []string
	for _, name := range w.nameable()[len(w.layout.Values()):] {
		columns = append(columns, strconv.Quote(name))
	}
	return "columns: " + strings.Join(columns, ", ") + "; values: " + table.Quoted(w.layout.Values())
}

// compared checks what the keys against, mask and sample_weight of a term name.
func (w *walk) compared(part string, l Loss, reads losses.Reads) {
	if l.Against != "" && reads.Against == "" {
		w.report(part, l.Kind, "against", fmt.Sprintf("against: %s compares with nothing", l.Kind), "leave it out")
	}
	if l.counted() && !reads.Counts {
		key := "mask"
		if l.Mask == "" {
			key = "sample_weight"
		}
		w.report(part, l.Kind, key, fmt.Sprintf("%s: %s is no mean over entries or samples that could leave some out", key, l.Kind),
			"terms that take it: "+table.Quoted(counting()))
		return
	}
	on := w.layout.Size(l.On)
	switch name := reads.Against; {
	case reads.Classes:
		w.classes(part, l, name)
	case name != "" && w.named(part, l.Kind, "against", name):
		w.sameSize(part, l, name, on)
	}
	if name := l.Mask; name != "" && w.named(part, l.Kind, "mask", name) {
		if n := w.layout.Size(name); n > 1 && reads.Classes {
			w.report(part, l.Kind, "mask", fmt.Sprintf("mask: %q has %d values for each sample, but %s compares one class: want one", name, n, l.Kind), "")
		} else if n > 1 && on > 0 && n != on {
			w.report(part, l.Kind, "mask", fmt.Sprintf("mask: %q has %d values for each sample, but %q has %d: want as many, or one", name, n, l.On, on), "")
		}
	}
	if name := l.SampleWeight; name != "" && w.named(part, l.Kind, "sample_weight", name) {
		if n := w.layout.Size(name); n > 1 {
			w.report(part, l.Kind, "sample_weight", fmt.Sprintf("sample_weight: %q has %d values for each sample, want one", name, n), "")
		}
	}
}

// sameSize checks that a term compares values of one size.
func (w *walk) sameSize(part string, l Loss, name string, on int) {
	n := w.layout.Size(name)
	switch {
	case on == 0 || n == 0 || n == on || name == losses.Images && l.On == losses.Output:
	case name == losses.Images:
		w.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but %s compares it with images of %d", l.On, on, l.Kind, n), "")
	default:
		w.report(part, l.Kind, "against", fmt.Sprintf("against: %q has %d values for each sample, but %q has %d", name, n, l.On, on), "")
	}
}

// classes checks that a term compares with a column of classes.
func (w *walk) classes(part string, l Loss, name string) {
	if name == losses.Labels || !w.named(part, l.Kind, "against", name) {
		return
	}
	c, is := w.layout.Column(name)
	switch {
	case !is:
		w.report(part, l.Kind, "against", fmt.Sprintf("against: %q is a value, but %s compares with a column of classes", name, l.Kind), "")
	case c.Type != "" && (c.Type != data.Whole || c.Size() != 1):
		w.report(part, l.Kind, "against", fmt.Sprintf("against: %q has %d values of type %s for each sample, but %s compares with one class: want one whole number",
			name, c.Size(), c.Type, l.Kind), "")
	case len(c.Names) > 0 && w.layout.Size(l.On) > 0 && w.layout.Size(l.On) < len(c.Names):
		w.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but the column %q has %d classes", l.On, w.layout.Size(l.On), name, len(c.Names)), "")
	}
}

// counting lists the terms that take a mask.
func counting() (names []string) {
	for _, e := range losses.Registry.All() {
		if e.New().Reads().Counts {
			names = append(names, e.Name)
		}
	}
	return names
}

// named checks that a column or a value of that name exists.
func (w *walk) named(part, kind, key, name string) bool {
	if _, ok := w.layout.Column(name); ok || w.model.hasHead(name) || slices.Contains(w.layout.Values(), name) || slices.Contains(w.layout.Named(), name) {
		return true
	}
	if w.model.Dataset.Source == nil || w.model.inDoubt("dataset") || w.model.inDoubt("head") || w.model.inDoubt("decoder") {
		return false // a consequence
	}
	hint := "there are " + w.existing()
	if near, ok := table.Nearest(name, w.nameable()); ok {
		hint = table.Suggest(near, []string{near}) + "; " + hint
	}
	w.report(part, kind, key, fmt.Sprintf("%s: there is no column or value %q", key, name), hint)
	return false
}
