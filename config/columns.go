package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tessera/data"
	"tessera/layers"
	"tessera/losses"
	"tessera/part"
	"tessera/part/table"
)

// WithColumns returns the model for a data set that has the given columns in addition to images and labels.
// [File.Model] reads the columns from the files of the data set if the files exist. A run stores the columns that its
// model reads.
func (m *Model) WithColumns(columns []data.Column) *Model {
	other := *m
	other.columns = slices.Clone(columns)
	other.mask()
	return &other
}

// Holed reports whether entries of the images may be missing (key `missing` of the data set) or hidden (key `hide`).
func (m *Model) Holed() bool {
	return m.Dataset.Source != nil && (data.HasMissing(m.Dataset.Source) || m.Dataset.Hide > 0)
}

// whole reports an error if entries may be missing or hidden and the baseline, or one of its settings, requires all
// entries.
func (m *Model) whole() []table.Diagnostic {
	if !m.Holed() || m.Baseline == nil {
		return nil
	}
	if h, ok := m.Baseline.(interface{ CheckHoles() error }); ok {
		var bad part.KeyError
		if err := h.CheckHoles(); errors.As(err, &bad) {
			return []table.Diagnostic{m.finding("", "", bad.Key, bad.Error(), "")}
		}
		return nil
	}
	key := "missing"
	if m.Dataset.Hide > 0 {
		key = "hide"
	}
	return []table.Diagnostic{m.finding("dataset", "", key, fmt.Sprintf("%s: %s fits all entries of images and cannot leave out those that are missing or hidden", key, m.Kind),
		`kind = "pca", "nmf" or "sparse_nmf", or an auto-encoder with the loss mse, can`)}
}

// mask adds the mask of observed entries to every term that compares a value with the images or with a column that has
// missing entries.
func (m *Model) mask() {
	m.Losses = slices.Clone(m.Losses)
	for i, l := range m.Losses {
		if l.Loss == nil {
			continue
		}
		reads := l.Reads()
		missing := slices.ContainsFunc(m.columns, func(c data.Column) bool { return c.Name == reads.Against && c.Missing })
		switch {
		case !reads.Counts:
		case reads.Against == losses.Images && m.Holed():
			m.Losses[i].present = data.ObservedColumn
		case missing:
			m.Losses[i].present = reads.Against + data.ObservedSuffix
		default:
			m.Losses[i].present = ""
		}
	}
}

// Columns describes the columns of the data set that the model reads, other than images and labels. Columns that are
// not known to exist are left out.
func (m *Model) Columns() (list []data.Column) {
	for _, c := range m.columns {
		if slices.Contains(m.Dataset.reads, c.Name) {
			list = append(list, c)
		}
	}
	return list
}

// know sets the columns of the data set. For the declaration of a run it sets only their names, because the files may
// have changed since the training.
func (m *Model) know(f *File) {
	if m.Dataset.Source == nil {
		return
	}
	m.columns = data.ColumnsOf(m.Dataset.Source, f.Dirs)
	if f.Trained {
		for i, c := range m.columns {
			m.columns[i] = data.Column{Name: c.Name, Missing: data.HasMissing(m.Dataset.Source)}
		}
	}
	m.mask()
	m.Dataset.reads = m.readColumns()
	if drawn := m.allDrawn(); drawn != nil {
		m.Dataset.Drawn = &drawn
	}
}

