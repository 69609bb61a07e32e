package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"tessera/config/part"
	"tessera/config/part/table"
	"tessera/data"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/panics"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/optim"
)

// walk is the state of a walk over the layers of a model, including the errors. To avoid consequential errors, an
// unknown shape is nil, and the shapes after it are nil up to a layer with a given number of outputs.
type walk struct {
	model  *Model
	layout *Layout
	found  []table.Diagnostic
	names  []string // paths of parameters with unknown shapes
	open   []string // paths of layers whose parameter names are unknown
	large  bool     // the tensors of a layer for a batch are too large

	stacks map[string]*placing // stacks by path
	order  []*placing          // order of placing: encoder, decoder, heads

	labelled   map[string]bool   // values that a loss compares with labels
	layerNames map[string]string // paths of the layers that have a name

	unsized string // reason why the number of outputs of the current layers has no default, "" if there is no special reason

	all        []ParameterPath // parameters of the layout; see listed
	own, other []string        // paths and aliases of all parameters
}

// sizing returns the index of the decoder layer that determines the size of the output. It is the last layer with a
// number of outputs or with parameters, or the last layer if there is none.
func (w *walk) sizing() int {
	for i, l := range slices.Backward(w.model.Decoder) {
		_, ok := l.Layer.(layers.Sized)
		if placed := w.layout.Decoder; ok || i < len(placed) && len(placed[i].Parameters) > 0 {
			return i
		}
	}
	return len(w.model.Decoder) - 1
}

// place determines the parameters and the output shape of a layer. If open is true, the number of outputs may be
// missing.
func (w *walk) place(part string, p *Placed, open bool) []int {
	doubtful := w.model.origin.Doubt(part).Any(aboutShape) || strings.HasPrefix(part, "head.") && (w.model.readable() == nil || w.model.inDoubt("loss") || slices.ContainsFunc(w.model.Losses, func(l Loss) bool { return l.Loss == nil }))
	if isNil(p.Layer) {
		if w.open = append(w.open, p.Path); w.model.origin == nil { // for a text the decoder has reported the error
			w.report(part, p.Kind, "", fmt.Sprintf("there is no layer (got %s)", nilText(p.Layer)), "")
		}
		return nil
	}
	for _, b := range borrowers(p.Layer) {
		if !w.lend(part, p, b) {
			w.assume(p)
			return nil
		}
	}
	s, isSized := p.Layer.(layers.Sized)
	if isSized && s.OutputUnits() == 0 && !open && !doubtful {
		if w.unsized != "" { // reports the cause, not its consequence
			w.report("dataset", "", "", w.unsized, fmt.Sprintf("or give %s.%s, which is not known without it", part, sizeKey(s)))
		} else {
			w.report(part, p.Kind, "", fmt.Sprintf("missing key %q", sizeKey(s)), "give the number of outputs")
		}
		w.assume(p)
		return nil
	}
	unknown := slices.ContainsFunc(p.Reads, func(name string) bool { return w.received(name) == nil })
	if in := p.In; in != nil && !unknown && !doubtful && (!isSized || s.OutputUnits() > 0) {
		out, list, err := shaped(p.Layer, in)
		if err == nil && !w.aliased(part, p, list) {
			return out
		}
		if err == nil {
			p.Parameters, p.Out, p.Published = list, out, w.published(part, p)
			if !w.bounded(part, p) {
				return nil
			}
			return out
		}
		w.refused(part, p.Kind, p.Layer, err, w.unflattened(p))
	}
	w.assume(p)
	if isSized && s.OutputUnits() > 0 && flattens(p.Layer) {
		return []int{s.OutputUnits()}
	}
	return nil
}

// flattens reports whether the output of a layer is a vector for every input.
func flattens(l layers.Layer) bool {
	out, _, err := shaped(l, []int{32, 32})
	return err != nil || len(out) == 1
}

func (w *walk) published(part string, p *Placed) (list []layers.Value) {
	l, ok := p.Layer.(layers.Publisher)
	if !ok {
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			w.report(part, p.Kind, "", fmt.Sprintf("its Publishes panics for an input of shape %v: %v", p.In, panics.Of(cause)), "")
		}
	}()
	for _, v := range l.Publishes(p.In) {
		if v.Name == "" || len(v.Shape) == 0 || slices.Min(v.Shape) < 1 {
			w.report(part, p.Kind, "", fmt.Sprintf("its Publishes gives %q of shape %v, want a name and axes > 0", v.Name, v.Shape), "")
			continue
		}
		list = append(list, v)
	}
	return list
}

