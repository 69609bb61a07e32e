package layers

import (
	"math/rand/v2"

	"gorgonia.org/gorgonia"
	"tessera/internal/volume"
	"tessera/ops"
)

// Decorrelate removes from its inputs what a linear predictor could use to tell the groups of a column apart, y = x W + b. It is the first layer of
// an encoder, and its parameters are fitted to the training samples before the first step (the hook decorrelation): with the mean m and the
// covariance S of the samples, C the covariance of the values with the indicators of the groups, R = S^(-1/2) and P the orthogonal projection
// onto the columns of R C,
//
//	W = I - R P R⁻¹,  b = m R P R⁻¹
//
// Then the covariance of y with every indicator is 0, so that no linear predictor of the group is better than its frequency, and y is as near to x as any
// such linear map can be in the metric of S. The group itself is not needed afterwards. A non-linear predictor may still find it. Samples of a negative group are left
// out of the fit. A training in which all samples are of one group is an error. The work is O(values³).
//
// Parameters, which the optimizer leaves as they are: weight W of shape (values, values), and bias b.
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

// Decorrelation is the [Preparing.Preparation] of [Decorrelate].
type Decorrelation struct{ Column string }

// OutputShape implements [Layer].
func (*Decorrelate) OutputShape(in []int) ([]int, error) { return in, nil }

// Parameters implements [Layer].
func (*Decorrelate) Parameters(in []int) []Parameter {
	n := volume.Of(in)
	return []Parameter{{Name: "weight", Shape: []int{n, n}, Init: identity{}, FanIn: n, FanOut: n, State: true},
		{Name: "bias", Shape: []int{n}, Init: &Zeros{}, FanIn: n, FanOut: n, State: true}}
}

// Apply implements [Layer].
func (*Decorrelate) Apply(s Scope, x *gorgonia.Node) (*gorgonia.Node, error) {
	var c ops.Chain
	y := c.AddRow(c.MatMul(c.Flatten(x), s.Parameter("weight")), s.Parameter("bias"))
	return c.Reshape(y, x.Shape()...), c.Err()
}

// Preparation implements [Preparing]. No hook prepares images for this layer; the hook decorrelation fits it.
func (l *Decorrelate) Preparation() any { return Decorrelation{l.Column} }

// Rest implements [Preparing].
func (*Decorrelate) Rest(_ Scope, prepared *gorgonia.Node) (*gorgonia.Node, error) {
	return prepared, nil
}

// identity is the initialisation of a matrix that changes nothing.
type identity struct{}

// Fill implements [Init]. The matrix is square.
func (identity) Fill(w []float32, fanIn, _ int, _ *rand.Rand) {
	clear(w)
	for i := range min(fanIn, len(w)) {
		w[i*fanIn+i] = 1
	}
}