// readColumns returns the sorted names of the columns of the data set that the model reads, other than images and
// labels.
func (m *Model) readColumns() (names []string) {
	all := m.namesRead()
	for name := range m.Drawn {
		all = append(all, m.readByDraws(name)...)
	}
	for _, name := range all {
		if of, ok := strings.CutSuffix(name, data.ObservedSuffix); ok {
			name = of
		}
		if m.hasColumn(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// namesRead lists the names of the columns and values that terms, heads and layers read.
func (m *Model) namesRead() (names []string) {
	for _, l := range m.Losses {
		if l.Loss != nil {
			names = append(names, l.Names()...)
		}
	}
	stacks := [][]Layer{m.Encoder, m.Decoder}
	for _, h := range m.Heads {
		names = append(names, h.From...)
		stacks = append(stacks, h.Layers)
	}
	for _, l := range slices.Concat(stacks...) {
		names = append(names, l.From...)
		if d, ok := l.Layer.(*layers.Decorrelate); ok {
			names = append(names, d.Column)
		}
		for _, r := range l.readings() {
			names = append(names, r.Name)
		}
	}
	return names
}

// hasColumn reports whether the data set has a column with the given name, other than images and labels.
func (m *Model) hasColumn(name string) bool {
	return slices.ContainsFunc(m.columns, func(c data.Column) bool { return c.Name == name })
}

// Column describes a column by its name: images, labels or any other column. ok is false if there is no such column. A
// column of unknown type has no shape.
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
	if name == data.ObservedColumn && l.Holed {
		return data.Column{Name: name, Shape: l.Input, Type: data.Whole}, true
	}
	if of, ok := strings.CutSuffix(name, data.ObservedSuffix); ok {
		if i := slices.IndexFunc(l.Columns, func(c data.Column) bool { return c.Name == of && c.Missing }); i >= 0 {
			if l.Columns[i].Type == "" {
				return data.Column{Name: name}, true
			}
			return data.Column{Name: name, Shape: l.Columns[i].Shape, Type: data.Whole}, true
		}
	}
	return c, false
}

// shapeOfColumn returns the shape of a column as a value: [1] for a column of single numbers, nil if the shape is
// unknown.
func shapeOfColumn(c data.Column) []int {
	switch {
	case c.Type == "":
		return nil
	case c.Name != losses.Images && len(c.Shape) == 0:
		return []int{1}
	}
	return c.Shape
}

// nameable lists the columns and values that a key may name.
func (w *walk) nameable() []string {
	names := append(w.layout.Values(), losses.Images, losses.Labels)
	if w.layout.Holed {
		names = append(names, data.ObservedColumn)
	}
	for _, c := range w.layout.Columns {
		names = append(names, c.Name)
		if c.Missing {
			names = append(names, c.Name+data.ObservedSuffix)
		}
	}
	return names
}

// existing lists the columns and values that a key may name, as text for a message.
func (w *walk) existing() string {
	var columns []string
	for _, name := range w.nameable()[len(w.layout.Values()):] {
		columns = append(columns, strconv.Quote(name))
	}
	return "columns: " + strings.Join(columns, ", ") + "; values: " + table.Quoted(w.layout.Values())
}

// compared checks the columns and values that a term names in its keys `against`, `mask` and `sample_weight`.
func (w *walk) compared(part string, l Loss, reads losses.Reads) {
	if l.Against != "" && reads.Against == "" {
		w.report(part, l.Kind, "against", fmt.Sprintf("against: %s compares with nothing", l.Kind), "leave it out")
	}
	if l.Teacher != "" && !reads.Teacher {
		w.report(part, l.Kind, "teacher", fmt.Sprintf("teacher: %s reads no teacher", l.Kind), "leave it out, or take kind = \"consistency\"")
	}
	w.constant(part, l, reads)
	if w.layout.Holed && (reads.Against == losses.Images && !reads.Counts || reads.Atoms || reads.Jacobian) {
		w.report(part, l.Kind, "", fmt.Sprintf("%s cannot leave out the entries of images that are missing or hidden", l.Kind),
			"terms that can: "+table.Quoted(countingImages()))
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
	case reads.Groups > 0:
		w.groups(part, l, name, reads.Groups)
	case name != "" && w.named(part, l.Kind, "against", name):
		w.sameSize(part, l, name, on)
	}
	w.countsBy(part, l)
	if name := l.Mask; name != "" && w.named(part, l.Kind, "mask", name) {
		if n := w.layout.Size(name); n > 1 && reads.Classes {
			w.report(part, l.Kind, "mask", fmt.Sprintf("mask: %q has %d values for each sample, but %s compares one class: want one", name, n, l.Kind), "")
		} else if n > 1 && on > 0 && n != on && w.layout.PerPlace(l.On, n) == 0 {
			w.report(part, l.Kind, "mask", fmt.Sprintf("mask: %q has %d values for each sample, but %q has %d: want as many, one for each of its tokens, or one", name, n, l.On, on), "")
		}
	}
	if name := l.SampleWeight; name != "" && w.named(part, l.Kind, "sample_weight", name) {
		if n := w.layout.Size(name); n > 1 {
			w.report(part, l.Kind, "sample_weight", fmt.Sprintf("sample_weight: %q has %d values for each sample, want one", name, n), "")
		}
	}
}

// countsBy checks a mask or a sample weight that is a value of the model, not a column: it reports a value whose range is not
// allowed. A negative weight, for example, would reward errors. The range of a value that a layer publishes is not known
// here, so it is not checked.
func (w *walk) countsBy(part string, l Loss) {
	for key, name := range map[string]string{"mask": l.Mask, "sample_weight": l.SampleWeight} {
		if _, column := w.layout.Column(name); column || name == "" {
			continue
		}
		r, known, last := w.model.rangeOf(name, unit)
		if !known || key == "mask" && r.Within(unit) || key == "sample_weight" && r.Low >= 0 {
			continue
		}
		want := "values in [0,1]"
		if key == "sample_weight" {
			want = "values >= 0"
		}
		w.report(part, l.Kind, key, fmt.Sprintf("%s: %q is a value of the model, and %s gives %s: want %s", key, name, last, intervalText(r), want),
			"name a column, a value that a layer publishes, or a head that ends with an activation of that range")
	}
}

// constant reports a term that reads only columns, so that training cannot change its value.
func (w *walk) constant(part string, l Loss, reads losses.Reads) {
	if reads.Jacobian || len(reads.Published) > 0 {
		return
	}
	names := append([]string{l.On}, reads.Values...)
	if reads.Against != "" {
		names = append(names, reads.Against)
	}
	for _, name := range names {
		if _, column := w.layout.Column(name); !column || w.model.hasHead(name) {
			return
		}
	}
	w.report(part, l.Kind, "on", fmt.Sprintf("on: %q is a column of the data set, which no training changes", l.On), "name a value of the model: "+table.Quoted(w.layout.Values()))
}

// sameSize checks that the two values that a term compares have the same size.
func (w *walk) sameSize(part string, l Loss, name string, on int) {
	n := w.layout.Size(name)
	if c, ok := l.Loss.(losses.AgainstChecker); ok {
		if on > 0 && n > 0 {
			if err := c.CheckAgainst(on, n); err != nil {
				w.report(part, l.Kind, "against", "against: "+err.Error(), "")
			}
		}
		return
	}
	switch {
	case on == 0 || n == 0 || n == on || name == losses.Images && l.On == losses.Output:
	case name == losses.Images:
		w.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but %s compares it with images of %d", l.On, on, l.Kind, n),
			"name what it is compared with in against, or give it as many units")
	default:
		w.report(part, l.Kind, "against", fmt.Sprintf("against: %q has %d values for each sample, but %q has %d", name, n, l.On, on),
			"choose a column of that size, or leave out the key units of the head's last layer")
	}
}

// groups checks that the column that a term compares with has at most n groups.
func (w *walk) groups(part string, l Loss, name string, n int) {
	if c, ok := w.numbered(part, l, name, "group", "groups"); ok && len(c.Names) > n {
		w.report(part, l.Kind, "groups", fmt.Sprintf("groups: got %d, but the column %q has %d groups", n, name, len(c.Names)), "")
	}
}

// classes checks that the column that a term compares with contains classes.
func (w *walk) classes(part string, l Loss, name string) {
	if name == losses.Labels {
		return
	}
	c, ok := w.numbered(part, l, name, "class", "classes")
	if ok && len(c.Names) > 0 && w.layout.Size(l.On) > 0 && w.layout.Size(l.On) < len(c.Names) {
		w.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but the column %q has %d classes", l.On, w.layout.Size(l.On), name, len(c.Names)), "")
	}
}

// numbered returns the column that a loss compares with. ok is false, and the error reported, if it is not a column of one whole
// number per sample: a group or a class.
func (w *walk) numbered(part string, l Loss, name, one, many string) (c data.Column, ok bool) {
	if !w.named(part, l.Kind, "against", name) {
		return c, false
	}
	c, is := w.layout.Column(name)
	switch {
	case !is:
		w.report(part, l.Kind, "against", fmt.Sprintf("against: %q is a value, but %s compares with a column of %s", name, l.Kind, many), "")
	case c.Type != "" && (c.Type != data.Whole || c.Size() != 1):
		w.report(part, l.Kind, "against", fmt.Sprintf("against: %q has %d values of type %s for each sample, but %s compares with one %s: want one whole number",
			name, c.Size(), c.Type, l.Kind, one), "")
	default:
		return c, true
	}
	return c, false
}

// PerPlace returns how many numbers a value has at each of n places, for example the number of features for n tokens.
// The first axes, with n elements together, are the places; the other axes are counted. It returns 0 if the shape does
// not divide in this way.
func (l *Layout) PerPlace(value string, n int) int {
	p, published := l.Of(value)
	if p == nil {
		return 0
	}
	shape, places := p.shapeOf(published), 1
	for i, d := range shape {
		if places *= d; places == n && i+1 < len(shape) {
			return product(shape[i+1:])
		}
	}
	return 0
}

// countingImages lists the kinds of losses that accept a mask and compare with the images by default.
func countingImages() []string {
	return slices.DeleteFunc(counting(), func(name string) bool {
		e, _ := losses.Registry.Lookup(name)
		return e.New().Reads().Against != losses.Images
	})
}

// counting lists the kinds of losses that accept a mask.
func counting() (names []string) {
	for _, e := range losses.Registry.All() {
		if e.New().Reads().Counts {
			names = append(names, e.Name)
		}
	}
	return names
}

// named checks that there is a column or a value with the given name.
func (w *walk) named(part, kind, key, name string) bool {
	if _, ok := w.layout.Column(name); ok || w.model.hasHead(name) || slices.Contains(w.layout.Values(), name) || slices.Contains(w.layout.Named(), name) || w.placed(name) {
		return true
	}
	if w.model.Dataset.Source == nil || w.model.inDoubt("dataset") || w.model.inDoubt("head") || w.model.inDoubt("decoder") {
		return false // a consequence of an error that is already reported
	}
	hint := "there are " + w.existing()
	if near, ok := table.Nearest(name, w.nameable()); ok {
		hint = table.Suggest(near, []string{near}) + "; " + hint
	}
	w.report(part, kind, key, fmt.Sprintf("%s: there is no column or value %q", key, name), hint)
	return false
}
