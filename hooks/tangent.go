package hooks

import (
	"tessera/config/part"
	"tessera/internal/engine/kernel"
	"tessera/internal/parallel/team"
)

// Tangent removes from the gradient of every atom a its part along the atom:
//
//	g <- g - (g·a / a·a) a
//
// A constraint unit_norm would undo that part of a step, but the averages of adam would keep it and move the atom too far. Atoms
// are the rows of the matrices that `on` names; rows of zeros keep their gradients. Source: Bricken et al., Towards
// monosemanticity, 2023.
type Tangent struct {
	On string `toml:"on" doc:"a glob over the matrices whose rows are atoms"`
}

func init() {
	Registry.Register("tangent", "removes from the gradients of atoms their part along the atom", func() Hook { return &Tangent{On: "decoder.*.weight"} })
}

func (h *Tangent) Glob() (key, glob string) { return "on", h.On }

func (h *Tangent) Suits(m Declared) error {
	for _, p := range m.Parameters(h.On) {
		if len(p.Shape) != 2 {
			return part.KeyErrorf("on", "%s has the shape %v, want a matrix whose rows are atoms", p.Path, p.Shape)
		}
	}
	return nil
}

func (*Tangent) NeedsSteps() (problem, hint string) {
	return "%s has no mini-batch steps whose gradients could be replaced", "remove the hook"
}

// Replicated implements [Replicated]: all processes have the same gradients.
func (*Tangent) Replicated() (state bool) { return false }

func (h *Tangent) Attach(t Training) (*Active, error) {
	taken := map[string]bool{}
	for _, p := range t.Parameters(h.On) {
		taken[p.Path] = true
	}
	changed := map[string][]float32{}
	return &Active{Gradients: func(g *Gradients) error {
		for i, p := range g.Of {
			if taken[p.Path] && g.Values[i] != nil {
				if changed[p.Path] == nil {
					changed[p.Path] = make([]float32, len(p.Data))
				}
				tangents(changed[p.Path], g.Values[i], p.Data, p.Shape[1])
				g.Values[i] = changed[p.Path]
			}
		}
		return nil
	}}, nil
}

// tangents writes the rows of g without their parts along the rows of atoms to dst.
func tangents(dst, g, atoms []float32, width int) {
	set := kernel.Float32()
	team.For(len(atoms)/width, 64, func(from, to int) {
		for i := from * width; i < to*width; i += width {
			a, d := atoms[i:i+width], dst[i:i+width]
			copy(d, g[i:i+width])
			if square := set.Dot(a, a); square > 0 {
				set.AddScaled(d, d, a, -set.Dot(d, a)/square)
			}
		}
	})
}
