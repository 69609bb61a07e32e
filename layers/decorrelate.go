package layers

import (
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
	"tessera/internal/volume"
)

// Decorrelate removes the linear dependence of its inputs on the groups of a column, y = x W + b. It is the first layer of an
// encoder. The hook decorrelation fits its parameters to the training samples before the first step. With the mean m and the
// covariance S of the samples, the covariance C of the values with the indicators of the groups, R = S^(-1/2), and the
// orthogonal projection P onto the columns of R C,
//
//	W = I - R P R⁻¹,  b = m R P R⁻¹
//
// The covariance of y with every indicator is then 0: no linear predictor of the group from y is better than the frequencies
// of the groups. Among the linear maps with this property, this one changes x least in the metric of S. A non-linear predictor
// may still find the group. The layer does not need the group of a sample after the fit. Samples with a negative group are
// ignored by the fit. If all training samples are of one group, training returns an error. The cost is O(values³).
//
// Parameters, which the optimizer does not update: weight W of shape (values, values), and bias b.
//
// Source: Belrose et al., LEACE: perfect linear concept erasure in closed form, NeurIPS 2023.
type Decorrelate struct {
	Column string `toml:"column" doc:"column of the groups, whole numbers"`
}

func init() {
	Registry.Register("decorrelate", "removes the groups of a column from the values, linearly, fitted before the training", func() Layer {
		return &Decorrelate{Column: "group"}
	})
}

// Decorrelation is returned by the method Preparation of [Decorrelate].
type Decorrelation struct{ Column string }

func (*Decorrelate) OutputShape(in []int) ([]int, error) { return in, nil }

func (*Decorrelate) Parameters(in []int) []Parameter {
	n := volume.Of(in)
	return []Parameter{{Name: "weight", Shape: []int{n, n}, Init: identity{}, FanIn: n, FanOut: n, State: true},
		{Name: "bias", Shape: []int{n}, Init: &Zeros{}, FanIn: n, FanOut: n, State: true}}
}

func (*Decorrelate) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	y := c.AddRow(c.MatMul(c.Flatten(x), s.Parameter("weight")), s.Parameter("bias"))
	return c.Reshape(y, x.Shape()...), c.Err()
}

func (l *Decorrelate) FittedTo() (key, column string) { return "column", l.Column }

// Preparation implements [Preparing]. No hook prepares images for this layer; the hook decorrelation fits it.
func (l *Decorrelate) Preparation() any { return Decorrelation{l.Column} }

func (*Decorrelate) Rest(_ Scope, prepared *gorgonia.Node) (*gorgonia.Node, error) {
	return prepared, nil
}

// identity initialises a matrix as the identity.
type identity struct{}

// Fill implements [Init]. The matrix is square.
func (identity) Fill(w []float32, fanIn, _ int, _ *rand.Rand) {
	clear(w)
	for i := range min(fanIn, len(w)) {
		w[i*fanIn+i] = 1
	}
}
