package losses

import (
	"gorgonia.org/gorgonia"

	"tessera/graph/ops"
)

// AtomL1 is the mean over the batch of sum_j |h_j| |a_j|, the l1 norm of the code in which each unit counts with the l2 norm of
// its atom: larger atoms do not make smaller codes free. Source: Conerly et al., Update on how we train SAEs, 2024.
type AtomL1 struct{ onAtoms }

func init() {
	Registry.Register("atom_l1", "mean over samples of the l1 norm of the code, weighted by the norms of the atoms", func() Loss { return &AtomL1{} })
}

func (*AtomL1) Build(v Values) (*gorgonia.Node, error) {
	d, err := v.Dictionary()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	norms := c.Sqrt(c.Shift(c.Sum(c.Square(d.Atoms), 1), shareTiny))
	return c.Scale(c.Sum(c.MulRow(c.Abs(d.Code), norms)), 1/float64(d.Code.Shape()[0])), c.Err()
}
