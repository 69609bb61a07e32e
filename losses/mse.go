package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// MSE is the mean over pixels and batch of (output - target)²; with a mask or sample weights it is a weighted mean, see
// [MeanOf]. With `relative` it is divided by the same mean of target²: the result does not depend on the scale of the data
// and is 1 for an all-zero output.
//
// With `censored` the error of a saturated pixel is max(0, target - output)². A pixel is saturated if its target is at least
// 0.999 times the largest target of the batch. Where parts overlap, their sum may then exceed what an image can show. Only the
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

// Reads implements [Loss].
func (l *MSE) Reads() Reads { return relativeReads(l.meanOnOutput.Reads(), l.Relative || l.Censored) }

// Build implements [Loss].
func (l *MSE) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	output, target := c.Do("on", v.On), c.Do("against", v.Against)
	difference := c.Sub(output, target)
	if l.Censored {
		above := c.Ramp(difference, 1, 0)
		difference = c.Sub(difference, c.Mul(above, saturated(&c, target)))
	}
	err := MeanOf(&c, v, c.Square(difference))
	if l.Relative {
		err = share(&c, err, MeanOf(&c, v, c.Square(target)))
	}
	return err, c.Err()
}

// saturated returns 1 where x is at least 0.999 times its largest value over the batch, else 0. If no value is positive, all
// are 0.
func saturated(c *ops.Chain, x *gorgonia.Node) *gorgonia.Node {
	flat := c.Flatten(x)
	most := c.Do("max", func() (*gorgonia.Node, error) { return gorgonia.Max(flat, 0, 1) })
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

// share returns err / square, where square is the mean square of the targets. For all-zero targets the result is finite.
func share(c *ops.Chain, err, square *gorgonia.Node) *gorgonia.Node {
	return c.Div(err, c.Shift(square, shareTiny))
}

// shareTiny is far below the mean square of typical data, but keeps the quotient finite in float32.
const shareTiny = 1e-20
