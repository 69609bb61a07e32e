package config

import (
	"fmt"
	"math"
	"slices"

	"tessera/data"
	"tessera/losses"
	"tessera/part/table"
)

// loss checks that the values that a term reads exist, and that the term is defined on them.
func (w *walk) loss(part string, l Loss) {
	reads := l.Loss.Reads()
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
	if reads.On && !w.hasValue(part, l.Kind, "on", l.On) {
		return
	}
	for _, name := range reads.Values {
		w.hasValue(part, l.Kind, w.keyHolding(l.Loss, name), name)
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

// value checks that the value that `on` names has a size and a range that suit the term.
func (w *walk) value(part string, l Loss, reads losses.Reads) {
	size := w.layout.Size(l.On)
	if n, ok := l.Loss.(losses.UnitsChecker); ok && size > 0 {
		if err := n.CheckUnits(size); err != nil {
			w.report(part, l.Kind, "", err.Error(), "")
		}
	}
	if pixels := product(w.layout.Input); reads.Images && l.On != losses.Output && size > 0 && pixels > 0 && size != pixels {
		w.report(part, l.Kind, "on", fmt.Sprintf("on: %q has %d values, but %s compares it with images of %d", l.On, size, l.Kind, pixels), "")
	}
	if reads.Views && len(w.model.Views) == 0 && !w.model.inDoubt("view") {
		w.report(part, l.Kind, "", fmt.Sprintf("%s compares the two views of each image, but the model has none", l.Kind), "give one "+w.model.header("view"))
	}
	if reads.Teacher && w.model.Hooks["teacher"] == nil && !w.model.inDoubt("hook") {
		w.report(part, l.Kind, "", fmt.Sprintf("%s reads the values of a teacher, but the model has none", l.Kind), fmt.Sprintf("declare it: [model.%s.hook.teacher]", table.KeyText(w.model.Name)))
	}
	if reads.Labels {
		w.labels(part, l, size)
	}
	if reads.Unit {
		w.unitInterval(part, l)
	}
}

// labels checks that the data set has labels, and that the value has a unit for each class.
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

// hasValue checks that the model has the value that a key names.
func (w *walk) hasValue(part, kind, key, name string) bool {
	if w.model.hasHead(name) || name == losses.Output && w.model.inDoubt("decoder") || w.model.inDoubt("head") {
		return true // a head that is not placed is reported itself
	}
	values := w.layout.Values()
	if slices.Contains(values, name) {
		return true
	}
	if name == losses.Output {
		w.report(part, kind, key, fmt.Sprintf("%s reads the output, but the model has no decoder", kind), "leave the term out, or add a decoder")
		return false
	}
	w.report(part, kind, key, fmt.Sprintf("%s: unknown value %q", key, name), table.Suggest(name, values))
	return false
}

// keyHolding is the key of a part whose value is that name.
func (w *walk) keyHolding(l losses.Loss, name string) string {
	for _, f := range table.Fields(l) {
		if f.Value.CanInterface() && f.Value.Interface() == any(name) {
			return f.Key
		}
	}
	return "on"
}

// uncompared is the problem of a model whose output no loss reads.
const uncompared = "no loss compares the output with the images"

// unread checks that every value except the code is read by a term, directly or through a head: otherwise nothing trains
// it. If a term has errors, it is unknown whether the output is read.
func (w *walk) unread(sound bool) {
	m := w.model
	if m.inDoubt("loss") || slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss == nil }) {
		return
	}
	read := map[string]bool{}
	for _, l := range m.Losses {
		reads := l.Loss.Reads()
		for _, name := range append(slices.Clone(reads.Values), l.On) {
			read[name] = true
		}
	}
	for _, h := range slices.Backward(w.layout.Heads) {
		if !read[h.Name] {
			w.report(headPart(h.Name), "", "", fmt.Sprintf("no loss reads the head %q: nothing trains it", h.Name), fmt.Sprintf("add a loss with on = %q", h.Name))
		}
		read[h.From] = true
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
		if l := e.New(); l.On() == losses.Output && l.Reads().Images {
			names = append(names, e.Name)
		}
	}
	return names
}

// drawn checks the views: one for both or one for each, images of a shape that the augmentations accept, and a loss that
// reads the views.
func (w *walk) drawn() {
	m := w.model
	if len(m.Views) == 0 || m.inDoubt("view") {
		return
	}
	if len(m.Views) > 2 {
		w.report("view[2]", "", "", fmt.Sprintf("an image has two views, but %d are declared", len(m.Views)), "give two tables, one for each view, or one table for both")
	}
	if !m.inDoubt("loss") && !slices.ContainsFunc(m.Losses, func(l Loss) bool { return l.Loss == nil || l.Loss.Reads().Views }) {
		w.report("view[0]", "", "", "no loss compares the views", `add one, for example kind = "nt_xent"`)
	}
	for i, v := range m.Views {
		for k, a := range v.Augment {
			part := fmt.Sprintf("view[%d].augment[%d]", i, k)
			if a == nil || w.layout.Input == nil || m.origin.Doubt(part) != nil {
				continue
			}
			if _, err := a.Prepare(w.layout.Input); err != nil {
				w.report(part, language.NameOf(m.origin, part, a), "", err.Error(), "")
			}
		}
	}
}
