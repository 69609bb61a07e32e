package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tessera/augment"
	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
	"tessera/part/table"
)

// unit is the domain of terms like bce and kl.
var unit = layers.Interval{Low: 0, High: 1}

// Suits returns an error if a term is not defined for images with values in [low, high]: a term that compares the output
// with the images, or a term of a code that is not bounded. This can only be checked with the data.
func (m *Model) Suits(low, high float64) error {
	images := layers.Interval{Low: low, High: high}
	for i, l := range m.Losses {
		reads := l.Loss.Reads()
		if !reads.Unit {
			continue
		}
		of, r := "the images", images
		if !reads.Images {
			of = "the " + l.On
			for _, e := range m.chain(l.On) {
				r = layers.OutputRange(e.Layer, r)
			}
		}
		if !r.Within(unit) {
			return fmt.Errorf("loss[%d] (%s) needs %s in [0,1]", i, l.Kind, of)
		}
	}
	return nil
}

// Unclipped returns an error if an augmentation of a view clips images with values in [low, high]. This can only be checked with
// the data.
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

// unitInterval checks, for a term that needs values in [0,1], that the code or output is in [0,1] for images in [0,1].
func (w *walk) unitInterval(part string, l Loss) {
	r, known, last := w.rangeOf(l.On)
	if !known || r.Within(unit) {
		return
	}
	w.report(part, l.Kind, "", fmt.Sprintf("%s needs values in [0,1], but %s gives %s", l.Kind, last, intervalText(r)),
		"these give values in [0,1]: "+table.Quoted(unitActivations()))
}

// rangeOf returns the range of a value for images in [0,1], whether it is known, and the layer that determines it.
func (w *walk) rangeOf(name string) (layers.Interval, bool, string) {
	if name == losses.Code {
		return w.valuesOf("encoder", w.model.Encoder, unit, len(w.model.Encoder) > 0)
	}
	from, part, list := losses.Code, "decoder", w.model.Decoder
	if h, ok := w.model.Heads[name]; ok {
		if _, _, placed := w.layout.Stack(name); !placed {
			return layers.Everything, false, name
		}
		from, part, list = h.From, headPart(name)+".layers", h.Layers
	}
	r, known, _ := w.rangeOf(from)
	return w.valuesOf(part, list, r, known)
}

// chain lists the layers from the images to a value.
func (m *Model) chain(name string) []Layer {
	if h, ok := m.Heads[name]; ok {
		return slices.Concat(m.chain(h.From), h.Layers)
	}
	if name == losses.Output {
		return slices.Concat(m.Encoder, m.Decoder)
	}
	return m.Encoder
}

// valuesOf computes the range after a list of layers. After a layer in doubt the range is unknown until a layer whose range
// does not depend on its input.
func (w *walk) valuesOf(name string, list []Layer, in layers.Interval, known bool) (layers.Interval, bool, string) {
	last := "the code"
	for i, l := range list {
		part := fmt.Sprintf("%s[%d]", name, i)
		last = fmt.Sprintf("%s (%s)", part, l.Kind)
		if l.Layer == nil {
			in, known = layers.Everything, false
			continue
		}
		if w.model.origin.Doubt(part).Any(aboutValues) {
			in, known = layers.Everything, false
			continue
		}
		in = layers.OutputRange(l.Layer, in)
		known = known || in == layers.OutputRange(l.Layer, unit)
	}
	return in, known, last
}

// unitActivations lists the activations that map every value into [0,1].
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

// check finds inconsistencies in a decoded auto-encoder: shapes, ranges of values, roles and globs.
func (m *Model) check(input []int) []table.Diagnostic {
	w := m.walk(input) // the checks use its results
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
	w.unread(len(w.found) == before)
	for i, one := range m.Constraints {
		if one.Constraint != nil {
			// a constraint on frozen parameters is valid: a model that extends another one and freezes parameters inherits
			// its constraints
			w.moving(fmt.Sprintf("constraint[%d]", i), one.Kind, one.On, func(string) bool { return false }, w.views()...)
		}
	}
	w.drawn()
	w.freeze()
	w.start()
	w.hooks()
	return w.found
}

// header is the TOML header of an element of one of the model's lists.
func (m *Model) header(list string) string {
	return fmt.Sprintf("[[model.%s.%s]]", table.KeyText(m.Name), list)
}

// inDoubt reports whether one of the model's keys has an error.
func (m *Model) inDoubt(key string) bool {
	return m.origin.Doubt("").About(key)
}

// atoms checks that the decoder has atoms, of a suitable shape, for a term that reads them.
func (w *walk) atoms(part string, l Loss) {
	inDecoder := func(path string) bool { return strings.HasPrefix(path, "decoder.") }
	if slices.ContainsFunc(w.names, inDecoder) || slices.ContainsFunc(w.open, inDecoder) {
		return // a layer with unknown shapes
	}
	list := w.layout.Decoder
	if len(list) == 0 {
		if !w.model.inDoubt("decoder") {
			w.report(part, l.Kind, "", fmt.Sprintf("%s reads the atoms, but the model has no decoder", l.Kind), "leave the term out, or add a decoder")
		}
		return
	}
	if product(list[len(list)-1].Out) != product(w.layout.Input) {
		return // reported elsewhere, or unknown
	}
	if w.layout.Dictionary() < 0 {
		w.report(part, l.Kind, "", fmt.Sprintf("%s reads the atoms, but the model has none: the output of the decoder's last layer with weights is not an image", l.Kind),
			"end the decoder with a dense layer, optionally followed by activations")
	}
}
