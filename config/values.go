package config

import (
	"fmt"
	"math"

	"tessera/layers"
)

// unitInterval checks that the code, or the output, of a term that needs values in [0,1] has such values.
func (c *checker) unitInterval(part string, l Loss) {
	unit := layers.Interval{Low: 0, High: 1}
	r, known, last := c.valuesOf("encoder", c.model.Encoder, unit, len(c.model.Encoder) > 0)
	if l.On == "output" {
		r, known, last = c.valuesOf("decoder", c.model.Decoder, r, known)
	}
	if !known || r.Within(unit) {
		return
	}
	c.report(part, l.Kind, "", fmt.Sprintf("%s needs values in [0,1], but %s gives %s", l.Kind, last, intervalText(r)),
		"these give values in [0,1]: "+quoted(unitActivations()))
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
		if c.model.origin.doubt(part).values() {
			in, known = layers.Everything, false
			continue
		}
		in = layers.OutputRange(l.Layer, in)
		known = known || in == layers.OutputRange(l.Layer, layers.Interval{Low: 0, High: 1})
	}
	return in, known, last
}

// unitActivations lists the activations that map every value into [0,1].
func unitActivations() []string {
	var names []string
	for _, name := range layers.ActivationName("").Choices() {
		a, err := layers.ActivationName(name).Activation()
		if err == nil && a.OutputRange(layers.Everything).Within(layers.Interval{Low: 0, High: 1}) {
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
