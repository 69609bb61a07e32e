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
	for _, p := range c.layout.Layers() {
		part := partOf(p.Path)
		if _, ok := p.Layer.(layers.Decomposing); !ok || part == "encoder[0]" ||
			slices.ContainsFunc(c.found, func(f table.Diagnostic) bool { return f.Part == part }) { // often for the very place
			continue
		}
		c.report(part, p.Kind, "", fmt.Sprintf("%s must be the encoder's first layer: it is rescaled by what the fitted images decompose into", p.Kind), "")
	}
}
