package losses

import (
	"math"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// GroupLasso is a group penalty on the units, relative to the size of the images. The cost of unit j is the root mean square
// of its code h_nj over the images n of the batch, times the size of its atom w_j. The term is the sum of these costs over
// the units, divided by the sum over pixels of the root mean square of pixel p, x_np:
//
//	sum over j of sqrt(mean over images of h_nj²) · sqrt(|w_j|_1 √n |w_j|_2)  /  sum over p of sqrt(mean over images of x_np²)
//
// The root mean square is concave in the number of images: a part that is in all images costs 4 sqrt(1/4) = 2 times as much
// if four units represent it, each for a quarter of the images, as in a single unit. The term therefore represents each part
// by one unit, removes parts that all images share from the atoms of the other units, and turns off units that are not
// needed. If all images are black, the term is 0. The size of an atom is the geometric mean of two norms, because neither is suitable alone. With |w|_1, dividing the
// pixels of a part among several units would be free, and two overlapping parts would get a third unit for their common
// pixels. With |w|_2, units that exclude each other would each include the common part in their atoms: the torso of the
// swimmer in every limb.
//
// A unit that is always 0 costs nothing. The term depends neither on the scale of the data nor on how a contribution is
// divided between code and atom. With a large weight throughout the training only the strongest parts remain, so the weight
// should fall early.
//
// Sources: Yuan and Lin, Model Selection and Estimation in Regression with Grouped Variables, 2006 (groups); Bach, Mairal and
// Ponce, Convex Sparse Matrix Factorizations, 2008, and Haeffele and Vidal, Global Optimality in Tensor Factorization, 2015
// (sums over units of the size of a code times the size of an atom). The size of an atom is a definition of this project.
type GroupLasso struct{ onAtoms }

func init() {
	Registry.Register("group_lasso", "sum over units of rms(h) sqrt(|w|_1 √n |w|_2) over the sum of rms(x): gathers a part in one unit, empties surplus units",
		func() Loss { return &GroupLasso{} })
}

func (l *GroupLasso) Reads() Reads { return relativeReads(l.onAtoms.Reads(), true) }

func (*GroupLasso) Build(v Values) (*gorgonia.Node, error) {
	d, err := v.Dictionary()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	rms := func(x *gorgonia.Node) *gorgonia.Node { return c.Sqrt(c.Shift(c.Mean(c.Square(x), 0), shareTiny)) }
	norm2 := c.Sqrt(c.Shift(c.Sum(c.Square(d.Atoms), 1), shareTiny))
	size := c.Sqrt(c.Shift(c.Mul(c.Sum(c.Abs(d.Atoms), 1), norm2), shareTiny)) // the derivative at an atom of zeros is 0
	all := c.Sum(rms(d.Images))
	some := c.Lt(c.Neg(all), -10*math.Sqrt(shareTiny)*float64(d.Atoms.Shape()[1])) // 0 if all images are black
	share := c.Div(c.Mul(c.Sum(c.Mul(rms(d.Code), size)), some), all)
	return c.Scale(share, math.Pow(float64(d.Atoms.Shape()[1]), 0.25)), c.Err()
}
