package config

import (
	"fmt"
	"slices"
)

// Frozen reports whether a glob of the key freeze matches a parameter path.
func (m *Model) Frozen(parameter string) bool {
	return slices.ContainsFunc(m.Freeze, func(glob string) bool { return MatchPath(glob, parameter) })
}

// AllFrozen reports whether there are names, and the parameters of the layer at path that have them are all frozen.
func (m *Model) AllFrozen(path string, names ...string) bool {
	return len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return !m.Frozen(path + "." + name) })
}

// freeze checks the globs of frozen parameters, and that something is left to train.
func (c *checker) freeze() {
	if c.model.inDoubt("freeze") {
		return
	}
	before := len(c.found)
	for i, glob := range c.model.Freeze {
		c.glob("", "", fmt.Sprintf("freeze[%d]", i), glob)
	}
	if len(c.model.Freeze) == 0 || len(c.found) > before || len(c.names) > 0 || len(c.open) > 0 {
		return // or parameters are not known
	}
	for _, p := range c.layout.Parameters() {
		if !p.State && p.TransposeOf == "" && !c.model.Frozen(p.Path) {
			return
		}
	}
	c.report("", "", "freeze", "freeze: nothing is left to train", "leave the parameters out that are to be trained")
}
