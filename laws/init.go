package laws

import (
	"fmt"
	"math/rand/v2"

	"tessera/layers"
)

// Init contains the laws of initialisations, tested on a vector and on matrices, including matrices with a single row and with
// a single column.
var Init = inTrials(eachInitTrial, []law[initTrial]{
	{"sets every element, whatever it contained", initTrial.everyValue},
	{"writes inside the parameter only", initTrial.inside},
	{"is finite", initTrial.finite},
	{"gives the same bits for the same stream", initTrial.repeatable},
	{"never changes its settings", initTrial.keepsSettings},
})

// initTrial is an initialisation of one parameter.
type initTrial struct {
	writing[layers.Init]
	shape []int
}

func (t initTrial) String() string { return fmt.Sprintf("a parameter of shape %v", t.shape) }

func eachInitTrial(fresh func() layers.Init, try func(t initTrial)) error {
	for _, shape := range [][]int{{7}, {1, 6}, {6, 1}, {5, 4}, {4, 9}} {
		try(initTrial{writing[layers.Init]{fresh, elements(1, shape), func(i layers.Init, w []float32) error {
			p := layers.Parameter{Name: "weight", Shape: shape, Init: i, FanIn: shape[0], FanOut: shape[len(shape)-1]}
			p.Fill(w, rand.New(rand.NewPCG(1, 2)))
			return nil
		}}, shape})
	}
	return nil
}
