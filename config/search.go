package config

import (
	"fmt"
	"slices"

	"tessera/layers"
	"tessera/losses"
	"tessera/optim"
	"tessera/table"
)

// search checks what goes with a full-batch optimizer.
func (c *checker) search() {
	for _, p := range c.layout.Stacked() {
		if p.Layer == nil || c.model.origin.Doubt(partOf(p.Path)) != nil {
			continue
		}
		for _, inner := range p.opened() {
			c.sameLayer(inner)
		}
	}
	for i, l := range c.model.Losses {
		if _, constant := l.Weight.(*losses.Constant); !constant && l.Weight != nil {
			c.report(fmt.Sprintf("loss[%d]", i), l.Kind, "weight", fmt.Sprintf("weight: changes with the epochs, but %s needs an objective that is the same at every evaluation", c.model.Optimizer.Kind),
				"give a number, or take an optimizer that is a rule: "+table.Quoted(rules()))
		}
		if l.Loss != nil && !l.Loss.Reads().InParts(l.On) {
			c.report(fmt.Sprintf("loss[%d]", i), l.Kind, "", fmt.Sprintf("%s needs its whole batch in one piece, but %s takes all images together, a few at a time", l.Kind, c.model.Optimizer.Kind),
				"leave it out, or take an optimizer that is a rule: "+table.Quoted(rules()))
		}
	}
}

// sameLayer refuses layers with which the full-batch objective is not the same at every evaluation of a search: those that draw noise,
// and those that follow the images of a batch. A block is judged by the layers inside of it.
func (c *checker) sameLayer(p Placed) {
	kind, search := p.Kind, c.model.Optimizer.Kind
	_, block := p.Layer.(layers.Block)
	_, once := p.Layer.(layers.Decomposing) // what it keeps is found before the first step
	switch {
	case block:
	case layers.IsNoisy(p.Layer):
		c.report(partOf(p.Path), kind, "", fmt.Sprintf("%s draws noise, but %s needs an objective that is the same at every evaluation", kind, search),
			"leave it out, or take an optimizer that is a rule: "+table.Quoted(rules()))
	case !once && c.moves(p):
		c.report(partOf(p.Path), kind, "", fmt.Sprintf("%s depends on the batch, but %s evaluates the full batch", kind, search),
			"leave it out, or take an optimizer that is a rule: "+table.Quoted(rules()))
	}
}

// moves reports whether a layer has state that follows the images of a batch: unless all of its parameters are frozen, not
// only its state, it does not work as at inference.
func (c *checker) moves(placed Placed) bool {
	return slices.ContainsFunc(placed.Parameters, func(p layers.Parameter) bool { return p.State }) &&
		!c.model.AllFrozen(placed.Path, layers.Names(placed.Parameters)...)
}

// rules lists the optimizers that go batch by batch.
func rules() []string {
	var names []string
	for _, e := range optim.Registry.All() {
		if _, ok := e.New().(optim.Rule); ok {
			names = append(names, e.Name)
		}
	}
	return names
}

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