// shaped returns the output shape and the parameters of a layer for inputs of the shape in. It turns a panic into an
// error, because the layer may be user-defined.
func shaped(l layers.Layer, in []int) (out []int, list []layers.Parameter, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			out, list, err = nil, nil, fmt.Errorf("its OutputShape or Parameters panics for an input of shape %v: %w", in, panics.Of(cause))
		}
	}()
	if out, err = l.OutputShape(in); err != nil {
		return nil, nil, err
	}
	if len(out) == 0 || slices.Min(out) < 1 {
		return nil, nil, fmt.Errorf("its OutputShape gives %v for an input of shape %v, want axes > 0", out, in)
	}
	list = l.Parameters(in)
	for i, p := range list {
		switch {
		case p.Name == "":
			err = fmt.Errorf("its parameter %d has no name", i)
		case len(p.Shape) > 0 && slices.Min(p.Shape) < 1:
			err = fmt.Errorf("its parameter %q has the shape %v, want axes > 0", p.Name, p.Shape)
		case isNil(p.Init) && p.Of == "":
			err = fmt.Errorf("its parameter %q has no Init", p.Name)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return out, list, nil
}

// refused reports the error of a layer. The error of an inner layer is located at the inner layer.
func (w *walk) refused(part, kind string, l layers.Layer, err error, hint string) {
	if b, ok := l.(layers.Block); ok {
		if inner, ok := err.(layers.InnerError); ok {
			part, l := fmt.Sprintf("%s.layers[%d]", part, inner.Index), b.Inner()[inner.Index]
			w.refused(part, language.NameOf(w.model.origin, part, l), l, inner.Err, hint)
			return
		}
	}
	if s, ok := l.(layers.Sized); ok && s.OutputUnits() == 0 {
		w.report(part, kind, "", fmt.Sprintf("missing key %q", sizeKey(s)), "")
		return
	}
	w.report(part, kind, table.KeyOf(err), err.Error(), hint)
}

// unflattened returns advice for a layer that does not accept a code, which is a vector, but accepts the shape of the
// encoder's output.
func (w *walk) unflattened(p *Placed) string {
	n := len(w.layout.Encoder)
	if n == 0 || len(p.In) != 1 {
		return ""
	}
	shape := w.layout.Encoder[n-1].Out
	if len(shape) < 2 || product(shape) != p.In[0] {
		return ""
	}
	if _, _, err := shaped(p.Layer, shape); err != nil {
		return ""
	}
	return fmt.Sprintf("put { kind = \"reshape\", shape = %s } before it, the shape of the encoder's output", strings.ReplaceAll(fmt.Sprint(shape), " ", ", "))
}

// borrowers returns the layers that borrow a parameter: l itself, or layers inside of l.
func borrowers(l layers.Layer) (list []layers.Borrower) {
	if b, ok := l.(layers.Borrower); ok {
		list = append(list, b)
	}
	if b, ok := l.(layers.Block); ok {
		for _, inner := range b.Inner() {
			list = append(list, borrowers(inner)...)
		}
	}
	return list
}

// lend passes the shape of the encoder's parameter to a layer that borrows it. It returns false if the shape is
// unknown, and reports an error if there is no such parameter.
func (w *walk) lend(part string, p *Placed, b layers.Borrower) bool {
	path := b.Borrows()
	b.Lend(nil)
	var valid []string
	for _, q := range w.layout.Parameters() {
		if q.Path == path && q.Of == "" {
			b.Lend(q.Shape)
			return true
		}
		if len(q.Shape) == 2 && q.Of == "" {
			valid = append(valid, q.Path)
		}
	}
	if slices.Contains(w.names, path) || slices.ContainsFunc(w.open, func(layer string) bool { return mayMatch(path, layer) }) {
		return false
	}
	hint := "want a layer of the decoder, and a dense one in the encoder"
	if len(valid) > 0 {
		hint = table.Suggest(path, valid)
	}
	_, _, err := shaped(b, p.In)
	w.report(part, p.Kind, table.KeyOf(err), err.Error(), hint)
	return false
}

// aliased reports an error and returns false if a parameter of a layer is an alias of a parameter that does not exist or has
// another shape.
func (w *walk) aliased(part string, p *Placed, list []layers.Parameter) bool {
	for _, q := range list {
		if q.Of == "" || slices.Contains(w.names, q.Of) || slices.ContainsFunc(w.open, func(layer string) bool { return mayMatch(q.Of, layer) }) {
			continue
		}
		want := slices.Clone(q.Shape)
		if q.Transposed {
			slices.Reverse(want)
		}
		var fitting []string
		found := false
		for _, of := range w.layout.Parameters() {
			if of.Of == "" && slices.Equal(of.Shape, want) {
				fitting, found = append(fitting, of.Path), found || of.Path == q.Of
			}
		}
		if !found {
			w.report(part, p.Kind, q.Name+"_of", fmt.Sprintf("there is no parameter %q of shape %v", q.Of, want), table.Suggest(q.Of, fitting))
			return false
		}
	}
	return true
}

// assume determines the parameter names of a layer whose input is unknown. They do not depend on the input.
func (w *walk) assume(p *Placed) {
	p.assumed = true
	if s, ok := p.Layer.(layers.Sized); ok && s.OutputUnits() == 0 {
		s.SetOutputUnits(1)
		defer s.SetOutputUnits(0)
	}
	for _, in := range [][]int{{32, 32}, {32, 32, 1}, {1024}} {
		_, list, err := shaped(p.Layer, in)
		if err != nil {
			continue
		}
		for _, q := range list {
			w.names = append(w.names, p.Path+"."+q.Name)
		}
		return
	}
	w.open = append(w.open, p.Path)
}

func (w *walk) report(part, kind, key, problem, hint string) {
	w.found = append(w.found, w.model.finding(part, kind, key, problem, hint))
}

// finding returns a diagnostic at a key of a table, or else at its kind, or else at the name of the model.
func (m *Model) finding(part, kind, key, problem, hint string) table.Diagnostic {
	return m.origin.Find(table.Diagnostic{Subject: subject(m.Name), Part: part, Kind: kind, Problem: problem, Suggestion: hint}, key)
}

// InDataset returns a diagnostic for a problem with the files of the data set. It is located at the dataset table.
func (m *Model) InDataset(problem string) table.Diagnostic {
	return m.finding("dataset", "", "", problem, "")
}

// Located adds the position in the declaration to an error of the model's graph, if the error belongs to a key of the
// model or of a player. It returns other errors unchanged.
func (m *Model) Located(err error) error {
	var of part.KeyError
	if !errors.As(err, &of) {
		return err
	}
	problem, hint, _ := strings.Cut(of.Problem, ": ")
	if name, ok := strings.CutPrefix(of.Key, "player."); ok {
		return table.Report([]table.Diagnostic{m.finding(playerPart(name), "", "losses", problem, hint)})
	}
	return table.Report([]table.Diagnostic{m.finding("", "", of.Key, of.Key+": "+problem, hint)})
}

// sizeKey returns the key of a layer's number of outputs, "" if the layer has no such key.
func sizeKey(s layers.Sized) string {
	if s == nil {
		return ""
	}
	return layers.SizeKey
}

// check finds inconsistencies in a decoded auto-encoder: shapes, ranges of values, parts in the wrong place, and globs.
func (m network) check(f *File) []table.Diagnostic {
	m.resolveNames()
	m.prepare()
	m.know(f)
	w := m.walk(m.input(f)) // first, because the checks use its results
	m.layout = w.layout
	w.listed()
	if len(m.Encoder) == 0 && !m.inDoubt("encoder") {
		w.report("", "", "encoder", "the encoder is empty", "give at least one "+m.header("encoder")+"; [{ kind = \"flatten\" }] for a model that is linear in the data, such as a logistic regression")
	}
	w.unprepared()
	w.misplaced()
	if _, search := m.Optimizer.Optimizer.(optim.Search); search {
		w.search()
	}
	before := len(w.found)
	for i, l := range m.Losses {
		if l.Loss != nil {
			w.loss(fmt.Sprintf("loss[%d]", i), l)
		}
	}
	w.taught()
	w.termNames()
	w.unread(len(w.found) == before)
	for i, one := range m.Constraints {
		if one.Constraint != nil {
			// a constraint on frozen parameters is valid, because a model that freezes parameters may inherit
			// constraints on them
			w.trainable(fmt.Sprintf("constraint[%d]", i), one.Kind, one.On, func(string) bool { return false }, w.views()...)
		}
	}
	w.drawn()
	w.drawnColumns()
	w.freeze()
	w.start()
	w.hooks()
	w.players()
	w.watched()
	return w.found
}

// header returns the TOML header of an element of one of the model's lists.
func (m *Model) header(list string) string {
	return fmt.Sprintf("[[model.%s.%s]]", table.KeyText(m.Name), list)
}

// inDoubt reports whether a key of the model has an error.
func (m *Model) inDoubt(key string) bool {
	return m.origin.Doubt("").About(key)
}

// readable returns the data set, or nil if its table has errors: nothing is read by wrong settings.
func (m *Model) readable() data.Source {
	if m.origin.DoubtWithin("dataset") {
		return nil
	}
	return m.Dataset.Source
}

// headPart returns the location of a head in the declaration.
func headPart(name string) string { return "head." + name }

// maxClasses is the maximum number of units that is derived from labels alone. A label such as 20240101 is probably a
// date, not a class.
const maxClasses = 1 << 16

func (m *Model) hasHead(name string) bool {
	_, ok := m.Heads[name]
	return ok
}

// Classes returns the number of classes of the data set. It returns 0 if the data set has no labels, or if the number
// is not known before the files are read.
func (m *Model) Classes() int {
	source := m.readable()
	if source == nil {
		return 0
	}
	n, _ := data.Classes(source, m.dirs)
	return n
}

// Resolved returns the model for images of the given shape: its layers are placed, and all default numbers of outputs are filled in.
// Changed layers are copies. Optional terms that are not defined for the shape are left out.
func (m *Model) Resolved(shape []int) *Model {
	m = m.Defined(shape)
	resolved := m.sized(m.walk(shape).layout)
	resolved.settings = keysOfModel(resolved)
	return resolved
}

// sized returns a copy of the model with the layout, in which the layers have the numbers of outputs of the placed ones.
func (m *Model) sized(l *Layout) *Model {
	sized := *m
	sized.layout, sized.Heads = l, maps.Clone(m.Heads)
	for path, list := range m.stackLists() {
		for i, one := range list {
			s, ok := one.Layer.(layers.Sized)
			if !ok || isNil(one.Layer) || s.OutputUnits() > 0 || l == nil || l.at[layerPath(path, i)] == nil {
				continue
			}
			list = slices.Clone(list)
			list[i].Layer = copyOf(one.Layer)
			list[i].Layer.(layers.Sized).SetOutputUnits(l.at[layerPath(path, i)].Layer.(layers.Sized).OutputUnits())
			if name, head := strings.CutPrefix(path, "head."); head {
				sized.Heads[name] = Head{m.Heads[name].From, list}
			} else {
				sized.Decoder = list // the encoder has no default
			}
		}
	}
	return &sized
}

// maxValues is the maximum number of values of a tensor. A larger tensor is probably a typo and would fail later.
const maxValues = 1 << 31

// bounded reports a placed layer whose output, parameters or tensors for a batch are too large.
func (w *walk) bounded(part string, p *Placed) bool {
	for q := range p.opened {
		at := part + strings.TrimPrefix(placeOf(q.Path), placeOf(p.Path))
		if product(q.Out) > maxValues {
			s, _ := q.Layer.(layers.Sized)
			w.report(at, q.Kind, sizeKey(s), fmt.Sprintf("one output has more than %d values", maxValues), "")
			return false
		}
		w.expands(at, q)
	}
	for _, q := range p.Parameters {
		if n := product(q.Shape); n > volume.MostExpanded {
			w.report(part, p.Kind, "", fmt.Sprintf("%s has %d values (%s), and training needs several times that: want at most %s",
				q.Name, n, numeral.Floats(n), numeral.Floats(volume.MostExpanded)), "")
			return false
		}
	}
	return true
}

// expands reports a layer whose intermediate or output tensors for a training batch are too large. Encoding and
// decoding after the training use smaller batches and need no check.
func (w *walk) expands(part string, p *Placed) {
	if w.model.origin.Doubt("train") != nil || w.model.origin.Doubt(part) != nil {
		return
	}
	batch := w.model.Train.Batch
	if limit := w.model.Dataset.Limit; limit > 0 { // a batch has at most as many images as the data set
		batch = min(batch, limit)
	}
	plain, largest, what, advice := true, product(p.Out), "its outputs", "take fewer outputs"
	if e, ok := p.Layer.(layers.Expanding); ok && e.Largest(p.In) > largest {
		plain, largest = false, e.Largest(p.In)
		what, advice = e.Expands(p.In)
	}
	n := product([]int{batch, largest})
	if n <= volume.MostExpanded || plain && w.large { // reported once, because the layers after a large output usually have large outputs, too
		return
	}
	w.large = true
	w.report(part, p.Kind, "", fmt.Sprintf("%s, for each of %d images, take %s in one piece, and training needs several: want at most %s",
		what, batch, numeral.Floats(n), numeral.Floats(volume.MostExpanded)), advice+" or a smaller train.batch")
}

// placeOf returns the location in the declaration of the layer at a path: "encoder[1].layers[0]" for "encoder.1.0".
func placeOf(path string) string {
	keys := strings.Split(path, ".")
	part := keys[0]
	if part == "head" {
		part, keys = "head."+keys[1], keys[1:]
	}
	for i, index := range keys[1:] {
		if i > 0 || strings.HasPrefix(part, "head.") {
			part += ".layers"
		}
		part += "[" + index + "]"
	}
	return part
}

// input returns the shape of the model's images, nil if it is unknown.
func (m *Model) input(f *File) []int {
	source := m.readable()
	if source == nil || f.Trained {
		return nil
	}
	if shape, ok := source.Shape(f.Dirs); ok {
		return shape
	}
	return nil
}

// product returns the number of values of a shape, 0 if the shape is unknown.
func product(shape []int) int {
	if shape == nil {
		return 0
	}
	return volume.Of(shape)
}

// shapeText returns a shape as "28x28 = 784", and a vector as "784".
func shapeText(shape []int) string {
	texts := lists.Map(shape, func(d int) string { return fmt.Sprint(d) })
	text := strings.Join(texts, "x")
	if len(shape) > 1 {
		text += fmt.Sprintf(" = %d", product(shape))
	}
	return text
}

// training checks the shapes in training. They differ from the declared ones after a layer that leaves tokens out in
// training; see [layers.Shortening]. The layers after it must accept the shorter input and must not have parameters
// that depend on its shape. The outputs of the model must keep their size.
func (w *walk) training() {
	if len(w.found) > 0 || w.layout.Input == nil {
		return // after other errors, or without an input, shapes are unknown
	}
	short := map[string]shorter{} // values whose shape differs in training, by the path of their layer
	for _, s := range w.order {
		for i := range s.placed {
			p := &s.placed[i]
			if p.In == nil || p.Out == nil {
				return
			}
			if !w.shorten(fmt.Sprintf("%s[%d]", s.part, i), p, short) {
				return // errors of later layers would be consequences
			}
		}
	}
	if n := len(w.layout.Decoder); n > 0 {
		last := &w.layout.Decoder[n-1]
		if s, ok := short[last.Path]; ok {
			w.report(fmt.Sprintf("decoder[%d]", n-1), last.Kind, "", fmt.Sprintf("in training %s (%s) leaves out tokens, and the output has the shape %s instead of %s",
				s.by.Path, s.by.Kind, shapeText(s.shape), shapeText(last.Out)), `put them back with { kind = "mask_tokens" }`)
		}
	}
}

// shorter is the shape of a value in training, and the layer that leaves tokens out.
type shorter struct {
	shape []int
	by    *Placed
}

// shorten records the shape of a layer's output in training. It returns false after an error. Stacks are checked in the
// order encoder, decoder, heads. A value of a stack that is checked later counts as unchanged.
func (w *walk) shorten(part string, p *Placed, short map[string]shorter) bool {
	var by *Placed
	shape := func(name string) []int {
		of := name
		if l, published := w.layout.Of(name); l != nil && published == "" {
			of = l.Path
		}
		s, ok := short[of]
		if !ok {
			return w.layout.Shape(name)
		}
		if by = s.by; of != name { // the value of a whole stack is a vector
			return []int{product(s.shape)}
		}
		return s.shape
	}
	wrong := func(problem string) bool {
		w.report(part, p.Kind, "", fmt.Sprintf("in training %s (%s) leaves out tokens, and %s", by.Path, by.Kind, problem),
			`put { kind = "mask_tokens" } or { kind = "take_token", mean = true } between the two, or remove the layer that leaves out tokens`)
		return false
	}
	in, err := joinedShape(p.From, shape)
	if err != nil {
		return wrong(err.Error())
	}
	l, leaves := p.Layer.(layers.Shortening)
	if in == nil || by == nil && !leaves {
		return true
	}
	out, own, err := shaped(p.Layer, in)
	if leaves {
		out, own, err = l.TrainingShape(in), p.Parameters, nil
	}
	if err != nil {
		return wrong(err.Error())
	}
	for i, q := range own {
		if by != nil && i < len(p.Parameters) && !slices.Equal(q.Shape, p.Parameters[i].Shape) {
			return wrong(fmt.Sprintf("%s.%s would have the shape %v instead of %v, for an input of shape %s instead of %s", p.Path, q.Name, q.Shape, p.Parameters[i].Shape,
				strings.TrimSpace(shapeText(in)), shapeText(p.In)))
		}
	}
	if !slices.Equal(out, p.Out) {
		if by == nil {
			by = p
		}
		short[p.Path] = shorter{out, by}
	}
	return true
}
