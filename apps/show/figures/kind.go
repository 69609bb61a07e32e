package figures

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/plot/plotter"
	"tessera"
	"tessera/apps/show/doc"
	"tessera/config/part"
)

// Kind is a figure of runs that `tessera figure NAME RUN...` draws.
type Kind struct {
	Least, Most int // numbers of runs; a Most of 0 means any number
	Draw        func(ctx context.Context, runs []*tessera.Run) (*Figure, error)
}

// Registry holds the figures of other modules. Those of this module have settings of their own and belong to the command.
var Registry = part.New[Kind]("figure")

// Lines draws curves in one panel, with a legend if there are several.
func Lines(c *doc.Curves) (*Figure, error) {
	if c == nil || len(c.Lines) == 0 {
		return nil, errors.New("figures: no lines to draw")
	}
	p := panel{title: c.Title, x: axis{label: c.X, log: c.Log}, y: axis{label: c.Y}}
	var names legend
	for i, l := range c.Lines {
		if len(l.X) != len(l.Y) {
			return nil, errors.New("figures: the line " + l.Name + " has other numbers of x than of y")
		}
		one := line{name: l.Name, color: series(i), dashes: seriesDashes(i)}
		for j, x := range l.X {
			if y := l.Y[j]; !math.IsNaN(y) {
				one.points = append(one.points, plotter.XY{X: x, Y: y})
			}
		}
		p.lines, names = append(p.lines, one), append(names, one)
	}
	if len(names) == 1 {
		names = nil
	}
	const height = 620
	return panels([][]panel{{p}}, names, height)
}
