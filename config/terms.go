package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/data/augment"
	"tessera/hooks"
	"tessera/layers"
	"tessera/losses"
)

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
	hint := "these give values in [0,1]: " + table.Quoted(unitActivations())
	if p, _ := w.layout.Of(l.On); p != nil && divergenceOf(p.Layer) != "" {
		hint = fmt.Sprintf("the divergence of a layer %s from its prior is kind = %q", p.Kind, divergenceOf(p.Layer))
	}
	w.report(part, l.Kind, "", fmt.Sprintf("%s needs values in [0,1], but %s gives %s", l.Kind, last, intervalText(r)), hint)
}

// unitActivations lists the activations whose values are in [0,1].
func unitActivations() []string {
	return kindsThat("layers", func(l layers.Layer) bool {
		a, ok := l.(layers.Activation)
		return ok && a.OutputRange(layers.Everything).Within(unit)
	})
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
	if of := l.Reads().AtomsOf; of != "" {
		if w.layout.DenseDecoder(of) == nil {
			var dense []string
			for _, placed := range list {
				if w.layout.DenseDecoder(placed.Path) != nil {
					dense = append(dense, placed.Path)
				}
			}
			key := w.keyHolding(l.Loss, of)
			w.report(part, l.Kind, key, fmt.Sprintf("%s: the decoder has no dense layer %q", key, of), table.Suggest(of, dense))
		}
		return
	}
	if w.layout.Dictionary() < 0 {
		w.report(part, l.Kind, "", fmt.Sprintf("%s reads the atoms, but the model has none: the output of the decoder's last layer with weights is not an image", l.Kind),
			"end the decoder with a dense layer, optionally followed by activations")
	}
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
	if (reads.On || len(reads.Published) > 0) && !w.named(part, l.Kind, "on", l.On) {
		return
	}
	w.publishes(part, l, reads)
	for _, name := range reads.Values {
		w.named(part, l.Kind, w.keyHolding(l.Loss, name), name)
	}
	if name := reads.TeacherOf; name != "" && w.named(part, l.Kind, w.keyHolding(l.Loss, name), name) {
		key, on, of := w.keyHolding(l.Loss, name), w.layout.Size(l.On), w.layout.Size(name)
		if _, column := w.layout.Column(name); column {
			w.report(part, l.Kind, key, fmt.Sprintf("%s: %q is a column, which no teacher computes", key, name), w.suggestValue(name))
		} else if on > 0 && of > 0 && on != of {
			w.report(part, l.Kind, key, fmt.Sprintf("%s: %q has %d values, but %q has %d: want as many", key, name, of, l.On, on), "change the units of the last layer of one of them")
		}
	}
	if l.Optional && slices.Contains(l.Refused(), "optional") {
		w.report(part, l.Kind, "optional", fmt.Sprintf("optional: has no effect, because %s is defined for samples of every shape", l.Kind), "leave it out")
	}
	if s, ok := l.Loss.(losses.ShapeChecker); ok && w.layout.Input != nil && len(w.layout.Decoder) > 0 && !l.leftOut(w.layout.Input) {
		if err := s.CheckShape(w.layout.Input); err != nil {
			w.report(part, l.Kind, table.KeyOf(err), err.Error(), "")
		}
	}
	if reads.Views && len(w.model.Views) == 0 && !w.model.inDoubt("view") {
		w.report(part, l.Kind, "", fmt.Sprintf("%s compares the two views of each image, but the model has none", l.Kind), "give one "+w.model.header("view"))
	}
	if reads.Teacher && !w.model.inDoubt("hook") {
		w.teacher(part, l)
	}
	if reads.On {
		w.value(part, l, reads)
	}
}

// leftOut reports whether the term is optional and not defined for samples of a shape. A key with an invalid value is an error
// nevertheless.
func (l Loss) leftOut(shape []int) bool {
	s, ok := l.Loss.(losses.ShapeChecker)
	if !l.Optional || !ok || shape == nil {
		return false
	}
	err := s.CheckShape(shape)
	return err != nil && table.KeyOf(err) == ""
}

// Defined returns the model without the optional terms that are not defined for samples of a shape.
func (m *Model) Defined(shape []int) *Model {
	declared := m.tree.Child("loss")
	leaves := func(l Loss) bool { return l.Loss != nil && l.leftOut(shape) }
	if !slices.ContainsFunc(m.Losses, leaves) || declared == nil || len(declared.Items) != len(m.Losses) {
		return m
	}
	kept := *declared
	kept.Items = nil
	for i, l := range m.Losses {
		if !leaves(l) {
			kept.Items = append(kept.Items, declared.Items[i])
		}
	}
	tree := m.tree.Only(func(key string) bool { return key != "loss" })
	tree.Put("loss", &kept)
	other, err := ofTable(m.Name, tree, m, nil)
	if err != nil {
		return m // a player or a hook needs a term: building the graph says that it is not defined
	}
	other.columns = m.columns
	return other
}

