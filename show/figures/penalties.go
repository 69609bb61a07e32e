package figures

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"
)

// penalty is a penalty of one unit's mean activation t for the target p.
type penalty struct {
	name  string
	value func(p, t float64) float64
}

// penaltyEpsilon is the default epsilon of the loss epsilon_l1.
const penaltyEpsilon = 1e-4

// penalties are the losses of these names, in the study's order, for one unit.
var penalties = []penalty{
	{"l2", func(p, t float64) float64 { return (p - t) * (p - t) }},
	{"kl", func(p, t float64) float64 { return p*math.Log(p/t) + (1-p)*math.Log((1-p)/(1-t)) }},
	{"epsilon_l1", func(p, t float64) float64 { return math.Sqrt((p-t)*(p-t) + penaltyEpsilon) }},
	{"log", func(p, t float64) float64 { return math.Log1p((p - t) * (p - t)) }},
}

// Penalties draws the penalties l2, kl, epsilon_l1 (epsilon 1e-4) and log over the mean activation t of a unit, for the
// target p. For p in (0,1), t is in (0,1), because kl is infinite at both ends. For p = 0, the study's other figure, t is in
// [-1,1] and kl, which is undefined there, is left out. Other targets are an error.
func Penalties(target float64) (*Figure, error) {
	from, to := 0.001, 0.999
	switch {
	case target == 0:
		from, to = -1, 1
	case !(target > 0 && target < 1):
		return nil, fmt.Errorf("target of the penalties: got %v, want 0 or in (0,1)", target)
	}
	p := panel{
		x: axis{label: "mean activation t of a unit", min: math.Round(from), max: math.Round(to)},
		y: axis{label: fmt.Sprintf("penalty S(p, t) for p = %v", target), max: 1},
	}
	for i, s := range penalties {
		if s.name == "kl" && target == 0 {
			continue
		}
		p.lines = append(p.lines, line{name: s.name, points: sample(s, target, from, to), color: series(i)})
	}
	return panels([][]panel{{p}}, p.lines, 560)
}

// sample computes a penalty at the study's 1000 points.
func sample(s penalty, target, from, to float64) plotter.XYs {
	points := make(plotter.XYs, 1000)
	for i := range points {
		t := from + (to-from)*float64(i)/float64(len(points)-1)
		points[i] = plotter.XY{X: t, Y: s.value(target, t)}
	}
	return points
}
