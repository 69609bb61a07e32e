package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"tessera/augment"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/volume"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
	"tessera/part"
	"tessera/part/table"
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

	labelled map[string]bool // values that a loss compares with labels

	unsized string // reason why the number of outputs of the current layers has no default, "" if there is no special reason

	all        []ParameterPath // parameters of the layout; see listed
	own, other []string        // paths and aliases of all parameters
}

// sizing returns the index of the decoder layer that determines the size of the output. It is the last layer with a
// number of outputs, or the last layer if there is none.
func (w *walk) sizing() int {
	for i, l := range slices.Backward(w.model.Decoder) {
		if _, ok := l.Layer.(layers.Sized); ok {
			return i
		}
	}
	return len(w.model.Decoder) - 1
}

// place determines the parameters and the output shape of a layer. If open is true, the number of outputs may be
// missing.
func (w *walk) place(part string, p *Placed, open bool) []int {
	doubtful := w.model.origin.Doubt(part).Any(aboutShape)
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
			w.report("dataset", "", "", w.unsized, fmt.Sprintf("or give %s.%s", part, sizeKey(s)))
		} else {
			w.report(part, p.Kind, "", fmt.Sprintf("missing key %q", sizeKey(s)), "give the number of outputs")
		}
		w.assume(p)
		return nil
	}
	unknown := slices.ContainsFunc(p.Reads, func(name string) bool { return w.received(name) == nil })
	if in := p.In; in != nil && !unknown && !doubtful && (!isSized || s.OutputUnits() > 0) {
		out, list, err := shaped(p.Layer, in)
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

// published lists the values that a placed layer publishes.
func (w *walk) published(part string, p *Placed) (list []layers.Value) {
	l, ok := p.Layer.(layers.Publisher)
	if !ok {
		return nil
	}
	defer func() {
		if cause := recover(); cause != nil {
			w.report(part, p.Kind, "", fmt.Sprintf("its Publishes panics for an input of shape %v: %v", p.In, cause), "")
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
			out, list, err = nil, nil, fmt.Errorf("its OutputShape or Parameters panics for an input of shape %v: %v", in, cause)
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

// assume determines the parameter names of a layer whose input is unknown. They do not depend on the input.
func (w *walk) assume(p *Placed) {
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

// unit is the range of values for which terms such as bce and kl are defined.
var unit = layers.Interval{Low: 0, High: 1}

// Suits returns an error if a term is not defined for images with values in [low, high]. It checks terms that compare
// the output with the images, and terms on a code without bounds. [Model.check] cannot check them, because both depend
// on the data.
func (m *Model) Suits(low, high float64) error {
	images := layers.Interval{Low: low, High: high}
	for i, l := range m.Losses {
		reads := l.Reads()
		if !reads.Unit {
			continue
		}
		of, r := "the images", images
		switch {
		case reads.Against == losses.Images:
		case reads.Against != "": // the values of another column are checked separately
			continue
		default:
			of = "the " + l.On
			var known bool
			if r, known, _ = m.rangeOf(l.On, images); !known {
				continue
			}
		}
		if !r.Within(unit) {
			return fmt.Errorf("loss[%d] (%s) needs %s in [0,1]", i, l.Kind, of)
		}
	}
	return nil
}

// Unclipped returns an error if an augmentation of a view would clip images with values in [low, high]. The check
// depends on the data.
func (m *Model) Unclipped(low, high float64) error {
	images := layers.Interval{Low: low, High: high}
	for i, v := range m.Views {
		for k, a := range v.Augment {
			if part := fmt.Sprintf("view[%d].augment[%d]", i, k); augment.Clips(a) && !images.Within(unit) {
				return fmt.Errorf("%s (%s) clips images to [0,1]", part, language.NameOf(m.origin, part, a))
			}
		}
	}
	return nil
}

// unitInterval checks a term that is defined on [0,1]: its value must be in [0,1] for images in [0,1].
func (w *walk) unitInterval(part string, l Loss) {
	r, known, last := w.model.rangeOf(l.On, unit)
	if !known || r.Within(unit) {
		return
	}
	w.report(part, l.Kind, "", fmt.Sprintf("%s needs values in [0,1], but %s gives %s", l.Kind, last, intervalText(r)),
		"these give values in [0,1]: "+table.Quoted(unitActivations()))
}

// unitActivations lists the activations whose values are in [0,1].
func unitActivations() []string {
	var names []string
	for _, name := range layers.ActivationName("").Choices() {
		a, err := layers.ActivationName(name).Activation()
		if err == nil && a.OutputRange(layers.Everything).Within(unit) {
			names = append(names, name)
		}
	}
	return names
}

func intervalText(i layers.Interval) string {
	if i == layers.Everything {
		return "any value"
	}
	low, high := fmt.Sprintf("[%g", i.Low), fmt.Sprintf("%g]", i.High)
	if math.IsInf(i.Low, -1) {
		low = "(-inf"
	}
	if math.IsInf(i.High, 1) {
		high = "inf)"
	}
	return "values in " + low + "," + high
}

// check finds inconsistencies in a decoded auto-encoder: shapes, ranges of values, parts in the wrong place, and globs.
func (m *Model) check(input []int) []table.Diagnostic {
	w := m.walk(input) // first, because the checks use its results
	w.listed()
	if len(m.Encoder) == 0 && !m.inDoubt("encoder") {
		w.report("", "", "encoder", "the encoder is empty", "give at least one "+m.header("encoder"))
	}
	w.decomposing()
	if _, search := m.Optimizer.Optimizer.(optim.Search); search {
		w.search()
	}
	before := len(w.found)
	for i, l := range m.Losses {
		if l.Loss != nil {
			w.loss(fmt.Sprintf("loss[%d]", i), l)
		}
	}
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

// atoms checks that the decoder has atoms with a suitable shape for a term that reads atoms.
func (w *walk) atoms(part string, l Loss) {
	inDecoder := func(path string) bool { return strings.HasPrefix(path, "decoder.") }
	if slices.ContainsFunc(w.names, inDecoder) || slices.ContainsFunc(w.open, inDecoder) {
		return // the layer has unknown shapes
	}
	list := w.layout.Decoder
	if len(list) == 0 {
		if !w.model.inDoubt("decoder") {
			w.report(part, l.Kind, "", fmt.Sprintf("%s reads the atoms, but the model has no decoder", l.Kind), "leave the term out, or add a decoder")
		}
		return
	}
	if product(list[len(list)-1].Out) != product(w.layout.Input) {
		return // another check reports it, or it is unknown
	}
	if w.layout.Dictionary() < 0 {
		w.report(part, l.Kind, "", fmt.Sprintf("%s reads the atoms, but the model has none: the output of the decoder's last layer with weights is not an image", l.Kind),
			"end the decoder with a dense layer, optionally followed by activations")
	}
}

// headPart returns the location of a head in the declaration.
func headPart(name string) string { return "head." + name }

// maxClasses is the maximum number of units that is derived from labels alone. A label such as 20240101 is probably a
// date, not a class.
const maxClasses = 1 << 16

// misnamedHead returns the reason why the name of a head is invalid, "" if it is valid.
func misnamedHead(name string) string {
	if slices.Contains([]string{losses.Code, losses.Output, losses.Atoms, losses.Images, "labels", "views", "loss", "teacher", Previous}, name) {
		return fmt.Sprintf("invalid name %q of a head: the name is reserved", name)
	}
	if name == "" || strings.ContainsAny(name, `./*?[]\ `) {
		return fmt.Sprintf("invalid name %q of a head: parameter paths contain the name", name)
	}
	return ""
}

// hasHead reports whether a head with the given name is declared.
func (m *Model) hasHead(name string) bool {
	_, ok := m.Heads[name]
	return ok
}

// labelled returns the values that losses compare with the labels.
func (m *Model) labelled() map[string]bool {
	values := map[string]bool{}
	for _, l := range m.Losses {
		if l.Loss != nil && l.Reads().Classes && l.Reads().Against == losses.Labels {
			values[l.On] = true
		}
	}
	return values
}

// targetSize returns the size of the column with which a loss compares a head. It is the default number of outputs of
// the head. It returns 0 if there is no such column, or if the size is unknown.
func (m *Model) targetSize(head string, layout *Layout) int {
	for _, l := range m.Losses {
		if l.Loss == nil || l.On != head {
			continue
		}
		r := l.Reads()
		switch c, _ := layout.Column(r.Against); {
		case r.Against == losses.Images || r.Against == losses.Labels || r.Against == "" || r.Groups > 0:
		case r.Classes && len(c.Names) > 0:
			return len(c.Names)
		case !r.Classes:
			return layout.Size(r.Against)
		}
	}
	return 0
}

// unknownTarget returns the column with which a loss compares a head, if the size of this column is unknown; otherwise
// "".
func (m *Model) unknownTarget(head string) string {
	for _, l := range m.Losses {
		if l.Loss == nil || l.On != head || l.Reads().Groups > 0 {
			continue
		}
		i := slices.IndexFunc(m.columns, func(c data.Column) bool { return c.Name == l.Reads().Against && c.Type == "" })
		if i >= 0 {
			return m.columns[i].Name
		}
	}
	return ""
}

// Classes returns the number of classes of the data set. It returns 0 if the data set has no labels, or if the number
// is not known before the files are read.
func (m *Model) Classes() int {
	if m.Dataset.Source == nil {
		return 0
	}
	n, _ := data.Classes(m.Dataset.Source, m.dirs)
	return n
}

// Resolved returns the model with all default numbers of outputs filled in for images of the given shape. Changed layers are
// copies.
func (m *Model) Resolved(shape []int) *Model {
	resolved := m.sized(shape)
	resolved.text = Fill(resolved)
	return resolved
}

// sized is like Resolved, but does not update the text.
func (m *Model) sized(shape []int) *Model {
	resolved := *m
	resolved.Decoder = sizedBy(m.Decoder, openUnits{open: true, size: product(shape)})
	if m.Heads != nil {
		resolved.Heads = map[string]Head{}
	}
	labelled, layout := m.labelled(), &Layout{Input: shape, Columns: m.allColumns(shape), Holed: m.Holed()}
	for name, h := range m.Heads {
		s := openUnits{open: true, size: m.targetSize(name, layout)}
		if labelled[name] {
			s.size = m.Classes()
		}
		resolved.Heads[name] = Head{h.From, sizedBy(h.Layers, s)}
	}
	return &resolved
}

// sizedBy returns a stack with the default number of outputs filled in.
func sizedBy(list []Layer, s openUnits) []Layer {
	i := s.opened(list)
	if i < 0 || s.size == 0 {
		return list
	}
	list = slices.Clone(list)
	list[i].Layer = copyOf(list[i].Layer)
	list[i].Layer.(layers.Sized).SetOutputUnits(s.size)
	return list
}

// loss checks that the values that a term reads exist, and that the term is defined on them.
func (w *walk) loss(part string, l Loss) {
	reads := l.Reads()
	if l.Weight != nil && w.model.origin.Doubt(part) == nil && w.model.origin.Doubt(part+".weight") == nil {
		for _, epoch := range []float64{0, math.Inf(1)} {
			if v := l.Weight.At(epoch); !(v >= 0) || math.IsInf(v, 1) {
				w.report(part, l.Kind, "weight", fmt.Sprintf("weight: is %v after %v epochs, want a number >= 0", v, epoch), "")
				break
			}
		}
	}
	if reads.Per == losses.Parameter {
		w.glob(part, l.Kind, "on", l.On, w.views()...)
		return
	}
	if reads.Atoms {
		if want := l.Loss.On(); l.On != want {
			w.report(part, l.Kind, "on", fmt.Sprintf("on: got %q, but %s reads the %s", l.On, l.Kind, want), fmt.Sprintf("write %q, or leave it out", want))
			return
		}
		w.atoms(part, l)
	}
	if (reads.On || len(reads.Published) > 0) && !w.hasValue(part, l.Kind, "on", l.On) {
		return
	}
	w.publishes(part, l, reads.Published)
	for _, name := range reads.Values {
		w.hasValue(part, l.Kind, w.keyHolding(l.Loss, name), name)
	}
	if name := reads.TeacherOf; name != "" && w.hasValue(part, l.Kind, w.keyHolding(l.Loss, name), name) {
		key, on, of := w.keyHolding(l.Loss, name), w.layout.Size(l.On), w.layout.Size(name)
		if _, column := w.layout.Column(name); column {
			w.report(part, l.Kind, key, fmt.Sprintf("%s: %q is a column, which no teacher computes", key, name), w.suggestValue(name))
		} else if on > 0 && of > 0 && on != of {
			w.report(part, l.Kind, key, fmt.Sprintf("%s: %q has %d values, but %q has %d: want as many", key, name, of, l.On, on), "change the units of the last layer of one of them")
		}
	}
	if s, ok := l.Loss.(losses.ShapeChecker); ok && w.layout.Input != nil && len(w.layout.Decoder) > 0 {
		if err := s.CheckShape(w.layout.Input); err != nil {
			w.report(part, l.Kind, table.KeyOf(err), err.Error(), "")
		}
	}
	if reads.On {
		w.value(part, l, reads)
	}
}

// publishes checks that the layer that computes the value `on` publishes the values that the term reads.
func (w *walk) publishes(part string, l Loss, names []string) {
	p, _ := w.layout.Of(l.On)
	if p == nil || p.Out == nil {
		return // the layer is unknown
	}
	for _, name := range names {
		if p.shapeOf(name) != nil {
			continue
		}
		var valid []string
		for _, other := range w.layout.Stacked() {
			if other.shapeOf(name) != nil {
				valid = append(valid, other.Path)
			}
		}
		hint := "no layer of the model publishes it"
		if len(valid) > 0 {
			hint = table.Suggest(l.On, valid)
		}
		w.report(part, l.Kind, "on", fmt.Sprintf("on: %s reads the value %s of a layer, but %s (%s) publishes none", l.Kind, name, p.Path, p.Kind), hint)
		return
	}
}

// value checks that the size and the range of the value `on` suit the term.
func (w *walk) value(part string, l Loss, reads losses.Reads) {
	size := w.layout.Size(l.On)
	if n, ok := l.Loss.(losses.UnitsChecker); ok && size > 0 {
		if err := n.CheckUnits(size); err != nil {
			w.report(part, l.Kind, "", err.Error(), "")
		}
	}
	w.compared(part, l, reads)
	if reads.Views && len(w.model.Views) == 0 && !w.model.inDoubt("view") {
		w.report(part, l.Kind, "", fmt.Sprintf("%s compares the two views of each image, but the model has none", l.Kind), "give one "+w.model.header("view"))
	}
	if reads.Teacher && !w.model.inDoubt("hook") {
		w.teacher(part, l)
	}
	if reads.Clean && !w.model.inDoubt("hook") && !w.model.Distorted() {
		w.report(part, l.Kind, "", fmt.Sprintf("%s compares clean images with attacked ones, but no hook of the model changes images", l.Kind),
			fmt.Sprintf("declare [model.%s.hook.adversarial]", table.KeyText(w.model.Name)))
	}
	if reads.Classes && reads.Against == losses.Labels {
		w.labels(part, l, size)
	}
	if reads.Unit {
		w.unitInterval(part, l)
	}
}

// teacher checks that the hook that a term names can be a teacher, which means that it lends its parameters.
func (w *walk) teacher(part string, l Loss) {
	name := l.TeacherName()
	var valid []string
	for _, h := range w.model.AllHooks() {
		if _, ok := h.Hook.(hooks.Lender); ok {
			valid = append(valid, h.Name)
		}
	}
	switch {
	case slices.Contains(valid, name):
	case l.Teacher == "" && len(valid) == 0:
		w.report(part, l.Kind, "", fmt.Sprintf("%s reads the values of a teacher, but the model has none", l.Kind), fmt.Sprintf("declare it: [model.%s.hook.teacher]", table.KeyText(w.model.Name)))
	case w.model.Hooks[name] != nil:
		w.report(part, l.Kind, "teacher", fmt.Sprintf("teacher: the hook %q lends no parameters", name), w.teachers(name, valid))
	default:
		w.report(part, l.Kind, "teacher", fmt.Sprintf("teacher: the model has no hook %q", name), w.teachers(name, valid))
	}
}

// teachers returns a suggestion: one of the hooks that lend parameters, or how to declare one.
func (w *walk) teachers(name string, valid []string) string {
	if len(valid) > 0 {
		return table.Suggest(name, valid)
	}
	if w.model.Hooks[name] != nil {
		name = DefaultTeacher
	}
	return fmt.Sprintf("declare it: [model.%s.hook.%s] with kind = %q", table.KeyText(w.model.Name), table.KeyText(name), DefaultTeacher)
}

// labels checks that the data set has labels, and that the value has one unit for each class.
func (w *walk) labels(part string, l Loss, size int) {
	source := w.model.Dataset.Source
	if source == nil || w.model.origin.Doubt("dataset") != nil {
		return
	}
	if data.IsUnlabelled(source) {
		hint := "choose a data set with labels, such as fashion-mnist"
		if data.IsOwn(source) {
			hint = "name the labels in the dataset table (key labels)"
		}
		w.report(part, l.Kind, "", fmt.Sprintf("%s needs labels, but %s has none", l.Kind, w.model.Dataset.Name), hint)
		return
	}
	if classes := w.model.Classes(); classes > 0 && size > 0 && size != classes {
		w.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but %s has %d classes", l.On, size, w.model.Dataset.Name, classes), "")
	}
}

// hasValue checks that the value that a key names exists in the model.
func (w *walk) hasValue(part, kind, key, name string) bool {
	if w.model.hasHead(name) || name == losses.Output && w.model.inDoubt("decoder") || w.model.inDoubt("head") {
		return true // another check reports a head that is not placed
	}
	if _, column := w.layout.Column(name); column || slices.Contains(w.layout.Values(), name) || slices.Contains(w.layout.Named(), name) {
		return true
	}
	if name == losses.Output {
		w.report(part, kind, key, fmt.Sprintf("%s reads the output, but the model has no decoder", kind), "leave the term out, or add a decoder")
		return false
	}
	w.report(part, kind, key, fmt.Sprintf("%s: unknown value %q", key, name), w.suggestValue(name))
	return false
}

// keyHolding returns the key of a term that has the value name.
func (w *walk) keyHolding(l losses.Loss, name string) string {
	for _, f := range table.Fields(l) {
		if f.Value.CanInterface() && f.Value.Interface() == any(name) {
			return f.Key
		}
	}
	return "on"
}

// uncompared is the error for a model whose output no loss reads.
const uncompared = "no loss compares the output with the images"

// unread checks that every value except the code is read by a term, directly or through a head. A value that no term
// reads is not trained. sound is false if terms have errors; it is then unknown whether they read the output.
func (w *walk) unread(sound bool) {
	m := w.model
	if m.inDoubt("loss") || slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss == nil }) {
		return
	}
	read := w.layout.readBy(m.Losses)
	for _, h := range slices.Backward(w.layout.Heads) {
		if !read[h.Name] {
			w.report(headPart(h.Name), "", "", fmt.Sprintf("no loss reads the head %q: nothing trains it", h.Name), fmt.Sprintf("add a loss with on = %q", h.Name))
		}
	}
	for _, p := range w.layout.Stacked() {
		if !read[p.Path] && read[m.end(p.Path)] {
			w.report(placeOf(p.Path), p.Kind, "", fmt.Sprintf("nothing reads the output of %s: nothing trains it", p.Path), "remove the layer, or name it in from of another one")
		}
	}
	if sound && len(m.Losses) == 0 || sound && len(m.Decoder) > 0 && !read[losses.Output] && !m.inDoubt("decoder") {
		problem, hint := uncompared, "add one of "+table.Quoted(reconstructions())
		if len(m.Decoder) == 0 {
			problem, hint = "there is no loss", "valid: "+table.Quoted(losses.Registry.Names())
		}
		w.report("", "", "loss", problem, hint)
	}
}

// reconstructions lists the terms that compare the output with the images.
func reconstructions() (names []string) {
	for _, e := range losses.Registry.All() {
		if l := e.New(); l.On() == losses.Output && l.Reads().Against == losses.Images {
			names = append(names, e.Name)
		}
	}
	return names
}

// drawn checks the views: there must be one for both or one for each, the augmentations must accept the shape of the
// images, and a loss must read the views.
func (w *walk) drawn() {
	m := w.model
	if len(m.Views) == 0 || m.inDoubt("view") {
		return
	}
	if len(m.Views) > 2 {
		w.report("view[2]", "", "", fmt.Sprintf("an image has two views, but %d are declared", len(m.Views)), "give two tables, one for each view, or one table for both")
	}
	if !m.inDoubt("loss") && !slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss == nil || l.Reads().Views }) {
		w.report("view[0]", "", "", "no loss compares the views", `add one, for example kind = "nt_xent"`)
	}
	for i, v := range m.Views {
		for k, a := range v.Augment {
			part := fmt.Sprintf("view[%d].augment[%d]", i, k)
			if a == nil || w.layout.Input == nil || m.origin.Doubt(part) != nil {
				continue
			}
			if _, err := augment.Prepare(a, w.layout.Input); err != nil {
				w.report(part, language.NameOf(m.origin, part, a), "", err.Error(), "")
			}
		}
	}
}

// glob checks that the glob in a key matches at least one parameter, or one of the names in also.
func (w *walk) glob(part, kind, key, glob string, also ...string) bool {
	if _, err := path.Match(glob, ""); err != nil {
		w.report(part, kind, key, fmt.Sprintf("%s: malformed glob %q", key, glob), "")
		return false
	}
	matched := func(parameter string) bool { return MatchPath(glob, parameter) }
	for _, list := range [][]string{w.own, w.names, also} {
		if slices.ContainsFunc(list, matched) {
			return true
		}
	}
	if slices.ContainsFunc(w.open, func(layer string) bool { return mayMatch(glob, layer) }) {
		return true
	}
	w.report(part, kind, key, fmt.Sprintf("%s: %q matches no parameter", key, glob), w.suggestGlob(glob, also))
	return false
}

// trainable checks that the glob `on` of a constraint or hook matches a parameter that training changes. still reports
// whether a parameter does not change.
func (w *walk) trainable(part, kind, glob string, still func(path string) bool, also ...string) {
	if !w.glob(part, kind, "on", glob, also...) || w.model.inDoubt("freeze") {
		return
	}
	moved := func(path string) bool { return MatchPath(glob, path) && !still(path) }
	if slices.ContainsFunc(w.names, moved) || slices.ContainsFunc(w.open, func(layer string) bool { return mayMatch(glob, layer) }) {
		return // unknown whether it is trained
	}
	for _, p := range w.all {
		own := cmp.Or(p.Of, p.Path)
		named := p.Of == "" || slices.Contains(also, p.Path)
		if named && MatchPath(glob, p.Path) && !p.State && !still(own) {
			return
		}
	}
	w.report(part, kind, "on", fmt.Sprintf("on: %q matches no trainable parameter: all are frozen, or updated by their layer", glob),
		"leave it out, or train some of them")
}

// paths returns the paths of all parameters whose names are known.
func (w *walk) paths() []string { return append(slices.Clip(w.own), w.names...) }

// views returns the aliases of parameters. Losses and constraints use them to select the atoms of a tied decoder.
func (w *walk) views() []string { return w.other }

// listed collects the parameters of the layout, against which all globs are matched.
func (w *walk) listed() {
	w.all = w.layout.Parameters()
	for _, p := range w.all {
		if p.Of == "" {
			w.own = append(w.own, p.Path)
		} else {
			w.other = append(w.other, p.Path)
		}
	}
}

// suggestGlob suggests the most similar parameter path or common glob, or else lists all common globs. For the name of
// a list or a layer it suggests the weights.
func (w *walk) suggestGlob(glob string, also []string) string {
	paths := append(w.paths(), also...)
	usual := starred(paths)
	for _, g := range append(usual, paths...) {
		if glob != "" && strings.HasPrefix(g, glob) && strings.HasSuffix(g, ".weight") {
			return table.Suggest(g, []string{g})
		}
	}
	if near, ok := table.Nearest(glob, append(usual, paths...)); ok {
		return table.Suggest(near, []string{near})
	}
	return table.Suggest(glob, usual)
}

// mayMatch reports whether a glob may match a parameter of a layer whose parameter names are unknown.
func mayMatch(glob, layer string) bool {
	literal := glob
	if i := strings.IndexAny(glob, `*?[\`); i >= 0 {
		literal = glob[:i]
	}
	return strings.HasPrefix(literal, layer+".") || strings.HasPrefix(layer+".", literal)
}

// starred returns globs that match a parameter name in all layers of a list: "decoder.*.weight".
func starred(paths []string) []string {
	var globs []string
	for _, p := range paths {
		part := strings.Split(p, ".")
		g := part[0] + ".*." + part[len(part)-1]
		if !slices.Contains(globs, g) {
			globs = append(globs, g)
		}
	}
	return globs
}

// Frozen reports whether a glob of the key freeze matches a parameter path.
func (m *Model) Frozen(parameter string) bool {
	return slices.ContainsFunc(m.Freeze, func(glob string) bool { return MatchPath(glob, parameter) })
}

// AllFrozen reports whether the parameters with the given names in the layer at path are all frozen. It returns false
// without names.
func (m *Model) AllFrozen(path string, names ...string) bool {
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !m.Frozen(path + "." + name) })
}

// freeze checks the globs of frozen parameters, and that a trainable parameter remains.
func (w *walk) freeze() {
	if w.model.inDoubt("freeze") {
		return
	}
	before := len(w.found)
	for i, glob := range w.model.Freeze {
		w.glob("", "", fmt.Sprintf("freeze[%d]", i), glob)
	}
	if len(w.model.Freeze) == 0 || len(w.found) > before || len(w.names) > 0 || len(w.open) > 0 {
		return // true also if parameters are unknown
	}
	for _, p := range w.all {
		if !p.State && p.Of == "" && !w.model.Frozen(p.Path) {
			return
		}
	}
	w.report("", "", "freeze", "freeze: nothing is left to train", "narrow the globs: at least one parameter must be trainable")
}

// Start declares another run, from which a new run of the model takes its initial parameters.
type Start struct {
	Run string `toml:"run" required:"true" doc:"the folder of the other run"`
	On  string `toml:"on" doc:"a glob over parameter paths: matching parameters are copied, all others are initialised"`
}

// Defaults sets the default glob.
func (s *Start) Defaults() { s.On = "*" }

// start checks that a run is named and that the glob matches a parameter. The other run is read only when the training
// begins.
func (w *walk) start() {
	s := w.model.Start
	if s == nil || w.model.inDoubt("start") {
		return
	}
	if s.Run == "" {
		w.report("start", "", "run", "run: got \"\", want the folder of a run", "")
	}
	w.glob("start", "", "on", s.On)
}

const (
	// maxValues is the maximum number of values of a tensor. A larger tensor is probably a typo and would fail later.
	maxValues = 1 << 31

	// maxExpanded is the maximum number of values of a parameter, and of a layer's tensors for a batch: 2 GiB. Training
	// stores several tensors of this size.
	maxExpanded = 1 << 29
)

// bounded reports a placed layer whose output, parameters or tensors for a batch are too large.
func (w *walk) bounded(part string, p *Placed) bool {
	for _, q := range p.opened() {
		at := part + strings.TrimPrefix(placeOf(q.Path), placeOf(p.Path))
		if product(q.Out) > maxValues {
			s, _ := q.Layer.(layers.Sized)
			w.report(at, q.Kind, sizeKey(s), fmt.Sprintf("one output has more than %d values", maxValues), "")
			return false
		}
		w.expands(at, q)
	}
	for _, q := range p.Parameters {
		if n := product(q.Shape); n > maxExpanded {
			w.report(part, p.Kind, "", fmt.Sprintf("%s has %d values (%s), and training needs several times that: want at most %s",
				q.Name, n, bytesText(n), bytesText(maxExpanded)), "")
			return false
		}
	}
	return true
}

// expands reports a layer whose intermediate or output tensors for a training batch are too large. Encoding and
// decoding after the training use smaller batches and need no check.
func (w *walk) expands(part string, p Placed) {
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
	if n <= maxExpanded || plain && w.large { // reported once, because the layers after a large output usually have large outputs, too
		return
	}
	w.large = true
	w.report(part, p.Kind, "", fmt.Sprintf("%s, for each of %d images, take %s in one piece, and training needs several: want at most %s",
		what, batch, bytesText(n), bytesText(maxExpanded)), advice+" or a smaller train.batch")
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

// bytesText returns the size of values in float32 as text.
func bytesText(values int) string {
	bytes := 4 * float64(values)
	if bytes < 1e9 {
		return fmt.Sprintf("%.3g MB", bytes/1e6)
	}
	return fmt.Sprintf("%.3g GB", bytes/1e9)
}

// Fitted is a [Baseline] whose valid settings depend on the number and size of the images.
type Fitted interface {
	// Fits returns a [part.KeyError] for settings that are invalid for the number of images or of pixels. images is 0
	// if their number is not known yet.
	Fits(images, pixels int) error
}

// Bounded returns an error if a tensor of the baseline, such as the atoms, is too large. The product of each is the
// number of values of one tensor per component. The bound is that of a layer's parameters.
func Bounded(components int, what string, each ...int) error {
	n := volume.Of(append(each, components))
	if n <= maxExpanded {
		return nil
	}
	return part.KeyErrorf("components", "got %d, whose %s take %s, and training needs several times that: want at most %s",
		components, what, bytesText(n), bytesText(maxExpanded))
}

// fits reports settings of a baseline that are invalid for images of the shape input; nil means an unknown shape.
func (m *Model) fits(input []int) []table.Diagnostic {
	baseline, ok := m.Baseline.(Fitted)
	if !ok || input == nil || m.origin.Doubt("").Any(func(table.Field) bool { return true }) {
		return nil
	}
	err := baseline.Fits(0, product(input))
	var of part.KeyError
	if !errors.As(err, &of) {
		return nil
	}
	return []table.Diagnostic{m.finding("", "", of.Key, of.Error(), "")}
}

// input returns the shape of the model's images, nil if it is unknown.
func (m *Model) input(shape func(data.Source) []int) []int {
	if m.Dataset.Source == nil || m.origin.Doubt("dataset") != nil {
		return nil
	}
	return shape(m.Dataset.Source)
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
	texts := make([]string, len(shape))
	for i, d := range shape {
		texts[i] = fmt.Sprint(d)
	}
	text := strings.Join(texts, "x")
	if len(shape) > 1 {
		text += fmt.Sprintf(" = %d", product(shape))
	}
	return text
}
