package laws

import (
	"errors"
	"fmt"
	"slices"

	"tessera/optim"
)

// Whole contains the laws of rules that update parameters as a whole, for the shapes that they accept. For all other
// parameters these rules must satisfy [Rule].
var Whole = once([]law[func() optim.Whole]{
	{"takes a shape", func(fresh func() optim.Whole) error { _, err := taken(fresh()); return err }},
	{"gives the same bits twice for a whole parameter", wholeRepeats},
	{"descends on a quadratic of a whole parameter", wholeDescends},
	{"changes no whole parameter at a learning rate of zero", wholeRateless},
	{"stays finite at zeros, denormals and large gradients of a whole parameter", wholeFinite},
	{"never writes the gradient of a whole parameter", wholeReads},
	{"uses all of the state of a whole parameter and no more", wholeState},
})

// taken returns the tried shapes that a rule accepts, and an error if there are none.
func taken(o optim.Whole) (shapes [][]int, err error) {
	for _, shape := range [][]int{{1}, {7}, {5, 5}, {3, 8}, {9, 4}, {3, 3, 2, 5}} {
		if o.Takes(shape) {
			shapes = append(shapes, shape)
		}
	}
	if len(shapes) == 0 {
		return nil, errors.New("takes no vector, matrix or filter as a whole")
	}
	return shapes, nil
}

// wholes calls f with every shape that the rule accepts, its number of values and a state of zeros.
func wholes(fresh func() optim.Whole, f func(o optim.Whole, shape []int, n int, state [][]float32) error) error {
	shapes, err := taken(fresh())
	if err != nil {
		return err
	}
	for _, shape := range shapes {
		n := 1
		for _, d := range shape {
			n *= d
		}
		o := fresh()
		if err := f(o, shape, n, newState(o.WholeStates(), n)); err != nil {
			return fmt.Errorf("shape %v: %w", shape, err)
		}
	}
	return nil
}

func wholeRepeats(fresh func() optim.Whole) error {
	return wholes(fresh, func(o optim.Whole, shape []int, n int, state [][]float32) error {
		r := source()
		w := normal(r, n, 1)
		v, again, other := slices.Clone(w), fresh(), newState(o.WholeStates(), n)
		for step := 1; step <= 4; step++ {
			g := normal(r, n, 0.1)
			o.UpdateWhole(w, g, shape, state, o.LearningRate(), step)
			again.UpdateWhole(v, g, shape, other, o.LearningRate(), step)
		}
		return differAll("again", append(other, v), append(state, w))
	})
}

// wholeDescends checks that the rule minimises the squared distance from a target.
func wholeDescends(fresh func() optim.Whole) error {
	return wholes(func() optim.Whole { o, _ := withoutDecay(fresh()); return o.(optim.Whole) }, func(o optim.Whole, shape []int, n int, state [][]float32) error {
		r := source()
		w, target, g := normal(r, n, 1), normal(r, n, 1), make([]float32, n)
		value := func() (sum float64) {
			for i := range w {
				g[i] = w[i] - target[i]
				sum += float64(g[i]) * float64(g[i])
			}
			return sum
		}
		start := value()
		for step := 1; step <= 100; step++ {
			o.UpdateWhole(w, g, shape, state, o.LearningRate(), step)
			value()
		}
		if last := value(); !(last < 0.95*start) {
			return fmt.Errorf("100 steps lead from %g to %g only", start, last)
		}
		return nil
	})
}

func wholeRateless(fresh func() optim.Whole) error {
	return wholes(fresh, func(o optim.Whole, shape []int, n int, state [][]float32) error {
		r := source()
		w := normal(r, n, 1)
		before := slices.Clone(w)
		for step := 1; step <= 3; step++ {
			o.UpdateWhole(w, normal(r, n, 1), shape, state, 0, step)
		}
		return differ("after three steps", w, before)
	})
}

func wholeFinite(fresh func() optim.Whole) error {
	for _, scale := range []float64{0, 1e-45, 1e-38, 1e-20, 1, 1e6, 1e15} {
		err := wholes(fresh, func(o optim.Whole, shape []int, n int, state [][]float32) error {
			r := source()
			w := normal(r, n, 1)
			for step := 1; step <= 5; step++ {
				o.UpdateWhole(w, normal(r, n, scale), shape, state, o.LearningRate(), step)
			}
			for _, values := range append(state, w) {
				if i := slices.IndexFunc(values, notFinite); i >= 0 {
					return fmt.Errorf("gradients of about %g lead to %v", scale, values[i])
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func wholeReads(fresh func() optim.Whole) error {
	return wholes(fresh, func(o optim.Whole, shape []int, n int, state [][]float32) error {
		r := source()
		w, g := normal(r, n, 1), normal(r, n, 1)
		before := slices.Clone(g)
		o.UpdateWhole(w, g, shape, state, o.LearningRate(), 1)
		return differ("gradient", g, before)
	})
}

// wholeState checks that the updates change every element of the state. Guards detect writes outside of the weights and of the
// state.
func wholeState(fresh func() optim.Whole) error {
	return wholes(fresh, func(o optim.Whole, shape []int, n int, _ [][]float32) error {
		r := source()
		all, state := paddedState(o.WholeStates(), n)
		guarded, w := padded(normal(r, n, 1))
		for step := 1; step <= 3; step++ {
			o.UpdateWhole(w, normal(r, n, 1), shape, state, o.LearningRate(), step)
		}
		for i, s := range state {
			if j := slices.Index(s, 0); j >= 0 {
				return fmt.Errorf("state %d: element %d is still 0 after three steps", i, j)
			}
		}
		return outsideAll(append(all, guarded))
	})
}
