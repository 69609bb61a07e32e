package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/graph/ops"
)

// MSE is the mean over pixels and batch of (output - target)²; with a mask or sample weights it is a weighted mean, see
// [MeanOf]. With `relative` it is divided by the same mean of target²: the result does not depend on the scale of the data
// and is 1 for an all-zero output.
//
// With `censored` the error of a saturated pixel is max(0, target - output)². A pixel is saturated if its target is at least
// 0.999 times the largest target of the batch that the mask and the sample weights count. Where parts overlap, their sum may then exceed what an image can show. Only the
// largest value of data without saturation is treated so. Source: Tobin, Estimation of Relationships for Limited Dependent
// Variables, 1958 (a value at its limit is a bound).
type MSE struct {
	meanOnOutput
	Relative bool `toml:"relative" doc:"divides the error by the mean square of the targets of the batch"`
	Censored bool `toml:"censored" doc:"an output above the target of a saturated pixel is no error"`
}

func init() {
	Registry.Register("mse", "mean squared error over pixels and batch", func() Loss { return &MSE{} })
}

func (l *MSE) Reads() Reads { return relativeReads(l.meanOnOutput.Reads(), l.Relative || l.Censored) }

func (l *MSE) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	output, target := c.Do("on", v.On), c.Do("against", v.Against)
	difference := c.Sub(output, target)
	if l.Censored {
		above := c.Ramp(difference, 1, 0)
		difference = c.Sub(difference, c.Mul(above, saturated(&c, v, target)))
	}
	err := MeanOf(&c, v, c.Square(difference))
	if l.Relative {
		err = share(&c, err, MeanOf(&c, v, c.Square(target)))
	}
	return err, c.Err()
}

// saturated returns 1 where x is at least 0.999 times its largest value over the batch that counts, else 0. If no such value is
// positive, all are 0.
func saturated(c *ops.Chain, v Values, x *gorgonia.Node) *gorgonia.Node {
	flat := c.Flatten(x)
	counts, err := v.Counts()
	if err != nil {
		return c.Do("counts", func() (*gorgonia.Node, error) { return nil, err })
	}
	counted := flat // 0 for what does not count: a masked value may be anything
	if counts.Entries != nil {
		counted = c.Mul(counted, c.Lt(c.Neg(c.Flatten(counts.Entries)), 0))
	}
	if w := counts.Samples; w != nil && c.Err() == nil {
		rows := c.Do("transpose", func() (*gorgonia.Node, error) { return ops.Transpose(counted) })
		counted = c.MulRow(rows, c.Lt(c.Neg(w), 0))
	}
	most := c.Do("max", func() (*gorgonia.Node, error) { return gorgonia.Max(counted, 0, 1) })
	below := c.Lt(c.Sub(flat, c.Shift(c.Scale(most, 0.999), shareTiny)), 0)
	return c.Reshape(c.From(1, below), x.Shape()...)
}

// relativeReads changes r for a relative term, whose divisor is a mean over the batch.
func relativeReads(r Reads, relative bool) Reads {
	if relative {
		r.Per = Means
	}
	return r
}

// share returns err / square, where square is the mean square of the targets; 0 for targets that are all 0, of which no error has a share.
func share(c *ops.Chain, err, square *gorgonia.Node) *gorgonia.Node {
	some := c.Lt(c.Neg(square), -10*shareTiny)
	return c.Div(c.Mul(err, some), c.Shift(square, shareTiny))
}

// shareTiny is far below the mean square of typical data, but keeps the quotient finite in float32.
const shareTiny = 1e-20
