package config

import (
	"fmt"
	"slices"

	"tessera/layers"
	"tessera/table"
)

// decomposing refuses layers that decompose images where these are not the model's input: what they rescale the channels by
// is found on the fitted images, before the first step.
func (c *checker) decomposing() {
	for i, l := range c.model.Encoder {
		c.decomposes(fmt.Sprintf("encoder[%d]", i), l.Layer)
	}
	for i, l := range c.model.Decoder {
		c.decomposes(fmt.Sprintf("decoder[%d]", i), l.Layer)
	}
	for name, h := range c.model.Heads {
		for i, l := range h.Layers {
			c.decomposes(fmt.Sprintf("head.%s.layers[%d]", name, i), l.Layer)
		}
	}
}

// decomposes looks at a layer, and at those inside of it.
func (c *checker) decomposes(part string, l layers.Layer) {
	refused := slices.ContainsFunc(c.found, func(f table.Diagnostic) bool { return f.Part == part }) // often for the very place
	if _, ok := l.(layers.Decomposing); ok && part != "encoder[0]" && !refused {
		kind := kindOf(l)
		c.report(part, kind, "", fmt.Sprintf("%s must be the encoder's first layer: it decomposes the images themselves", kind), "")
	}
	if b, ok := l.(layers.Block); ok {
		for i, inner := range b.Inner() {
			c.decomposes(fmt.Sprintf("%s.layers[%d]", part, i), inner)
		}
	}
}
