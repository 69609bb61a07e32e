package fromgraph

import (
	"maps"
	"slices"

	"tessera/engine/ir"
)

// Functions returns the texts of element-wise functions.
func Functions() map[string]ir.Primitive {
	all := maps.Clone(unaries)
	maps.Copy(all, binaries)
	return all
}

// Products returns the texts of products.
func Products() []string { return slices.Collect(maps.Keys(products)) }

// Types returns the Go types that are known.
func Types() []string { return slices.Collect(maps.Keys(parsers)) }
