package figures

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// NetworkLayer is one column of units of a [Network].
type NetworkLayer struct {
	Name  string
	Units int // number of drawn units
}

// Sizes in the diagram, in points.
const (
	unitRadius  = vg.Length(13)
	unitStep    = vg.Length(38)
	layerStep   = vg.Length(120)
	captionRoom = vg.Length(24)
)

// Network draws a dense network: a column of circles for each layer, every unit connected to all units of the next layer, and
// a bias unit, +1, below the units of each layer except the last.
func Network(layers ...NetworkLayer) (*Figure, error) {
	if len(layers) < 2 {
		return nil, errors.New("figures: a network has at least two layers")
	}
	most := 0
	for i, l := range layers {
		if l.Units < 1 || l.Units > 32 {
			return nil, fmt.Errorf("figures: layer %d of the network: got %d units, want 1 to 32", i, l.Units)
		}
		most = max(most, network(layers).circles(i))
	}
	return &Figure{
		width:  2*margin + pixels(layerStep*vg.Length(len(layers))),
		height: 2*margin + pixels(unitStep*vg.Length(most)+captionRoom),
		draw:   network(layers).draw,
	}, nil
}

type network []NetworkLayer

// circles returns the number of circles of a column, including the bias unit.
func (n network) circles(layer int) int {
	if layer == len(n)-1 {
		return n[layer].Units
	}
	return n[layer].Units + 1
}

// at returns the position of a unit; the unit after the last one is the bias unit.
func (n network) at(c draw.Canvas, layer, unit int) vg.Point {
	middle := c.Center().Y + captionRoom/2
	return vg.Point{
		X: c.Min.X + dots(margin) + layerStep*(vg.Length(layer)+0.5),
		Y: middle + unitStep*(vg.Length(n.circles(layer)-1)/2-vg.Length(unit)),
	}
}

func (n network) draw(c draw.Canvas) {
	thin := draw.LineStyle{Color: quiet, Width: 0.5}
	for layer := range len(n) - 1 {
		for from := range n.circles(layer) {
			for to := range n[layer+1].Units {
				a, b := n.at(c, layer, from), n.at(c, layer+1, to)
				c.StrokeLine2(thin, a.X, a.Y, b.X, b.Y)
			}
		}
	}
	for layer := range n {
		for unit := range n.circles(layer) {
			n.unit(c, n.at(c, layer, unit), layer, unit == n[layer].Units)
		}
		name := textStyle(labelSize)
		name.XAlign = draw.XCenter
		c.FillText(name, vg.Point{X: n.at(c, layer, 0).X, Y: c.Min.Y + dots(margin)}, n[layer].Name)
	}
}

func (n network) unit(c draw.Canvas, at vg.Point, layer int, bias bool) {
	fill := draw.GlyphStyle{Color: series(layer), Radius: unitRadius, Shape: disc}
	if bias {
		fill.Color = gridLines
	}
	c.DrawGlyphNoClip(fill, at)
	if bias {
		text := textStyle(labelSize)
		text.XAlign, text.YAlign = draw.XCenter, draw.YCenter
		c.FillText(text, at, "+1")
	}
}

// penalty is a penalty of one unit's mean activation t for the target p.
type penalty struct {
	name  string
	value func(p, t float64) float64
}

// penaltyEpsilon is the default epsilon of the loss epsilon_l1.
const penaltyEpsilon = 1e-4

// penalties lists the drawn losses, in the study's order, for one unit.
var penalties = []penalty{
	{"l2", func(p, t float64) float64 { return (p - t) * (p - t) }},
	{"kl", func(p, t float64) float64 { return p*math.Log(p/t) + (1-p)*math.Log((1-p)/(1-t)) }},
	{"epsilon_l1", func(p, t float64) float64 { return math.Sqrt((p-t)*(p-t) + penaltyEpsilon) }},
	{"log", func(p, t float64) float64 { return math.Log1p((p - t) * (p - t)) }},
}

// Penalties draws the penalties l2, kl, epsilon_l1 (epsilon 1e-4) and log over the mean activation t of a unit, for the target
// p. For p in (0,1), t is in (0,1), because kl is infinite at both ends. For p = 0, the study's other figure, t is in [-1,1],
// and kl, which is undefined there, is omitted. Other targets are an error.
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
