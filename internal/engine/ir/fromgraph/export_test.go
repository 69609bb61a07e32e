package fromgraph

import (
	"maps"
	"slices"

	"tessera/internal/engine/ir"
)

// Functions returns the texts of the elementwise functions in the tables.
func Functions() map[string]ir.Primitive {
	all := maps.Clone(unaries)
	maps.Copy(all, binaries)
	return all
}

// Products returns the texts of the products in the tables.
func Products() []string { return slices.Collect(maps.Keys(products)) }

// Types returns the Go types of ops in the tables.
func Types() []string { return slices.Collect(maps.Keys(parsers)) }
