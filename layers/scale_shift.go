package layers

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// scaleAndShift declares the parameters of a normalisation of n channels.
func scaleAndShift(n int) []Parameter {
	return []Parameter{
		{Name: "scale", Shape: []int{n}, Init: &Constant{Value: 1}, FanIn: 1, FanOut: 1},
		{Name: "shift", Shape: []int{n}, Init: &Constant{Value: 0}, FanIn: 1, FanOut: 1},
	}
}

// scaledAndShifted applies it to normalised values.
func scaledAndShifted(s Scope, y *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	return addChannels(&c, mulChannels(&c, y, s.Parameter("scale")), s.Parameter("shift")), c.Err()
}
