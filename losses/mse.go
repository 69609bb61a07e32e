package losses

import (
	"gorgonia.org/gorgonia"
	"tessera/ops"
)

// MSE is the mean over pixels and batch of (output - target)²; with a mask or sample weights it is a weighted mean, see
// [MeanOf]. With `relative` it is divided by the same mean of target²: the result does not depend on the scale of the data
// and is 1 for an all-zero output.
type MSE struct {
	meanOnOutput
	Relative bool `toml:"relative" doc:"divides the error by the mean square of the targets of the batch"`
}

func init() {
	Registry.Register("mse", "mean squared error over pixels and batch", func() Loss { return &MSE{} })
}

// Reads implements [Loss].
func (l *MSE) Reads() Reads { return relativeReads(l.meanOnOutput.Reads(), l.Relative) }

// Build implements [Loss].
func (l *MSE) Build(v Values) (*gorgonia.Node, error) {
	var c ops.Chain
	output, target := c.Do("on", v.On), c.Do("against", v.Against)
	err := MeanOf(&c, v, c.Square(c.Sub(output, target)))
	if l.Relative {
		err = share(&c, err, MeanOf(&c, v, c.Square(target)))
	}
	return err, c.Err()
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
