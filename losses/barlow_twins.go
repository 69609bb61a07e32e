package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// BarlowTwins makes the cross-correlation of the values of two views the identity: a unit has the same value for both views,
// and different units are uncorrelated. The units of each view are shifted and scaled to mean 0 and variance 1 over the n
// images of the batch; the variance has n degrees of freedom and 0.00001 added. With C_jk = 1/n sum over i of z_ij z'_ik,
// the term is
//
//	sum over j of (1 - C_jj)² + redundancy * sum over j != k of C_jk²
//
// Source: Zbontar, Jing, Misra, LeCun and Deny, Barlow twins: self-supervised learning via redundancy reduction, 2021.
type BarlowTwins struct {
	Redundancy float64 `toml:"redundancy" want:">= 0" doc:"weight of the correlations of different units"`
}

func init() {
	Registry.Register("barlow_twins", "the cross-correlation of two views differs from the identity (Barlow Twins)",
		func() Loss { return &BarlowTwins{Redundancy: 0.005} })
}

// On implements [Loss]. The default is a head named projection.
func (*BarlowTwins) On() string { return "projection" }

func (*BarlowTwins) Reads() Reads { return Reads{Per: Batch, On: true, Views: true} }

func (l *BarlowTwins) Build(v Values) (*gorgonia.Node, error) {
	z, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	first, second := views(&c, z)
	a, b, n := standardised(&c, first), standardised(&c, second), float64(z.Shape()[0]/2)
	same := c.Scale(c.Sum(c.Mul(a, b), 0), 1/n) // the diagonal
	other := offDiagonal(&c, c.Scale(c.MatMul(c.Transpose(a), b), 1/n))
	return c.Add(c.Sum(c.Square(c.From(1, same))), c.Scale(c.Sum(c.Square(other)), l.Redundancy)), c.Err()
}

// standardised shifts and scales every unit to mean 0 and variance 1 over the images.
func standardised(c *ops.Chain, z *gorgonia.Node) *gorgonia.Node {
	x := centred(c, z)
	return c.MulRow(x, c.InvSqrt(c.Shift(c.Mean(c.Square(x), 0), 1e-5)))
}
