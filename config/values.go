package config

import (
	"fmt"
	"math"
	"slices"

	"tessera/layers"
	"tessera/losses"
	"tessera/table"
)

// unit is what terms such as bce and kl are defined on.
var unit = layers.Interval{Low: 0, High: 1}

// Suits reports a term that cannot be taken on images with values in [low, high]: one of the output with which they are compared,
// or of a code that is no bounded function of them. Such values are an error of the data, which no text shows.
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

// unitInterval checks that the code, or the output, of a term that needs values in [0,1] has such values where images do.
func (c *checker) unitInterval(part string, l Loss) {
	r, known, last := c.rangeOf(l.On)
	if !known || r.Within(unit) {
		return
	}
	c.report(part, l.Kind, "", fmt.Sprintf("%s needs values in [0,1], but %s gives %s", l.Kind, last, intervalText(r)),
		"these give values in [0,1]: "+table.Quoted(unitActivations()))
}

// rangeOf is the range of a value where images lie in [0,1], whether it is known, and what gives it.
func (c *checker) rangeOf(name string) (layers.Interval, bool, string) {
	if name == losses.Code {
		return c.valuesOf("encoder", c.model.Encoder, unit, len(c.model.Encoder) > 0)
	}
	from, part, list := losses.Code, "decoder", c.model.Decoder
	if h, ok := c.model.Heads[name]; ok {
		if _, _, placed := c.layout.Stack(name); !placed {
			return layers.Everything, false, name
		}
		from, part, list = h.From, headPart(name)+".layers", h.Layers
	}
	r, known, _ := c.rangeOf(from)
	return c.valuesOf(part, list, r, known)
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

// valuesOf folds the ranges of a list of layers. The range is not known after a layer in doubt, until one follows
// that gives the same range whatever it gets.
func (c *checker) valuesOf(name string, list []Layer, in layers.Interval, known bool) (layers.Interval, bool, string) {
	last := "the code"
	for i, l := range list {
		part := fmt.Sprintf("%s[%d]", name, i)
		last = fmt.Sprintf("%s (%s)", part, l.Kind)
		if l.Layer == nil {
			in, known = layers.Everything, false
			continue
		}
		if c.model.origin.Doubt(part).Any(aboutValues) {
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
