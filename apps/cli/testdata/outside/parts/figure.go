package parts

import (
	"context"
	"math"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/apps/show/page"
	"tessera/data"
)

func init() {
	figures.Registry.Register("lengths", "lengths of the atoms of runs", func() figures.Kind { return figures.Kind{Least: 1, Draw: lengths} })
	page.Sections.Register("lengths", "lengths of the atoms of a run", func() page.Section { return lengthSection })
}

// lengths draws the lengths of the atoms of runs.
func lengths(_ context.Context, runs []*tessera.Run) (*figures.Figure, error) {
	c := &doc.Curves{Title: "lengths of atoms", X: "unit", Y: "length"}
	for _, r := range runs {
		l, a := doc.Line{Name: r.Path}, r.Atoms()
		for i, v := range a.Values {
			if i%a.Pixels() == 0 {
				l.X, l.Y = append(l.X, float64(len(l.X))), append(l.Y, 0)
			}
			l.Y[len(l.Y)-1] = math.Hypot(l.Y[len(l.Y)-1], float64(v))
		}
		c.Lines = append(c.Lines, l)
	}
	return figures.Lines(c)
}

// lengthSection says how many atoms there are.
func lengthSection(_ context.Context, r *tessera.Run, _ *data.Images) ([]doc.Block, error) {
	facts := &doc.Facts{}
	facts.Add("", "atoms with a length", r.Atoms().Count)
	return []doc.Block{&doc.Group{Title: "Lengths of atoms", Blocks: []doc.Block{facts}}}, nil
}
