package losses

import (
	"fmt"
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// AtomSpread is the mean over the atoms w, the rows of the decoder's weight, of |w|_1 / (√n |w|_2), where n is the number of
// pixels: 1 for an atom of equal pixels, 1/√n for an atom with a single non-zero pixel. It favours small atoms. Suppose that
// a part is in every image, such as the torso of the swimmer. It can be an atom, or be included in all other atoms, the
// limbs. The second solution gives the same reconstructions and sparser codes, but larger atoms, which this term penalises.
// The scale of the atoms has no effect. If several weights match `on`, their terms are summed.
//
// Source: the sparseness of both factors in Hoyer, Non-negative Matrix Factorization with Sparseness Constraints, JMLR 5
// (2004).
type AtomSpread struct{ onWeights }

func init() {
	Registry.Register("atom_spread", "mean over atoms of |w|_1 / (√n |w|_2): small for atoms of few pixels", func() Loss { return &AtomSpread{} })
}

func (*AtomSpread) Build(v Values) (*gorgonia.Node, error) {
	return overWeights(v, func(c *ops.Chain, w *gorgonia.Node) *gorgonia.Node {
		if c.Err() != nil || len(w.Shape()) != 2 {
			return c.Do("atom_spread", func() (*gorgonia.Node, error) {
				return nil, fmt.Errorf("got a weight of shape %v, want a matrix (atoms, pixels)", w.Shape())
			})
		}
		return c.Scale(c.Mean(normRatio(c, w)), 1/math.Sqrt(float64(w.Shape()[1])))
	})
}
