package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/layers"
	"tessera/losses"
)

// For returns the model for images of the given shape, see [Model.Resolved], of a data set that has the given columns in addition to
// images and labels. [File.Model] reads the columns from the files of the data set if the files exist. A run stores the columns that
// its model reads.
func (m *Model) For(shape []int, columns []data.Column) *Model {
	other := *m.Defined(shape)
	other.columns = slices.Clone(columns)
	other.mask()
	return other.Resolved(shape)
}

// Holed reports whether entries of the images may be missing (key `missing` of the data set) or hidden (keys `hide` and `leave`).
func (m *Model) Holed() bool {
	return m.Dataset.Source != nil && (data.HasMissing(m.Dataset.Source) || m.Dataset.Hides())
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
func (m *Model) Columns() []data.Column {
	return lists.Only(m.columns, func(c data.Column) bool { return slices.Contains(m.Dataset.reads, c.Name) })
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
	for _, h := range m.Heads {
		names = append(names, h.From...)
	}
	for _, l := range slices.Concat(slices.Collect(maps.Values(m.stackLists()))...) {
		names = append(names, l.From...)
		if d, ok := l.Layer.(layers.Fitted); ok {
			_, column := d.FittedTo()
			names = append(names, column)
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

// columns lists the columns that a key may name. Drawn ones are left out unless drawn is true.
func (w *walk) columns(drawn bool) []string {
	names := []string{losses.Images, losses.Labels}
	if w.layout.Holed {
		names = append(names, data.ObservedColumn)
	}
	for _, c := range w.layout.Columns {
		if _, is := w.model.Drawn[c.Name]; is && !drawn {
			continue
		}
		names = append(names, c.Name)
		if c.Missing {
			names = append(names, c.Name+data.ObservedSuffix)
		}
	}
	return names
}

// nameable lists the columns and values that a key may name.
func (w *walk) nameable() []string { return append(w.layout.Values(), w.columns(true)...) }

// reachable is like nameable, with the paths of layers and of the values that they publish if name is such a path.
func (w *walk) reachable(name string) []string {
	valid := w.nameable()
	if strings.Contains(name, ".") {
		valid = append(valid, w.layout.Named()...)
	}
	return valid
}

// existing lists the columns and values that a key may name, as text for a message.
func (w *walk) existing() string {
	return "columns: " + table.Quoted(w.columns(true)) + "; values: " + table.Quoted(w.layout.Values())
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
	if l.On != "" && reads.Against == l.On && !w.model.hasColumn(l.On) { // a head with the name of a column is an error that is already reported
		w.report(part, l.Kind, "against", fmt.Sprintf("against: the term compares %q with itself", l.On), "name what it is compared with; there are "+w.existing())
		return
	}
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
		if c, _ := w.layout.Column(name); c.Text != "" && isRegression(l.Loss) {
			w.report(part, l.Kind, "against", fmt.Sprintf("against: the column %q is read as %d classes, because not all cells are numbers (%s), but %s compares with numbers", name, len(c.Names), c.Text, l.Kind),
				"mend the cells, leave out their rows with the key where of the dataset table, or compare with classes by cross_entropy")
			break
		}
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

func isRegression(l losses.Loss) bool {
	_, is := l.(losses.Regression)
	return is
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
	return kindsThat("losses", func(l losses.Loss) bool { return l.Reads().Counts && l.Reads().Against == losses.Images })
}

// counting lists the kinds of losses that accept a mask.
func counting() []string {
	return kindsThat("losses", func(l losses.Loss) bool { return l.Reads().Counts })
}

// kindsThat lists the kinds of a vocabulary whose parts satisfy a condition.
func kindsThat[T any](title string, is func(T) bool) (names []string) {
	for _, v := range language.Vocabularies {
		for _, name := range v.Names() {
			if part, _ := v.New(name); v.Title == title && is(part.(T)) {
				names = append(names, name)
			}
		}
	}
	return names
}

// named checks that there is a column or a value with the given name.
func (w *walk) named(part, kind, key, name string) bool {
	if w.model.hasHead(name) || w.placed(name) {
		return true
	}
	m := w.model
	if m.Dataset.Source == nil || m.inDoubt("dataset") || m.inDoubt("head") || m.inDoubt("decoder") {
		return false // a consequence of an error that is already reported
	}
	if name == losses.Output {
		w.report(part, kind, key, fmt.Sprintf("%s reads the output, but the model has no decoder", kind), "leave it out, or add a decoder")
		return false
	}
	hint := "there are " + w.existing()
	if name == data.HeldOutColumn || name == data.CompleteColumn {
		hint = forMetrics
	} else if slices.ContainsFunc(w.own, func(path string) bool { return MatchPath(name, path) }) {
		hint = "it names parameters, which these losses read: " + table.Quoted(kindsThat("losses", func(l losses.Loss) bool { return strings.HasSuffix(l.On(), ".weight") }))
	} else if near, ok := table.Nearest(name, w.reachable(name)); ok {
		hint = table.Suggest(near, []string{near})
	} else if text := m.undeclaredHead(name); text != "" {
		hint = text
	}
	w.report(part, kind, key, fmt.Sprintf("%s: there is no column or value %q", key, name), hint)
	return false
}

// forMetrics says why no model reads two of the columns that metrics read.
const forMetrics = "metrics alone read it: a model must not see the values that are hidden from it; it may read \"observed\""

// undeclaredHead returns how to declare the head that a term reads by default and a model without heads lacks, "" for other names.
func (m *Model) undeclaredHead(name string) string {
	byDefault := func(l Loss) bool { return l.Loss != nil && l.Loss.On() == name }
	units := ", units = 64" // which classes give
	if slices.ContainsFunc(m.Losses, func(l Loss) bool { return byDefault(l) && l.Reads().Classes }) {
		units = ""
	}
	if len(m.Heads) > 0 || m.misnamedValue("head", name) != "" || !slices.ContainsFunc(m.Losses, byDefault) {
		return ""
	}
	return fmt.Sprintf("it is a head of the model; declare it\n[model.%s.head.%s]\nlayers = [{ kind = \"dense\"%s }]", table.KeyText(m.Name), table.KeyText(name), units)
}

// Drawn declares a column whose values are drawn from the seed in every step: noise, masks, negative samples. It is
// read by its name like a column of the data set.
type Drawn struct {
	Kind string    `toml:"kind" doc:"how it is drawn"`
	Draw data.Draw `part:"kind"`
}

// drawnPart returns the location of a drawn column in the declaration.
func drawnPart(name string) string { return "column." + table.KeyText(name) }

// allDrawn returns the drawn columns, sorted by name.
func (m *Model) allDrawn() (list []data.Drawn) {
	for _, name := range slices.Sorted(maps.Keys(m.Drawn)) {
		if d := m.Drawn[name].Draw; !isNil(d) {
			list = append(list, data.Drawn{Name: name, Draw: d})
		}
	}
	return list
}

// allColumns describes the columns other than images and labels: first those of the data set, if known, then the drawn
// ones. A drawn column with an error, or one that depends on an unknown column, has no type.
func (m *Model) allColumns(input []int) []data.Column {
	if len(m.Drawn) == 0 {
		return m.columns
	}
	list := slices.Clone(m.columns)
	for _, d := range m.allDrawn() {
		c, err := d.Draw.Column(m.besideDrawn(input))
		if err != nil {
			c = data.Column{}
		}
		list = append(list, d.Described(c))
	}
	return list
}

// besideDrawn returns a function that describes a column of the data set by its name. It does not know drawn columns.
func (m *Model) besideDrawn(input []int) func(name string) (data.Column, bool) {
	return (&Layout{Input: input, Columns: m.columns, Holed: m.Holed()}).Column
}

// readByDraws lists the columns that the drawn column with the given name reads.
func (m *Model) readByDraws(name string) []string {
	if r, ok := m.Drawn[name].Draw.(data.DrawReader); ok {
		return r.Reads()
	}
	return nil
}

// BehindDrawn returns columns with each drawn column replaced by the columns from which it is drawn. The result is what
// the data must contain.
func (m *Model) BehindDrawn(columns []data.Column) (list []data.Column) {
	add := func(c data.Column) {
		if !slices.ContainsFunc(list, func(o data.Column) bool { return o.Name == c.Name }) {
			list = append(list, c)
		}
	}
	for _, c := range columns {
		if !c.Drawn {
			add(c)
			continue
		}
		for _, name := range m.readByDraws(c.Name) {
			if of, ok := m.besideDrawn(m.layout.Input)(name); ok {
				add(of)
			}
		}
	}
	return list
}

// drawnColumns checks the drawn columns: their names, the columns that they read, and that each of them is read.
func (w *walk) drawnColumns() {
	m := w.model
	if m.inDoubt("column") || m.Dataset.Source == nil {
		return
	}
	read := m.namesRead()
	for _, d := range m.allDrawn() {
		part, kind := drawnPart(d.Name), m.Drawn[d.Name].Kind
		if m.origin.Doubt(part) != nil {
			continue
		}
		problem := ""
		switch {
		case d.Name == "" || strings.ContainsAny(d.Name, `./*?[]\ `):
			problem = "it must not be empty and not contain . / * ? [ ] \\ or spaces"
		case slices.Contains(reservedColumns, d.Name):
			problem = "the name is reserved"
		case m.hasColumn(d.Name):
			problem = "the data set has a column of this name"
		}
		if problem != "" {
			w.report(part, kind, "", fmt.Sprintf("invalid name %q of a drawn column: %s", d.Name, problem), "")
			continue
		}
		if _, err := d.Draw.Column(m.besideDrawn(w.layout.Input)); err != nil {
			problem, hint := err.Error(), "it is drawn from the columns of the data set: "+table.Quoted(w.columns(false))
			if i := slices.IndexFunc(m.readByDraws(d.Name), func(name string) bool { _, also := m.Drawn[name]; return also }); i >= 0 {
				problem = fmt.Sprintf("%s: %q is a drawn column, and no column is drawn from another drawn one", table.KeyOf(err), m.readByDraws(d.Name)[i])
			}
			w.report(part, kind, table.KeyOf(err), problem, hint)
			continue
		}
		if of := w.withHoles(d.Name); of != "" {
			w.report(part, kind, "of", fmt.Sprintf("of: %q has missing or hidden entries, which a column of other samples cannot leave out", of), "draw a column without missing entries")
			continue
		}
		if !slices.Contains(read, d.Name) && !m.inDoubt("loss") && !m.inDoubt("head") && !m.inDoubt("encoder") && !m.inDoubt("decoder") {
			w.report(part, kind, "", fmt.Sprintf("nothing reads the drawn column %q", d.Name), "name it in from of a head or a layer, or in against, mask or sample_weight of a loss")
		}
	}
}

// withHoles returns the first column with missing or hidden entries whose values a drawn column reads, or "".
func (w *walk) withHoles(drawn string) string {
	if _, shapes := w.model.Drawn[drawn].Draw.(interface{ ReadsShapes() }); shapes {
		return ""
	}
	for _, name := range w.model.readByDraws(drawn) {
		if c, ok := w.layout.Column(name); ok && (c.Missing || name == losses.Images && w.layout.Holed) {
			return name
		}
	}
	return ""
}

// reservedColumns lists the names that a drawn column must not have.
var reservedColumns = []string{losses.Code, losses.Output, losses.Atoms, losses.Images, losses.Labels, "views", "loss", "names", Previous,
	data.ObservedColumn, data.HeldOutColumn, data.CompleteColumn}

// Wanted is a requirement of a term or a layer on the values of a column.
type Wanted struct {
	Column string
	Holds  func(v float32) bool // reports whether a value meets the requirement
	Text   string               // text after the value in a message: who reads it, and the requirement
	Size   string               // key of the number of indices of the layer; "" if it is another one
	Layer  bool                 // a layer reads the column, so that the requirement also holds after the training
}

// Wanted returns the requirements of the terms and layers of the model on columns other than images.
func (m *Model) Wanted(l *Layout) (list []Wanted) {
	inside := map[string][]string{} // by the path of a layer inside a block
	for p := range l.Layers() {
		columns := l.unchanged(p.From, inside)
		if l.at[p.Path] == nil && rearranges(p.Layer) {
			inside[p.Path] = columns
		}
		i, ok := p.Layer.(layers.Indexing)
		if !ok {
			continue
		}
		least, n, hint, size := float32(0), float32(i.Indices()), "", ""
		u, ok := i.(layers.TakesUnknown)
		if ok {
			size = "vocabulary"
		}
		if ok && u.Unknowns() {
			least = -1
		} else if ok {
			hint = "; for an unknown class (-1: a missing text, or one of no training sample) write unknown = true"
		}
		for _, name := range columns {
			list = append(list, Wanted{Column: name, Layer: true, Size: size,
				Holds: func(v float32) bool { return v >= least && v < n && v == float32(math.Trunc(float64(v))) },
				Text: fmt.Sprintf("but %s (%s) wants whole numbers from %g to %g%s%s", p.Path, p.Kind, least, n-1,
					m.savedBytes(l, name, "whole numbers", "integers"), hint)})
		}
	}
	for i, term := range m.Losses {
		if term.Loss == nil {
			continue
		}
		reads := term.Reads()
		add := func(key, column string, holds func(float32) bool, want string) {
			if column == "" || column == losses.Images {
				return
			}
			if column == losses.Labels && (key != "against" || !reads.Classes) { // a negative label means an unknown class
				known := holds
				holds, want = func(v float32) bool { return v >= 0 && known(v) }, want+" of a sample whose class is known"
			}
			list = append(list, Wanted{Column: column, Holds: holds,
				Text: fmt.Sprintf("but loss[%d] (%s) reads the column as %s and wants %s", i, term.Kind, key, want)})
		}
		if reads.Labels > 0 {
			list = append(list, Wanted{Column: losses.Labels, Holds: func(v float32) bool { return v < float32(reads.Labels) },
				Text: fmt.Sprintf("but loss[%d] (%s) wants a label less than %d, the number of classes (classes)", i, term.Kind, reads.Labels)})
		}
		if _, ok := term.Loss.(losses.TokenTarget); ok {
			against := cmp.Or(term.Against, reads.Against)
			if n := l.Size(against); n > 0 {
				k := float32(l.Size(term.On) / n)
				list = append(list, Wanted{Column: against, Holds: func(v float32) bool { return v >= 0 && v < k && v == float32(math.Trunc(float64(v))) },
					Text: fmt.Sprintf("but loss[%d] (%s) has %g logits for each of %d tokens and wants whole numbers below that; a head of tokens reads one row for each: from = \"encoder.N\", with token_dense", i, term.Kind, k, n)})
			}
		}
		units := float32(l.Size(term.On))
		if c, _ := l.Column(term.Mask); c.Type == data.Float32 { // each entry has a weight
			add("mask", term.Mask, func(v float32) bool { return v >= 0 && v <= 1 }, "a number in [0,1]")
		} else {
			add("mask", term.Mask, func(v float32) bool { return v == 0 || v == 1 }, "0 or 1"+m.savedBytes(l, term.Mask, "masks", "whole numbers, bool or floats"))
		}
		add("sample_weight", term.SampleWeight, func(v float32) bool { return v >= 0 }, "a number >= 0")
		switch {
		case reads.Unit:
			add("against", reads.Against, func(v float32) bool { return v >= 0 && v <= 1 }, "a number in [0,1]")
		case reads.Groups > 0:
			add("against", reads.Against, func(v float32) bool { return v < float32(reads.Groups) }, fmt.Sprintf("a group less than %d, the number of groups (groups)", reads.Groups))
		case reads.Classes:
			add("against", reads.Against, func(v float32) bool { return v < units }, fmt.Sprintf("a class less than %g, the number of values of %q", units, term.On))
		case reads.Against == losses.Labels:
			add("against", reads.Against, func(float32) bool { return true }, "the number")
		}
	}
	return list
}

// savedBytes returns the advice for a column of bytes of a file, "" for other columns. Samples of texts are no bytes.
func (m *Model) savedBytes(l *Layout, column, what, as string) string {
	c, _ := l.Column(column)
	if _, texts := m.Dataset.Source.(data.FileReader); texts || !data.IsOwn(m.Dataset.Source) || c.Type == data.Whole || c.Type == data.Float32 && column != losses.Images {
		return ""
	}
	return fmt.Sprintf("; save %s as %s, because bytes are divided by 255", what, as)
}

// Required returns the requirements on the columns from which the named value is computed. They also hold after the training: those of
// layers, the bounds of drawn columns, and that a mask of values is 0 or 1.
func (m *Model) Required(l *Layout, name string) (list []Wanted) {
	sources := l.Sources(name)
	for _, w := range m.Wanted(l) {
		if w.Layer && slices.Contains(sources, w.Column) {
			list = append(list, w)
		}
	}
	for _, source := range sources {
		declared := slices.ContainsFunc(l.Columns, func(c data.Column) bool { return c.Name == source })
		if !declared && (source == data.ObservedColumn || strings.HasSuffix(source, data.ObservedSuffix)) {
			list = append(list, Wanted{Column: source, Layer: true, Holds: func(v float32) bool { return v == 0 || v == 1 },
				Text: "want 1 for a value that is there, 0 for one that is missing"})
		}
		if c, _ := l.Column(source); c.Between != nil {
			low, high := float32(c.Between[0]), float32(c.Between[1])
			list = append(list, Wanted{Column: source, Layer: true,
				Holds: func(v float32) bool { return v >= low && v <= high && v == float32(math.Trunc(float64(v))) },
				Text:  fmt.Sprintf("but the training draws whole numbers from %d to %d", c.Between[0], c.Between[1])})
		}
	}
	return list
}

// Check returns a [*data.Error] for the first of the values of the column that violates the requirement.
func (w Wanted) Check(values []float32) error {
	for i, v := range values {
		if !w.Holds(v) {
			return &data.Error{Problem: fmt.Sprintf("value %d of the column %q: got %v, %s", i, w.Column, v, w.Text)}
		}
	}
	return nil
}

// unchanged returns the columns among names, and the columns that reach one of the names only through layers that rearrange
// values. inside has these columns for the layers inside blocks.
func (l *Layout) unchanged(names []string, inside map[string][]string) (columns []string) {
	for _, name := range names {
		columns = append(columns, inside[name]...)
		if _, column := l.Column(name); column {
			columns = append(columns, name)
		} else if p, published := l.Of(name); p != nil && published == "" && rearranges(p.Layer) {
			columns = append(columns, l.unchanged(p.From, inside)...)
		}
	}
	return columns
}

// rearranges reports whether a layer only rearranges the values of its input, or leaves some out.
func rearranges(l layers.Layer) bool { _, ok := l.(layers.Rearranging); return ok }

// ReadsLabels reports whether a part of the model reads the labels of the training images.
func (m *Model) ReadsLabels() bool {
	return slices.ContainsFunc(m.namesRead(), func(name string) bool {
		return name == losses.Labels || slices.Contains(m.readByDraws(name), losses.Labels)
	})
}

// Unlabelled returns an error for samples without labels if the model reads labels in other ways than as the classes of
// a term.
func (m *Model) Unlabelled(dataset string, shape []int, samples *data.Images) error {
	if samples.Labels() != nil {
		return nil
	}
	layout, err := m.Layout(shape)
	if err != nil {
		return err
	}
	for _, w := range m.Wanted(layout) {
		if w.Column == losses.Labels {
			return &data.Error{Dataset: dataset, Problem: "its samples have no labels, " + w.Text, Hint: "name them with the key labels, or name another column"}
		}
	}
	for p := range layout.Stacked() {
		if slices.Contains(p.Inputs(), losses.Labels) {
			return &data.Error{Dataset: dataset, Problem: fmt.Sprintf("its samples have no labels, but %s (%s) reads them", p.Path, p.Kind),
				Hint: "name them with the key labels, or name another column in from"}
		}
	}
	return nil
}

// Named returns an error for labels that are numbers, but are read as names of classes, if a term compares them with numbers: it would compare
// the number of the class.
func (m *Model) Named(dataset string, classes []string) error {
	for _, l := range m.Losses {
		if !isRegression(l.Loss) || l.Reads().Against != losses.Labels {
			continue
		}
		for i, name := range classes {
			if v, err := strconv.ParseFloat(strings.Replace(name, ",", ".", 1), 64); err == nil && v != float64(i) {
				return &data.Error{Dataset: dataset, Problem: fmt.Sprintf("its labels are read as names of %d classes, so that %s would compare %.60q as %d", len(classes), l.Kind, name, i),
					Hint: `name the column of numbers in columns, such as columns = { target = "NAME" }, and write against = "target"`}
			}
		}
	}
	return nil
}

// largestIn returns the largest value of a column of samples, and whether all are whole numbers.
func largestIn(column string, samples []*data.Images) (largest float32, whole bool) {
	whole = true
	for _, images := range samples {
		if images != nil {
			images.FirstOutside(column, func(v float32) bool {
				largest, whole = max(largest, v), whole && v == float32(math.Trunc(float64(v)))
				return true
			})
		}
	}
	return largest, whole
}

// Unusable returns an error for the first value that violates a requirement of the model. It checks the samples in the
// given order and skips nil ones.
func (m *Model) Unusable(dataset string, shape []int, samples ...*data.Images) error {
	layout, err := m.Layout(shape)
	if err != nil {
		return err
	}
	wanted := m.Wanted(layout)
	for _, images := range samples {
		if images == nil {
			continue
		}
		for _, w := range wanted {
			place, v := images.FirstOutside(w.Column, w.Holds)
			if place == "" {
				continue
			}
			wrong := &data.Error{Dataset: dataset, Problem: fmt.Sprintf("%s: got %v, %s", place, v, w.Text)}
			if largest, whole := largestIn(w.Column, samples); w.Size != "" && whole && !w.Holds(largest) {
				wrong.Hint = fmt.Sprintf("the largest is %g: %s = %g holds them all", largest, w.Size, largest+1)
			}
			return wrong
		}
	}
	return nil
}
