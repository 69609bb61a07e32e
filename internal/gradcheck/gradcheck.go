package gradcheck

import (
	"fmt"
	"math"
	"slices"
)

// Tolerance is the largest relative error of a right gradient. Differences of float64 values are good to about 1e-9.
const Tolerance = 1e-6

// step of the central differences, for values of about 1. Inputs must keep further away from kinks than this.
const step = 1e-5

// Check returns an error that names the worst element unless every gradient of the scalar expression agrees with central
// differences within [Tolerance], relative to the leaf's largest derivative, in a first run and, bit for bit, in a later
// one: machines have been seen to leave traces of one run in the next.
func Check(e Expression[float64]) error {
	g, err := Compile(e, true)
	if err != nil {
		return err
	}
	defer g.Close()
	first, err := gradients(g)
	if err != nil {
		return err
	}
	if err := compare(e, g.Leaves, first); err != nil {
		return err
	}
	for _, l := range g.Leaves {
		for i := range l.Values {
			l.Values[i] *= 0.9
		}
	}
	if err := g.Run(); err != nil {
		return err
	}
	for _, l := range g.Leaves {
		for i := range l.Values {
			l.Values[i] = 0
		}
	}
	return again(e, g, first)
}

// again runs g with the values that e starts from and wants the gradients that they gave before.
func again(e Expression[float64], g *Graph[float64], first [][]float64) error {
	start, err := Compile(e, false)
	if err != nil {
		return err
	}
	defer start.Close()
	for i, l := range g.Leaves {
		copy(l.Values, start.Leaves[i].Values)
	}
	later, err := gradients(g)
	if err != nil {
		return err
	}
	for i, l := range g.Leaves {
		if !slices.Equal(first[i], later[i]) {
			return fmt.Errorf("%s: gradient %v in the first run, %v in a later one", l.Name, first[i], later[i])
		}
	}
	return nil
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

// compare checks the analytic gradients with central differences of the expression, built anew without gradients.
func compare(e Expression[float64], leaves []*Leaf[float64], analytic [][]float64) error {
	g, err := Compile(e, false)
	if err != nil {
		return err
	}
	defer g.Close()
	for i, l := range g.Leaves {
		if leaves[i].Fixed {
			continue
		}
		numeric := make([]float64, len(l.Values))
		for j := range l.Values {
			if numeric[j], err = difference(g, l, j); err != nil {
				return err
			}
		}
		if err := agree(analytic[i], numeric); err != nil {
			return fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return nil
}

// difference is the central difference of g's value with respect to one element.
func difference(g *Graph[float64], l *Leaf[float64], j int) (float64, error) {
	x := l.Values[j]
	defer func() { l.Values[j] = x }()
	h := step * max(1, math.Abs(x))
	var f [2]float64
	for k, moved := range [2]float64{x + h, x - h} {
		l.Values[j] = moved
		if err := g.Run(); err != nil {
			return 0, err
		}
		f[k] = g.Output()[0]
	}
	return (f[0] - f[1]) / (2 * h), nil
}

// agree compares two gradients relative to the largest element of either.
func agree(analytic, numeric []float64) error {
	var largest float64
	for j := range numeric {
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
