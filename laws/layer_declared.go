package laws

import (
	"fmt"
	"slices"

	"tessera/laws/gradcheck"
	"tessera/layers"
)

func (t layerTrial) outputShape() error {
	given := slices.Clone(t.in)
	want, err := t.fresh().OutputShape(given)
	if err != nil {
		return err
	}
	if !slices.Equal(given, t.in) {
		return fmt.Errorf("OutputShape turns its argument into %v", given)
	}
	b, err := t.double()
	if err != nil {
		return err
	}
	if want := append([]int{t.batch}, want...); !slices.Equal(b.shape, want) {
		return fmt.Errorf("output of shape %v, declared %v", b.shape, want)
	}
	return b.eachRun(func(_, got tensors[float64]) error {
		if n := len(got["output"]); n != elements(t.batch, want) {
			return fmt.Errorf("%d outputs, declared %d of shape %v", n, t.batch, want)
		}
		return nil
	})
}

// parametersUsed tests that the output depends on all trainable parameters, at inference and in training, and that state is
// used in one of the modes. Gorgonia returns an error for the gradient of an unused node; the scope panics for undeclared
// parameters.
func (t layerTrial) parametersUsed() error {
	list := t.fresh().Parameters(t.in)
	if err := wellDeclared(list); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, training := range []bool{false, true} {
		t.training = training
		built, err := gradcheck.Build(gradcheck.Scalar(layerOn[float64](t, t.fresh())), true)
		if err != nil {
			return err
		}
		for _, l := range built.Leaves {
			used[l.Name] = used[l.Name] || l.Used
		}
	}
	for _, p := range list {
		if !used[p.Name] {
			return fmt.Errorf("%s is declared and never used", p.Name)
		}
	}
	return nil
}

func wellDeclared(list []layers.Parameter) error {
	names := map[string]bool{}
	for _, p := range list {
		if p.Name == "" || names[p.Name] {
			return fmt.Errorf("parameter name %q is empty or used twice", p.Name)
		}
		names[p.Name] = true
		if p.Init == nil {
			return fmt.Errorf("parameter %q: Init is nil: give what it starts with", p.Name)
		}
		if p.FanIn < 1 || p.FanOut < 1 {
			return fmt.Errorf("parameter %q: FanIn %d and FanOut %d, want > 0, also if Init ignores them", p.Name, p.FanIn, p.FanOut)
		}
	}
	return nil
}

func (t layerTrial) movesState() error {
	return t.eachRun(func(given, got tensors[float64]) error {
		for _, p := range t.fresh().Parameters(t.in) {
			after, read := got[p.Name+" after the run"]
			if !read || t.training && p.State {
				continue
			}
			if err := near(after, given[p.Name], 0); err != nil {
				return fmt.Errorf("%s after the run: %w", p.Name, err)
			}
		}
		return nil
	})
}
