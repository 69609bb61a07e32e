package config

import (
	"fmt"
	"slices"
	"strings"

	"tessera/layers"
)

// training checks the shapes in training. They differ from the declared ones after a layer that leaves tokens out in
// training; see [layers.Shortening]. The layers after it must accept the shorter input and must not have parameters
// that depend on its shape. The outputs of the model must keep their size.
func (w *walk) training() {
	if len(w.found) > 0 || w.layout.Input == nil {
		return // after other errors, or without an input, shapes are unknown
	}
	short := map[string]shorter{} // values whose shape differs in training, by the path of their layer
	for _, s := range w.order {
		for i := range s.placed {
			p := &s.placed[i]
			if p.In == nil || p.Out == nil {
				return
			}
			if !w.shorten(fmt.Sprintf("%s[%d]", s.part, i), p, short) {
				return // errors of later layers would be consequences
			}
		}
	}
	if n := len(w.layout.Decoder); n > 0 {
		last := &w.layout.Decoder[n-1]
		if s, ok := short[last.Path]; ok {
			w.report(fmt.Sprintf("decoder[%d]", n-1), last.Kind, "", fmt.Sprintf("in training %s (%s) leaves out tokens, and the output has the shape %s instead of %s",
				s.by.Path, s.by.Kind, shapeText(s.shape), shapeText(last.Out)), `put them back with { kind = "mask_tokens" }`)
		}
	}
}

// shorter is the shape of a value in training, and the layer that leaves tokens out.
type shorter struct {
	shape []int
	by    *Placed
}

// shorten records the shape of a layer's output in training. It returns false after an error. Stacks are checked in the
// order encoder, decoder, heads. A value of a stack that is checked later counts as unchanged.
func (w *walk) shorten(part string, p *Placed, short map[string]shorter) bool {
	var by *Placed
	shape := func(name string) []int {
		of := name
		if l, published := w.layout.Of(name); l != nil && published == "" {
			of = l.Path
		}
		s, ok := short[of]
		if !ok {
			return w.layout.Shape(name)
		}
		if by = s.by; of != name { // the value of a whole stack is a vector
			return []int{product(s.shape)}
		}
		return s.shape
	}
	wrong := func(problem string) bool {
		w.report(part, p.Kind, "", fmt.Sprintf("in training %s (%s) leaves out tokens, and %s", by.Path, by.Kind, problem),
			`put { kind = "mask_tokens" } or { kind = "take_token", mean = true } between the two, or remove the layer that leaves out tokens`)
		return false
	}
	in, err := joinedShape(p.From, shape)
	if err != nil {
		return wrong(err.Error())
	}
	l, leaves := p.Layer.(layers.Shortening)
	if in == nil || by == nil && !leaves {
		return true
	}
	out, own, err := shaped(p.Layer, in)
	if leaves {
		out, own, err = l.TrainingShape(in), p.Parameters, nil
	}
	if err != nil {
		return wrong(err.Error())
	}
	for i, q := range own {
		if by != nil && i < len(p.Parameters) && !slices.Equal(q.Shape, p.Parameters[i].Shape) {
			return wrong(fmt.Sprintf("%s.%s would have the shape %v instead of %v, for an input of shape %s instead of %s", p.Path, q.Name, q.Shape, p.Parameters[i].Shape,
				strings.TrimSpace(shapeText(in)), shapeText(p.In)))
		}
	}
	if !slices.Equal(out, p.Out) {
		if by == nil {
			by = p
		}
		short[p.Path] = shorter{out, by}
	}
	return true
}
