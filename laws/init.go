package laws

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"

	"tessera/layers"
)

// Init contains the laws of initialisations, tested on a vector and on matrices, including matrices with a single row and with
// a single column.
var Init = inTrials(eachInitTrial, []law[initTrial]{
	{"sets every element, whatever it contained", initTrial.everyElement},
	{"writes inside the parameter only", initTrial.inside},
	{"is finite", initTrial.finite},
	{"gives the same bits for the same stream", initTrial.repeatable},
	{"never changes its settings", initTrial.keepsSettings},
})

// initTrial is an initialisation of one parameter.
type initTrial struct {
	fresh func() layers.Init
	shape []int
}

func (t initTrial) String() string { return fmt.Sprintf("a parameter of shape %v", t.shape) }

func eachInitTrial(fresh func() layers.Init, try func(t initTrial)) error {
	for _, shape := range [][]int{{7}, {1, 6}, {6, 1}, {5, 4}, {4, 9}} {
		try(initTrial{fresh, shape})
	}
	return nil
}

// filled returns a parameter that i has filled, with surrounding guards (all) and without them (inner). Its elements initially
// have the value before.
func (t initTrial) filled(i layers.Init, before float32) (all, inner []float32) {
	w := make([]float32, elements(1, t.shape))
	for j := range w {
		w[j] = before
	}
	all, inner = padded(w)
	p := layers.Parameter{Name: "weight", Shape: t.shape, Init: i, FanIn: t.shape[0], FanOut: t.shape[len(t.shape)-1]}
	p.Fill(inner, rand.New(rand.NewPCG(1, 2)))
	return all, inner
}

func (t initTrial) everyElement() error {
	_, first := t.filled(t.fresh(), 3)
	_, second := t.filled(t.fresh(), -5)
	return differ("a parameter of -5 before, compared with one of 3", second, first)
}

func (t initTrial) inside() error {
	all, _ := t.filled(t.fresh(), 0)
	return outside(all)
}

func (t initTrial) finite() error {
	_, w := t.filled(t.fresh(), 0)
	for j, v := range w {
		if notFinite(v) {
			return fmt.Errorf("element %d is %v", j, v)
		}
	}
	return nil
}

// repeatable also uses one initialisation for two parameters, because the second one must not depend on the first.
func (t initTrial) repeatable() error {
	i := t.fresh()
	_, first := t.filled(i, 0)
	_, second := t.filled(i, 0)
	return differ("a second parameter, compared with the first", second, first)
}

func (t initTrial) keepsSettings() error {
	i := t.fresh()
	t.filled(i, 0)
	if !reflect.DeepEqual(i, t.fresh()) {
		return errors.New("its settings are others afterwards")
	}
	return nil
}
