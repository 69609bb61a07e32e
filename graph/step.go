package graph

import (
	"fmt"
	"slices"

	"tessera/internal/volume"
	"tessera/losses"
)

// Stepper computes a value of a sequence token by token: what the layers read of earlier tokens, such as keys and values of a causal attention, is kept.
type Stepper struct {
	coder        *Coder
	of           compiledBatch
	value        string
	n            int // tokens so far
	token, place []float32
	past         [][]float32 // by kept value: rows of all tokens before
}

// Step returns a stepper for a value whose first axis is that of the tokens, as many as a sample has. It is an error if a layer on the way to it is not
// [tessera/layers.Stepping], or if it is computed from more than the samples. It ends with the coder. Several share a program: only one computes at a time.
func (c *Coder) Step(value string) (*Stepper, error) {
	if err := c.lacks(); err != nil {
		return nil, err
	}
	if len(c.model.Shape) != 1 || c.model.Shape[0] < 2 || !slices.Equal(c.model.Layout.Sources(value), []string{losses.Images}) {
		return nil, fmt.Errorf("model %q: %s is not computed from sequences of tokens only", c.model.Spec.Name, value)
	}
	p, err := c.program(Request{Want: []string{value}, Batch: 1, Step: true})
	if err != nil {
		return nil, err
	}
	s := &Stepper{coder: c, of: p, value: value, token: make([]float32, 1), place: make([]float32, 1)}
	for _, in := range p.of.Inputs[2:] { // behind the token and its place
		s.past = append(s.past, make([]float32, volume.Of(in.Shape)))
	}
	return s, nil
}

// Truncate forgets all but the first n tokens.
func (s *Stepper) Truncate(n int) { s.n = min(s.n, n) }

// Next returns the value for the next token, valid until the next call of any stepper of the coder.
func (s *Stepper) Next(token float32) ([]float32, error) {
	if s.n == s.coder.model.Shape[0] {
		return nil, fmt.Errorf("a sequence has at most %d tokens", s.n)
	}
	s.token[0], s.place[0] = token, float32(s.n)
	for _, w := range s.coder.requirements(Request{Want: []string{s.value}}) {
		if err := w.Check(s.token); err != nil {
			return nil, err
		}
	}
	for i, values := range append([][]float32{s.token, s.place}, s.past...) {
		if err := s.of.runner.Bind(i, values); err != nil {
			return nil, err
		}
	}
	if err := s.of.runner.Run(); err != nil {
		return nil, err
	}
	for i, past := range s.past {
		if row := s.of.runner.Tap(1 + i); (s.n+1)*len(row) <= len(past) {
			copy(past[s.n*len(row):], row)
		}
	}
	s.n++
	return s.of.runner.Tap(0), nil
}
