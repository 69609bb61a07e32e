package gradcheck

import (
	"fmt"
	"math"
	"slices"

	"tessera/internal/random"
)

// Tolerance is the largest relative error of a right gradient. Differences of float64 values have errors of about 1e-9.
const Tolerance = 1e-6

// step of the central differences, for values of about 1. Inputs must keep further away from kinks than this.
const step = 1e-5

// Check returns an error, which names the run and the largest deviation, unless every gradient of the scalar expression
// agrees with central differences within [Tolerance]. The first run checks every element, relative to the leaf's largest
// derivative. The second run, with the values of every leaf in reversed order, checks one direction of every leaf. The
// third run, with the values of the first, must give bit-identical gradients: a machine may leak state between runs.
func Check(e Expression[float64]) error {
	g, err := Compile(e, true)
	if err != nil {
		return err
	}
	defer g.Close()
	value, err := Compile(e, false)
	if err != nil {
		return err
	}
	defer value.Close()
	first, err := checked(g, value, elements)
	if err != nil {
		return fmt.Errorf("run 1: %w", err)
	}
	reverse(g, value)
	if _, err := checked(g, value, direction); err != nil {
		return fmt.Errorf("run 2: %w", err)
	}
	reverse(g, value)
	third, err := gradients(g)
	if err != nil {
		return err
	}
	for i, l := range g.Leaves {
		if !slices.Equal(first[i], third[i]) {
			return fmt.Errorf("%s: gradient %v in run 1, %v in run 3, of the same values", l.Name, first[i], third[i])
		}
	}
	return nil
}

// reverse changes the values of all leaves but keeps them in their domain and away from kinks.
func reverse(graphs ...*Graph[float64]) {
	for _, g := range graphs {
		for _, l := range g.Leaves {
			slices.Reverse(l.Values)
		}
	}
}

// checked returns the gradients of g for its values, which must agree with those of the same expression without gradients.
func checked(g, value *Graph[float64], agree func(value *Graph[float64], l *Leaf[float64], analytic []float64) error) ([][]float64, error) {
	analytic, err := gradients(g)
	if err != nil {
		return nil, err
	}
	for i, l := range value.Leaves {
		if g.Leaves[i].Fixed {
			continue
		}
		if err := agree(value, l, analytic[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return analytic, nil
}

// gradients runs g and returns copies of its gradients, nil for fixed leaves.
func gradients(g *Graph[float64]) ([][]float64, error) {
	if err := g.Run(); err != nil {
		return nil, err
	}
	list := make([][]float64, len(g.Leaves))
	for i, l := range g.Leaves {
		list[i] = slices.Clone(l.Gradient())
		if !l.Fixed && len(list[i]) != len(l.Values) {
			return nil, fmt.Errorf("%s: gradient of %d values, want %d", l.Name, len(list[i]), len(l.Values))
		}
	}
	return list, nil
}

// elements compares a leaf's gradient with central differences, relative to the largest element of either.
func elements(g *Graph[float64], l *Leaf[float64], analytic []float64) error {
	numeric := make([]float64, len(l.Values))
	towards := make([]float64, len(l.Values))
	var largest float64
	for j := range l.Values {
		towards[j] = 1
		var err error
		if numeric[j], err = difference(g, l, towards); err != nil {
			return err
		}
		towards[j] = 0
		largest = max(largest, math.Abs(analytic[j]), math.Abs(numeric[j]))
	}
	for j := range numeric {
		if d := math.Abs(analytic[j] - numeric[j]); !(d <= Tolerance*largest) {
			return fmt.Errorf("element %d: gradient %v, central difference %v: relative error %.1e, want <= %.0e",
				j, analytic[j], numeric[j], d/largest, Tolerance)
		}
	}
	return nil
}

// direction compares a leaf's derivative along a random direction with a central difference, relative to the sum of the
// absolute contributions of its elements.
func direction(g *Graph[float64], l *Leaf[float64], analytic []float64) error {
	r := random.Stream(Seed, "direction of "+l.Name, 0)
	towards := make([]float64, len(l.Values))
	var want, scale float64
	for j := range towards {
		towards[j] = r.NormFloat64()
		want += towards[j] * analytic[j]
		scale += math.Abs(towards[j] * analytic[j])
	}
	numeric, err := difference(g, l, towards)
	if err != nil {
		return err
	}
	scale = max(scale, math.Abs(numeric))
	if d := math.Abs(want - numeric); !(d <= Tolerance*scale) {
		return fmt.Errorf("along a random direction: gradient %v, central difference %v: relative error %.1e, want <= %.0e",
			want, numeric, d/scale, Tolerance)
	}
	return nil
}

// difference is the central difference of g's value when the leaf moves towards a direction, in steps that suit the
// largest of the elements that move.
func difference(g *Graph[float64], l *Leaf[float64], towards []float64) (float64, error) {
	start := slices.Clone(l.Values)
	defer copy(l.Values, start)
	h := step
	for j, v := range start {
		if towards[j] != 0 {
			h = max(h, step*math.Abs(v))
		}
	}
	var f [2]float64
	for k, sign := range [2]float64{1, -1} {
		for j, v := range start {
			l.Values[j] = v + sign*h*towards[j]
		}
		if err := g.Run(); err != nil {
			return 0, err
		}
		f[k] = g.Output()[0]
	}
	return (f[0] - f[1]) / (2 * h), nil
}
