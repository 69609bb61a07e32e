package config

import (
	"fmt"
	"slices"
	"strings"

	"tessera/optim"
	"tessera/table"
)

// check finds what is wrong between the parts of a decoded auto-encoder: shapes, ranges of values, roles and globs.
func (m *Model) check(input []int) []table.Diagnostic {
	c := &checker{walk: m.walk(input)}
	if len(m.Encoder) == 0 && !m.inDoubt("encoder") {
		c.report("", "", "encoder", "the encoder is empty", "give at least one "+m.header("encoder"))
	}
	c.decomposing()
	if _, search := m.Optimizer.Optimizer.(optim.Search); search {
		c.search()
	}
	before := len(c.found)
	for i, l := range m.Losses {
		if l.Loss != nil {
			c.loss(fmt.Sprintf("loss[%d]", i), l)
		}
	}
	c.unread(len(c.found) == before)
	for i, one := range m.Constraints {
		if one.Constraint != nil {
			// to freeze what a constraint is on is no error: a model that is started and extended keeps its other parts
			c.moving(fmt.Sprintf("constraint[%d]", i), one.Kind, one.On, func(string) bool { return false }, c.views()...)
		}
	}
	c.drawn()
	c.freeze()
	c.start()
	c.hooks()
	return c.found
}

// header is how an element of one of the model's lists is begun.
func (m *Model) header(list string) string {
	return fmt.Sprintf("[[model.%s.%s]]", table.KeyText(m.Name), list)
}

// inDoubt reports whether one of the model's own keys has an error.
func (m *Model) inDoubt(key string) bool {
	return m.origin.Doubt("").About(key)
}

// checker judges the other parts by what the walk over the layers knows.
type checker struct {
	*walk
}

// atoms checks that the decoder has atoms for a term that is taken on them, and of a shape that suits it.
func (c *checker) atoms(part string, l Loss) {
	inDecoder := func(path string) bool { return strings.HasPrefix(path, "decoder.") }
	if slices.ContainsFunc(c.names, inDecoder) || slices.ContainsFunc(c.open, inDecoder) {
		return // a layer whose shapes are not known
	}
	list := c.layout.Decoder
	if len(list) == 0 {
		if !c.model.inDoubt("decoder") {
			c.report(part, l.Kind, "", fmt.Sprintf("%s is taken on the atoms, but the model has no decoder", l.Kind), "leave the term out, or give a decoder")
		}
		return
	}
	if product(list[len(list)-1].Out) != product(c.layout.Input) {
		return // reported elsewhere, or unknown
	}
	if c.layout.Dictionary() < 0 {
		c.report(part, l.Kind, "", fmt.Sprintf("%s is taken on the atoms, but the decoder's last layer with weights gives no whole images", l.Kind),
			"end the decoder with a dense layer, or one and activations")
	}
}
