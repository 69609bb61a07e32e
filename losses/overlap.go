package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// Overlap measures how much the weighted atoms of an image overlap. It is the mean over pixels n and images i of the sum of
// the products of all pairs of weighted atoms,
//
//	sum over j != l of (h_ij w_jn) (h_il w_ln) = (sum_j h_ij w_jn)² - sum_j (h_ij w_jn)²
//
// For non-negative codes and atoms it is 0 if and only if the atoms that an image uses have disjoint supports, like the
// parts of Lee and Seung, Learning the Parts of Objects by Non-negative Matrix Factorization, 1999. Atoms that are never
// active on the same image may overlap.
type Overlap struct{ onAtoms }

func init() {
	Registry.Register("overlap", "products of pairs of weighted atoms: 0 if the atoms of a sample are disjoint", func() Loss {
		return &Overlap{}
	})
}

func (Overlap) Build(v Values) (*gorgonia.Node, error) {
	d, err := v.Dictionary()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	whole := c.Square(c.MatMul(d.Code, d.Atoms))
	alone := c.MatMul(c.Square(d.Code), c.Square(d.Atoms))
	return c.Mean(c.Sub(whole, alone)), c.Err()
}
