package losses

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// NTXent is the normalised temperature-scaled cross entropy between the two views of the images of a batch: each view must
// identify its partner, the other view of the same image, among all other views. It is the mean over the 2 n values z of
// both views of
//
//	-log( exp(s_ij / T) / sum over k != i of exp(s_ik / T) ),  s_ij = z_i z_j / (|z_i| |z_j|)
//
// where j is the partner of i. For a value with a norm below 1e-12 the similarities and the derivative are defined as 0.
// Source: Chen, Kornblith, Norouzi and Hinton, A Simple Framework for Contrastive Learning of Visual Representations, ICML
// 2020.
type NTXent struct {
	Temperature float64 `toml:"temperature" want:"> 0" doc:"T, divides the cosine similarities"`
}

func init() {
	Registry.Register("nt_xent", "cross entropy of identifying the other view of each sample in the batch (SimCLR)", func() Loss {
		return &NTXent{Temperature: 0.5}
	})
}

// shortest is the norm below which a value counts as having no direction.
const shortest = 1e-12

// never is the logit of an excluded pair: the exponential is 0.
const never = -1e30

// On implements [Loss]: a head named projection.
func (*NTXent) On() string { return "projection" }

func (*NTXent) Reads() Reads { return Reads{Per: Batch, On: true, Views: true} }

func (l *NTXent) Build(v Values) (*gorgonia.Node, error) {
	if !(l.Temperature > 0) {
		return nil, fmt.Errorf("temperature: got %v, want > 0", l.Temperature)
	}
	z, err := v.On()
	if err != nil {
		return nil, err
	}
	var c ops.Chain
	squares := c.Sum(c.Square(z), 1)
	norms := c.Mul(c.InvSqrt(c.Shift(squares, tiny)), c.From(1, c.Lt(squares, shortest*shortest)))
	columns := c.MulRow(c.Transpose(z), norms) // (units, 2 n), each column of norm 1, or 0 where a value has no direction
	similar := c.Scale(c.MatMul(c.Transpose(columns), columns), 1/l.Temperature)
	others := c.Do("others", func() (*gorgonia.Node, error) { return ops.WithDiagonal(similar, never) })
	p := c.LogSoftmax(others)
	return c.Neg(c.Mean(c.Do("partners", func() (*gorgonia.Node, error) { return ops.Partners(p) }))), c.Err()
}