// publishes checks that the layer that computes the value `on` publishes the values that the term reads.
func (w *walk) publishes(part string, l Loss, reads losses.Reads) {
	p, _ := w.layout.Of(l.On)
	if p == nil || p.In == nil || p.Out == nil || p.assumed {
		return // the layer, or the shape of its input, is unknown
	}
	for _, name := range reads.Published {
		if w.layout.publisher(l.On, name).shapeOf(name) != nil {
			continue
		}
		var valid []string
		for other := range w.layout.Stacked() {
			if other.shapeOf(name) != nil {
				valid = append(valid, other.Path)
			}
		}
		hint := "no layer of the model publishes it"
		list, ends := "head", w.model.hasHead(l.On)
		if l.On == losses.Code {
			list, ends = "encoder", true
		}
		if len(valid) > 0 {
			hint = table.Suggest(l.On, valid)
		} else if reads.PublishedBy != "" && ends {
			hint = fmt.Sprintf("end the %s with a layer %s", list, reads.PublishedBy)
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

// taught checks that a state that follows a teacher, such as the centre of teacher_centre, follows one teacher on one kind of images:
// each evaluation by a teacher would move it.
func (w *walk) taught() {
	for p := range w.layout.Stacked() {
		followed := func(q *Placed) bool { // of a block, each inner layer
			return slices.ContainsFunc(q.Parameters, func(r layers.Parameter) bool { return r.Unaveraged })
		}
		if p.visit(func(q *Placed) bool { return !followed(q) }) {
			continue
		}
		first, moved := "", ""
		for i, l := range w.model.Losses {
			if l.Loss == nil || !l.Reads().Teacher || !w.layout.DependsOn(cmp.Or(l.Reads().TeacherOf, l.On), p.Path) {
				continue
			}
			by := fmt.Sprintf("images of the teacher %q", l.TeacherName())
			if l.Reads().Views {
				by = fmt.Sprintf("views of the teacher %q", l.TeacherName())
			}
			if part := fmt.Sprintf("loss[%d]", i); moved == "" {
				first, moved = part, by
			} else if by != moved {
				w.report(part, l.Kind, "", fmt.Sprintf("%s (%s) already follows the %s, for %s; this term would move it by the %s, too", p.Path, p.Kind, moved, first, by),
					fmt.Sprintf("compare a value before %s, or take the teacher and the images of %s", p.Path, first))
			}
		}
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

// unlabelled returns what helps if the data set is known to have no labels, and else "".
func (w *walk) unlabelled() string {
	source := w.model.readable()
	switch {
	case source == nil || !data.IsUnlabelled(source):
		return ""
	case data.IsOwn(source):
		return "name the labels in the dataset table (key labels)"
	}
	return "choose a data set with labels, such as fashion-mnist"
}

// labels checks that the data set has labels, and that the value has one unit for each class.
func (w *walk) labels(part string, l Loss, size int) {
	if w.model.readable() == nil {
		return
	}
	if hint := w.unlabelled(); hint != "" {
		w.report(part, l.Kind, "", fmt.Sprintf("%s needs labels, but %s has none", l.Kind, w.model.Dataset.Name), hint)
		return
	}
	if classes := w.model.Classes(); classes > 0 && size > 0 && size != classes {
		w.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but %s has %d classes", l.On, size, w.model.Dataset.Name, classes), "")
	}
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
	for p := range w.layout.Stacked() {
		if !read[p.Path] && read[m.end(p.Path)] {
			w.report(placeOf(p.Path), p.Kind, "", fmt.Sprintf("nothing reads the output of %s: nothing trains it", p.Path), "remove the layer, or name it in from of another one")
		}
	}
	if sound && len(m.Losses) == 0 || sound && len(m.Decoder) > 0 && !read[losses.Output] && !w.borrowed() && !m.inDoubt("decoder") {
		problem, hint := uncompared, "add one of "+table.Quoted(reconstructions())
		if len(m.Decoder) == 0 {
			problem, hint = "there is no loss", "valid: "+table.Quoted(losses.Registry.Names())
		} else if len(m.Heads) > 0 {
			hint += ", or write decoder = [] for a model without a decoder"
		}
		w.report("", "", "loss", problem, hint)
	} else if sound && !slices.ContainsFunc(m.Losses, func(l Loss) bool { return len(w.layout.ValuesOf(l)) > 0 }) {
		w.report("", "", "loss", "no loss reads the images: all of them depend on parameters alone", "add a loss of the output, the code or a head")
	}
}

// borrowed reports whether all parameters of the decoder belong to other layers, and a term reads what one of these publishes: the
// energy of a machine trains its decoder, although nothing reads the output. A term on the code does not train the
// reconstructions. borrowed is true if the parameters are not known yet.
func (w *walk) borrowed() bool {
	published := map[string]bool{} // layers with values that a term reads
	for _, l := range w.model.Losses {
		for _, name := range l.Reads().Published {
			published[strings.TrimSuffix(w.layout.PublishedBy(l.On, name), "."+name)] = true
		}
	}
	own, others := false, false
	for _, p := range w.layout.Decoder {
		if b, ok := p.Layer.(layers.Borrower); ok && slices.Contains(w.open, p.Path) { // the shape of the images is unknown
			others = others || b.Borrows() != ""
		}
		for _, q := range p.Parameters {
			own, others = own || q.Of == "", others || published[q.Of[:max(0, strings.LastIndex(q.Of, "."))]]
		}
	}
	return others && !own
}

// reconstructions lists the terms that compare the output with the images.
func reconstructions() []string {
	return kindsThat("losses", func(l losses.Loss) bool { return l.On() == losses.Output && l.Reads().Against == losses.Images })
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
